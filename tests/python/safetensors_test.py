"""Reading the folders of tensors that `hone quantize` writes, without PyTorch: what is read, and that nothing
in a file makes reading it reach beyond it."""

from __future__ import annotations

import json
import random
import tempfile
import unittest
from pathlib import Path
from typing import Any, Callable, Dict

import fakes  # noqa: F401  sets up the package of this tree

from hone._weights import safetensors

TWO = {
    "a": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]},
    "b": {"dtype": "U8", "shape": [], "data_offsets": [8, 9]},
}


def file_of(header: Any, data: bytes = bytes(range(9))) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


class Reading(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.file = self.folder / "model.safetensors"

    def refused(self, pattern: str, call: Callable[[], Any]) -> None:
        with self.assertRaisesRegex(ValueError, pattern):
            call()

    def read(self, content: bytes) -> Dict[str, safetensors.StoredTensor]:
        self.file.write_bytes(content)
        return safetensors.read_header(self.file)


class Files(Reading):
    def test_tensors_and_their_bytes(self) -> None:
        found = self.read(file_of({"__metadata__": {"format": "pt"}, **TWO}))
        self.assertEqual({name: (t.dtype, t.shape) for name, t in found.items()},
                         {"a": ("F32", (2, 1)), "b": ("U8", ())})  # fmt: skip
        self.assertEqual(found["a"].read(), bytes(range(8)))
        self.assertEqual(found["b"].read(), bytes([8]))
        self.assertEqual(self.read(file_of({}, b"")), {})
        nothing = {"a": {"dtype": "F32", "shape": [0, 7], "data_offsets": [0, 0]}}
        self.assertEqual(self.read(file_of(nothing, b""))["a"].read(), b"")

    def test_a_header_that_is_none(self) -> None:
        for content, pattern in (
            (b"", "its header has 0 bytes; allowed are those of the file, 0, less 8"),
            (b"\x01\0\0\0\0\0\0\0", "its header has 1 bytes"),
            (b"\xff" * 8 + b"{}", f"its header has {2**64 - 1} bytes"),
            (file_of(b"{"), "no valid JSON"),
            (file_of(b"[]"), "its JSON is no object"),
            (file_of(b"\xff"), "no valid JSON"),
            (file_of(b"[" * 50_000), "no valid JSON"),
            (file_of(b'{"a":1,"a":2}'), "an object has a key twice"),
        ):
            with self.subTest(pattern=pattern):
                self.refused(f"^model.safetensors: .*{pattern}", lambda: self.read(content))

    def test_tensors_that_are_not_as_their_entries_say(self) -> None:
        for change, pattern in (
            ({"dtype": "F31"}, "'a': dtype 'F31'; allowed are F64"),
            ({"dtype": 4}, "'a': dtype '4'"),
            ({"shape": [2, -1]}, "shape is no list"),
            ({"shape": [2.0, 1]}, "shape is no list"),
            ({"shape": [True, 2]}, "shape is no list"),
            ({"shape": "2"}, "shape is no list"),
            ({"shape": [1] * 17}, "shape is no list of up to 16"),
            ({"shape": [3]}, "it has 8 bytes; its dtype and shape need 12"),
            ({"shape": [1 << 62] * 16}, "it has 8 bytes"),
            ({"data_offsets": [8, 0]}, "it has -8 bytes"),
            ({"data_offsets": [0, 8, 9]}, "data_offsets is no list of 2"),
            ({"data_offsets": [1, 9]}, "it starts at byte"),
            ({"more": 1}, "allowed is an object of dtype, shape and data_offsets"),
        ):
            with self.subTest(pattern=pattern):
                header = {**TWO, "a": {**TWO["a"], **change}}
                self.refused(f"^model.safetensors: tensor .*{pattern}", lambda: self.read(file_of(header)))
        self.refused("allowed is an object of dtype", lambda: self.read(file_of({"a": 3})))

    def test_bytes_that_belong_to_two_tensors_or_to_none(self) -> None:
        overlapping = {**TWO, "b": {**TWO["b"], "data_offsets": [7, 8]}}
        self.refused("tensor 'b': it starts at byte", lambda: self.read(file_of(overlapping, bytes(8))))
        for data in (bytes(8), bytes(10)):
            self.refused("its tensors end at byte", lambda: self.read(file_of(TWO, data)))

    def test_a_file_that_is_cut_after_its_header_was_read(self) -> None:
        found = self.read(file_of(TWO))
        self.file.write_bytes(self.file.read_bytes()[:-4])
        self.refused("tensor 'a': the file ends in it", found["a"].read)

    def test_no_mutation_makes_it_do_anything_else(self) -> None:
        generator, seed = random.Random(5), file_of({"__metadata__": {"k": "v"}, **TWO})
        outcomes = {"read": 0, "refused": 0}
        for _ in range(1500):
            content = bytearray(seed)
            for _ in range(generator.randint(1, 4)):
                content[generator.randrange(len(content))] = generator.choice(b'\0\xff{}[]",:0123456789ab')
            if generator.random() < 0.2:
                del content[generator.randrange(len(content)) :]
            try:
                for tensor in self.read(bytes(content)).values():
                    self.assertLessEqual(tensor.offset + tensor.size, len(content))
                    self.assertEqual(len(tensor.read()), tensor.size)
                outcomes["read"] += 1
            except ValueError as error:
                self.assertTrue(str(error).startswith("model.safetensors: "), error)
                outcomes["refused"] += 1
        self.assertGreater(min(outcomes.values()), 20)


class Folders(Reading):
    INDEX = "model.safetensors.index.json"

    def open(self, weight_map: Any) -> Dict[str, safetensors.StoredTensor]:
        (self.folder / self.INDEX).write_text(json.dumps({"weight_map": weight_map}))
        return safetensors.open_folder(self.folder)

    def test_one_file_or_shards(self) -> None:
        self.refused("it has neither model.safetensors and", lambda: safetensors.open_folder(self.folder))
        (self.folder / "one.safetensors").write_bytes(file_of(TWO))
        self.assertEqual(self.open({"b": "one.safetensors"})["b"].read(), bytes([8]))
        self.file.write_bytes(file_of(TWO))
        self.refused("it has both", lambda: safetensors.open_folder(self.folder))
        (self.folder / self.INDEX).unlink()
        self.assertEqual(set(safetensors.open_folder(self.folder)), {"a", "b"})

    def test_an_index_that_is_wrong(self) -> None:
        (self.folder / "one.safetensors").write_bytes(file_of(TWO))
        for weight_map, pattern in (
            ([], "no object weight_map"),
            ({}, "no object weight_map"),
            ({"a": "../one.safetensors"}, "allowed are names that end in .safetensors, without folders"),
            ({"a": "/etc/passwd"}, "allowed are names"),
            ({"a": ".safetensors"}, "allowed are names"),
            ({"a": 3}, "allowed are names"),
            ({"c": "one.safetensors"}, "'c' is in one.safetensors, which does not have it"),
        ):
            with self.subTest(pattern=pattern):
                self.refused(pattern, lambda: self.open(weight_map))
        with self.assertRaises(FileNotFoundError):
            self.open({"a": "two.safetensors"})


if __name__ == "__main__":
    unittest.main()
