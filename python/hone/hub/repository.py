"""Writes a folder in the layout of the Hugging Face Hub's kernels: Python alone, which the installed package hone
stands behind, so that the folder never gets older than it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Dict, Union

from .._native.library import VERSION

# Where versions of the `kernels` package look for a kernel without binaries.
_VARIANTS = ("torch-noarch", "torch-universal")

_MODULE = '''\
"""Hone's kernels for transformers. They are in the package hone, which this needs: the wheel that
`python3 python/build_wheel.py` makes in Hone's tree, installed with pip."""

try:
    from hone.hub import flash_attn_func, flash_attn_varlen_func, flash_attn_with_kvcache
except ModuleNotFoundError as error:
    if error.name not in ("hone", "hone.hub"):
        raise
    raise ImportError(
        "these kernels stand on the Python package hone, which is not installed here, or is older than "
        "{version}: make its wheel with `python3 python/build_wheel.py` in Hone's tree, and install it with pip"
    ) from None

from . import layers

__all__ = ["flash_attn_func", "flash_attn_varlen_func", "flash_attn_with_kvcache", "layers"]
'''

_LAYERS = '''\
"""What kernelize() puts into models."""

from hone.hub.layers import FusedGatedMLP, GatedMLP, LayerNorm, RMSNorm

__all__ = ["FusedGatedMLP", "GatedMLP", "LayerNorm", "RMSNorm"]
'''

_CARD = """\
---
license: mit
tags:
- kernel
---
# {name}

Hone's norms, gated feed-forward networks and attention for transformers. The kernels are compiled and chosen
at run time by the Python package `hone` {version}, which has to be installed.

| layer | takes the place of |
|---|---|
| `RMSNorm` | what transformers registers as `RMSNorm` |
| `LayerNorm` | `torch.nn.LayerNorm` over one dimension |
| `GatedMLP` | `LlamaMLP` and its like: `gate_proj`, `up_proj`, `down_proj`, `act_fn` |
| `FusedGatedMLP` | `Phi3MLP`: `gate_up_proj`, `down_proj`, `activation_fn` |

`flash_attn_func`, `flash_attn_varlen_func` and `flash_attn_with_kvcache` are attention, forward only.
"""


def write_repository(folder: Union[str, Path]) -> Path:
    """Writes it and returns its path; files that are there are replaced. The folder's name is that of the package,
    by which local folders are found. Raises ValueError for one that is no name of a package, and OSError."""
    folder = Path(folder).resolve()
    if not folder.name.isidentifier():
        raise ValueError(
            f"folder: its name is {folder.name!r}; allowed are names of Python packages, as 'hone_kernels'"
        )
    for name, text in _files(folder.name).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def _files(package: str) -> Dict[str, str]:
    """Texts by their paths. A variant has the package twice: newer versions of `kernels` read it in the variant's
    own folder, older ones in one of the package's name there."""
    files = {"README.md": _CARD.format(name=package, version=VERSION)}
    metadata = json.dumps({"version": 1, "license": "MIT", "python-depends": []}, indent=2) + "\n"
    for variant in _VARIANTS:
        files[f"build/{variant}/metadata.json"] = metadata
        for place in (f"build/{variant}", f"build/{variant}/{package}"):
            files[f"{place}/__init__.py"] = _MODULE.replace("{version}", VERSION)
            files[f"{place}/layers.py"] = _LAYERS
    return files
