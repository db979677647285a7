"""Weights of experts as transformers' models hold them, stacked, of checkpoints that have a tensor for each expert."""

from __future__ import annotations

import re
from typing import Any, Dict, List, NamedTuple, Tuple, Union

from .safetensors import StoredTensor

# Names of the gate, the up and the down projection of an expert, of Qwen's checkpoints and of Mixtral's.
_EXPERT = re.compile(r"(?P<layer>.*)\.(mlp|block_sparse_moe)\.experts\.(?P<expert>\d+)\.(?P<part>\w+)\.weight")
_PARTS = {"gate_proj": 0, "w1": 0, "up_proj": 1, "w3": 1, "down_proj": 2, "w2": 2}


class Stacked(NamedTuple):
    """A tensor whose rows are those of several: of each expert one, or its gate before its up."""

    parts: List[Tuple[StoredTensor, ...]]

    @property
    def shape(self) -> Tuple[int, ...]:
        rows, columns = self.parts[0][0].shape
        return len(self.parts), rows * len(self.parts[0]), columns

    @property
    def dtype(self) -> str:
        return self.parts[0][0].dtype

    def __str__(self) -> str:
        return f"{self.parts[0][0]} and those of {len(self.parts)} experts"


def stacked_experts(tensors: Dict[str, StoredTensor]) -> Dict[str, Any]:
    """The same by the names of stacked ones. What is not complete, or of several shapes, stays as it is."""
    found: Dict[str, Union[StoredTensor, Stacked]] = {}
    layers: Dict[str, Dict[int, Dict[int, StoredTensor]]] = {}
    for name, tensor in tensors.items():
        match = _EXPERT.fullmatch(name)
        if match is None or match["part"] not in _PARTS:
            found[name.replace(".block_sparse_moe.", ".mlp.")] = tensor
        else:
            layers.setdefault(match["layer"], {}).setdefault(int(match["expert"]), {})[_PARTS[match["part"]]] = tensor
    for layer, experts in layers.items():
        shapes = {part: {one[part].shape for one in experts.values() if part in one} for part in (0, 1, 2)}
        whole = sorted(experts) == list(range(len(experts))) and all(len(one) == 3 for one in experts.values())
        if not whole or any(len(one) != 1 for one in shapes.values()) or shapes[0] != shapes[1] or len(min(shapes[0])) != 2:
            found.update({tensor.name: tensor for one in experts.values() for tensor in one.values()})
            continue
        in_order = [experts[number] for number in range(len(experts))]
        found[f"{layer}.mlp.experts.gate_up_proj"] = Stacked([(one[0], one[1]) for one in in_order])
        found[f"{layer}.mlp.experts.down_proj"] = Stacked([(one[2],) for one in in_order])
    return found
