"""hone.nn and hone.patch: modules that stand in for PyTorch's and for those of model libraries."""

from __future__ import annotations

import copy
import io
import unittest
from typing import Any

from support import DEVICE, DTYPES, Case, randn, shaped_inputs, summed

import torch
from torch import Tensor, nn
from torch.nn import functional

import hone
from hone import nn as hone_nn
from hone import ops

HIDDEN = 256


class LlamaRMSNorm(nn.Module):
    """As model libraries write it."""

    def __init__(self, hidden: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(hidden) + 0.5)
        self.variance_epsilon = eps

    def forward(self, hidden_states: Tensor) -> Tensor:
        dtype = hidden_states.dtype
        hidden_states = hidden_states.float()
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        return self.weight * (hidden_states * torch.rsqrt(variance + self.variance_epsilon)).to(dtype)


class GemmaRMSNorm(nn.Module):
    """Looks alike, and scales by 1 + weight."""

    def __init__(self, hidden: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(hidden))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        y = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)
        return (y * (1.0 + self.weight.float())).type_as(x)


class GatedRMSNorm(LlamaRMSNorm):
    """Takes a second tensor."""

    def forward(self, hidden_states: Tensor, gate: Any = None) -> Tensor:
        y = super().forward(hidden_states)
        return y if gate is None else y * gate


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(HIDDEN, HIDDEN)
        self.llama = LlamaRMSNorm(HIDDEN)
        self.gemma = GemmaRMSNorm(HIDDEN)
        self.gated = GatedRMSNorm(HIDDEN)
        self.rms = nn.RMSNorm(HIDDEN, eps=1e-5)
        self.layer = nn.LayerNorm(HIDDEN)
        self.plane = nn.LayerNorm((4, HIDDEN))
        self.bare = nn.LayerNorm(HIDDEN, elementwise_affine=False)

    def forward(self, x: Tensor) -> Tensor:
        x = self.gated(self.gemma(self.llama(self.embed(x))))
        return self.bare(self.layer(self.rms(x)))


class Modules(Case):
    def pair(self, kind: str, dtype: Any, **options: Any) -> Any:
        """Ours and PyTorch's, with the same random parameters."""
        theirs = getattr(nn, kind)(HIDDEN, device=DEVICE, dtype=dtype, **options)
        for parameter in theirs.parameters():
            nn.init.uniform_(parameter, 0.5, 1.5)
        ours = getattr(hone_nn, kind)(HIDDEN, device=DEVICE, dtype=dtype, **options)
        ours.load_state_dict(theirs.state_dict())
        return ours, theirs

    def check(self, ours: Any, theirs: Any, *shape: int, dtype: Any) -> None:
        x = randn(*shape, dtype=dtype)
        with torch.no_grad():
            self.assert_near(ours(x), theirs.double()(x.double()), looser=2)

    def test_values_are_those_of_pytorch(self):
        for dtype in DTYPES.values():
            self.check(*self.pair("RMSNorm", dtype, eps=1e-5), 3, 5, HIDDEN, dtype=dtype)
            self.check(*self.pair("LayerNorm", dtype), 3, 5, HIDDEN, dtype=dtype)
            self.check(*self.pair("LayerNorm", dtype, bias=False), 7, HIDDEN, dtype=dtype)

    def test_an_epsilon_of_none_is_pytorch_s(self):
        for dtype in DTYPES.values():
            ours, theirs = self.pair("RMSNorm", dtype)
            x = randn(4, HIDDEN, dtype=dtype) * 1e-3
            with torch.no_grad():
                torch.testing.assert_close(ours(x), theirs(x))

    def test_state_dicts_go_both_ways(self):
        for kind in ("RMSNorm", "LayerNorm"):
            ours, theirs = self.pair(kind, torch.float32)
            theirs.load_state_dict(ours.state_dict())
            self.assertEqual(list(ours.state_dict()), list(theirs.state_dict()))
            self.assertIsInstance(ours, getattr(nn, kind))

    def test_a_residual_is_added_and_returned(self):
        x, residual, _, _ = shaped_inputs(5, HIDDEN, torch.bfloat16)
        for kind in ("RMSNorm", "LayerNorm"):
            ours, theirs = self.pair(kind, torch.bfloat16, eps=1e-5)
            with torch.no_grad():
                y, total = ours(x, residual)
            self.assert_same(total, x + residual)
            self.assert_near(y, theirs.double()(summed(x, residual)).detach(), looser=2)

    def test_what_hone_has_no_kernel_for_runs_all_the_same(self):
        for kind in ("RMSNorm", "LayerNorm"):
            ours, theirs = self.pair(kind, torch.float32)
            for x in (torch.randn(3, HIDDEN), randn(3, HIDDEN, dtype=torch.float64)):
                ours, theirs = ours.to(x), theirs.to(x)
                torch.testing.assert_close(ours(x), theirs(x))
                torch.testing.assert_close(ours(x, x)[0], theirs(x + x))
        bare = hone_nn.RMSNorm(HIDDEN, elementwise_affine=False, device=DEVICE)
        x = randn(3, HIDDEN)
        torch.testing.assert_close(bare(x), functional.rms_norm(x, (HIDDEN,)))

    def test_autocast_gives_the_dtype_of_pytorch(self):
        for kind in ("RMSNorm", "LayerNorm"):
            ours, theirs = self.pair(kind, torch.bfloat16)
            x = randn(3, HIDDEN)
            with torch.autocast("cuda", dtype=torch.bfloat16), torch.no_grad():
                self.assertEqual(ours(x).dtype, theirs(x).dtype)

    def test_both_are_trainable(self):
        for kind in ("RMSNorm", "LayerNorm"):
            ours, theirs = self.pair(kind, torch.float32, eps=1e-5)
            x = randn(6, HIDDEN, dtype=torch.float32)
            for module in (ours, theirs):
                module(x).square().sum().backward()
            torch.testing.assert_close(ours.weight.grad, theirs.weight.grad, rtol=1e-4, atol=1e-4)

    def test_more_than_one_dimension_is_refused(self):
        for kind in (hone_nn.RMSNorm, hone_nn.LayerNorm):
            with self.assertRaisesRegex(ValueError, "normalized_shape"):
                kind((4, HIDDEN))

    def test_they_compile_into_one_graph(self):
        torch._dynamo.reset()
        norms = hone_nn.RMSNorm(HIDDEN), hone_nn.RMSNorm(HIDDEN, eps=1e-5), hone_nn.LayerNorm(HIDDEN)
        model = nn.Sequential(*norms).to(DEVICE)
        x = randn(4, HIDDEN, dtype=torch.float32)
        with torch.no_grad():
            compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
            torch.testing.assert_close(compiled(x), model(x))


class Patch(Case):
    def model(self, dtype: Any = torch.float32) -> Model:
        torch.manual_seed(0)
        return Model().to(DEVICE, dtype)

    def test_it_is_an_attribute_of_the_package(self):
        from hone import patching

        self.assertIs(hone.patch, patching.patch)

    def test_norms_are_swapped_and_nothing_else(self):
        model = self.model()
        swaps = {name: (old.__name__, new.__name__) for name, old, new in hone.patch(model)}
        self.assertEqual(
            swaps,
            {
                "llama": ("LlamaRMSNorm", "HoneLlamaRMSNorm"),
                "rms": ("RMSNorm", "RMSNorm"),
                "layer": ("LayerNorm", "LayerNorm"),
            },
        )
        self.assertIsInstance(model.llama, LlamaRMSNorm)
        self.assertIsInstance(model.rms, hone_nn.RMSNorm)
        self.assertEqual(hone.patch(model), [])

    def test_the_default_dtype_does_not_matter(self):
        self.addCleanup(torch.set_default_dtype, torch.get_default_dtype())
        torch.set_default_dtype(torch.bfloat16)
        model = self.model(torch.bfloat16)
        self.assertEqual(len(hone.patch(model)), 3)

    def test_a_module_whose_forward_is_overridden_is_left_alone(self):
        model = self.model()
        model.llama.forward = lambda x: x
        self.assertNotIn("llama", [name for name, _, _ in hone.patch(model)])

    def test_results_and_state_stay(self):
        x = randn(3, HIDDEN, dtype=torch.float32)
        model = self.model()
        with torch.no_grad():
            wanted, state = model(x), {name: value.clone() for name, value in model.state_dict().items()}
            hone.patch(model)
            torch.testing.assert_close(model(x), wanted, rtol=1e-4, atol=1e-4)
        self.assertEqual(list(model.state_dict()), list(state))
        for name, value in model.state_dict().items():
            self.assert_same(value, state[name])

    def test_the_kernel_runs(self):
        model = self.model(torch.bfloat16)
        hone.patch(model)
        x = randn(3, HIDDEN)
        with torch.no_grad():
            self.assert_same(model.llama(x), ops.rms_norm(x, model.llama.weight, 1e-6))
            self.assert_same(model.rms(x), ops.rms_norm(x, model.rms.weight, 1e-5))

    def test_gradients_stay(self):
        x = randn(3, HIDDEN, dtype=torch.float32)
        gradients = []
        for patched in (False, True):
            model = self.model()
            if patched:
                hone.patch(model)
            model(x).square().sum().backward()
            gradients.append([parameter.grad for parameter in model.parameters()])
        for one, other in zip(*gradients):
            if other is not None:
                torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)

    def test_patched_models_are_copied_and_saved(self):
        model = self.model()
        hone.patch(model)
        file = io.BytesIO()
        torch.save(model, file)
        file.seek(0)
        x = randn(3, HIDDEN, dtype=torch.float32)
        for twin in (copy.deepcopy(model), torch.load(file, weights_only=False)):
            self.assertIs(type(twin.llama), type(model.llama))
            with torch.no_grad():
                self.assert_same(twin(x), model(x))

    def test_a_patched_model_compiles_into_one_graph(self):
        torch._dynamo.reset()
        model = self.model()
        hone.patch(model)
        x = randn(3, HIDDEN, dtype=torch.float32)
        with torch.no_grad():
            compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
            torch.testing.assert_close(compiled(x), model(x))


if __name__ == "__main__":
    unittest.main()
