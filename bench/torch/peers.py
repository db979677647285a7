"""Hone as a peer of PyTorch's kernels, in one process.

`peers(op, case, inputs)` returns callables that take one input set (a dict of tensors) and return the output tensors, as a
yardstick that times PyTorch's eager, Inductor and library kernels expects. HONE_TORCH_BRIDGE names the built bridge
(libhone_torch_bridge.so); winners come from the usual cache.
"""
import ctypes
import os

import torch

_DTYPES = {"fp32": 0, "fp16": 1, "bf16": 2}
_library = ctypes.CDLL(os.environ["HONE_TORCH_BRIDGE"])
_pointer, _count = ctypes.c_void_p, ctypes.c_longlong
_library.hone_bridge_open.restype = _pointer
_library.hone_bridge_rmsnorm.restype = _pointer
_library.hone_bridge_rmsnorm.argtypes = [_pointer, _count, _count, ctypes.c_int, ctypes.c_int]
_library.hone_bridge_origin.argtypes = [_pointer]
_library.hone_bridge_run.argtypes = [_pointer] * 7 + [_count]
_library.hone_bridge_status.restype = ctypes.c_char_p
_runtime = None


def _open():
    global _runtime
    if _runtime is None:
        torch.zeros(1, device="cuda")  # PyTorch's context first: both use the primary one
        _runtime = _library.hone_bridge_open()
        if not _runtime: raise RuntimeError("Hone could not be opened; the cause stands above")
    return _runtime


def _rmsnorm(case):
    residual = case["op"] == "rmsnorm_residual"
    rows = case["rows"]
    kernel = _library.hone_bridge_rmsnorm(_open(), case["hidden"], rows, _DTYPES[case.get("dtype", "bf16")], residual)
    if not kernel: raise RuntimeError("the operator could not be prepared; the cause stands above")
    if _library.hone_bridge_origin(kernel) != 0: print(f"not tuned for {rows} rows: {case}")

    def call(t):
        x, out = t["x"], torch.empty_like(t["x"])
        total = torch.empty_like(x) if residual else None
        stream = torch.cuda.current_stream().cuda_stream
        status = _library.hone_bridge_run(kernel, stream, x.data_ptr(), t["residual"].data_ptr() if residual else None,
                                          t["weight"].data_ptr(), out.data_ptr(), total.data_ptr() if residual else None, rows)
        if status != 0: raise RuntimeError(_library.hone_bridge_status(status).decode())
        return (out, total) if residual else out
    return call


def peers(op, case, inputs):
    return {"hone": _rmsnorm(case)} if op in ("rmsnorm", "rmsnorm_residual") else {}
