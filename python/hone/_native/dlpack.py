"""Reads DLPack capsules, versions 0 and 1, with ctypes.

The capsule is borrowed, not consumed: it keeps its name, so that its own destructor, which its producer
wrote, calls the deleter once when the last reference to it goes. Nothing here may outlive the capsule.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any, NamedTuple, Optional, Tuple

CUDA = 2
CUDA_MANAGED = 13
DEVICE_NAMES = {1: "CPU memory", 3: "pinned CPU memory", 10: "ROCm memory", 11: "pinned CPU memory"}

_DTYPES = {
    (0, 8): "int8",
    (0, 32): "int32",
    (0, 64): "int64",
    (1, 8): "uint8",
    (2, 16): "fp16",
    (2, 32): "fp32",
    (2, 64): "fp64",
    (4, 16): "bf16",
    (10, 8): "fp8_e4m3",
}
_READ_ONLY = 1


class _Device(ctypes.Structure):
    _fields_ = [("type", c_int32), ("id", c_int32)]


class _DataType(ctypes.Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class Tensor(ctypes.Structure):
    """DLTensor"""

    _fields_ = [
        ("data", c_void_p),
        ("device", _Device),
        ("ndim", c_int32),
        ("dtype", _DataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class ManagedTensor(ctypes.Structure):
    """DLManagedTensor, of capsules named "dltensor" """

    _fields_ = [("tensor", Tensor), ("context", c_void_p), ("deleter", c_void_p)]


class ManagedTensorVersioned(ctypes.Structure):
    """DLManagedTensorVersioned, of capsules named "dltensor_versioned" """

    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", Tensor),
    ]


class Contents(NamedTuple):
    """What a capsule says; strides in elements."""

    pointer: int
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]
    dtype: str
    device: Tuple[int, int]
    read_only: bool


def compact_strides(shape: Tuple[int, ...]) -> Tuple[int, ...]:
    """The strides of a row-major array without gaps, in elements."""
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def export(array: Any, stream: int) -> Any:
    """The capsule of an array; what its stream has enqueued so far precedes whatever `stream` gets from now
    on."""
    # DLPack numbers the legacy default stream 1.
    consumer = stream if stream else 1
    try:
        return array.__dlpack__(stream=consumer, max_version=(1, 0))
    except TypeError:  # an exporter older than version 1
        return array.__dlpack__(stream=consumer)


def read(capsule: Any) -> Contents:
    """Raises ValueError for a capsule of a later version than 1, or one that was consumed already."""
    versioned = _pointer(capsule, b"dltensor_versioned")
    if versioned is not None:
        managed = ManagedTensorVersioned.from_address(versioned)
        if managed.major != 1:
            raise ValueError(f"its DLPack version is {managed.major}.{managed.minor}; 1 is understood")
        return _contents(managed.tensor, bool(managed.flags & _READ_ONLY))
    plain = _pointer(capsule, b"dltensor")
    if plain is None:
        raise ValueError("its DLPack capsule was consumed before, or is none")
    return _contents(ManagedTensor.from_address(plain).tensor, False)


def _contents(tensor: Tensor, read_only: bool) -> Contents:
    shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else compact_strides(shape)
    kind = tensor.dtype
    dtype = _DTYPES.get((kind.code, kind.bits)) if kind.lanes == 1 else None
    return Contents(
        pointer=(tensor.data or 0) + tensor.byte_offset,
        shape=shape,
        strides=strides,
        dtype=dtype or f"DLPack type {kind.code} of {kind.bits} bits and {kind.lanes} lanes",
        device=(tensor.device.type, tensor.device.id),
        read_only=read_only,
    )


def _pointer(capsule: Any, name: bytes) -> Optional[int]:
    """None for an object that is no capsule of this name."""
    if not _is_valid(capsule, name):
        return None
    return _get_pointer(capsule, name)


_is_valid = ctypes.PYFUNCTYPE(c_int, ctypes.py_object, c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_get_pointer = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
