"""The ctypes mirrors say what runtime/hone.h and decoder/c_api/hone_decoder.h say: members, types, order, numbers.
ctypes lays structs out as C does."""

from __future__ import annotations

import ctypes
import re
import unittest

import fakes

from hone import errors
from hone._native import decoder_library, decoder_structs, library, runtime_structs, structs


def without_comments(header: str) -> str:
    return re.sub(r"/\*.*?\*/", "", (fakes.TREE / header).read_text(), flags=re.DOTALL)


HEADER = without_comments("runtime/hone.h")
DECODER_HEADER = without_comments("decoder/c_api/hone_decoder.h")


def mirror(name: str) -> type:
    """The ctypes class of a struct of the header."""
    title = "".join(part.title() for part in name[len("hone_") :].split("_"))
    rooms = (structs, runtime_structs, decoder_structs)
    return next(getattr(room, title) for room in rooms if hasattr(room, title))


TYPES = {
    "uint32_t": ctypes.c_uint32,
    "int32_t": ctypes.c_int32,
    "uint64_t": ctypes.c_uint64,
    "int64_t": ctypes.c_int64,
    "float": ctypes.c_float,
    "float*": ctypes.c_void_p,
    "const float*": ctypes.c_void_p,
    "int32_t*": ctypes.c_void_p,
    "const int32_t*": ctypes.c_void_p,
    "const int64_t*": ctypes.c_void_p,
    "void*": ctypes.c_void_p,
    "const void*": ctypes.c_void_p,
    "const char*": ctypes.c_char_p,
    "size_t": ctypes.c_size_t,
    "double": ctypes.c_double,
}
# Arrays whose elements Python reads or writes.
DECODER_TYPES = {
    "const int32_t*": ctypes.POINTER(ctypes.c_int32),
    "const char* const*": ctypes.POINTER(ctypes.c_char_p),
    "const double*": ctypes.POINTER(ctypes.c_double),
}


def structs_of(header: str, types: dict) -> dict:
    """Members with their ctypes, by the struct's name."""
    bodies = re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", header, re.DOTALL)
    return {
        name: [member(line.strip(), types) for line in body.split(";") if line.strip()] for name, body in bodies
    }


def member(line: str, types: dict) -> tuple:
    callback = re.fullmatch(r"void \(\*(\w+)\)\(void\* user, const char\* text\)", line)
    if callback:
        return callback[1], runtime_structs.WARNING_CALLBACK
    kind, name = line.rsplit(maxsplit=1)
    return name, types[kind]


def numbers_of(header: str) -> dict:
    return {name: int(value) for name, value in re.findall(r"\b(HONE_\w+) = (\d+)", header)}


class Layout(unittest.TestCase):
    def test_every_struct_of_the_header_is_mirrored(self) -> None:
        found = structs_of(HEADER, TYPES)
        self.assertGreaterEqual(len(found), 5)
        self.assertEqual(found, {name: mirror(name)._fields_ for name in found})

    def test_every_struct_of_the_decoder_is_mirrored(self) -> None:
        found = structs_of(DECODER_HEADER, {**TYPES, **DECODER_TYPES})
        self.assertEqual(len(found), 5)
        piece = dict(found["hone_decoder_piece"])
        self.assertIs(piece["text"], ctypes.c_char_p)
        found["hone_decoder_piece"] = list({**piece, "text": ctypes.c_void_p}.items())  # it may have a 0 in it
        self.assertEqual(found, {name: mirror(name)._fields_ for name in found})

    def test_packed_arguments_are_the_struct(self) -> None:
        for name in structs.CALLS:
            kind = mirror(f"hone_{name}_args")
            packing = structs.packing(kind)
            values = (
                ctypes.sizeof(kind),
                *(0.25 * i if member is ctypes.c_float else i for i, (_, member) in enumerate(kind._fields_[1:], 1)),
            )
            packed = packing.pack(*values)
            self.assertEqual(len(packed), ctypes.sizeof(kind))
            read = kind.from_buffer_copy(packed)
            self.assertEqual(tuple(getattr(read, name) for name, _ in kind._fields_), values)


class Numbers(unittest.TestCase):
    def test_options_and_dtypes(self) -> None:
        mirrored = {
            "HONE_NO_CACHE": runtime_structs.NO_CACHE,
            "HONE_NO_COMPILE": runtime_structs.NO_COMPILE,
            "HONE_TEXT": runtime_structs.TEXT,
            "HONE_JSON": runtime_structs.JSON,
            **{f"HONE_{name.upper()}": number for name, number in structs.DTYPES.items()},
            **{f"HONE_OUTPUT_{name.upper()}": number for name, number in structs.NORM_OUTPUTS.items()},
            **{f"HONE_{name.upper()}": number for name, number in structs.ACTIVATIONS.items()},
            **{f"HONE_QUANT_{name.upper()}": n for name, n in structs.QUANT_FORMATS.items()},
            **{f"HONE_KV_{name.upper()}": n for name, n in structs.KV_DTYPES.items()},
            **{f"HONE_ROPE_{name.upper()}": n for name, n in structs.ROPE_STYLES.items()},
        }
        mirrored["HONE_ACTIVATION_NONE"] = mirrored.pop("HONE_NONE")
        numbers = numbers_of(HEADER)
        self.assertEqual({name: numbers[name] for name in mirrored}, mirrored)

    def test_flags_and_ends_of_the_decoder(self) -> None:
        numbers = numbers_of(DECODER_HEADER)
        flags = {
            "IGNORE_END", "PLAIN_PROMPT", "BARE_PROMPT", "CHAT", "NO_THINKING", "LOG_PROBABILITIES", "SCORE_PROMPT",
            "GOES_ON",
        }  # fmt: skip
        mirrored = {
            **{f"HONE_DECODER_{name}": getattr(decoder_structs, name) for name in flags},
            **{f"HONE_DECODER_{end.upper()}": number for number, end in decoder_structs.ENDS.items()},
        }
        self.assertEqual(mirrored, numbers)

    def test_every_status_has_its_exception(self) -> None:
        kinds = {
            "HONE_BAD_ROWS": errors.BadArgumentError,
            "HONE_NULL_POINTER": errors.BadArgumentError,
            "HONE_MISALIGNED": errors.BadArgumentError,
            "HONE_BAD_STRIDE": errors.BadArgumentError,
            "HONE_BAD_HANDLE": errors.HoneError,
            "HONE_BAD_STRUCT": errors.HoneError,
            "HONE_FORKED": errors.ForkedError,
            "HONE_LAUNCH_FAILED": errors.LaunchError,
            "HONE_BAD_EPSILON": errors.BadArgumentError,
            "HONE_BAD_SCALE": errors.BadArgumentError,
            "HONE_BAD_LENGTHS": errors.BadArgumentError,
            "HONE_BAD_PAGES": errors.BadArgumentError,
            "HONE_CAPTURING": errors.HoneError,
            "HONE_BAD_INDICES": errors.BadArgumentError,
            "HONE_BAD_ARGUMENT": errors.BadArgumentError,
            "HONE_NO_GPU": errors.NoGpuError,
            "HONE_COMPILE_FAILED": errors.CompileError,
            "HONE_FROZEN": errors.FrozenError,
            "HONE_OUT_OF_MEMORY": errors.OutOfMemoryError,
            "HONE_FAILED": errors.HoneError,
        }
        statuses = re.search(r"typedef enum hone_status \{(.*?)\}", HEADER, re.DOTALL)[1]
        self.assertEqual(set(re.findall(r"HONE_\w+", statuses)), {"HONE_OK", *kinds})
        numbers = numbers_of(HEADER)
        for name, kind in kinds.items():
            error = errors.error_from(numbers[name], "a sentence", "")
            self.assertIs(type(error), kind)
            self.assertEqual((error.status, error.status_text), (numbers[name], "a sentence"))
            self.assertEqual(str(error), "a sentence")

    def test_the_version(self) -> None:
        found = [re.search(rf"HONE_VERSION_{part} (\d+)", HEADER)[1] for part in ("MAJOR", "MINOR", "PATCH")]
        self.assertEqual(library.VERSION, ".".join(found))


class Prototypes(unittest.TestCase):
    def test_every_function_is_declared_with_as_many_arguments(self) -> None:
        """But for those that the package has no use for; the structs have their defaults in Python."""
        unused = {"hone_runtime_destroy", "hone_schema"}
        for header, loaded, least in (
            (HEADER, library.library(), 15), (DECODER_HEADER, decoder_library.decoder_library(), 11),
        ):  # fmt: skip
            functions = re.findall(r"HONE_API [\w ]+?\*? ?(hone_\w+)\((.*?)\);", header, re.DOTALL)
            self.assertGreaterEqual(len(functions), least)
            for name, parameters in functions:
                if name in unused or name.endswith("_init"):
                    continue
                count = 0 if parameters == "void" else parameters.count(",") + 1
                declared = getattr(loaded, name).argtypes
                self.assertEqual(len(declared or ()), count, name)
                self.assertIsNotNone(declared, name)


if __name__ == "__main__":
    unittest.main()
