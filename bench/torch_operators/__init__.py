"""What bench/compare_torch.py compares: FAMILIES, by the operator's name in a case, and CASES, lists of cases
by the name of their table in docs/performance.md.

Each module of this folder has those of its operators, in the words of bench/torch_cases.py: their inputs,
PyTorch's ways to do it, Hone's, the truth, and the work; and at which sizes. All modules are found by listing
the folder; a new operator is one file here.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any, Dict, List

from torch_cases import Case, Family


def _found(table: str) -> Dict[str, Any]:
    """What the modules have under this name."""
    found: Dict[str, Any] = {}
    for file in pkgutil.iter_modules(__path__):
        own = getattr(importlib.import_module(f"{__name__}.{file.name}"), table)
        twice = found.keys() & own.keys()
        if twice:
            raise ImportError(f"{file.name}.py: {', '.join(sorted(twice))}: another module has it, too")
        found.update(own)
    return found


FAMILIES: Dict[str, Family] = _found("FAMILIES")
CASES: Dict[str, List[Case]] = _found("CASES")
