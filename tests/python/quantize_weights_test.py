"""Quantizing weights without PyTorch: what a prepared operator hands to the library, what mistakes say, and
the host's quantizing through ctypes."""

from __future__ import annotations

import ctypes
import struct
import unittest

from fakes import arrays
from fakes.case import Case, pointer_of

import hone
from hone._native import library
from hone._quantized_structs import QuantizeWeightsArgs
from hone.quantize_operators import packed_arguments


class Recorder:
    """In place of hone_quantize_weights_run(), which would read back what no kernel has written."""

    def __init__(self) -> None:
        self.calls = []

    def __call__(self, handle, stream, arguments, rows):
        given = QuantizeWeightsArgs.from_buffer_copy(arguments)
        self.calls.append(({name: getattr(given, name) or 0 for name, _ in given._fields_}, rows))
        return 0


def prepare(description):
    operator = hone.prepare(description)
    operator._run = Recorder()
    return operator


class Operators(Case):
    def given(self, operator, rows: int, **changed) -> dict:
        description = operator.description
        stored = description.stored_weight(rows)
        found = {
            "weight": self.exporter(rows, description.in_features, dtype=description.dtype),
            "codes": self.exporter(*stored.codes_shape, dtype=stored.codes_dtype),
            "scales": self.exporter(*stored.scales_shape, dtype=stored.scales_dtype(description.scale_dtype)),
            "workspace": arrays.Exporter(
                self.driver.allocate(1 << 16), (operator.workspace_bytes(rows),), "uint8"
            ),
        }
        if description.zeros:
            found["zeros"] = self.exporter(*stored.scales_shape, dtype="uint8")
        return {**found, **changed}

    def test_everything_given_is_used_and_returned(self) -> None:
        for description in (
            hone.QuantizeWeights(128, group=64, zeros=True, scale_dtype="fp16"),
            hone.QuantizeWeights(100, "w8a16", dtype="fp32"),
            hone.QuantizeWeights(100, "w8a8", one_scale=True),
            hone.QuantizeWeights(256, "fp8", group=128, dtype="fp16"),
        ):
            with self.subTest(description=description):
                operator = prepare(description)
                given = self.given(operator, 70)
                packed = operator(**given)
                self.assertIs(packed.codes, given["codes"])
                self.assertIs(packed.scales, given["scales"])
                self.assertIs(packed.zeros, given.get("zeros"))
                ((found, rows),) = operator._run.calls
                self.assertEqual(rows, 70)
                self.assertEqual(found["weight_stride"], description.in_features)
                wanted = {name: pointer_of(value) for name, value in given.items()}
                self.assertEqual({name: found[name] for name in wanted}, wanted)

    def test_rows_may_lie_apart(self) -> None:
        operator = prepare(hone.QuantizeWeights(128, group=64))
        operator(**self.given(operator, 7, weight=self.exporter(7, 128, strides=(192, 1))))
        self.assertEqual(operator._run.calls[0][0]["weight_stride"], 192)

    def test_mistakes_are_named(self) -> None:
        operator = prepare(hone.QuantizeWeights(128, group=64, max_out=70))
        good = self.given(operator, 70)
        for kind, pattern, changed in (
            (ValueError, "^weight: it has 71 rows; allowed are up to 70", {"weight": self.exporter(71, 128)}),
            (TypeError, "^weight: its dtype is fp16", {"weight": self.exporter(70, 128, dtype="fp16")}),
            (ValueError, "^codes: its shape is ", {"codes": self.exporter(1, 4096, dtype="uint8")}),
            (TypeError, "^scales: its dtype is fp32", {"scales": self.exporter(2, 2, 64, dtype="fp32")}),
            (ValueError, "^zeros: it is given, but", {"zeros": self.exporter(2, 2, 64, dtype="uint8")}),
            (ValueError, "^workspace: it has 8 bytes", {"workspace": self.exporter(8, dtype="uint8")}),
        ):
            with self.assertRaisesRegex(kind, pattern):
                operator(**{**good, **changed})
        self.assertEqual(operator._run.calls, [])

    def test_the_library_judges_the_rest(self) -> None:
        for description, pattern in (
            (hone.QuantizeWeights(0), "'in' has the value '0'"),
            (hone.QuantizeWeights(96, group=64), "group is 64; allowed: numbers that divide in, 96"),
            (hone.QuantizeWeights(64, scale_dtype="fp32"), "scale_dtype.*fp32.*allowed: fp16, bf16"),
            (hone.QuantizeWeights(64, one_scale=True), "one_scale is yes; allowed: no"),
        ):
            with self.assertRaisesRegex(hone.BadArgumentError, pattern):
                hone.prepare(description)
        with self.assertRaisesRegex(ValueError, "^scale_dtype: 'int8'; allowed are fp32, fp16, bf16"):
            hone.QuantizeWeights(64, scale_dtype="int8")

    def test_it_is_explained(self) -> None:
        told = hone.explain(hone.QuantizeWeights(128, group=64), 70)
        self.assertIn("format=w4a16 group=64 zeros=no one_scale=no search=yes", told["problem"])


class OnTheHost(unittest.TestCase):
    def quantize(self, rows: list, columns: int, **options) -> tuple:
        """(codes, scales) of float32 weights as int8 rows with a scale each."""
        count = len(rows) // columns
        weights = struct.pack(f"={len(rows)}f", *rows)
        codes, scales = ctypes.create_string_buffer(len(rows)), ctypes.create_string_buffer(4 * count)
        description = hone.QuantizeWeights(columns, "w8a8", dtype="fp32", max_out=count, **options)
        arguments = packed_arguments(
            weight=ctypes.cast(weights, ctypes.c_void_p).value,
            codes=ctypes.addressof(codes),
            scales=ctypes.addressof(scales),
        )
        run = library.function("hone_quantize_weights_on_host")
        library.check(run(ctypes.byref(description.to_struct()), arguments, count, 1))
        return struct.unpack(f"={len(rows)}b", codes.raw), struct.unpack(f"={count}f", scales.raw)

    def test_codes_and_scales(self) -> None:
        codes, scales = self.quantize([127.0, -63.0, 0.4, 0.0, -254.0, 3.0], 3)
        self.assertEqual(codes, (127, -63, 0, 0, -127, 2))  # 1.5 steps: ties go to the even code
        self.assertEqual(scales, (1.0, 2.0))

    def test_what_has_no_codes_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, r"weight \[1, 2\] is inf; allowed: finite numbers"):
            self.quantize([1.0, 2.0, 3.0, 4.0, 5.0, float("inf")], 3)
        with self.assertRaisesRegex(ValueError, "zeros is true; allowed with w4a16 only"):
            self.quantize([1.0, 2.0], 2, zeros=True)


if __name__ == "__main__":
    unittest.main()
