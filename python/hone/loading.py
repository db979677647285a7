"""hone.load_quantized(model, folder): gives a model the weights of a folder that `hone quantize` wrote.

    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    hone.load_quantized(model, "llama-3-8b-w4a16", device="cuda")

The model's linear layers that are packed in the folder become hone.nn.QuantizedLinear; everything else that
the folder holds, it takes as it is. Nothing of a folder is executed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Union

import torch
from torch import Tensor, nn

from . import nn as hone_nn
from ._weights.packed_folder import Packing, parts_of, read_packing, read_part, read_tensor
from ._weights.safetensors import StoredTensor, open_folder, shown
from .quantization import READERS, Swap

_SHOWN = 5  # names in a message
_LINEAR = (nn.Linear, hone_nn.Linear, hone_nn.QuantizedLinear)
_NETWORKS = (hone_nn.FusedFFN, hone_nn.QuantizedFFN)
Tensors = Dict[str, StoredTensor]


class _Layer(NamedTuple):
    """A packed layer, what holds it from now on, and its tensors by the names of that one's buffers."""

    module: hone_nn.QuantizedLinear
    parts: Tensors
    device: Any


class _Place(NamedTuple):
    """Where a tensor of the model stands."""

    module: nn.Module
    name: str

    @property
    def tensor(self) -> Tensor:
        return getattr(self.module, self.name)


class _Plan(NamedTuple):
    layers: Dict[str, _Layer]
    new: Dict[int, nn.Module]  # by the id of the module that it takes the place of
    swaps: List[Swap]


def load_quantized(
    model: nn.Module, folder: Union[str, os.PathLike[str]], *, device: Any = None, strict: bool = True
) -> List[Swap]:
    """Loads a folder of `hone quantize`, and returns (name, old class, new class) of what it replaced.

    Each layer that config.json lists has to be a torch.nn.Linear, a hone.nn.Linear without a norm or a
    hone.nn.QuantizedLinear, of the same shape; a hone.nn.FusedFFN or QuantizedFFN, whose layers have to be
    listed all, without orders of x, becomes a QuantizedFFN. All other parameters, and the buffers of a
    state_dict, get the values of their names: those on the meta device with the folder's dtype, the others
    with their own. device: where new tensors go (None: where the layers' weights are, and the CPU for those
    on the meta device).

    strict: the model and the folder have the same tensors; of those that are one in the model, one is enough.
    Otherwise what only one of them has is left aside.

    Raises ValueError, before the model is changed, for a folder that is none of Hone's, in another layout or
    damaged, and for layers and tensors that are missing, too many or of another shape; and OSError. Scales,
    zero points and orders of x that are not allowed are seen when they are read.
    """
    packing, tensors = read_packing(Path(folder)), open_folder(Path(folder))
    plan = _planned(model, packing, tensors, device, strict)
    places = _places(model, plan)
    _check(places, plan, tensors, strict)
    for parent in [module for module in model.modules() if module._modules]:
        for name, child in parent._modules.items():
            if id(child) in plan.new:
                setattr(parent, name, plan.new[id(child)])
    for name, layer in plan.layers.items():
        for part, tensor in layer.parts.items():
            setattr(layer.module, part, read_part(part, tensor, packing.stored(name)).to(layer.device))
        if layer.module.bias is not None:
            bias = read_tensor(tensors[f"{name}.bias"]).to(layer.device, packing.dtype)
            layer.module.bias = nn.Parameter(bias, requires_grad=False)
    for group in _groups(places):
        found = next((name for name in group if name in tensors), None)
        if found is not None:
            _fill(list(group.values()), read_tensor(tensors[found]), device)
    return plan.swaps


def fill_model(model: nn.Module, tensors: Tensors, read: Callable[[StoredTensor], Tensor]) -> None:
    """Gives a model the tensors of its names, each of which `read` gives once. Raises ValueError, before it is changed,
    where they are too many, too few or of other shapes."""
    plan = _Plan({}, {}, [])
    places = _places(model, plan)
    _check(places, plan, tensors, True, "")
    for group in _groups(places):
        value = read(tensors[next(name for name in group if name in tensors)])
        _fill(list(group.values()), value, value.device)


def _planned(model: nn.Module, packing: Packing, tensors: Tensors, device: Any, strict: bool) -> _Plan:
    modules = dict(model.named_modules(remove_duplicate=False))
    plan = _Plan({}, {}, [])
    for name in packing.layers:
        if name not in modules:
            if strict:
                raise ValueError(f"layer {shown(name)}: the model has no module of this name")
            continue
        old, parent = modules[name], name.rpartition(".")[0]
        new = _quantized(name, old, packing, tensors)
        weight = old.codes if isinstance(old, hone_nn.QuantizedLinear) else old.weight
        where = device or ("cpu" if weight.is_meta else weight.device)
        plan.layers[name] = _Layer(new, parts_of(name, packing, tensors), where)
        if type(modules.get(parent)) in _NETWORKS:
            network = _network(plan, parent, modules[parent], packing)
            setattr(network, name[len(parent) + 1 :], new)
            continue
        if isinstance(modules.get(parent), READERS):
            found = type(modules[parent]).__name__
            raise ValueError(f"layer {shown(name)}: it is in a {found}, which reads its weight itself")
        plan.new[id(old)] = new
        plan.swaps.append((name, type(old), type(new)))
    return plan


def _quantized(
    name: str, old: nn.Module, packing: Packing, tensors: Tensors
) -> hone_nn.QuantizedLinear:
    """What takes the place of a layer, as yet without values. Raises ValueError for what cannot be one."""
    if type(old) not in _LINEAR or getattr(old, "norm", None) is not None:
        allowed = "torch.nn.Linear, hone.nn.QuantizedLinear and hone.nn.Linear without a norm"
        raise ValueError(
            f"layer {shown(name)}: it is a {type(old).__name__} in the model; allowed are {allowed}"
        )
    if old._forward_hooks or old._forward_pre_hooks:
        raise ValueError(f"layer {shown(name)}: it has hooks, which would be lost; load before adding them")
    shape, bias = (old.out_features, old.in_features), f"{name}.bias"
    if shape != packing.layers[name]:
        found = list(packing.layers[name])
        raise ValueError(f"layer {shown(name)}: it is {list(shape)} in the model; the folder has {found}")
    if old.bias is not None and bias not in tensors:
        raise ValueError(f"layer {shown(name)}: it has a bias; the folder has no tensor {shown(bias)}")
    if old.bias is not None and tensors[bias].shape != shape[:1]:
        raise ValueError(f"{tensors[bias]}: its shape is {list(tensors[bias].shape)}; needed is [{shape[0]}]")
    new = hone_nn.QuantizedLinear(
        old.in_features, old.out_features, packing.format, packing.group, old.bias is not None, "meta",
        packing.dtype, zeros=packing.zeros, activation=getattr(old, "activation", "none"),
        input_order=packing.input_order,
    )  # fmt: skip
    return new.train(old.training)


def _network(plan: _Plan, name: str, old: Any, packing: Packing) -> hone_nn.QuantizedFFN:
    """What takes the place of a feed-forward network; its layers are put in it one by one."""
    found = plan.new.get(id(old))
    if found is not None:
        assert isinstance(found, hone_nn.QuantizedFFN)
        return found
    parts = ("gate_proj", "up_proj", "down_proj")
    layers = [f"{name}.{part}" for part in parts if getattr(old, part) is not None]
    left = [layer for layer in layers if layer not in packing.layers]
    if left or packing.input_order:
        why = f"the folder does not pack {shown(left[0])}" if left else "the folder has orders of x"
        raise ValueError(
            f"layer {shown(layers[0])}: it is in a {type(old).__name__}, whose layers are replaced together, "
            f"and {why}; allowed: a model with torch.nn.Linear there"
        )
    up = old.up_proj
    new = hone_nn.QuantizedFFN(
        up.in_features, up.out_features, packing.format, packing.group, old.activation,
        old.gate_proj is not None, up.bias is not None, "meta", packing.dtype, zeros=packing.zeros,
    )  # fmt: skip
    new.norm = old.norm
    plan.new[id(old)] = new.train(old.training)
    plan.swaps.append((name, type(old), type(new)))
    return new


def _places(model: nn.Module, plan: _Plan) -> Dict[str, _Place]:
    """Everything of the model that its state_dict has, but for what the packed layers have."""
    modules = dict(model.named_modules(remove_duplicate=False))
    packed = {id(modules[name]) for name in plan.layers}
    places = {}
    for module_name, module in modules.items():
        if id(module) in packed:
            continue
        buffers = module._buffers.keys() - module._non_persistent_buffers_set
        for name in (*module._parameters, *sorted(buffers)):
            if getattr(module, name) is not None:
                places[f"{module_name}.{name}".lstrip(".")] = _Place(module, name)
    return places


def _groups(places: Dict[str, _Place]) -> List[Dict[str, _Place]]:
    """By the tensor: one that stands in several places, as that of a tied language head, has to come once."""
    groups: Dict[int, Dict[str, _Place]] = {}
    for name, place in places.items():
        groups.setdefault(id(place.tensor), {})[name] = place
    return list(groups.values())


_LOOSELY = "; strict=False loads what both have"


def _check(
    places: Dict[str, _Place], plan: _Plan, tensors: Tensors, strict: bool, instead: str = _LOOSELY
) -> None:  # fmt: skip
    for name, place in places.items():
        if name in tensors and tuple(place.tensor.shape) != tensors[name].shape:
            raise ValueError(
                f"{tensors[name]}: its shape is {list(tensors[name].shape)}; the model needs "
                f"{list(place.tensor.shape)}"
            )
    if not strict:
        return
    known = set(places) | {f"{name}.{part}" for name, layer in plan.layers.items() for part in layer.parts}
    known |= {f"{name}.bias" for name, layer in plan.layers.items() if layer.module.bias is not None}
    missing = [next(iter(group)) for group in _groups(places) if not group.keys() & tensors.keys()]
    for one, other, names in (
        ("folder", "model", missing),
        ("model", "folder", sorted(tensors.keys() - known)),
    ):
        if names:
            said = ", ".join(map(shown, names[:_SHOWN]))
            said += f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            raise ValueError(
                f"the {one} lacks {said}, which the {other} has{instead}"
            )


def _fill(places: List[_Place], value: Tensor, device: Any) -> None:
    """Fills places that have one tensor in common."""
    old = places[0].tensor
    if not old.is_meta:
        with torch.no_grad():
            old.copy_(value)
        return
    new = value.to(device or "cpu")
    if isinstance(old, nn.Parameter):
        new = nn.Parameter(new, requires_grad=old.requires_grad)
    for place in places:
        setattr(place.module, place.name, new)
