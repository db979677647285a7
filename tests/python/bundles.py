"""Files of winners as `hone export` writes them, made up."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Dict, Optional


def row(
    candidate: str, hash_: str, *contenders: str, tokens: int = 1, static: str = "dtype=bf16 in=64", family: str = "linear",
    created_at: int = 7, median_us: float = 1.25, chain: str = "", gpu: str = "Made Up",
) -> str:
    """As `hone export` writes it, but for members that do not matter here."""
    facts: Dict[str, Any] = {
        "family": family, "static_fields": static, "dynamic_fields": f"tokens={tokens}", "candidate": candidate,
        "median_us": median_us, "gpu_name": gpu, "compute_major": 9, "compute_minor": 0, "sm_count": 1,
        "memory_clock_mhz": 1, "mig_profile": "", "template_hash": hash_, "created_at": created_at,
    }  # fmt: skip
    if chain:
        facts["chain"] = chain
    text = json.dumps(facts, separators=(",", ":"))
    return text[:-1] + ',"contenders":[' + ",".join(contenders) + "]}" if contenders else text


def contender(candidate: str, hash_: Optional[str] = None) -> str:
    own = f'"template_hash":"{hash_}",' if hash_ else ""
    return f'{{"candidate":"{candidate}","median_us":2.5e-01,{own}"stage":"final_round"}}'


def bundle(*rows: str) -> str:
    array = "[\n" + ",\n".join(rows) + "\n]" if rows else "[\n]"
    sha256 = hashlib.sha256(array.encode()).hexdigest()
    return f'{{\n"schema": "hone.tuned/3",\n"sha256": "{sha256}",\n"winners": {array},\n"for": {{"name": "a"}}\n}}\n'
