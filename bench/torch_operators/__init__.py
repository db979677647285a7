"""What bench/compare_torch.py compares: FAMILIES, by the operator's name in a case.

Each module of this folder has the FAMILIES of its operators, in the words of bench/torch_cases.py: their
inputs, PyTorch's ways to do it, Hone's, the truth, and the work. All modules are found by listing the folder;
a new operator is one file here, and one of bench/cases.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Dict

from torch_cases import Family


def _found() -> Dict[str, Family]:
    families: Dict[str, Family] = {}
    for file in pkgutil.iter_modules(__path__):
        own = importlib.import_module(f"{__name__}.{file.name}").FAMILIES
        twice = families.keys() & own.keys()
        if twice:
            raise ImportError(f"{file.name}.py: {', '.join(sorted(twice))}: another module has it, too")
        families.update(own)
    return families


FAMILIES = _found()
