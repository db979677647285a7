"""hone.prepare and hone.explain."""

from __future__ import annotations

import ctypes
import json
from typing import Any, Dict, Optional, Tuple, Union

from ._native import library, runtime_structs
from ._operators.description import Description
from ._operators.prepare import check_description, prepare_operator
from .models import prepare_model
from .runtime import device_ordinal, runtime_of

Rows = Union[int, Tuple[int, int, int]]

_DEFAULT_MAX_ROWS = 8192


def prepare(
    description: Union[Description, str], device: Any = None, *, dtype: Any = None, tp: Optional[int] = None,
    max_rows: Optional[int] = None, format: Optional[str] = None, group: Optional[int] = None,
    zeros: Optional[bool] = None, lm_head: Optional[bool] = None,
) -> Any:
    """Makes an operator ready: loads, or compiles, every kernel that a call of up to max_rows rows can reach.

    ``description`` is one of hone.descriptions (RmsNorm, Linear, Attention, ...), for one operator, or the
    name of a model or the path of a Hugging Face config.json, for a :class:`hone.ModelOperators` of all its
    operators that have a kernel.

    With a model alone go dtype (None: the model's), tp (tensor-parallel GPUs, 1), max_rows (8192), and format
    ("w4a16", "w8a16", "w8a8", "fp8", "dense"; None: what the config.json says, else dense) with group, zeros
    and lm_head, as hone.tune() takes them: linear layers are then a QuantizedLinear, the feed-forward network
    a QuantizedFfn. ``device`` is an int as the CUDA driver counts, "cuda:1" or a torch.device; None:
    PyTorch's current one, or 0.

    Raises HoneError: BadArgumentError, NoGpuError, CompileError, FrozenError, ProgramError (a model that is
    not known); MissingLibraryError.
    """
    ordinal = device_ordinal(device)
    of_model = {
        "dtype": dtype, "tp": tp, "format": format, "group": group, "zeros": zeros, "lm_head": lm_head
    }  # fmt: skip
    if isinstance(description, str):
        rows = _DEFAULT_MAX_ROWS if max_rows is None else max_rows
        return prepare_model(description, ordinal, rows, of_model)
    check_description(description)
    for name, value in {**of_model, "max_rows": max_rows}.items():
        if value is not None:
            raise TypeError(f"{name}: it goes with a model's name; an operator says it in its description")
    return prepare_operator(description, ordinal, stacklevel=3)


def explain(description: Description, rows: Rows, device: Any = None) -> Dict[str, Any]:
    """Which kernel a call of `rows` rows takes, for an Attention one of (batch, q_len, kv_len), and why; the
    members are those of docs/json-output.md, and for a FusedFfn or QuantizedFfn "parts", with those of
    its halves.

    Loads nothing. Raises HoneError.
    """
    return json.loads(_explain(description, rows, device, runtime_structs.JSON))


def explain_text(description: Description, rows: Rows, device: Any = None) -> str:
    """The same for people: lines that end in a newline."""
    return _explain(description, rows, device, runtime_structs.TEXT)


def _explain(description: Description, rows: Rows, device: Any, text_format: int) -> str:
    check_description(description)
    sizes = rows if isinstance(rows, tuple) else (rows,)
    if len(sizes) != len(description.CALL_SIZES):
        raise TypeError(f"rows: {rows!r}; allowed is ({', '.join(description.CALL_SIZES)})")
    runtime = runtime_of(device_ordinal(device))
    function = library.function(f"hone_{description.C_NAME}_explain")
    described = ctypes.byref(description.to_struct())
    try:
        return library.read_text(
            lambda *text: function(runtime.handle, described, *sizes, text_format, *text)
        )
    finally:
        runtime.give_warnings(stacklevel=3)
