"""Prepared linear layers and feed-forward networks beside float64."""

from __future__ import annotations

import itertools
import unittest
from typing import Any, Dict, Optional

from support import ACTIVATIONS, DEVICE, DTYPES, Case, fused_ffn, linear, prepared, randn, weight_like

import torch
from torch import Tensor

import hone

TOKENS = (0, 1, 3, 17, 128, 333)
MOST = 333
# What an option does is seen at these as well, whose kernels are half as many.
FEW = (0, 1, 3, 17)
MOST_OF_FEW = 17
# in, out: even, odd, and of a Qwen2-7B layer, with a sixteenth of its 18944.
SIZES = ((64, 96), (100, 7), (3584, 1184))


def linear_arguments(description: hone.Linear, tokens: int) -> Dict[str, Optional[Tensor]]:
    columns, out, dtype = description.in_features, description.out_features, DTYPES[description.dtype]
    return {
        "x": randn(tokens, columns, dtype=dtype, seed=1),
        "weight": weight_like(out, columns, dtype, seed=2),
        "bias": randn(out, dtype=dtype, seed=3) if description.bias else None,
        "residual": randn(tokens, out, dtype=dtype, seed=4) if description.residual else None,
        "norm_weight": randn(columns, dtype=dtype, seed=8) if description.norm else None,
    }


def ffn_arguments(description: hone.FusedFfn, tokens: int) -> Dict[str, Optional[Tensor]]:
    hidden, between, dtype = description.hidden, description.intermediate, DTYPES[description.dtype]
    return {
        "x": randn(tokens, hidden, dtype=dtype, seed=1),
        "gate": weight_like(between, hidden, dtype, seed=2) if description.gated else None,
        "up": weight_like(between, hidden, dtype, seed=3),
        "down": weight_like(hidden, between, dtype, seed=4),
        "up_bias": randn(between, dtype=dtype, seed=5) if description.bias else None,
        "down_bias": randn(hidden, dtype=dtype, seed=6) if description.bias else None,
        "residual": randn(tokens, hidden, dtype=dtype, seed=7) if description.residual else None,
        "norm_weight": randn(hidden, dtype=dtype, seed=8) if description.norm else None,
    }


class Linears(Case):
    def check(self, description: hone.Linear, tokens: Any = TOKENS) -> None:
        operator = prepared(description)
        for count in tokens:
            with self.subTest(description=description, tokens=count):
                given = linear_arguments(description, count)
                wanted = linear(**given, activation=description.activation)
                self.assert_sums(operator(**given), wanted, 3 if description.norm else 1)

    def test_every_dtype_and_size(self):
        for dtype, (columns, out) in itertools.product(DTYPES, SIZES):
            self.check(hone.Linear(columns, out, max_tokens=MOST, dtype=dtype))

    def test_a_whole_layer(self):
        self.check(hone.Linear(18944, 3584, max_tokens=MOST), tokens=(1, 17, MOST))

    def test_every_activation(self):
        for activation in ACTIVATIONS:
            self.check(hone.Linear(256, 192, max_tokens=MOST_OF_FEW, activation=activation, bias=True), FEW)

    def test_a_residual_is_added_after_the_activation(self):
        for bias, activation in itertools.product((False, True), ("none", "gelu_tanh")):
            self.check(
                hone.Linear(
                    256, 192, max_tokens=MOST_OF_FEW, dtype="fp16", activation=activation, bias=bias, residual=True
                ),
                FEW,
            )


    def test_a_norm_comes_first(self):
        for dtype in DTYPES:
            for columns, out in SIZES[:2]:
                self.check(hone.Linear(columns, out, max_tokens=MOST_OF_FEW, dtype=dtype, residual=True, norm=True), FEW)
            self.check(hone.Linear(*SIZES[2], max_tokens=MOST, dtype=dtype, norm=True))

    def test_a_norm_is_that_of_an_rms_norm(self):
        """A fused call is as near to float64 as two calls are."""
        for dtype, tokens in itertools.product(DTYPES, (1, 4, 17, MOST)):
            fused = prepared(hone.Linear(3584, 1184, max_tokens=MOST, dtype=dtype, norm=True))
            norm = prepared(hone.RmsNorm(3584, max_rows=MOST, dtype=dtype))
            product = prepared(hone.Linear(3584, 1184, max_tokens=MOST, dtype=dtype))
            given = linear_arguments(fused.description, tokens)
            for epsilon in (1e-6, 0.5):
                wanted = linear(**given, epsilon=epsilon)
                n = norm(given["x"], given["norm_weight"], epsilon=epsilon)
                error, two = (
                    self.relative_error(found, wanted)
                    for found in (fused(**given, epsilon=epsilon), product(n, given["weight"]))
                )
                self.assertLess(error, 1.2 * two + 1e-7)

    def test_large_values_do_not_overflow_in_front_of_a_norm(self):
        for tokens in (1, 4, 17, MOST):
            given = linear_arguments(hone.Linear(1024, 192, dtype="fp16", norm=True), tokens)
            given["x"][:, 7] = 30000.0
            given["norm_weight"][7] = 16.0
            fused = prepared(hone.Linear(1024, 192, max_tokens=tokens, dtype="fp16", norm=True))
            found, wanted = fused(**given), linear(**given)
            self.assertTrue(bool(found.isfinite().all()))
            self.assertLess(self.relative_error(found, wanted), 2e-3)


class FeedForward(Case):
    def check(self, description: hone.FusedFfn, tokens: Any = TOKENS) -> None:
        operator = prepared(description)
        for count in tokens:
            with self.subTest(description=description, tokens=count):
                given = ffn_arguments(description, count)
                wanted = fused_ffn(**given, activation=description.activation)
                self.assert_sums(operator(**given), wanted, 3 if description.norm else 1)

    def test_gated_of_every_dtype(self):
        for dtype in DTYPES:
            self.check(hone.FusedFfn(256, 688, max_tokens=MOST, dtype=dtype))

    def test_gated_by_every_activation(self):
        for activation in ("gelu_tanh", "gelu_erf", "relu"):
            self.check(hone.FusedFfn(256, 688, max_tokens=MOST_OF_FEW, activation=activation), FEW)

    def test_not_gated(self):
        for bias, residual in ((False, False), (True, False), (True, True)):
            self.check(
                hone.FusedFfn(
                    256, 1024, max_tokens=MOST_OF_FEW, dtype="fp16", activation="gelu_tanh", gated=False, bias=bias,
                    residual=residual,
                ),
                FEW,
            )  # fmt: skip

    def test_gated_with_a_residual_and_odd_sizes(self):
        self.check(hone.FusedFfn(100, 77, max_tokens=MOST_OF_FEW, residual=True), FEW)
        self.check(hone.FusedFfn(3584, 1184, max_tokens=MOST, residual=True), tokens=(1, 17, MOST))

    def test_a_norm_comes_first(self):
        for dtype in DTYPES:
            self.check(hone.FusedFfn(256, 688, max_tokens=MOST_OF_FEW, dtype=dtype, residual=True, norm=True), FEW)
        self.check(
            hone.FusedFfn(
                256, 1024, max_tokens=MOST_OF_FEW, activation="gelu_tanh", gated=False, bias=True, norm=True
            ),
            FEW,
        )
        self.check(hone.FusedFfn(3584, 1184, max_tokens=MOST, norm=True), tokens=(1, 4, 17, MOST))


class Layouts(Case):
    @classmethod
    def setUpClass(cls) -> None:
        description = hone.Linear(64, 96, max_tokens=64, dtype="fp16", bias=True, residual=True)
        cls.linear, cls.given = prepared(description), linear_arguments(description, 8)
        cls.wanted = linear(**cls.given)

    def test_rows_may_lie_apart(self):
        for name in ("x", "weight", "residual"):
            tensor = self.given[name]
            apart = torch.empty(tensor.shape[0], 3 * tensor.shape[1], dtype=tensor.dtype, device=DEVICE)
            apart = apart[:, tensor.shape[1] : 2 * tensor.shape[1]].copy_(tensor)
            with self.subTest(name):
                self.assert_sums(self.linear(**{**self.given, name: apart}), self.wanted)

    def test_so_may_those_of_out(self):
        whole = torch.full((8, 3 * 96), 7.0, dtype=torch.float16, device=DEVICE)
        out = whole[:, 96:192]
        self.assertIs(self.linear(**self.given, out=out), out)
        self.assert_sums(out, self.wanted)
        self.assertTrue(bool((whole[:, :96] == 7).all() and (whole[:, 192:] == 7).all()))

    def test_leading_dimensions_are_tokens(self):
        for leading in ((8,), (2, 4), (2, 1, 4)):
            given = {**self.given, "x": self.given["x"].view(*leading, 64)}
            given["residual"] = given["residual"].view(*leading, 96)
            self.assert_sums(self.linear(**given), self.wanted.view(*leading, 96))

    def test_out_may_be_the_residual_itself(self):
        given = {**self.given, "residual": self.given["residual"].clone()}
        self.assertIs(self.linear(**given, out=given["residual"]), given["residual"])
        self.assert_sums(given["residual"], self.wanted)
        description = hone.FusedFfn(256, 688, max_tokens=64, residual=True)
        ffn, given = prepared(description), ffn_arguments(description, 8)
        wanted = fused_ffn(**given)
        ffn(**given, out=given["residual"])
        self.assert_sums(given["residual"], wanted)

    def test_a_layer_may_add_itself_to_what_it_was_given(self):
        """out = x + ffn(norm(x)), in place."""
        description = hone.FusedFfn(256, 688, max_tokens=MOST, residual=True, norm=True)
        ffn = prepared(description)
        for tokens in (1, 4, 17, MOST):
            given = ffn_arguments(description, tokens)
            given["residual"] = given["x"]
            wanted, apart = fused_ffn(**given), ffn(**given)
            self.assert_sums(apart, wanted, 3)
            for _ in range(20):
                given["x"] = given["residual"] = ffn_arguments(description, tokens)["x"]
                self.assert_same(ffn(**given, out=given["x"]), apart)


class Mistakes(Case):
    @classmethod
    def setUpClass(cls) -> None:
        description = hone.FusedFfn(256, 688, max_tokens=16)
        cls.ffn, cls.good = prepared(description), ffn_arguments(description, 4)

    def refuses(self, kind: Any, pattern: str, **changes: Any) -> None:
        for _ in range(2):  # the careful way, and the fast one first
            with self.assertRaisesRegex(kind, pattern):
                self.ffn(**{**self.good, **changes})
            self.ffn(**self.good)

    def test_every_mistake_names_its_argument(self):
        good = self.good
        for name in ("x", "gate", "up", "down"):
            self.refuses(TypeError, f"^{name}: its dtype is fp16", **{name: good[name].half()})
            self.refuses(ValueError, f"^{name}: it is a torch tensor on dev", **{name: good[name].cpu()})
            self.refuses(ValueError, f"^{name}: its shape is", **{name: good[name][:, :-8]})
        for name in ("gate", "up", "down"):
            self.refuses(ValueError, f"^{name}: its strides are", **{name: good[name].t().contiguous().t()})
        self.refuses(ValueError, "^residual: it is given", residual=good["x"])
        self.refuses(ValueError, "^up_bias: it is given", up_bias=good["up"][:, 0])
        self.refuses(TypeError, "^gate: it is missing", gate=None)
        self.refuses(ValueError, "^x: it has 17 rows; allowed are up to 16", x=randn(17, 256))
        self.refuses(ValueError, "^out: its shape is", out=randn(3, 256))

    def test_a_workspace_that_is_too_small(self):
        needed = self.ffn.workspace_bytes(4)
        workspace = torch.empty(needed - 1, dtype=torch.uint8, device=DEVICE)
        self.refuses(
            ValueError, f"^workspace: it has {needed - 1} bytes; needed are {needed}", workspace=workspace
        )


class Workspaces(Case):
    def setUp(self) -> None:
        description = hone.FusedFfn(256, 688, max_tokens=64)
        self.ffn, self.given = prepared(description), ffn_arguments(description, 17)
        self.wanted = self.ffn(**self.given)

    def test_one_may_be_given(self):
        needed = self.ffn.workspace_bytes(17)
        memory = torch.full((needed + 512,), 0x5A, dtype=torch.uint8, device=DEVICE)
        for _ in range(2):
            self.assert_same(self.ffn(**self.given, workspace=memory[:needed]), self.wanted)
        self.assertTrue(bool((memory[needed:] == 0x5A).all()))

    def test_the_same_at_every_call_on_any_stream(self):
        streams = [torch.cuda.Stream() for _ in range(2)]
        for stream in streams:
            stream.wait_stream(torch.cuda.current_stream())
        found = []
        for _ in range(20):
            for stream in streams:
                with torch.cuda.stream(stream):
                    found.append(self.ffn(**self.given))
        torch.cuda.synchronize()
        for out in found:
            self.assert_same(out, self.wanted)

    def test_a_stream_that_is_given(self):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        for given in (stream, stream.cuda_stream):
            out = torch.zeros_like(self.wanted)
            torch.cuda.synchronize()
            self.ffn(**self.given, out=out, stream=given)
            stream.synchronize()
            self.assert_same(out, self.wanted)

    def test_a_graph_gives_the_same_at_every_replay(self):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = [self.ffn(**self.given) for _ in range(10)]
        for _ in range(100):
            for out in found:
                out.zero_()
            graph.replay()
        for out in found:
            self.assert_same(out, self.wanted)


if __name__ == "__main__":
    unittest.main()
