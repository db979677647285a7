"""What the modules of bench/torch_operators are made of: a case, the tensors of its inputs, PyTorch's ways.

A case is a dict: `op`, the sizes that its functions read, and `dtype` (bf16 if absent).
Its inputs are told as shapes, dtypes and what fills them; a set of tensors is made of that as often as one is
needed.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from torch_hone import Ours

Case = Dict[str, Any]
Inputs = Dict[str, Tensor]
Call = Callable[[Inputs], Any]
Shape = Tuple[int, ...]

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


class Input(NamedTuple):
    """A tensor of an input set."""

    shape: Shape
    dtype: torch.dtype
    make: Callable[[Inputs], Tensor]  # out of those that stand before it in the set


class Family(NamedTuple):
    """Functions of a case."""

    inputs: Callable[[Case], Dict[str, Input]]
    out: Callable[[Case], Shape]  # the shape of what every way returns, or returns first
    peers: Callable[[Case], Dict[str, Call]]  # PyTorch's ways, by name
    hone: Ours
    reference: Callable[[Case, Inputs], Tuple[Tensor, ...]]  # what the ways return, in a wider dtype
    work: Callable[[Case], Tuple[int, int]]  # (bytes that have to move, floating-point operations)
    # How wrong a way's outputs are beside the reference; None: by their distance, relative to its length.
    error: Optional[Callable[[Any, Tuple[Tensor, ...]], float]] = None


def table(names: str, rows: str) -> List[Case]:
    """A case for each line of `rows`: under each name a number, yes, no, or a word."""
    return [_case(names.split(), line.split()) for line in rows.strip().splitlines()]


def _case(names: List[str], words: List[str]) -> Case:
    if len(words) != len(names):
        raise ValueError(f"{' '.join(words)}: {len(words)} words; needed are {len(names)}: {' '.join(names)}")
    return dict(zip(names, map(_value, words)))


def _value(word: str) -> Any:
    return int(word) if word.isdigit() else {"yes": True, "no": False}.get(word, word)


def dtype_of(case: Case) -> torch.dtype:
    return DTYPES[case.get("dtype", "bf16")]


def make(wanted: Input, inputs: Inputs) -> Tensor:
    """The tensor. Raises ValueError where it is not what was told."""
    made = wanted.make(inputs)
    if tuple(made.shape) != wanted.shape or made.dtype != wanted.dtype:
        raise ValueError(f"it is {list(made.shape)} of {made.dtype}; told was {wanted.shape}, {wanted.dtype}")
    return made


def make_inputs(family: Family, case: Case) -> Inputs:
    """One set, with tensors of its own."""
    inputs: Inputs = {}
    for name, wanted in family.inputs(case).items():
        inputs[name] = make(wanted, inputs)
    return inputs


def normal(*shape: int, dtype: torch.dtype, deviation: float = 1.0) -> Input:
    return Input(shape, dtype, lambda _: torch.randn(*shape, device="cuda", dtype=dtype).mul_(deviation))


def weight(rows: int, columns: int, dtype: torch.dtype) -> Input:
    """Scaled so that a product with it is about as large as its other factor."""
    return normal(rows, columns, dtype=dtype, deviation=columns**-0.5)


def indices(*shape: int, below: int) -> Input:
    """Random numbers from 0."""
    return Input(shape, torch.int64, lambda _: torch.randint(below, shape, device="cuda"))


def filled(*shape: int, value: float, dtype: torch.dtype = torch.float32) -> Input:
    return Input(shape, dtype, lambda _: torch.full(shape, value, dtype=dtype, device="cuda"))


def counted(count: int) -> Input:
    """0, 1, 2 and so on."""
    return Input((count,), torch.int64, lambda _: torch.arange(count, device="cuda"))


def wide_dtype(case: Case) -> torch.dtype:
    """float32, or float64 for cases of float32."""
    return torch.float64 if dtype_of(case) == torch.float32 else torch.float32


def wide(case: Case, inputs: Inputs) -> Inputs:
    return {name: tensor.to(wide_dtype(case)) for name, tensor in inputs.items()}


def as_tuple(outputs: Any) -> Tuple[Tensor, ...]:
    return tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)


def check_shape(outputs: Any, shape: Shape) -> None:
    """Raises ValueError where a way returns another one, which could be stretched to the reference's."""
    found = tuple(as_tuple(outputs)[0].shape)
    if found != shape:
        raise ValueError(f"it returned {found}, not {shape}")


def eager_and_compiled(function: Callable[..., Any], *names: str) -> Dict[str, Call]:
    """PyTorch's two ways of a function of these inputs."""
    return {
        "torch eager": lambda inputs: function(*(inputs[name] for name in names)),
        "inductor": compiled(function, *names),
    }


def compiled(function: Callable[..., Any], *names: str) -> Call:
    """Inductor's version, compiled once, on flat arguments: no guard sees the dict."""
    optimized = torch.compile(function, dynamic=False)
    return lambda inputs: optimized(*(inputs[name] for name in names))
