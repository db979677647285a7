"""What tests of prepared operators share: operators whose runs are seen, arrays, counted launches."""

from __future__ import annotations

import contextlib
import unittest

from . import arrays
from .driver import FakeDriver

import hone

HIDDEN = 64
_TYPESTR = {"fp32": "<f4", "fp16": "<f2", "bf16": "<V2"}


class Spy:
    """Stands before a C function that runs an operator, and remembers what it was given."""

    def __init__(self, run, fields) -> None:
        self._run, self._fields = run, fields
        self.streams, self.arguments, self.rows = [], [], []  # of attention, rows are tuples of sizes

    def __call__(self, handle, stream, arguments, *rows):
        self.streams.append(stream.value or 0)  # ctypes reads a null pointer as None
        given = self._fields.from_buffer_copy(arguments)
        self.arguments.append({name: getattr(given, name) or 0 for name, _ in self._fields._fields_})
        self.rows.append(tuple(size.value for size in rows) if len(rows) > 1 else rows[0].value)
        return self._run(handle, None, arguments, *rows)


def prepare(description, **options):
    """An operator with a Spy."""
    operator = hone.prepare(description, **options)
    operator._run = Spy(operator._run, operator.ARGUMENTS)
    return operator


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.driver = FakeDriver()

    @contextlib.contextmanager
    def launches(self, count: int):
        before = self.driver.launch_count()
        yield
        self.assertEqual(self.driver.launch_count(), before + count)

    def one_launch(self):
        return self.launches(1)

    @contextlib.contextmanager
    def some_launches(self):
        """How many kernels an operator takes is the library's affair."""
        before = self.driver.launch_count()
        yield
        self.assertGreater(self.driver.launch_count(), before)

    @contextlib.contextmanager
    def refuses(self, kind, pattern: str):
        """The error, and that nothing was launched."""
        before = self.driver.launch_count()
        with self.assertRaisesRegex(kind, pattern):
            yield
        self.assertEqual(self.driver.launch_count(), before)

    def refuses_missing(self, operator, good: dict, name: str, option: str) -> None:
        """The call `good` without an argument that the operator was prepared for."""
        with self.refuses(TypeError, f"^{name}: it is missing; this operator was prepared with {option}"):
            operator(**{**good, name: None})

    def refuses_none(self, operator, good: dict, name: str) -> None:
        """The same without one that every such operator needs."""
        with self.refuses(TypeError, f"^{name}: a NoneType is no array"):
            operator(**{**good, name: None})

    def refuses_given(self, operator, good: dict, name: str, value) -> None:
        """The same with one that the operator was prepared without."""
        with self.refuses(ValueError, f"^{name}: it is given, but this operator was prep"):
            operator(**{**good, name: value})

    def assert_ran_with(self, operator, **expected) -> None:
        """Members of the C struct of the latest run; arrays stand for their pointers."""
        found = operator._run.arguments[-1]
        wanted = {
            name: value if isinstance(value, int) else pointer_of(value) for name, value in expected.items()
        }
        self.assertEqual({name: found[name] for name in wanted}, wanted)

    def interface(self, *shape: int, dtype: str = "bf16", **more) -> arrays.InterfaceArray:
        return arrays.InterfaceArray(self.driver.allocate(1 << 16), shape, _TYPESTR[dtype], **more)

    def exporter(self, *shape: int, dtype: str = "bf16", **more) -> arrays.Exporter:
        return arrays.Exporter(self.driver.allocate(1 << 16), shape, dtype, **more)


def pointer_of(array) -> int:
    if isinstance(array, arrays.InterfaceArray):
        return array.__cuda_array_interface__["data"][0]
    return array.pointer if isinstance(array, arrays.Exporter) else array.data_ptr()


@contextlib.contextmanager
def replaced_variables(function, **values):
    """For a while a function sees other values of variables of the function around it."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__))
    kept = {name: cells[name].cell_contents for name in values}
    for name, value in values.items():
        cells[name].cell_contents = value
    try:
        yield
    finally:
        for name, value in kept.items():
            cells[name].cell_contents = value
