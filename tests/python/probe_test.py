"""hone.patch() finds out by trying whether a module is an RMSNorm: here on tensors that know their dtype
alone."""

from __future__ import annotations

import contextlib
import importlib
import sys
import types
import unittest
from unittest import mock

import fakes  # noqa: F401 - before hone: sets the process up


class Tensor:
    def __init__(self, dtype: str, shape: tuple = (3, 8)) -> None:
        self.dtype, self.shape = dtype, shape

    def _with(self, other) -> "Tensor":
        mixed = isinstance(other, Tensor) and "float32" in (self.dtype, other.dtype)
        return Tensor("float32" if mixed else self.dtype, self.shape)

    __add__ = __mul__ = __rmul__ = _with

    def to(self, dtype: str) -> "Tensor":
        return Tensor(dtype, self.shape)

    def float(self) -> "Tensor":
        return self.to("float32")


class LlamaRMSNorm:
    """transformers' computes in float32, and returns the dtype of x."""

    variance_epsilon = 1e-6

    def __init__(self) -> None:
        self.weight = types.SimpleNamespace(numel=lambda: 8)
        self._parameters = {}

    def forward(self, x: Tensor) -> Tensor:
        return self._parameters["weight"] * x.to("float32").to(x.dtype)


def allclose(one: Tensor, other: Tensor, **tolerance) -> bool:
    if one.dtype != other.dtype:
        raise RuntimeError("Float did not match BFloat16")
    return True


def fake_torch(default: str) -> dict:
    """Modules whose functions make tensors of the default dtype where none is given."""
    torch = types.ModuleType("torch")
    torch.Tensor, torch.float32, torch.no_grad, torch.allclose = Tensor, "float32", contextlib.nullcontext, allclose
    for name in ("rand", "randn", "tensor"):
        setattr(torch, name, lambda *sizes, dtype=default, **more: Tensor(dtype))
    torch.Generator = lambda: types.SimpleNamespace(manual_seed=lambda seed: None)
    torch.nn = types.ModuleType("torch.nn")
    torch.nn.Module, torch.nn.Parameter = object, lambda tensor, requires_grad: tensor
    torch.nn.functional = types.ModuleType("torch.nn.functional")
    torch.nn.functional.rms_norm = lambda x, shape, weight, epsilon: Tensor(x.dtype)
    return {"torch": torch, "torch.nn": torch.nn, "torch.nn.functional": torch.nn.functional}


class Probe(unittest.TestCase):
    def test_it_does_not_depend_on_the_default_dtype(self) -> None:
        """With that of bf16, hone.patch() raised "Float did not match BFloat16"."""
        for default in ("float32", "bfloat16", "float64"):
            with self.subTest(default), mock.patch.dict(sys.modules, fake_torch(default)):
                sys.modules.pop("hone._nn.probe", None)
                probe = importlib.import_module("hone._nn.probe")
                self.assertTrue(probe.computes_rms_norm(LlamaRMSNorm()))


if __name__ == "__main__":
    unittest.main()
