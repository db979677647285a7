"""Reads the folders of tensors that `hone quantize` writes: model.safetensors or shards with their index, and
JSON files. Without PyTorch; a tensor is its bytes. The format is that of checkpoints/files/safetensors.h.

Nothing in a file can make reading it slow or reach beyond the file: whatever is not as the format says is a
ValueError that names file, tensor and value. Nobody else may write to the files meanwhile.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Tuple

MOST_HEADER_BYTES = 100_000_000  # the format's own limit
MOST_JSON_BYTES = 64 << 20
MOST_DIMENSIONS = 16
ELEMENT_BYTES = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4,
    "U16": 2, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1,
}  # fmt: skip
_SINGLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"


@dataclass(frozen=True)
class StoredTensor:
    """Where a tensor lies."""

    path: Path
    name: str
    dtype: str  # as the format spells it
    shape: Tuple[int, ...]
    offset: int  # from the start of the file
    size: int  # bytes

    def read(self) -> bytearray:
        """Row-major, little-endian."""
        found = bytearray(self.size)
        with open(self.path, "rb") as file:
            file.seek(self.offset)
            if file.readinto(found) != self.size:
                raise ValueError(f"{self}: the file ends in it")
        return found

    def __str__(self) -> str:
        return f"{self.path.name}: tensor {shown(self.name)}"


def shown(text: str) -> str:
    """Text from a file as messages show it: quoted, short, and without control characters."""
    return repr(text if len(text) <= 80 else text[:77] + "...")


def read_json(path: Path) -> Dict[str, Any]:
    """An object. Raises ValueError, and OSError for a file that cannot be read."""
    with open(path, "rb") as file:
        text = file.read(MOST_JSON_BYTES + 1)
    if len(text) > MOST_JSON_BYTES:
        raise ValueError(f"{path.name}: it is larger than {MOST_JSON_BYTES} bytes, the most that is read")
    return _parse(text, path.name)


def open_folder(folder: Path) -> Dict[str, StoredTensor]:
    """All tensors of a folder by their names. Raises ValueError and OSError."""
    single, sharded = (folder / _SINGLE).exists(), (folder / _INDEX).exists()
    if single == sharded:
        found = "both" if single else "neither"
        raise ValueError(f"{folder}: it has {found} {_SINGLE} and {_INDEX}; one of them makes a checkpoint")
    return read_header(folder / _SINGLE) if single else _open_shards(folder)


def _open_shards(folder: Path) -> Dict[str, StoredTensor]:
    files = read_json(folder / _INDEX).get("weight_map")
    if not isinstance(files, dict) or not files:
        raise ValueError(f"{_INDEX}: it has no object weight_map with tensors in it")
    headers: Dict[str, Dict[str, StoredTensor]] = {}
    for name, file in files.items():
        if not _is_plain_name(file):
            raise ValueError(
                f"{_INDEX}: weight_map says that {shown(name)} is in {shown(str(file))}; allowed are names "
                f"that end in .safetensors, without folders and no '.' in front"
            )
        if file not in headers:
            headers[file] = read_header(folder / file)
        if name not in headers[file]:
            raise ValueError(
                f"{_INDEX}: weight_map says that {shown(name)} is in {file}, which does not have it"
            )
    return {name: headers[file][name] for name, file in files.items()}


def _is_plain_name(file: Any) -> bool:
    """Whether it can only be a file of the index's own folder."""
    return (
        isinstance(file, str)
        and file.endswith(".safetensors")
        and not file.startswith(".")
        and not any(letter in file for letter in "/\\\0")
    )


def read_header(path: Path) -> Dict[str, StoredTensor]:
    """The tensors of a file, by their names. Raises ValueError and OSError."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, MOST_HEADER_BYTES):
            raise ValueError(
                f"{path.name}: its header has {length} bytes; allowed are those of the file, {size}, less 8, "
                f"and at most {MOST_HEADER_BYTES}"
            )
        header = _parse(file.read(length), path.name)
    header.pop("__metadata__", None)
    start = 8 + length
    tensors = [_tensor(path, name, entry, start) for name, entry in header.items()]
    _check_places(path, tensors, start, size)
    return {tensor.name: tensor for tensor in tensors}


def _tensor(path: Path, name: str, entry: Any, start: int) -> StoredTensor:
    place = f"{path.name}: tensor {shown(name)}"
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"{place}: allowed is an object of dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in ELEMENT_BYTES:
        raise ValueError(f"{place}: dtype {shown(str(dtype))}; allowed are {', '.join(ELEMENT_BYTES)}")
    if not _is_sizes(shape) or len(shape) > MOST_DIMENSIONS:
        raise ValueError(f"{place}: shape is no list of up to {MOST_DIMENSIONS} integers from 0")
    if not _is_sizes(offsets) or len(offsets) != 2:
        raise ValueError(f"{place}: data_offsets is no list of 2 integers from 0")
    begin, end = offsets
    size = ELEMENT_BYTES[dtype]
    for extent in shape:
        size *= extent
    if end - begin != size:
        raise ValueError(f"{place}: it has {end - begin} bytes; its dtype and shape need {size}")
    return StoredTensor(path, name, dtype, tuple(shape), start + begin, size)


def _is_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(type(number) is int and 0 <= number < 1 << 63 for number in value)


def _check_places(path: Path, tensors: List[StoredTensor], start: int, size: int) -> None:
    """They lie side by side and fill the rest of the file, so that none is a part of another."""
    end = start
    for tensor in sorted(tensors, key=lambda tensor: (tensor.offset, tensor.size)):
        if tensor.offset != end:
            raise ValueError(f"{tensor}: it starts at byte {tensor.offset}; the one before it ends at {end}")
        end += tensor.size
    if end != size:
        raise ValueError(f"{path.name}: its tensors end at byte {end}, and the file at {size}")


def _parse(text: bytes, name: str) -> Dict[str, Any]:
    try:
        found = json.loads(text.decode("utf-8"), object_pairs_hook=_without_twins)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name}: it has no valid JSON where it should: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{name}: its JSON is no object")
    return found


def _without_twins(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a key twice")
    return found
