"""PyTorch's operators of tensors [..., columns] and dense weights: on CUDA tensors, and on fake ones that
have only shapes. What they are follows from the declarations (declared.py, calls.py).

Called by the dispatcher (registered.py), and by the autograd kernels (autograd.py). Nothing here records
gradients. A good call is recognized by one look-up in a dict and the checks that fast_path.py writes; every
other call, good or not, goes through _with_care(). May be called from any thread.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, List, Optional, Tuple

import torch
from torch import Tensor

from .._native.arrays import TORCH_DTYPES, torch_dtype
from .._native.structs import ACTIVATIONS
from .._operators.calls import KINDS
from .._operators.tensors import Tensor as DeclaredTensor
from .declared import Declared
from .prepared import (
    CODES,
    DTYPES,
    FIRST_ROWS,
    KnownCalls,
    PreparedBySize,
    check_first,
    check_like,
    check_output,
    dtype_of,
    known_call,
    on,
    run_on_any,
)

Fields = Dict[str, Any]
Values = Dict[str, Any]


class RowsCall:
    """One operator of torch.ops.hone: `implementation` is its CUDA kernel, `fake` says what that would
    return."""

    def __init__(self, declared: Declared) -> None:
        self._declared = declared
        kind = KINDS[declared.description]
        self._tensors = kind.TENSORS
        inputs = [tensor for tensor in self._tensors if tensor.name in declared.names]
        # Those that every call has come first: they say the sizes that others are held to. The first sets
        # the rows.
        self._inputs = sorted(inputs, key=lambda one: (one.name != "x", bool(one.when), not one.rows))
        self._lead = self._inputs[0].name
        # The tensor whose dtype is the operator's.
        self._typed = next(tensor.name for tensor in self._inputs if not tensor.dtype)
        # Fields that are words; such a field may be the dtype of tensors.
        self._words = declared.description.WORDS
        self._optional_numbers = [name for name in kind.NUMBERS if hasattr(declared.description, name)]
        self._fields = [field.name for field in dataclasses.fields(declared.description)]
        self._known = KnownCalls(declared.names)
        self._prepared = PreparedBySize(declared.name, self._describe, (FIRST_ROWS,))
        self.known = known_call(declared, self._key_parts(), self._known, self._with_care)
        self._key, self.implementation = self.known.key_of, self.known.implementation

    def _describe(self, fields: Tuple[Tuple[str, Any], ...], most: Tuple[int, ...]) -> Any:
        description = self._declared.description
        return description(**dict(fields), **{description.LIMIT: most[0]})

    def _key_parts(self) -> List[str]:
        """What says which operator a call runs."""
        lead, columns = self._lead, self._inputs[0].shape
        parts, sizes = [f"{lead}.dtype", f"{lead}.get_device()"], set(columns)
        parts += [f"{lead}.shape[-1]"] if columns else []
        parts += [f"{self._typed}.dtype"] if self._typed != lead else []
        for tensor in self._inputs[1:]:
            parts += [f"{tensor.name} is None"] if tensor.when else []
            for place, size in enumerate(tensor.shape):
                if size in self._fields and size not in sizes and not tensor.rows:
                    parts.append(f"{tensor.name}.shape[{place}]")
                    sizes.add(size)
        parts += [f"{name} is None" for name in self._optional_numbers if name in self._declared.names]
        parts += [name for name in self._declared.names if name in self._declared.description.WORDS]
        return parts

    def fake(self, *arguments: Any) -> Any:
        """What the operator returns for tensors without memory: the same checks, shapes, dtypes and
        strides."""
        values = self._values(arguments)
        return _one_or_all(list(self._made(values[self._lead], self._check(values)).values()))

    def _values(self, arguments: Tuple[Any, ...]) -> Values:
        names = self._declared.names
        return dict(zip(names, (*arguments, *[None] * (len(names) - len(arguments)))))

    def _with_care(self, *arguments: Any) -> Any:
        """On any tensors: checks, prepares, copies what kernels cannot read."""
        values = self._values(arguments)
        x, fields = values[self._lead], self._check(values)
        made = self._made(x, fields)
        rows = x.numel() // x.shape[-1] if self._inputs[0].shape else x.numel()
        if not rows or x.is_meta:
            for tensor in self._tensors:
                if tensor.name in made and not tensor.rows:  # a sum over no rows
                    made[tensor.name].zero_()
            return _one_or_all(list(made.values()))
        kind = tuple((name, fields[name]) for name in self._fields if name in fields)
        with on(x.get_device()):
            operator = self._prepared.for_call(kind, x.get_device(), (rows,))
            self._known.learn(self._key(*values.values()), operator)
            run_on_any(operator, rows, x, values, made)
        return _one_or_all(list(made.values()))

    def _made(self, x: Tensor, fields: Fields) -> Dict[str, Tensor]:
        """What is written: fresh contiguous tensors, by name."""
        made = {}
        leading = x.shape[:-1] if self._inputs[0].shape else x.shape
        for tensor in self._tensors:
            if not tensor.written or (tensor.when and not fields.get(tensor.when)):
                continue
            sizes = tuple(fields[name] for name in tensor.shape)
            dtype = torch_dtype(torch, tensor.dtype if tensor.dtype in TORCH_DTYPES else fields["dtype"])
            if tensor.dtype == "out_dtype" and "output" in fields:
                dtype = CODES[fields["output"]]
            made[tensor.name] = x.new_empty((*leading, *sizes) if tensor.rows else sizes, dtype=dtype)
        return made

    # Checks, of fake tensors, too: they raise TypeError or ValueError.

    def _check(self, values: Values) -> Fields:
        """The fields of the description, but for the most rows of a call; sizes may be symbols."""
        x = values[self._lead]
        fields: Fields = dict(self._declared.fixed)
        self._check_words(values, fields)
        columns = self._inputs[0].shape
        check_first(x, self._lead, columns[0].partition("_")[0] if columns else "")
        fields["dtype"] = dtype_of(values[self._typed], self._typed, DTYPES)
        named = self._inputs[0].dtype
        if named in self._words:
            words = self._words[named]
            fields[named] = dtype_of(x, self._lead, {torch_dtype(torch, word): word for word in words})
        if columns:
            fields[columns[0]] = x.shape[-1]
        for tensor in self._inputs[1:]:
            self._check_tensor(x, tensor, values[tensor.name], fields)
        self._check_partners(values)
        if "norm_weight" in values:
            _check_norm(values["norm_weight"], values["epsilon"])
        if fields.get("gated") and fields.get("bias"):
            name = "down_bias" if values["up_bias"] is None else "up_bias"
            raise ValueError(f"{name}: it is given; allowed is None with a gate")
        return fields

    def _check_words(self, values: Values, fields: Fields) -> None:
        if "output" in values:
            check_output(values["output"])
            fields["output"], fields["quantized"] = values["output"], True
        fields.update({name: values.get(name) is not None for name in self._optional_numbers})
        if "activation" in values:
            _check_activation(values["activation"], values.get("gate") is not None)
            fields["activation"] = values["activation"]

    def _check_tensor(
        self, x: Tensor, tensor: DeclaredTensor, value: Optional[Tensor], fields: Fields
    ) -> None:
        """Checks one tensor, and learns sizes that only it says."""
        if tensor.when:
            fields.setdefault(tensor.when, value is not None)
        if value is None:
            return
        if not tensor.rows and not all(size in fields for size in tensor.shape):
            _check_new_sizes(tensor, value, fields)
            for place, size in enumerate(tensor.shape):
                fields.setdefault(size, value.shape[place])
        sizes = tuple(fields[size] for size in tensor.shape)
        leading = x.shape[:-1] if self._inputs[0].shape else x.shape
        dtype, like = tensor.dtype, ""
        if dtype not in TORCH_DTYPES:
            named = dtype in self._words
            like = self._lead if named else self._typed
            dtype = fields[dtype if named else "dtype"]
        shape = (*leading, *sizes) if tensor.rows else sizes
        check_like(x, self._lead, tensor.name, value, shape, torch_dtype(torch, dtype), like)

    def _check_partners(self, values: Values) -> None:
        """Tensors that are there for one reason come together."""
        missing = [one for one in self._inputs if one.when and values[one.name] is None]
        for one in missing:
            for other in self._inputs:
                if one.when == other.when and values[other.name] is not None:
                    raise ValueError(f"{one.name}: it is missing; it is needed with {other.name}")


def _one_or_all(tensors: List[Tensor]) -> Any:
    return tensors[0] if len(tensors) == 1 else tuple(tensors)


def _check_activation(activation: str, gated: bool) -> None:
    """A gate without one would be a plain product."""
    allowed = [name for name in ACTIVATIONS if not (gated and name == "none")]
    if activation not in allowed:
        raise ValueError(
            f"activation: {activation!r}; allowed are {', '.join(allowed)}{' with a gate' if gated else ''}"
        )


def _check_new_sizes(tensor: DeclaredTensor, value: Tensor, fields: Fields) -> None:
    """Sizes that this tensor says may be any from 1."""
    shape = [str(fields.get(size, size.partition("_")[0])) for size in tensor.shape]
    new = [place for place, size in enumerate(tensor.shape) if size not in fields]
    if value.dim() != len(shape) or any(value.shape[place] == 0 for place in new):
        names = ", ".join(shape[place] for place in new)
        raise ValueError(
            f"{tensor.name}: its shape is {list(value.shape)}; allowed is [{', '.join(shape)}], {names} from "
            f"1"
        )


def _check_norm(norm_weight: Optional[Tensor], epsilon: Optional[float]) -> None:
    if norm_weight is None and epsilon is not None:
        raise ValueError(f"epsilon: {epsilon}; allowed is None without a norm_weight")
    if norm_weight is not None and epsilon is None:
        raise ValueError("epsilon: it is missing; it is needed with norm_weight")
