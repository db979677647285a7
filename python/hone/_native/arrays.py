"""Reads arrays of other libraries: PyTorch tensors, `__cuda_array_interface__`, DLPack.

The careful way, which checks everything and names the argument in each error; prepared operators have a
faster one for tensors that are as they should be (operators.py). Nothing is imported: PyTorch is used when
the program has imported it.
"""

from __future__ import annotations

import math
import operator
import sys
from typing import Any, Callable, Dict, NamedTuple, Optional, Protocol, Sequence, Tuple, Union

from . import dlpack

ITEM_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "int8": 1, "uint8": 1, "int32": 4, "int64": 8, "fp8_e4m3": 1, "fp64": 8}

TORCH_DTYPES = {
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "int8": "int8",
    "uint8": "uint8",
    "int32": "int32",
    "int64": "int64",
    "fp8_e4m3": "float8_e4m3fn",
}
_FROM_TORCH = {f"torch.{theirs}": ours for ours, theirs in TORCH_DTYPES.items()}

# V2 is how NumPy spells bfloat16 of the ml_dtypes package.
_FROM_TYPESTR = {
    "f4": "fp32", "f2": "fp16", "V2": "bf16", "i1": "int8", "u1": "uint8", "i4": "int32", "i8": "int64", "f8": "fp64",
}  # fmt: skip

_LARGEST = (1 << 63) - 1  # of sizes, strides and addresses

# Kernels access at most so many bytes at once.
ALIGNMENT = 16


class _Exporter(Protocol):
    @property
    def __dlpack__(self) -> Callable[..., Any]: ...


class _WithInterface(Protocol):
    @property
    def __cuda_array_interface__(self) -> Any: ...


# What a call takes: tensors of PyTorch, and arrays of CuPy, Numba and JAX.
Array = Union[_Exporter, _WithInterface]


class ArrayView(NamedTuple):
    """An array in device memory, as an argument of a call. Valid as long as `owner` is."""

    name: str  # of the argument, for messages
    pointer: int
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]  # in elements
    dtype: str  # a key of ITEM_BYTES, or the owner's own name for another type
    device: Optional[int]  # as the CUDA driver counts; None: not known
    stream: Optional[int]  # on which the owner works; None: not said
    read_only: bool
    owner: Any

    @property
    def contiguous(self) -> bool:
        """Row-major without gaps."""
        return all(
            size == 1 or stride == wanted
            for size, stride, wanted in zip(self.shape, self.strides, dlpack.compact_strides(self.shape))
        )


def torch() -> Any:
    """The module, if the program has imported it, else None."""
    return sys.modules.get("torch")


def torch_dtype(module: Any, dtype: str) -> Any:
    """PyTorch's dtype for one of ours; bytes where an old PyTorch has no fp8."""
    return getattr(module, TORCH_DTYPES[dtype], module.uint8)


def is_torch_tensor(value: Any) -> bool:
    module = torch()
    return module is not None and isinstance(value, module.Tensor)


def view(value: Any, name: str, stream: int = 0) -> ArrayView:
    """Reads an argument; `stream` is where it will be used (only DLPack exporters want to know).

    Raises TypeError for what is no array, ValueError for one that is not in CUDA memory.
    """
    if is_torch_tensor(value):
        return _from_torch(value, name)
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        return _from_interface(value, interface, name)
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return _from_dlpack(value, name, stream)
    raise TypeError(
        f"{name}: a {type(value).__name__} is no array in GPU memory; allowed are torch tensors and objects "
        f"with __cuda_array_interface__ or __dlpack__"
    )


def stream_of(value: Any) -> Optional[int]:
    """The stream that an array says it is worked on by `__cuda_array_interface__` version 3, else None."""
    interface = getattr(value, "__cuda_array_interface__", None)
    return interface.get("stream") if isinstance(interface, dict) else None


def _from_torch(tensor: Any, name: str) -> ArrayView:
    device = tensor.device
    if device.type != "cuda":
        raise _not_in_gpu_memory(name, f"a torch tensor on device '{device}'")
    if str(tensor.layout) != "torch.strided":
        raise ValueError(f"{name}: its layout is {tensor.layout}; allowed is torch.strided")
    return ArrayView(
        name=name,
        pointer=tensor.data_ptr(),
        shape=tuple(tensor.shape),
        strides=tuple(tensor.stride()),
        dtype=_FROM_TORCH.get(str(tensor.dtype), str(tensor.dtype)),
        device=tensor.get_device(),
        stream=None,
        read_only=False,
        owner=tensor,
    )


def _from_interface(value: Any, interface: Any, name: str) -> ArrayView:
    if not isinstance(interface, dict):
        raise TypeError(f"{name}: its __cuda_array_interface__ is a {type(interface).__name__}; allowed is a dict")
    if interface.get("mask") is not None:
        raise ValueError(f"{name}: it has a mask; allowed are arrays without one")
    shape = _integers(interface.get("shape"), "shape", name, least=0)
    typestr = interface.get("typestr")
    if not isinstance(typestr, str):
        raise TypeError(f"{name}: its typestr is {typestr!r}; allowed is a str such as '<f2'")
    dtype = typestr if typestr.startswith(">") else _FROM_TYPESTR.get(typestr[1:], typestr)
    data = interface.get("data")
    if not isinstance(data, tuple) or len(data) != 2:
        raise TypeError(f"{name}: its data is {data!r}; allowed is (address, read-only)")
    pointer, read_only = data
    strides = interface.get("strides")
    if strides is not None:
        strides = _integers(strides, "strides", name, least=-_LARGEST)
        if len(strides) != len(shape):
            raise ValueError(f"{name}: its strides are {strides} for shape {shape}; allowed are as many as dimensions")
    return ArrayView(
        name=name,
        pointer=_integers((pointer or 0,), "address", name, least=0)[0],
        shape=shape,
        strides=_elements(strides, shape, ITEM_BYTES.get(dtype, 1), name),
        dtype=dtype,
        device=_interface_device(value),
        stream=interface.get("stream"),
        read_only=bool(read_only),
        owner=value,
    )


def _integers(given: Any, what: str, name: str, least: int) -> Tuple[int, ...]:
    """What an interface says in integers, as C takes them."""
    try:
        numbers = tuple(operator.index(number) for number in given)
    except TypeError:
        raise TypeError(f"{name}: its {what} is {given!r}; allowed are integers") from None
    if any(not least <= number <= _LARGEST for number in numbers):
        raise ValueError(f"{name}: its {what} is {given!r}; allowed are integers from {least} to {_LARGEST}")
    return numbers


def _elements(
    strides: Optional[Sequence[int]], shape: Tuple[int, ...], item_bytes: int, name: str
) -> Tuple[int, ...]:
    """Byte strides as element strides."""
    if strides is None:
        return dlpack.compact_strides(shape)
    if any(stride % item_bytes for stride in strides):
        raise ValueError(
            f"{name}: its strides are {tuple(strides)} bytes; allowed are multiples of its {item_bytes} byte "
            f"items"
        )
    return tuple(stride // item_bytes for stride in strides)


def _interface_device(value: Any) -> Optional[int]:
    """The interface does not say where an array is; its library may."""
    if hasattr(value, "__dlpack_device__"):
        kind, ordinal = value.__dlpack_device__()
        return int(ordinal) if int(kind) == dlpack.CUDA else None
    device = getattr(value, "device", None)
    ordinal = getattr(device, "id", None)
    return ordinal if isinstance(ordinal, int) else None


def _from_dlpack(value: Any, name: str, stream: int) -> ArrayView:
    kind = int(value.__dlpack_device__()[0])
    if kind not in (dlpack.CUDA, dlpack.CUDA_MANAGED):
        where = dlpack.DEVICE_NAMES.get(kind, "the memory of another kind of device")
        raise _not_in_gpu_memory(name, f"{where} (DLPack device type {kind})")
    capsule = dlpack.export(value, stream)
    try:
        contents = dlpack.read(capsule)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    return ArrayView(
        name=name,
        pointer=contents.pointer,
        shape=contents.shape,
        strides=contents.strides,
        dtype=contents.dtype,
        device=contents.device[1] if contents.device[0] == dlpack.CUDA else None,
        stream=None,
        read_only=contents.read_only,
        owner=(value, capsule),
    )


def _not_in_gpu_memory(name: str, where: str) -> ValueError:
    return ValueError(f"{name}: it is {where}; allowed is memory of a CUDA device")


# What an operator may ask of a view. Each raises an error that names the argument.


def check_dtype(array: ArrayView, allowed: Sequence[str]) -> None:
    """Raises TypeError."""
    if array.dtype not in allowed:
        raise TypeError(f"{array.name}: its dtype is {array.dtype}; allowed is {' or '.join(allowed)}")


def check_device(array: ArrayView, device: int) -> None:
    """Raises ValueError for an array that is known to be on another device."""
    if array.device is not None and array.device != device:
        raise ValueError(
            f"{array.name}: it is on CUDA device {array.device}; this operator was prepared for device "
            f"{device}"
        )


def check_writable(array: ArrayView) -> None:
    """Raises ValueError."""
    if array.read_only:
        raise ValueError(f"{array.name}: it is read-only; allowed is memory that may be written")


def has_sizes(shape: Sequence[int], wanted: Sequence[Union[int, str]]) -> bool:
    """Whether a shape is the wanted one, in which a word allows any size."""
    return len(shape) == len(wanted) and all(
        isinstance(size, str) or size == found for size, found in zip(wanted, shape)
    )


def check_shape(array: ArrayView, shape: Tuple[int, ...]) -> None:
    """Raises ValueError."""
    if array.shape != shape:
        raise ValueError(f"{array.name}: its shape is {list(array.shape)}; allowed is {list(shape)}")


def check_contiguous(array: ArrayView) -> None:
    """Raises ValueError."""
    if not array.contiguous:
        raise ValueError(
            f"{array.name}: its strides are {list(array.strides)} for shape {list(array.shape)}; allowed is "
            f"a contiguous array, of strides {list(dlpack.compact_strides(array.shape))}"
        )


def rows_of(array: ArrayView, hidden: int) -> Tuple[int, int]:
    """(rows, stride between two rows in elements) of an array [..., hidden].

    Raises ValueError when the last dimension is another or has gaps, or when the rows have no one common
    distance of at least `hidden`.
    """
    shape = array.shape
    if not shape or shape[-1] != hidden:
        raise ValueError(f"{array.name}: its shape is {list(shape)}; allowed is [..., {hidden}]")
    if array.strides[-1] != 1 and hidden != 1:
        raise ValueError(
            f"{array.name}: the stride of its last dimension is {array.strides[-1]}; allowed is 1: "
            f"contiguous rows"
        )
    if 0 in shape:
        return 0, hidden
    stride = row_distance(shape, array.strides)
    if stride is None:
        raise _no_common_stride(array)
    if stride < hidden:
        raise ValueError(
            f"{array.name}: its rows are {stride} elements apart; allowed are rows that do not overlap, "
            f"{hidden} or more apart"
        )
    return math.prod(shape[:-1]), stride


def row_distance(shape: Sequence[int], strides: Sequence[int]) -> Optional[int]:
    """Elements from each row of an array [..., columns] to the next, `columns` for a single row; None where
    the rows have no one common distance."""
    rows = 1
    distance = None  # of the innermost dimension of several rows
    for size, step in zip(reversed(shape[:-1]), reversed(strides[:-1])):
        if size == 1:
            continue
        if distance is None:
            distance = step
        elif step != rows * distance:
            return None
        rows *= size
    return shape[-1] if distance is None else distance


def _no_common_stride(array: ArrayView) -> ValueError:
    return ValueError(
        f"{array.name}: its strides are {list(array.strides)} for shape {list(array.shape)}; allowed are "
        f"leading dimensions that collapse into one, so that all rows have one common stride: make it "
        f"contiguous first"
    )


def misaligned(array: ArrayView, row_stride: int) -> str:
    """What of an array is no multiple of 16 bytes, as a sentence; "" when all is."""
    if array.pointer % ALIGNMENT:
        address = f"{array.pointer:#x}"
        return f"{array.name}: its address {address} is no multiple of {ALIGNMENT} bytes, which is needed"
    bytes_apart = row_stride * ITEM_BYTES.get(array.dtype, 1)
    if bytes_apart % ALIGNMENT:
        return (
            f"{array.name}: its rows are {row_stride} elements ({bytes_apart} bytes) apart, no multiple of "
            f"{ALIGNMENT} bytes, which is needed"
        )
    return ""
