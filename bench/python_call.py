"""What a call of a prepared operator costs the host from Python, beyond the C function that it ends in.

    python3 bench/python_call.py [--rows 16] [--hidden 4096] [--rounds 400] [--json results.json]

With PyTorch and a GPU it is real; without, the fake driver of build/release and stand-ins for tensors show
what this package's own Python costs. Batches of all lines take turns; a line is the median of its batches,
each short enough for a stream's queue, which is empty before it. The first line is timed in C and needs a C
compiler.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import subprocess
import sys
import tempfile
import timeit
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

TREE = Path(__file__).resolve().parent.parent
BATCH = 50
EPSILON = 1e-5

C_LOOP = """
#include <stdint.h>
#include <time.h>
typedef int (*run_function)(const void*, void*, const void*, int64_t);
double seconds(run_function run, const void* op, void* stream, const void* args, int64_t rows, int calls) {
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < calls; ++i)
        if (run(op, stream, args, rows) != 0) return -1;
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
}
"""

# What is timed, in order: a name, and a statement on the names of operands().
STATEMENTS = {
    "norm.run_pointers(...)": "norm.run_pointers(*pointers)",
    "norm(x, weight, out=y)": "norm(x, weight, out=y)",
    "norm(x, weight)": "norm(x, weight)",
    "norm(x, weight, residual, out=y, sum=total)": "add(x, weight, residual, out=y, sum=total)",
    "torch.empty_like(x)": "torch.empty_like(x)",
}
# With PyTorch itself: its operators of Hone, and its own norm.
TORCH_STATEMENTS = {
    "hone.ops.rms_norm(x, weight, epsilon)": "ops.rms_norm(x, weight, epsilon)",
    "hone.ops.rms_norm_residual(...)": "ops.rms_norm_residual(x, residual, weight, epsilon)",
    "torch.ops.hone.rms_norm(x, weight, epsilon)": "torch.ops.hone.rms_norm(x, weight, epsilon)",
    "torch.nn.functional.rms_norm(...)": "torch.nn.functional.rms_norm(x, shape, weight, epsilon)",
}
C_CALL = "hone_norm_run(...) in C"


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--hidden", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch, where = find_torch()
    import hone  # after the stand-ins, which choose the fake driver

    names = operands(hone, torch, options.rows, options.hidden)
    batches: Dict[str, Callable[[], float]] = {C_CALL: c_batch(names)}
    statements = STATEMENTS
    if hasattr(torch, "library"):  # which a stand-in does not have
        statements = {**STATEMENTS, **TORCH_STATEMENTS}
        names.update(ops=hone.ops, epsilon=EPSILON, shape=(options.hidden,))
    for name, statement in statements.items():
        timer = timeit.Timer(statement, globals=names)
        batches[name] = lambda timer=timer: timer.timeit(BATCH)
    times = medians(batches, options.rounds, torch.cuda.synchronize)
    print(f"Python {sys.version.split()[0]}, {where}; [{options.rows}, {options.hidden}] in bf16")
    print(f"{'call':<45} {'host time':>11} {'beyond C':>11}")
    for name, ns in times.items():
        beyond = f"{ns - times[C_CALL]:+8.0f} ns" if name.startswith("norm") else ""
        print(f"{name:<45} {ns:8.0f} ns {beyond}".rstrip())
    if options.json:
        asked = {"rows": options.rows, "hidden": options.hidden, "rounds": options.rounds, "batch": BATCH}
        results = [{"call": name, "median_ns": round(ns, 1)} for name, ns in times.items()]
        report = {"schema": "hone.python_call/1", "where": where, **asked, "results": results}
        options.json.write_text(json.dumps(report, indent=1) + "\n")


def find_torch() -> Tuple[Any, str]:
    """(PyTorch or what stands for it, what the figures are of)"""
    sys.path.append(str(TREE / "python"))  # where hone is not installed
    try:
        import torch

        if torch.cuda.is_available():
            return torch, f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}"
    except ModuleNotFoundError:
        pass
    sys.path.insert(0, str(TREE / "tests" / "python"))
    from fakes import torch as fake_torch

    return fake_torch.install(), "fake driver and tensors"


def operands(hone: Any, torch: Any, rows: int, hidden: int) -> Dict[str, Any]:
    """Prepared operators and their tensors by the names that STATEMENTS have for them."""
    shape = {"dtype": torch.bfloat16, "device": torch.device("cuda", 0)}
    x, residual, y, total = (torch.empty((rows, hidden), **shape) for _ in range(4))
    weight = torch.empty((hidden,), **shape)
    norm = hone.prepare(hone.RmsNorm(hidden))
    add = hone.prepare(hone.RmsNorm(hidden, residual=True))
    norm(x, weight, out=y)  # the first call of each learns about PyTorch
    add(x, weight, residual, out=y, sum=total)
    pointers = (0, rows, x.data_ptr(), 0, weight.data_ptr(), 0, y.data_ptr(), 0, 0, 0, 0, 0, 0, EPSILON)
    tensors = {"x": x, "residual": residual, "weight": weight, "y": y, "total": total}
    return {"torch": torch, "norm": norm, "add": add, "pointers": pointers, **tensors}


def c_batch(names: Dict[str, Any]) -> Callable[[], float]:
    """Seconds of BATCH calls of the C function with the same operands."""
    from hone._native import library, structs

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "loop.so"))
        command = ["cc", "-O2", "-shared", "-fPIC", "-x", "c", "-o", path, "-"]
        subprocess.run(command, input=C_LOOP, text=True, check=True)
        seconds = ctypes.CDLL(path).seconds
    seconds.restype = ctypes.c_double
    pointers = names["pointers"]
    members = ("x", "residual", "weight", "bias", "out", "sum", "scale")
    args = structs.NormArgs(ctypes.sizeof(structs.NormArgs), EPSILON, **dict(zip(members, pointers[2:9])))
    run = ctypes.cast(library.function("hone_norm_run"), ctypes.c_void_p)
    operator, rows = ctypes.c_void_p(names["norm"]._handle), ctypes.c_int64(pointers[1])

    def batch() -> float:
        taken = seconds(run, operator, None, ctypes.byref(args), rows, BATCH)
        if taken < 0:
            raise RuntimeError("hone_norm_run failed")
        return taken

    return batch


def medians(
    batches: Dict[str, Callable[[], float]], rounds: int, wait: Callable[[], None]
) -> Dict[str, float]:
    """Nanoseconds of one call."""
    times: Dict[str, List[float]] = {name: [] for name in batches}
    for _ in range(rounds):
        for name, batch in batches.items():
            wait()
            times[name].append(batch() / BATCH * 1e9)
    return {name: statistics.median(found) for name, found in times.items()}


if __name__ == "__main__":
    main()
