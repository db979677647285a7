"""As much of PyTorch as the package touches: tensors that are a pointer with a shape, and the current stream.

install() puts it where `import torch` would; nothing is computed.
"""

from __future__ import annotations

import contextlib
import sys
import types
from typing import Any, Callable, Iterator, Optional, Tuple


class dtype:
    def __init__(self, name: str, itemsize: int) -> None:
        self.name, self.itemsize = name, itemsize

    def __repr__(self) -> str:
        return f"torch.{self.name}"


class device:
    def __init__(self, kind: str, index: Optional[int] = None) -> None:
        self.type, self.index = kind, index

    def __eq__(self, other: Any) -> bool:
        return (self.type, self.index) == (other.type, other.index)

    def __repr__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"


class Size(tuple):
    pass


_next_pointer = 1 << 40


def _reserve(size_bytes: int) -> int:
    global _next_pointer
    pointer = _next_pointer
    _next_pointer += -(-size_bytes // 512) * 512
    return pointer


def _compact(shape: Tuple[int, ...]) -> Tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


class Tensor:
    def __init__(
        self, shape: Any, dtype: dtype, device: device, strides: Optional[Tuple[int, ...]] = None,
        pointer: Optional[int] = None,
    ) -> None:
        self.shape = Size(shape)
        self.dtype = dtype
        self.device = device
        self.layout = "torch.strided"
        self._strides = _compact(self.shape) if strides is None else tuple(strides)
        self._count = 1
        for size in self.shape:
            self._count *= size
        self._contiguous = all(
            size == 1 or stride == wanted
            for size, stride, wanted in zip(self.shape, self._strides, _compact(self.shape))
        )
        self._pointer = _reserve(self._count * dtype.itemsize) if pointer is None else pointer
        self.requires_grad = False
        self.made_for = None  # the raw stream, of those that torch.empty() makes

    def data_ptr(self) -> int:
        return self._pointer

    def stride(self, dimension: Optional[int] = None) -> Any:
        return self._strides if dimension is None else self._strides[dimension]

    def dim(self) -> int:
        return len(self.shape)

    def numel(self) -> int:
        return self._count

    def is_contiguous(self) -> bool:
        return self._contiguous

    @property
    def nbytes(self) -> int:
        return self._count * self.dtype.itemsize

    def get_device(self) -> int:
        return self.device.index if self.device.type == "cuda" else -1

    def element_size(self) -> int:
        return self.dtype.itemsize

    def is_neg(self) -> bool:
        return False

    def resolve_neg(self) -> "Tensor":
        return self

    def clone(self, memory_format: Any = None) -> "Tensor":
        return Tensor(self.shape, self.dtype, self.device)

    def contiguous(self) -> "Tensor":
        return self if self._contiguous else self.clone()

    def zero_(self) -> "Tensor":
        self.zeroed = True
        return self

    @property
    def is_meta(self) -> bool:
        return self.device.type == "meta"

    def new_empty(self, shape: Tuple[int, ...], dtype: Optional[dtype] = None) -> "Tensor":
        return Tensor(shape, dtype or self.dtype, self.device)

    def transpose(self, one: int, other: int) -> "Tensor":
        order = list(range(len(self.shape)))
        order[one], order[other] = other, one
        shape, strides = ([values[place] for place in order] for values in (self.shape, self._strides))
        return Tensor(shape, self.dtype, self.device, tuple(strides), self._pointer)

    def float(self) -> "Tensor":
        return Tensor(self.shape, dtype("float32", 4), self.device)

    def __add__(self, other: "Tensor") -> "Tensor":
        return Tensor(self.shape, self.dtype, self.device)


class Parameter(Tensor):
    """A subclass, as weights of modules are."""


class Cuda:
    """torch.cuda: `current` is the current device, `streams` the current stream of each."""

    def __init__(self, devices: int) -> None:
        self.devices = devices
        self.current = 0
        self.streams = {}
        self.initialized = True

    def is_available(self) -> bool:
        return self.devices > 0

    def is_initialized(self) -> bool:
        return self.initialized

    def device_count(self) -> int:
        return self.devices

    def is_current_stream_capturing(self) -> bool:
        return False

    def synchronize(self) -> None:
        pass

    def current_device(self) -> int:
        return self.current

    def current_stream(self, index: int) -> Any:
        return types.SimpleNamespace(cuda_stream=self.streams.get(index, 0))

    def default_stream(self, index: int) -> Any:
        return types.SimpleNamespace(cuda_stream=0, index=index)

    def ExternalStream(self, raw: int, index: int) -> Any:
        return types.SimpleNamespace(cuda_stream=raw, index=index)

    @contextlib.contextmanager
    def stream(self, stream: Any) -> Iterator[None]:
        former = self.streams.get(stream.index, 0)
        self.streams[stream.index] = stream.cuda_stream
        try:
            yield
        finally:
            self.streams[stream.index] = former

    @contextlib.contextmanager
    def device(self, index: int) -> Iterator[None]:
        former, self.current = self.current, index
        try:
            yield
        finally:
            self.current = former


def install(devices: int = 1, raw_streams: bool = True, fp8: bool = True) -> Any:
    """Makes it what the package takes for PyTorch; without `raw_streams` it is an older one, which has no
    _cuda_getCurrentRawStream, and without `fp8` one that has no float8_e4m3fn."""
    module = types.ModuleType("torch")
    module.__version__ = "2.11.0"
    module.Tensor, module.dtype, module.device = Tensor, dtype, device
    sizes = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int8": 1, "uint8": 1, "int32": 4, "int64": 8}
    if fp8:
        sizes["float8_e4m3fn"] = 1
    for name, itemsize in sizes.items():
        setattr(module, name, dtype(name, itemsize))
    _install_modules(module)
    module.nn.Parameter = Parameter
    module.cuda = Cuda(devices)
    module.made = []  # by torch.empty()
    module._C = types.SimpleNamespace(_cuda_getDevice=lambda: module.cuda.current)
    if raw_streams:
        module._C._cuda_getCurrentRawStream = lambda index: module.cuda.streams.get(index, 0)
    module.empty = lambda shape, dtype, device: _empty(module, shape, dtype, device)
    module.empty_like = lambda like, dtype=None: Tensor(like.shape, dtype or like.dtype, like.device)
    sys.modules["torch"] = module
    return module


def _install_modules(module: Any) -> None:
    """What imports like PyTorch's modules: what they have is named, and never called."""
    for name in ("nn", "nn.functional", "nn.attention"):
        made = sys.modules[f"torch.{name}"] = types.ModuleType(f"torch.{name}")
        parent, _, own = name.rpartition(".")
        setattr(module.nn if parent else module, own, made)
    module.nn.attention.SDPBackend = module.nn.attention.sdpa_kernel = None


def _empty(module: Any, shape: Tuple[int, ...], dtype: dtype, device: device) -> Tensor:
    made = Tensor(shape, dtype, device)
    made.made_for = module.cuda.streams.get(device.index, 0)
    module.made.append(made)
    return made


def uninstall() -> None:
    for name in ("torch", "torch.nn", "torch.nn.functional", "torch.nn.attention"):
        sys.modules.pop(name, None)


def cuda_tensor(torch: Any, *shape: int, dtype: Any = None, index: int = 0, **more: Any) -> Tensor:
    """A bf16 tensor on a CUDA device."""
    return Tensor(shape, dtype or torch.bfloat16, device("cuda", index), **more)


def counting(function: Callable[..., Any]) -> Any:
    """The function, with the number of its calls as `.calls`."""

    def counted(*arguments: Any, **named: Any) -> Any:
        counted.calls += 1
        return function(*arguments, **named)

    counted.calls = 0
    return counted
