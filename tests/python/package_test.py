"""The package around its operators: importing, what is missing, freezing, counting, warnings, fork()."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import typing
import unittest
import warnings
from pathlib import Path
from typing import Callable, Dict, Optional
from unittest import mock

import fakes
from fakes import arrays
from fakes.driver import FakeDriver

import hone
from hone import runtime
from hone._native import library


OLD_PYTORCH = """
__version__ = "1.13.1+cpu"
Tensor = type("Tensor", (), {})
from . import nn
"""

# What is asked for by its name, and two modules that are imported.
USE_OLD_PYTORCH = """
import importlib, hone
def said(use):
    try:
        use()
    except ImportError as error:
        print(error)
for name in sorted(hone._LAZY):
    said(lambda: getattr(hone, name))
for module in ("hone.ops", "hone.nn"):
    said(lambda: importlib.import_module(module))
"""


def run_python(code: str, changes: Optional[Dict[str, Optional[str]]] = None) -> str:
    """What a new Python prints; `changes` are environment variables, None for one that is not there."""
    environment = {**os.environ, "PYTHONPATH": str(fakes.TREE / "python"), **(changes or {})}
    environment = {name: value for name, value in environment.items() if value is not None}
    ended = subprocess.run(
        [sys.executable, "-B", "-c", code], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, timeout=120,
    )
    if ended.returncode:
        raise AssertionError(f"exit code {ended.returncode}\n{ended.stdout}{ended.stderr}")
    return ended.stdout.strip()


def error_of(call: str, changes: Optional[Dict[str, Optional[str]]] = None) -> str:
    """What a call raises in a new Python, as "NoGpuError: ..."."""
    return run_python(
        f"import hone\n"
        f"try:\n    {call}\n"
        f"except Exception as error:\n    print(type(error).__name__ + ':', error)",
        changes,
    )


class Importing(unittest.TestCase):
    def test_all_names_are_there(self) -> None:
        for name in hone.__all__:
            self.assertTrue(hasattr(hone, name), name)
        self.assertEqual(hone.__version__, library.library().hone_version().decode())

    def test_it_loads_neither_the_library_nor_torch(self) -> None:
        printed = run_python(
            "import sys, hone\n"
            "print('torch' in sys.modules, 'libhone' in open('/proc/self/maps').read())",
            {"HONE_LIBRARY": "/nonexistent/libhone.so.0"},
        )
        self.assertEqual(printed, "False False")

    def test_what_needs_torch_says_so(self) -> None:
        for name in ("load_quantized", "nn", "ops", "patch", "replace_linear_with_quantized"):
            with mock.patch.dict(sys.modules, {"torch": None}):  # importing it fails
                with self.assertRaisesRegex(ImportError, f"^hone.{name} needs PyTorch, which is not"):
                    getattr(hone, name)
        with self.assertRaisesRegex(AttributeError, "^module 'hone' has no attribute 'tuna'"):
            hone.tuna

    def test_a_pytorch_that_is_too_old_is_named(self) -> None:
        """In a process of its own: a module whose import has failed is not there for the others."""
        with tempfile.TemporaryDirectory(prefix="hone-old-torch-") as folder:
            Path(folder, "torch").mkdir()
            Path(folder, "torch", "__init__.py").write_text(OLD_PYTORCH, encoding="utf-8")
            Path(folder, "torch", "nn.py").write_text("functional = None\n", encoding="utf-8")
            path = os.pathsep.join([folder, str(fakes.TREE / "python")])
            printed = run_python(USE_OLD_PYTORCH, {"PYTHONPATH": path})
        wanted = [f"{name} needs PyTorch 2.4 or newer; version 1.13.1+cpu is installed here" for name in (
            "hone.accelerate", "hone.load", "hone.load_quantized", "hone.nn", "hone.ops", "hone.patch",
            "hone.quantize_weights", "hone.replace_linear_with_quantized", "hone.restore", "hone.ops", "hone.ops",
        )]  # fmt: skip
        self.assertEqual(printed.splitlines(), wanted)

    def test_dir_has_what_one_may_use(self) -> None:
        names = dir(hone)
        self.assertEqual([name for name in names if name.startswith("_")], ["__version__"])
        self.assertLessEqual({*hone.__all__, "nn", "ops", "patch", "quantize_weights"}, set(names))
        self.assertFalse({"calls", "importlib", "pytorch", "Any", "List", "annotations"} & set(names))


class Missing(unittest.TestCase):
    """What is not there is named at the first call that needs it."""

    def test_a_package_without_its_library(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(fakes.TREE / "python" / "hone", Path(folder, "hone"))
            alone = {"PYTHONPATH": folder, "HONE_LIBRARY": None, "HONE_PROGRAM": None, "PATH": folder}
            norm = "hone.RmsNorm(64)"
            for call in (f"hone.prepare({norm})", f"hone.explain({norm}, 1)", "hone.counters()"):
                self.assertRegex(
                    error_of(call, alone),
                    rf"^MissingLibraryError: libhone was not found; tried {folder}/hone/lib/libhone.so.0. ",
                )
            self.assertRegex(
                error_of("hone.tune('llama-3-8b')", alone),
                rf"^MissingLibraryError: the hone program was not found; tried {folder}/hone/bin/hone and ",
            )

    def test_a_tree_that_is_not_built(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(fakes.TREE / "python" / "hone", Path(folder, "python", "hone"))
            Path(folder, "runtime").mkdir()
            Path(folder, "runtime", "hone.h").touch()
            changes = {"PYTHONPATH": f"{folder}/python", "HONE_LIBRARY": None}
            error = error_of("hone.prepare(hone.RmsNorm(64))", changes)
            self.assertRegex(error, "^MissingLibraryError: libhone is not built; tried .*/libhone.so.0")

    def test_a_library_that_is_none(self) -> None:
        with tempfile.NamedTemporaryFile(suffix=".so") as file:
            for path, pattern in (
                ("/nonexistent.so", "HONE_LIBRARY names /nonexistent.so, which is no file"),
                (file.name, f"{file.name} does not load here: "),
                (os.environ["HONE_CUDA_LIBRARY"], "is no libhone: it has no function hone_version"),
            ):
                error = error_of("hone.prepare(hone.RmsNorm(64))", {"HONE_LIBRARY": path})
                self.assertRegex(error, f"^MissingLibraryError: .*{pattern}")

    def test_an_older_library(self) -> None:
        with mock.patch.object(library, "VERSION", "0.1.1"):
            with self.assertRaisesRegex(hone.MissingLibraryError, "is version 0.1.0, older than .* 0.1.1: "):
                library._open()
        with mock.patch.object(library, "VERSION", "0.0.9"):
            library._open()

    def test_a_function_that_the_library_lacks(self) -> None:
        with self.assertRaisesRegex(hone.MissingLibraryError, "^libhone 0.1.0, .* no function hone_conquer$"):
            library.function("hone_conquer")

    def test_no_driver(self) -> None:
        error = error_of("hone.prepare(hone.RmsNorm(64))", {"HONE_CUDA_LIBRARY": "/nonexistent/libcuda.so.1"})
        self.assertRegex(error, "^NoGpuError: (?s:.*)/nonexistent/libcuda.so.1")

    def test_no_compiler(self) -> None:
        error = error_of("hone.prepare(hone.RmsNorm(64))", {"HONE_NVRTC_LIBRARY": "/nonexistent/libnvrtc.so"})
        self.assertRegex(error, "^CompileError: (?s:.*)/nonexistent/libnvrtc.so")

    def test_an_environment_that_is_not_activated_is_named_to_the_library(self) -> None:
        for prefix, given, found in (
            ("/opt/env", {}, "/opt/env"),
            ("/opt/env", {"VIRTUAL_ENV": "/mine"}, "/mine"),
            ("/opt/env", {"CONDA_PREFIX": "/opt/env"}, None),
            ("/opt/env", {"CONDA_PREFIX": "/base"}, "/opt/env"),
            ("/usr", {}, None),
        ):
            with mock.patch.dict(os.environ, given, clear=True), mock.patch.object(sys, "prefix", prefix):
                library.announce_environment()
                self.assertEqual(os.environ.get("VIRTUAL_ENV"), found)


class Devices(unittest.TestCase):
    def test_what_may_be_given(self) -> None:
        for device, ordinal in ((None, 0), (3, 3), ("cuda", 0), ("cuda:2", 2), (arrays.Integer(4), 4)):
            self.assertEqual(runtime.device_ordinal(device), ordinal)
        # 2^32 was device 0: C took the lower 32 bits.
        for device in (-1, True, "cpu", "cuda:", "cuda:x", "cuda:\u00b2", "gpu:1", 1.5, 1 << 32, "cuda:4294967296"):
            with self.assertRaisesRegex(ValueError, "^device: "):
                runtime.device_ordinal(device)

    def test_its_name(self) -> None:
        self.assertEqual(hone.device_name(0), "NVIDIA H100 80GB HBM3")
        with self.assertRaises(hone.NoGpuError):
            hone.device_name(7)


class Freezing(unittest.TestCase):
    CODE = (
        "import hone\n"
        "ready = hone.prepare(hone.RmsNorm(64, max_rows=1))\n"
        "{freeze}\n"
        "hone.prepare(hone.RmsNorm(64, max_rows=1))\n"
        "ready.run_pointers(0, 1, 1 << 20, 0, 1 << 21, 0, 1 << 22, 0, 0, 0, 0, 0, 0, 1e-5)\n"
        "try:\n"
        "    hone.prepare(hone.RmsNorm(1288, max_rows=1))\n"  # which no other test prepares
        "except hone.FrozenError as error:\n"
        "    print(error.status, error)\n"
    )

    def test_what_would_have_to_be_compiled_is_refused(self) -> None:
        for freeze in ("hone.freeze()", "hone.freeze(0)"):
            printed = run_python(self.CODE.format(freeze=freeze))
            self.assertRegex(printed, r"^23 (?s:.*)prepare before freeze\(\)")

    def test_devices_that_are_used_later_are_frozen_too(self) -> None:
        printed = error_of("hone.freeze(); hone.prepare(hone.RmsNorm(320, max_rows=1))")
        self.assertRegex(printed, "^FrozenError: ")


class Counting(unittest.TestCase):
    def test_what_happened_is_counted(self) -> None:
        norm = hone.prepare(hone.RmsNorm(192, max_rows=1))
        before = hone.counters()
        for _ in range(3):
            norm.run_pointers(0, 1, 1 << 20, 0, 1 << 21, 0, 1 << 22, 0, 0, 0, 0, 0, 0, 1e-5)
        hone.prepare(hone.RmsNorm(448, max_rows=1))
        after = hone.counters(0)
        grown = {name: after[name] - before[name] for name in after if after[name] != before[name]}
        self.assertEqual(grown.pop("runs_fallback"), 3)
        self.assertEqual(grown.pop("prepares"), 1)
        self.assertGreaterEqual(grown.pop("compiles"), 1)
        self.assertLessEqual(grown.keys(), {"image_cache_hits"})
        self.assertEqual(
            list(after),
            ["runs_exact", "runs_neighbour", "runs_foreign", "runs_fallback", "failed_launches", "prepares",
             "compiles", "image_cache_hits"],
        )  # fmt: skip


class Handles(unittest.TestCase):
    def destroyed_of_interrupted(self, make: str, destroy: str, call: typing.Callable[[], object]) -> typing.List[bool]:
        """Ctrl-C comes when the library is done: whether each handle that is destroyed then is one."""
        loaded, destroyed = library.library(), []
        made, gone = getattr(loaded, make), getattr(loaded, destroy)

        def interrupted(*arguments) -> int:
            made(*arguments)
            raise KeyboardInterrupt

        spy = lambda handle: destroyed.append(handle.value is not None) or gone(handle)  # noqa: E731
        with mock.patch.object(loaded, destroy, spy):
            with mock.patch.object(loaded, make, interrupted), self.assertRaises(KeyboardInterrupt):
                call()
            gc.collect()
        return destroyed

    def test_an_operators_handle_goes_with_its_last_reference(self) -> None:
        destroyed = []
        destroy = library.library().hone_operator_destroy
        spy = lambda handle: destroyed.append(handle.value) or destroy(handle)  # noqa: E731
        with mock.patch.object(library.library(), "hone_operator_destroy", spy):
            norm = hone.prepare(hone.RmsNorm(64, max_rows=1))
            handle = norm._handle
            self.assertEqual(destroyed, [])
            del norm
            self.assertEqual(destroyed, [handle])

    def test_a_runtime_whose_making_is_interrupted_leaves_nothing(self) -> None:
        destroyed = self.destroyed_of_interrupted(
            "hone_runtime_create", "hone_runtime_destroy", lambda: runtime.Runtime(0, allow_compile=True)
        )
        self.assertEqual(destroyed, [True])

    def test_one_whose_making_is_interrupted_leaves_nothing(self) -> None:
        destroyed = self.destroyed_of_interrupted(
            "hone_rms_norm_prepare", "hone_operator_destroy", lambda: hone.prepare(hone.RmsNorm(64, max_rows=1))
        )
        self.assertEqual(destroyed, [True])

    def test_a_copy_is_the_operator_itself_and_a_pickle_prepares_anew(self) -> None:
        norm = hone.prepare(hone.RmsNorm(64, max_rows=1))
        self.assertIs(copy.copy(norm), norm)  # was a second one with the handle of the first
        self.assertIs(copy.deepcopy({"norm": norm})["norm"], norm)
        other = pickle.loads(pickle.dumps(norm))
        self.assertEqual((other.description, other.device), (norm.description, norm.device))
        self.assertNotEqual(other._handle, norm._handle)

    def test_operators_may_be_alive_when_the_process_ends(self) -> None:
        code = "import hone\nhone.kept = hone.prepare(hone.RmsNorm(64, max_rows=1))\nprint('end')"
        self.assertEqual(run_python(code), "end")

    def test_calls_that_cannot_be_written_at_the_end_are_told_on_stderr(self) -> None:
        """Python is gone by then: its callback was called all the same."""
        code = (
            "import os, shutil, sys, hone\n"
            "os.dup2(1, 2)\n"
            "norm = hone.prepare(hone.RmsNorm(64, max_rows=1))\n"
            "norm.run_pointers(0, 1, x=1 << 20, weight=1 << 21, out=1 << 22)\n"
            "shutil.rmtree(os.path.dirname(os.environ['HONE_CAPTURE']))\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "captured"))
            printed = run_python(code, {"HONE_CAPTURE": os.path.join(folder, "captured", "calls")})
        self.assertRegex(printed, "^hone: warning: captured calls wait to be written: .*/captured/calls")


class Warnings(unittest.TestCase):
    def test_a_cache_that_cannot_be_read_only_warns_at_the_callers_line(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            broken = Path(folder, "cache.db")
            broken.write_text("this is no database, but long enough to be looked at as one" * 20)
            code = (
                "import warnings, hone\n"
                "with warnings.catch_warnings(record=True) as caught:\n"
                "    warnings.simplefilter('always')\n"
                "    norm = {call}\n"
                "print(*[(w.category.__name__, w.filename, w.lineno, str(w.message)) for w in caught])\n"
            )
            for call in (
                "hone.prepare(hone.RmsNorm(64, max_rows=1))",
                "hone.explain(hone.RmsNorm(64), 1)",
                "hone.explain_text(hone.RmsNorm(64), 1)",
                "hone.prepare('llama-3-8b', max_rows=1)",
            ):
                printed = run_python(code.format(call=call), {"HONE_CACHE": str(broken)})
                self.assertRegex(printed, rf"^\('HoneWarning', '<string>', 4, .*{broken}")

    def test_they_come_once(self) -> None:
        device = runtime.runtime_of(0)
        device._remember_warning(None, b"something degrades")
        with self.assertWarnsRegex(hone.HoneWarning, "^something degrades$"):
            hone.prepare(hone.RmsNorm(64, max_rows=1))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            hone.prepare(hone.RmsNorm(64, max_rows=1))


def in_child(work: Callable[[], str]) -> str:
    """What `work` returns, or the exception it raises, in a child of fork() with a time limit."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            answer = work()
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(theirs, answer.encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as pipe:
        answer = pipe.read()
    status = os.waitpid(child, 0)[1]
    return answer if status == 0 else f"the child ended with status {status}"


class Forking(unittest.TestCase):
    def test_what_was_prepared_before_is_refused_in_the_child(self) -> None:
        norm = hone.prepare(hone.RmsNorm(64, max_rows=1))
        driver = FakeDriver()
        x, weight, out = (
            arrays.InterfaceArray(driver.allocate(4096), shape, "<V2") for shape in ((1, 64), (64,), (1, 64))
        )
        self.assertIs(norm(x, weight, out=out), out)
        for work in (lambda: norm(x, weight, out=out), norm.report, norm.report_text):
            self.assertRegex(in_child(work), "^ForkedError: .*fork")
        self.assertIs(norm(x, weight, out=out), out)

    def test_the_child_prepares_anew_and_drops_what_it_inherited(self) -> None:
        norm = hone.prepare(hone.RmsNorm(64, max_rows=1))

        def work() -> str:
            nonlocal norm
            norm = hone.prepare(hone.RmsNorm(64, max_rows=1))
            norm.run_pointers(0, 1, 1 << 20, 0, 1 << 21, 0, 1 << 22, 0, 0, 0, 0, 0, 0, 1e-5)
            return str(hone.counters()["runs_fallback"])

        self.assertEqual(in_child(work), "1")

    def test_locks_that_another_thread_held_do_not_stop_the_child(self) -> None:
        held, leave = threading.Event(), threading.Event()

        def hold() -> None:
            with runtime._lock, library._lock:
                held.set()
                leave.wait()

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        try:
            self.assertEqual(in_child(lambda: hone.device_name()), "NVIDIA H100 80GB HBM3")
        finally:
            leave.set()
            thread.join()


if __name__ == "__main__":
    unittest.main()
