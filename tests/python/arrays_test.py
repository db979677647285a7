"""Arrays of every protocol are read alike, and what does not fit is named."""

from __future__ import annotations

import gc
import random
import unittest

from fakes import arrays, torch as fake_torch  # before hone: sets the process up
from hone._native import arrays as hone_arrays, streams

POINTER = 0x7F0000001000


def view_of(value, stream=0):
    return hone_arrays.view(value, "x", stream)


class Interface(unittest.TestCase):
    def test_all_of_it_is_read(self) -> None:
        array = arrays.InterfaceArray(POINTER, (3, 8), "<f4", strides_bytes=(64, 4), stream=7)
        view = view_of(array)
        self.assertEqual((view.pointer, view.shape, view.strides), (POINTER, (3, 8), (16, 1)))
        self.assertEqual((view.dtype, view.device, view.stream, view.read_only), ("fp32", None, 7, False))

    def test_without_strides_it_is_compact(self) -> None:
        view = view_of(arrays.InterfaceArray(POINTER, (2, 3, 8)))
        self.assertEqual((view.dtype, view.strides, view.contiguous), ("fp16", (24, 8, 1), True))

    def test_types(self) -> None:
        types = {"<f2": "fp16", "<V2": "bf16", "|i1": "int8", "|u1": "uint8", ">f4": ">f4"}
        for typestr, dtype in types.items():
            self.assertEqual(view_of(arrays.InterfaceArray(POINTER, (8,), typestr)).dtype, dtype)

    def test_a_mask_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "^x: it has a mask"):
            view_of(arrays.InterfaceArray(POINTER, (8,), mask=object()))

    def test_strides_between_elements_are_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, r"^x: its strides are \(3, 2\) bytes"):
            view_of(arrays.InterfaceArray(POINTER, (2, 1), strides_bytes=(3, 2)))

    def test_an_interface_that_makes_no_sense_is_refused_by_name(self) -> None:
        good = {"shape": (2, 8), "typestr": "<f2", "data": (POINTER, False)}
        for changed, error in (
            ({"shape": None}, TypeError), ({"shape": 5}, TypeError), ({"shape": ("2", 8)}, TypeError),
            ({"shape": (2.0, 8)}, TypeError), ({"shape": (-2, 8)}, ValueError), ({"shape": (1 << 63,)}, ValueError),
            ({"typestr": None}, TypeError), ({"data": None}, TypeError), ({"data": POINTER}, TypeError),
            ({"data": (POINTER,)}, TypeError), ({"data": ("x", False)}, TypeError),
            ({"data": (-1, False)}, ValueError), ({"data": (1 << 64, False)}, ValueError),
            ({"strides": (16,)}, ValueError), ({"strides": (16, 2.0)}, TypeError),
            ({"strides": (1 << 70, 2)}, ValueError),
        ):  # fmt: skip
            with self.subTest(**changed), self.assertRaisesRegex(error, "^x: its .*; allowed "):
                view_of(arrays.Interface({**good, **changed}))
        for none in ("", 5, [], (2, 8)):
            with self.subTest(none=none), self.assertRaisesRegex(TypeError, "^x: its .* allowed is a dict"):
                view_of(arrays.Interface(none))
        for missing in good:
            with self.subTest(missing=missing), self.assertRaisesRegex(TypeError, "^x: its "):
                view_of(arrays.Interface({name: said for name, said in good.items() if name != missing}))

    def test_the_device_comes_from_what_else_the_array_says(self) -> None:
        array = arrays.InterfaceArray(POINTER, (8,))
        array.__dlpack_device__ = lambda: (2, 3)
        self.assertEqual(view_of(array).device, 3)
        array = arrays.InterfaceArray(POINTER, (8,))
        array.device = fake_torch.device("cuda", 1)
        array.device.id = 5
        self.assertEqual(view_of(array).device, 5)


class Dlpack(unittest.TestCase):
    def test_both_versions_are_read(self) -> None:
        for versioned in (False, True):
            array = arrays.Exporter(
                POINTER, (3, 8), "bf16", (16, 1), device=(2, 1), versioned=versioned, byte_offset=32
            )
            view = view_of(array, stream=9)
            self.assertEqual((view.pointer, view.shape, view.strides), (POINTER, (3, 8), (16, 1)))
            self.assertEqual((view.dtype, view.device, view.read_only), ("bf16", 1, False))
            self.assertEqual((array.stream, array.exports), (9, 1))

    def test_the_deleter_runs_once_and_not_while_the_view_is_used(self) -> None:
        for versioned in (False, True):
            array = arrays.Exporter(POINTER, (8,), versioned=versioned)
            view = view_of(array)
            gc.collect()
            self.assertEqual(array.deletions, 0)
            del view
            gc.collect()
            self.assertEqual((array.exports, array.deletions), (1, 1))

    def test_the_default_stream_is_number_one_there(self) -> None:
        array = arrays.Exporter(POINTER, (8,))
        view_of(array, stream=0)
        self.assertEqual(array.stream, 1)

    def test_types(self) -> None:
        for dtype in ("fp32", "fp16", "bf16", "int8", "fp8_e4m3", "uint8"):
            self.assertEqual(view_of(arrays.Exporter(POINTER, (8,), dtype)).dtype, dtype)
        self.assertIn("4 lanes", view_of(arrays.Exporter(POINTER, (8,), "int8", lanes=4)).dtype)

    def test_read_only_is_seen(self) -> None:
        view = view_of(arrays.Exporter(POINTER, (8,), read_only=True))
        with self.assertRaisesRegex(ValueError, "^x: it is read-only"):
            hone_arrays.check_writable(view)

    def test_cpu_memory_is_refused_before_it_is_exported(self) -> None:
        array = arrays.Exporter(POINTER, (8,), device=(1, 0))
        with self.assertRaisesRegex(ValueError, r"^x: it is CPU memory \(DLPack device type 1\); allowed"):
            view_of(array)
        self.assertEqual(array.exports, 0)

    def test_other_devices_are_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, r"^x: it is ROCm memory \(DLPack device type 10\)"):
            view_of(arrays.Exporter(POINTER, (8,), device=(10, 0)))

    def test_a_later_major_version_is_refused_and_deleted(self) -> None:
        array = arrays.Exporter(POINTER, (8,), major=2)
        with self.assertRaisesRegex(ValueError, "^x: its DLPack version is 2.0; 1 is understood"):
            view_of(array)
        gc.collect()
        self.assertEqual(array.deletions, 1)

    def test_a_capsule_that_is_none_is_refused(self) -> None:
        array = arrays.Exporter(POINTER, (8,))
        array.__class__ = type("Broken", (arrays.Exporter,), {"__dlpack__": lambda self, **options: object()})
        with self.assertRaisesRegex(ValueError, "^x: its DLPack capsule"):
            view_of(array)


class Torch(unittest.TestCase):
    def setUp(self) -> None:
        self.torch = fake_torch.install()
        self.addCleanup(fake_torch.uninstall)

    def test_a_tensor_is_read_without_its_interface(self) -> None:
        tensor = fake_torch.cuda_tensor(self.torch, 2, 8, index=1, strides=(32, 1))
        view = view_of(tensor)
        self.assertEqual((view.pointer, view.shape, view.strides), (tensor.data_ptr(), (2, 8), (32, 1)))
        self.assertEqual((view.dtype, view.device), ("bf16", 1))

    def test_a_cpu_tensor_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "^x: it is a torch tensor on device 'cpu'; allowed is"):
            view_of(fake_torch.Tensor((8,), self.torch.bfloat16, fake_torch.device("cpu")))


class NoArray(unittest.TestCase):
    def test_other_objects_are_named(self) -> None:
        for value in (None, [1.0], 3, "x"):
            kind = type(value).__name__
            with self.assertRaisesRegex(TypeError, f"^x: a {kind} is no array in GPU memory; allowed"):
                view_of(value)


class Rows(unittest.TestCase):
    def rows_of(self, shape, strides, hidden=8):
        return hone_arrays.rows_of(view_of(arrays.Exporter(POINTER, shape, strides=strides)), hidden)

    def test_leading_dimensions_collapse(self) -> None:
        self.assertEqual(self.rows_of((8,), (1,)), (1, 8))
        self.assertEqual(self.rows_of((4, 8), (8, 1)), (4, 8))
        self.assertEqual(self.rows_of((4, 8), (24, 1)), (4, 24))
        self.assertEqual(self.rows_of((2, 3, 8), (72, 24, 1)), (6, 24))
        self.assertEqual(self.rows_of((2, 1, 3, 8), (72, 5, 24, 1)), (6, 24))
        self.assertEqual(self.rows_of((1, 8), (3, 1)), (1, 8))
        self.assertEqual(self.rows_of((0, 8), (8, 1)), (0, 8))
        self.assertEqual(self.rows_of((2, 0, 8), (8, 8, 1)), (0, 8))
        self.assertEqual(self.rows_of((4, 1), (16, 9), hidden=1), (4, 16))

    def test_those_that_do_not_are_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, r"^x: its strides are \[8, 16, 1\] for shape \[2, 3, 8\]; "):
            self.rows_of((2, 3, 8), (8, 16, 1))

    def test_gaps_within_rows_are_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "^x: the stride of its last dimension is 2; allowed is 1"):
            self.rows_of((4, 8), (16, 2))

    def test_rows_that_overlap_are_refused(self) -> None:
        for shape, strides in (((4, 8), (0, 1)), ((4, 8), (7, 1)), ((4, 8), (-8, 1)), ((2, 4, 8), (8, 0, 1))):
            with self.assertRaisesRegex(ValueError, "^x: its (rows|strides) are "):
                self.rows_of(shape, strides)

    def test_another_row_length_is_refused(self) -> None:
        for shape in ((), (7,), (8, 4)):
            with self.assertRaisesRegex(ValueError, r"^x: its shape is \[.*\]; allowed is \[\.\.\., 8\]"):
                self.rows_of(shape, None)

    def test_what_is_accepted_addresses_every_row(self) -> None:
        """Against addresses computed element by element."""
        chance = random.Random(1)
        accepted = 0
        for _ in range(2000):
            shape = tuple(chance.choice((1, 2, 3)) for _ in range(chance.randint(0, 3))) + (4,)
            strides = tuple(chance.choice((0, 4, 8, 12, 16, 24)) for _ in shape[:-1]) + (1,)
            view = view_of(arrays.Exporter(POINTER, shape, strides=strides))
            starts = [0]
            for size, step in zip(shape[:-1], strides[:-1]):
                starts = [start + index * step for start in starts for index in range(size)]
            apart = starts[1] - starts[0] if len(starts) > 1 else 4
            even = apart >= 4 and starts == [index * apart for index in range(len(starts))]
            try:
                self.assertEqual(hone_arrays.rows_of(view, 4), (len(starts), apart))
                accepted += 1
            except ValueError:
                self.assertFalse(even, (shape, strides))
            else:
                self.assertTrue(even, (shape, strides))
        self.assertGreater(accepted, 100)


class Streams(unittest.TestCase):
    def test_what_may_be_given(self) -> None:
        class Of:
            def __init__(self, **attributes) -> None:
                self.__dict__.update(attributes)

        import ctypes

        class Protocol:
            def __cuda_stream__(self):
                return (0, 11)

        for stream, raw in (
            (0, 0), (5, 5), (Of(cuda_stream=6), 6), (Of(ptr=7), 7), (Of(handle=8), 8),
            (Of(handle=ctypes.c_void_p(9)), 9), (Of(handle=ctypes.c_void_p(0)), 0), (Protocol(), 11),
            (arrays.Integer(12), 12),
        ):
            self.assertEqual(streams.raw_stream(stream), raw)
        for none, kind in (("main", "str"), (True, "bool")):  # True was the default stream of CUDA's number 1
            with self.assertRaisesRegex(TypeError, f"^stream: a {kind} is no stream; allowed"):
                streams.raw_stream(none)

    def test_where_the_caller_works(self) -> None:
        plain = arrays.InterfaceArray(POINTER, (8,))
        named = arrays.InterfaceArray(POINTER, (8,), stream=2)
        self.assertEqual([streams.current_stream(array, 0) for array in (plain, named)], [0, 2])
        for raw_streams in (True, False):
            torch = fake_torch.install(raw_streams=raw_streams)
            self.addCleanup(fake_torch.uninstall)
            torch.cuda.streams = {0: 40, 1: 41}
            tensor = fake_torch.cuda_tensor(torch, 8)
            found = [streams.current_stream(array, 1) for array in (tensor, plain, named)]
            self.assertEqual(found, [41, 41, 2])
            torch.cuda.initialized = False
            self.assertEqual(streams.current_stream(plain, 0), 0)


if __name__ == "__main__":
    unittest.main()
