"""Arrays of other libraries: `__cuda_array_interface__` and DLPack exporters over a given device pointer."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Optional, Tuple

from hone._native import dlpack

CODES = {name: code for code, name in dlpack._DTYPES.items()}


class Integer:
    """A scalar of NumPy: an integer that is no int."""

    def __init__(self, value: int) -> None:
        self._value = value

    def __index__(self) -> int:
        return self._value


class Interface:
    """`__cuda_array_interface__` as it is given, whatever it says."""

    def __init__(self, said: Any) -> None:
        self.__cuda_array_interface__ = said


class InterfaceArray:
    """`__cuda_array_interface__`, version 3."""

    def __init__(
        self, pointer: int, shape: Tuple[int, ...], typestr: str = "<f2",
        strides_bytes: Optional[Tuple[int, ...]] = None, read_only: bool = False, **more: Any,
    ) -> None:
        self.__cuda_array_interface__: Dict[str, Any] = {
            "shape": shape,
            "typestr": typestr,
            "data": (pointer, read_only),
            "strides": strides_bytes,
            "version": 3,
            **more,
        }


class _Exported:
    """The C side of one capsule; `Exporter.alive` holds it until its deleter runs."""

    def __init__(self, exporter: "Exporter") -> None:
        shape = exporter.shape
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = (ctypes.c_int64 * len(shape))(*exporter.strides) if exporter.strides else None
        kind = dlpack.ManagedTensorVersioned if exporter.versioned else dlpack.ManagedTensor
        self.managed = kind()
        tensor = self.managed.tensor
        tensor.data = exporter.pointer - exporter.byte_offset
        tensor.byte_offset = exporter.byte_offset
        tensor.device.type, tensor.device.id = exporter.device
        tensor.ndim = len(shape)
        tensor.dtype.code, tensor.dtype.bits = CODES[exporter.dtype]
        tensor.dtype.lanes = exporter.lanes
        tensor.shape = ctypes.cast(self.shape, ctypes.POINTER(ctypes.c_int64))
        if self.strides is not None:
            tensor.strides = ctypes.cast(self.strides, ctypes.POINTER(ctypes.c_int64))
        if exporter.versioned:
            self.managed.major = exporter.major
            self.managed.flags = 1 if exporter.read_only else 0


_DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _DESTRUCTOR)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_capsule_has_name = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)


class Exporter:
    """`__dlpack__`. Counts exports and deletions; remembers the stream it was asked for."""

    def __init__(
        self, pointer: int, shape: Tuple[int, ...], dtype: str = "bf16",
        strides: Optional[Tuple[int, ...]] = None, device: Tuple[int, int] = (2, 0), versioned: bool = True,
        major: int = 1, read_only: bool = False, byte_offset: int = 0, lanes: int = 1,
    ) -> None:
        self.pointer, self.shape, self.dtype, self.strides = pointer, shape, dtype, strides
        self.device, self.versioned, self.major, self.read_only = device, versioned, major, read_only
        self.byte_offset, self.lanes = byte_offset, lanes
        self.exports = self.deletions = 0
        self.stream: Any = None
        self._alive: Dict[int, _Exported] = {}
        self._destructors: List[Any] = []

    @property
    def name(self) -> bytes:
        return b"dltensor_versioned" if self.versioned else b"dltensor"

    def __dlpack_device__(self) -> Tuple[int, int]:
        return self.device

    def __dlpack__(self, **options: Any) -> Any:
        if "max_version" in options and not self.versioned:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        self.stream = options["stream"]
        self.exports += 1
        exported = _Exported(self)
        address = ctypes.addressof(exported.managed)
        self._alive[address] = exported
        # A destructor has to outlive its capsule: this object does.
        self._destructors.append(_DESTRUCTOR(lambda capsule: self._destroyed(capsule, address)))
        return _new_capsule(address, self.name, self._destructors[-1])

    def _destroyed(self, capsule: int, address: int) -> None:
        """A capsule that was renamed belongs to whoever did it."""
        if _capsule_has_name(capsule, self.name):
            self.deletions += 1
            del self._alive[address]
