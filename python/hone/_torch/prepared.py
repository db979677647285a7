"""What PyTorch's operators need before they can launch: prepared operators by the sizes of a call, checks, layouts,
devices.

Every function may be called from any thread.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import Any, Callable, ContextManager, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor

from .._native.arrays import row_distance
from .._operators.base import NOT_PLAIN
from .._operators.prepare import prepare_operator
from .declared import Declared

DTYPES = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32"}
CODES = {"int8": torch.int8, "fp8": torch.float8_e4m3fn}
ALIGNMENT = 16  # bytes: pointers and row strides that are a multiple suit every kernel
FIRST_ROWS = 8192  # what an operator is prepared for at first; doubled until a call's rows fit

_lock = threading.Lock()


Key = Tuple[Any, ...]  # what is alike in calls


class PreparedBySize(Dict[Key, Tuple[Any, ...]]):
    """Prepared operators whose calls have several sizes: (operator, the most of each) by (what it is but for
    them, device)."""

    def __init__(
        self, name: str, describe: Callable[[Any, Tuple[int, ...]], Any], first: Tuple[int, ...]
    ) -> None:
        """For hone::`name`; `describe` gets what it is and the most of each size, `first` or doublings of
        it."""
        super().__init__()
        self.name = name
        self._describe = describe
        self._first = first
        # Those that larger ones replaced, too: a captured CUDA graph may launch their kernels.
        self._kept: List[Any] = []

    def for_call(self, kind: Any, device: int, sizes: Tuple[int, ...]) -> Any:
        """The operator; prepares it at first and when a call is of more."""
        found = self.get((kind, device))
        if found is not None and all(size <= most for size, most in zip(sizes, found[1])):
            return found[0]
        with _lock:
            found = self.get((kind, device))
            if found is not None and all(size <= most for size, most in zip(sizes, found[1])):
                return found[0]
            most = tuple(map(_doubled, self._first if found is None else found[1], sizes))
            description = self._describe(kind, most)
            refuse_capture(self.name, f"{description}")
            operator = prepare_operator(description, device, stacklevel=3)
            self._kept.append(operator)
            self[kind, device] = operator, most
            return operator


class KnownCalls(Dict[Key, Callable[..., Any]]):
    """The fast ways of calls (fast_path.py), by what is alike in them."""

    def __init__(self, names: Tuple[str, ...]) -> None:
        """`names`: of the arguments of a call."""
        super().__init__()
        self._names = names
        self._operators: Dict[Key, Any] = {}

    def learn(self, key: Key, operator: Any) -> None:
        """Calls with this key may run the operator from now on; a larger one takes the place of another."""
        if self._operators.get(key) is not operator:
            self[key] = operator.fresh_call(torch, self._names)
            self._operators[key] = operator


# What says that nothing is known of a call, or that it is not as it should be.
_ABSENT = (*NOT_PLAIN, KeyError)


class KnownCall(NamedTuple):
    """An operator whose calls are looked up."""

    key_of: Callable[..., Key]  # what is alike in calls
    implementation: Callable[..., Any]  # what is known for the key, else what a call with care does
    lines: Tuple[str, ...]  # what the implementation tries, as text
    names: Dict[str, Any]  # what stands in it


def known_call(
    declared: Declared, key: Sequence[str], known: KnownCalls, with_care: Callable[..., Any]
) -> KnownCall:
    """An operator whose calls are alike where these parts are, written out for its arguments."""
    names = ", ".join(name for _, name in declared.arguments)
    tries = ("try:", f"    return known[{', '.join(key)}]({names})", "except ABSENT:", "    pass")
    lines = [
        f"def key_of({declared.parameters}):",
        f"    return {', '.join(key)}",
        f"def {declared.name}({declared.parameters}):",
        *(f"    {line}" for line in tries),
        f"    return with_care({names})",
    ]
    words: Dict[str, Any] = {"known": known, "ABSENT": _ABSENT}
    found: Dict[str, Any] = {"__name__": __name__, **words, "with_care": with_care}
    exec(compile("\n".join(lines), f"<hone::{declared.name}>", "exec"), found)
    return KnownCall(found["key_of"], found[declared.name], tries, words)


def _doubled(value: int, needed: int) -> int:
    while value < needed:
        value *= 2
    return value


def refuse_capture(name: str, what: str) -> None:
    """Loading a kernel would break the capture, and its error would not say why."""
    if torch.cuda.is_current_stream_capturing():
        raise RuntimeError(
            f"hone::{name} is not prepared for {what} and cannot be while a CUDA graph is captured: warm up "
            f"by calling it once with these sizes before the capture, or capture an operator made by "
            f"hone.prepare()"
        )


def dtype_of(tensor: Tensor, name: str, allowed: Dict[torch.dtype, str]) -> str:
    """Our word for a tensor's dtype. Raises TypeError."""
    if tensor.dtype not in allowed:
        raise TypeError(f"{name}: its dtype is {tensor.dtype}; allowed are {', '.join(map(str, allowed))}")
    return allowed[tensor.dtype]


def check_first(x: Tensor, name: str, last: str) -> None:
    """Raises ValueError for a first tensor that no kernel takes: [..., last], or [...] where `last` is "". It
    may be fake, of symbolic sizes."""
    if x.device.type not in ("cuda", "meta"):
        raise ValueError(f"{name}: it is on device '{x.device}'; allowed are CUDA devices")
    if last and (x.dim() == 0 or x.shape[-1] == 0):
        raise ValueError(f"{name}: its shape is {list(x.shape)}; allowed is [..., {last}], {last} from 1")


def check_like(
    x: Tensor, first: str, name: str, tensor: Tensor, shape: Tuple[int, ...], dtype: torch.dtype,
    like: str,
) -> None:  # fmt: skip
    """Raises TypeError or ValueError for a tensor of another dtype or shape, or another device than that of the
    first; `like`: the one that has the same dtype, "" where it is always this."""
    if tensor.device != x.device:
        raise ValueError(
            f"{name}: it is on device '{tensor.device}'; allowed is that of {first}, '{x.device}'"
        )
    if tensor.dtype != dtype:
        why = f", the dtype of {like}" if like else ""
        raise TypeError(f"{name}: its dtype is {tensor.dtype}; allowed is {dtype}{why}")
    if tensor.shape != shape:
        raise ValueError(
            f"{name}: its shape is {list(tensor.shape)}; allowed is {list(shape)}, as {first} is "
            f"{list(x.shape)}"
        )


def check_output(output: str) -> torch.dtype:
    """The dtype of the codes. Raises ValueError."""
    if output not in CODES:
        raise ValueError(f"output: {output!r}; allowed are 'int8' and 'fp8'")
    return CODES[output]


def row_stride(x: Tensor) -> int:
    """Elements from each row of x [..., hidden] to the next; 0 where they are unevenly spaced or overlap."""
    hidden = x.shape[-1]
    if hidden > 1 and x.stride(-1) != 1:
        return 0
    distance = row_distance(x.shape, x.stride())
    return distance if distance is not None and distance >= hidden else 0


def readable_rows(x: Tensor) -> Tuple[Tensor, int]:
    """x, or a contiguous copy where kernels cannot read x as it lies, and its row stride in elements."""
    stride = row_stride(x)
    aligned = stride == x.shape[-1] or stride * x.element_size() % ALIGNMENT == 0
    if stride and aligned and x.data_ptr() % ALIGNMENT == 0 and not x.is_neg():
        return x, stride
    return x.resolve_neg().clone(memory_format=torch.contiguous_format), x.shape[-1]


def lies_well(tensor: Tensor) -> bool:
    """Whether a tensor is contiguous and aligned for every kernel."""
    return tensor.is_contiguous() and tensor.data_ptr() % ALIGNMENT == 0


def readable_vector(weight: Tensor) -> Tensor:
    """weight [hidden], or a copy where it is not contiguous and aligned."""
    return weight if lies_well(weight) else weight.clone(memory_format=torch.contiguous_format)


def fresh(x: Tensor, dtype: Optional[torch.dtype] = None) -> Tensor:
    """An uninitialized contiguous tensor of x's shape and device."""
    return torch.empty_like(x, dtype=dtype, memory_format=torch.contiguous_format)


# Looked up once: the public ways to ask make objects of what is asked. A PyTorch that is built without CUDA
# has neither, and no call gets as far.
current_device = getattr(torch._C, "_cuda_getDevice", torch.cuda.current_device)
raw_stream = getattr(
    torch._C, "_cuda_getCurrentRawStream", lambda device: torch.cuda.current_stream(device).cuda_stream
)
_STAY = contextlib.nullcontext()


def on(device: int) -> ContextManager[Any]:
    """Makes a device the current one, where it is not already."""
    return _STAY if device == current_device() else torch.cuda.device(device)


def pointer(tensor: Optional[Tensor]) -> int:
    return 0 if tensor is None else tensor.data_ptr()


def workspace_for(operator: Any, rows: int, x: Tensor) -> Optional[Tensor]:
    """Memory of the current stream that a call needs beside its tensors."""
    size = operator.workspace_bytes(rows)
    return torch.empty((size,), dtype=torch.uint8, device=x.device) if size else None


def run_on_any(
    operator: Any, rows: int, x: Tensor, values: Dict[str, Any], made: Dict[str, Tensor]
) -> None:
    """Runs an operator of rows on checked arguments, by its own names, on the device that is current; copies
    what its kernels cannot read. `made`: what is written."""
    held: List[Optional[Tensor]] = []  # copies live until the kernel is enqueued
    given: Dict[str, Any] = {name: tensor.data_ptr() for name, tensor in made.items()}
    for wanted in operator.wanted:
        value = None if wanted.written or not wanted.present else values[wanted.name]
        if value is None:
            continue
        given.update({size: value.shape[place] for place, size in wanted.said})
        if wanted.strided:
            value, given[wanted.stride] = readable_rows(value)
        else:
            value = readable_vector(value)
        held.append(value)
        given[wanted.name] = value.data_ptr()
    if "workspace" in operator.GIVEN:
        held.append(workspace_for(operator, rows, x))
        given["workspace"] = pointer(held[-1])
    given.update({name: values[name] or 0.0 for name in operator.NUMBERS if name in values})
    operator.run_pointers(raw_stream(x.get_device()), rows, **given)


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


# In a child of fork() no thread is left that would release the lock. The operators stay: inherited ones
# answer with an error that says so, and PyTorch's CUDA cannot be used there either.
os.register_at_fork(after_in_child=_renew_lock)
