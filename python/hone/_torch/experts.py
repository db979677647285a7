"""What PyTorch's linear layers of experts do: on CUDA tensors, and on fake ones that have only shapes.

What tensors have to be follows from the descriptions, as for prepared operators. Nothing here records gradients. May be
called from any thread.
"""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import torch
from torch import Tensor

from .._native.arrays import torch_dtype
from .._operators.calls import KINDS
from .._operators.tensors import Wanted
from .declared import DECLARED
from .prepared import DTYPES, FIRST_ROWS, PreparedBySize, dtype_of, lies_well, on

Values = Dict[str, Any]


class ExpertsCall:
    """One operator of torch.ops.hone: `implementation` is its CUDA kernel, `fake` says what that would return."""

    def __init__(self, name: str) -> None:
        self._declared = next(declared for declared in DECLARED if declared.name == name)
        self._tensors = KINDS[self._declared.description].TENSORS
        self._prepared = PreparedBySize(name, self._describe, (FIRST_ROWS,))

    def fake(self, *arguments: Any) -> Tensor:
        """The same checks, shape and dtype."""
        given = self._given(arguments)
        return given["x"].new_empty(self._out_shape(given, self._check(given)))

    def implementation(self, *arguments: Any) -> Tensor:
        given = self._given(arguments)
        fields = self._check(given)
        x, shape = given["x"], self._out_shape(given, fields)
        if x.is_meta or not x.numel():
            return x.new_empty(shape)
        tokens = x.numel() // (x.shape[-1] * (1 if fields["gather"] else fields["top_k"]))
        with on(x.get_device()):
            operator = self._prepared.for_call(tuple(fields.items()), x.get_device(), (tokens,))
            tensors = {name: _readable(value) for name, value in given.items() if isinstance(value, Tensor)}
            made: Tensor = operator(**tensors)
            return made

    def _describe(self, kind: Tuple[Tuple[str, Any], ...], most: Tuple[int, ...]) -> Any:
        return self._declared.description(**dict(kind), max_tokens=most[0])

    def _given(self, arguments: Tuple[Any, ...]) -> Values:
        names = self._declared.names
        return dict(zip(names, (*arguments, *[None] * (len(names) - len(arguments)))))

    # Checks, of fake tensors, too: they raise TypeError or ValueError.

    def _check(self, given: Values) -> Values:
        """The fields of the description, but for the most tokens of a call."""
        fields = self._fields(given)
        lead = self._lead(given, fields)
        for tensor in self._tensors:
            for wanted in tensor.of(self._describe(tuple(fields.items()), (FIRST_ROWS,))):
                if not wanted.written:
                    _check_tensor(given["x"], given.get(wanted.name), wanted, lead)
        return fields

    def _fields(self, given: Values) -> Values:
        x, starts, weight = given["x"], given["starts"], given["weight"]
        least = 2 if given["gather"] else 3
        if x.device.type not in ("cuda", "meta"):
            raise ValueError(f"x: it is on device '{x.device}'; allowed are CUDA devices")
        dtype = dtype_of(x, "x", DTYPES)
        if x.dim() < least - 1 or x.shape[-1] == 0:
            columns = "in" if given["gather"] else "top_k, in"
            raise ValueError(f"x: its shape is {list(x.shape)}; allowed is [..., {columns}], in from 1")
        if starts.dim() != 1 or starts.shape[0] < 2:
            raise ValueError(f"starts: its shape is {list(starts.shape)}; allowed is [experts + 1]")
        if weight.dim() != 3:
            raise ValueError(f"weight: its shape is {list(weight.shape)}; allowed is that of all experts' weights")
        words = {name: given[name] for name in ("top_k", "activation", "gather", "format", "group") if name in given}
        if "zeros" in given:
            words["zeros"] = given["zeros"] is not None
        return {
            **words,
            "in_features": x.shape[-1],
            "out_features": given.get("out_features") or weight.shape[1],
            "experts": starts.shape[0] - 1,
            "dtype": dtype,
            "gated": given["up"] is not None,
            "bias": given["bias"] is not None,
            "combine": given["routing_weights"] is not None,
        }

    @staticmethod
    def _lead(given: Values, fields: Values) -> Tuple[int, ...]:
        """The dimensions of tokens."""
        return tuple(given["x"].shape[:-1] if fields["gather"] else given["x"].shape[:-2])

    def _out_shape(self, given: Values, fields: Values) -> List[int]:
        columns = (fields["out_features"],)
        return [*self._lead(given, fields), *(columns if fields["combine"] else (fields["top_k"], *columns))]


def _check_tensor(x: Tensor, tensor: Any, wanted: Wanted, lead: Tuple[int, ...]) -> None:
    name = wanted.name
    if (tensor is None) == wanted.present:
        state, with_it = ("missing", "it is needed") if wanted.present else ("given", "it goes")
        raise ValueError(f"{name}: it is {state}; {with_it} with {wanted.option or 'every call'}")
    if tensor is None:
        return
    if tensor.device != x.device:
        raise ValueError(f"{name}: it is on device '{tensor.device}'; allowed is that of x, '{x.device}'")
    allowed = [torch_dtype(torch, dtype) for dtype in wanted.dtypes]
    if tensor.dtype not in allowed:
        raise TypeError(f"{name}: its dtype is {tensor.dtype}; allowed is {' or '.join(map(str, allowed))}")
    shape = (*lead, *wanted.shape) if wanted.rows else wanted.shape
    if tuple(tensor.shape) != tuple(shape):
        raise ValueError(f"{name}: its shape is {list(tensor.shape)}; allowed is {list(shape)}")


def _readable(tensor: Tensor) -> Tensor:
    """The tensor, or a copy that kernels can read."""
    return tensor if lies_well(tensor) else tensor.clone(memory_format=torch.contiguous_format)


expert_linear = ExpertsCall("expert_linear")
quantized_expert_linear = ExpertsCall("quantized_expert_linear")
