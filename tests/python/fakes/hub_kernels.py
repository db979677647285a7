"""Stands for the package `kernels` of the Hugging Face Hub, from its documents: which layers kernelize() takes, what
it checks of them, and what it does to a model. Local folders alone, nothing is fetched.

install(folder) makes it the package `kernels` of this process, with the metadata that transformers asks for.
"""

from __future__ import annotations

import contextlib
import enum
import importlib.util
import inspect
import shutil
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List

VERSION = "0.10.4"
VARIANTS = ("torch-noarch", "torch-universal", "torch214-cxx11-cu130-x86_64-linux")

_mappings: List[Dict[str, Any]] = [{}]


class Mode(enum.Flag):
    FALLBACK = enum.auto()
    TRAINING = enum.auto()
    INFERENCE = enum.auto()
    TORCH_COMPILE = enum.auto()


@dataclass(frozen=True)
class Device:
    type: str
    properties: Any = None


class LayerRepository:
    def __init__(self, **given: Any) -> None:
        self.given = given

    def load(self) -> type:
        raise RuntimeError("nothing is fetched here")


class LocalLayerRepository:
    def __init__(self, repo_path: Path, *, package_name: str, layer_name: str) -> None:
        self.path, self.package_name, self.layer_name = repo_path, package_name, layer_name

    def load(self) -> type:
        kernel = get_local_kernel(self.path, self.package_name)
        return getattr(kernel.layers, self.layer_name)


class FuncRepository(LayerRepository):
    pass


def get_local_kernel(repo_path: Path, package_name: str, flat: bool = False) -> types.ModuleType:
    """The module of a folder: as older versions find it, or, flat, newer ones."""
    for base in (repo_path, repo_path / "build"):
        for variant in VARIANTS:
            file = base / variant / ("" if flat else package_name) / "__init__.py"
            if file.exists():
                return _import_from(file, package_name)
    raise FileNotFoundError(f"Could not find package '{package_name}' in {repo_path}")


def _import_from(file: Path, package_name: str) -> types.ModuleType:
    name = f"{package_name}_{abs(hash(file)):x}"
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def get_kernel(repo_id: str, **given: Any) -> types.ModuleType:
    raise RuntimeError("nothing is fetched here")


def use_kernel_forward_from_hub(layer_name: str) -> Callable[[type], type]:
    def decorate(cls: type) -> type:
        replace_kernel_forward_from_hub(cls, layer_name)
        return cls

    return decorate


def use_kernel_func_from_hub(name: str) -> Callable[[Any], Any]:
    return lambda function: function


def replace_kernel_forward_from_hub(cls: type, layer_name: str) -> None:
    cls.kernel_layer_name = layer_name


def register_kernel_mapping(mapping: Dict[str, Any]) -> None:
    _mappings[-1].update(mapping)


@contextlib.contextmanager
def use_kernel_mapping(mapping: Dict[str, Any], *, inherit_mapping: bool = True):
    _mappings.append({**(_mappings[-1] if inherit_mapping else {}), **mapping})
    try:
        yield
    finally:
        _mappings.pop()


def kernelize(model: Any, *, mode: Mode, device: Any = None, use_fallback: bool = True) -> Any:
    """Gives each module whose class is registered the forward of the layer that the mapping has for it."""
    device = Device(device) if isinstance(device, str) else device
    for module in model.modules():
        name = getattr(type(module), "kernel_layer_name", None)
        found = _mappings[-1].get(name, {}).get(device.type) if name else None
        if found is None:
            continue
        repository = _for_mode(found, mode)
        if repository is None:
            continue
        layer = repository.load()
        check_layer(type(module), layer)
        if _takes(layer, mode):
            module.forward = types.MethodType(layer.forward, module)
        elif not use_fallback:
            raise ValueError(f"{layer} does not support {mode}")
    return model


def _for_mode(found: Any, mode: Mode) -> Any:
    if not isinstance(found, dict):
        return found
    return next((one for key, one in found.items() if mode in key), None)


def _takes(layer: type, mode: Mode) -> bool:
    compiles = Mode.TORCH_COMPILE not in mode or getattr(layer, "can_torch_compile", False)
    return compiles and (Mode.TRAINING not in mode or getattr(layer, "has_backward", True))


def check_layer(replaced: type, layer: type) -> None:
    """A layer is a torch.nn.Module without a constructor and members of its own but two, and its forward has the
    parameters of that which it takes the place of."""
    import torch

    if not issubclass(layer, torch.nn.Module):
        raise TypeError(f"Layer `{layer.__name__}` is not a Torch layer.")
    if layer.__init__ is not torch.nn.Module.__init__:
        raise TypeError("Layer must not override nn.Module constructor.")
    members = {name for name, _ in inspect.getmembers(layer)}
    more = members - {name for name, _ in inspect.getmembers(torch.nn.Module)}
    if not more <= {"can_torch_compile", "has_backward"}:
        raise TypeError(f"Layer must not contain additional members: {sorted(more)}")
    ours, theirs = (list(inspect.signature(cls.forward).parameters.values()) for cls in (layer, replaced))
    if len(ours) != len(theirs):
        raise TypeError("Forward signature does not match: different number of arguments.")
    for one, other in zip(ours, theirs):
        if one.kind != other.kind:
            raise TypeError("Forward signature does not match: different kind of arguments")


def install(folder: Path) -> types.ModuleType:
    """To be called before transformers is imported."""
    package, info = folder / "kernels", folder / f"kernels-{VERSION}.dist-info"
    for path in (package, info):
        path.mkdir()
    shutil.copyfile(__file__, package / "__init__.py")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: kernels\nVersion: {VERSION}\n", encoding="utf-8")
    (info / "top_level.txt").write_text("kernels\n", encoding="utf-8")
    sys.path.insert(0, str(folder))
    return importlib.import_module("kernels")
