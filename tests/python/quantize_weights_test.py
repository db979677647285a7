"""Quantizing weights without PyTorch: what the host chooses, through ctypes, and what mistakes say."""

from __future__ import annotations

import ctypes
import struct
import unittest

import fakes  # noqa: F401 - before hone: sets the process up

from hone._native import library, structs


class OnTheHost(unittest.TestCase):
    def quantize(self, rows: list, columns: int, **options) -> tuple:
        """(codes, scales) of float32 weights as int8 rows with a scale each."""
        count = len(rows) // columns
        weights = struct.pack(f"={len(rows)}f", *rows)
        codes, scales = ctypes.create_string_buffer(len(rows)), ctypes.create_string_buffer(4 * count)
        kind, arguments = structs.QuantizeWeights, structs.QuantizeWeightsArgs
        values = {"in": columns, "max_out": count, "format": structs.QUANT_FORMATS["w8a8"], **options}
        description = kind(ctypes.sizeof(kind), dtype=structs.DTYPES["fp32"], **values)
        given = arguments(
            ctypes.sizeof(arguments),
            weight=ctypes.cast(weights, ctypes.c_void_p).value,
            codes=ctypes.addressof(codes),
            scales=ctypes.addressof(scales),
        )
        run = library.function("hone_quantize_weights_on_host")
        library.check(run(ctypes.byref(description), bytes(given), count, 1))
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
