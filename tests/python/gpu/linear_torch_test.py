"""hone::linear, hone::fused_ffn and their modules: right, and at home in what PyTorch does with operators."""

from __future__ import annotations

import itertools
import unittest
import warnings
from typing import Any, Dict

from support import DEVICE, DTYPES, FIRST_ROWS, Case, fused_ffn, linear, randn, weight_like

import torch
from torch import nn

from hone import nn as hone_nn
from hone import ops

IN, OUT = 256, 192
HIDDEN, BETWEEN = 256, 688


def linear_arguments(dtype: Any = torch.float32, tokens: int = 3, activation: str = "gelu_tanh") -> tuple:
    """x, weight, bias, residual, activation."""
    return (
        randn(tokens, IN, dtype=dtype, seed=1),
        weight_like(OUT, IN, dtype, seed=2),
        randn(OUT, dtype=dtype, seed=3),
        randn(tokens, OUT, dtype=dtype, seed=4),
        activation,
    )


def ffn_arguments(dtype: Any = torch.float32, tokens: int = 3, gated: bool = True) -> tuple:
    """x, gate, up, down, up_bias, down_bias, residual, activation."""
    x, residual = (randn(tokens, HIDDEN, dtype=dtype, seed=seed) for seed in (1, 2))
    gate, up = (weight_like(BETWEEN, HIDDEN, dtype, seed=seed) for seed in (3, 4))
    down = weight_like(HIDDEN, BETWEEN, dtype, seed=5)
    if gated:
        return x, gate, up, down, None, None, residual, "silu"
    biases = randn(BETWEEN, dtype=dtype, seed=6), randn(HIDDEN, dtype=dtype, seed=7)
    return x, None, up, down, *biases, residual, "gelu_tanh"


def samples(dtype: Any = torch.float32) -> Dict[str, Any]:
    """Calls by name: (operator, arguments, what is wanted in float64)."""
    one, two, three = linear_arguments(dtype), ffn_arguments(dtype), ffn_arguments(dtype, gated=False)
    plain = (one[0], one[1], None, None, "none")
    norm = randn(IN, dtype=dtype, seed=8), 1e-5
    return {
        "linear": (ops.linear, one, linear(*one)),
        "plain linear": (ops.linear, plain, linear(*plain)),
        "gated ffn": (ops.fused_ffn, two, fused_ffn(*two)),
        "ffn": (ops.fused_ffn, three, fused_ffn(*three)),
        "norm and linear": (ops.linear, (*one, *norm), linear(*one, *norm)),
        "norm and gated ffn": (ops.fused_ffn, (*two, *norm), fused_ffn(*two, *norm)),
    }


class Values(Case):
    def test_every_operator_and_dtype(self):
        for (name, dtype), _ in itertools.product(DTYPES.items(), range(2)):  # prepares, then knows
            for call, (operator, arguments, wanted) in samples(dtype).items():
                with self.subTest(dtype=name, call=call):
                    out = operator(*arguments)
                    self.assertEqual((out.dtype, out.is_contiguous()), (dtype, True))
                    self.assert_sums(out, wanted, 3 if "norm" in call else 1)

    def test_any_strides_and_alignment(self):
        weight, up, down = linear_arguments(torch.bfloat16)[1], *ffn_arguments(torch.bfloat16)[2:4]
        wide, deep = randn(6, 3 * IN + 1), randn(2, 3, 5, IN)
        views = {
            "rows apart": wide[:, :IN],
            "misaligned": wide[:, 1 : IN + 1],
            "elements apart": wide[:, : 2 * IN : 2],
            "transposed": randn(IN, 6).t(),
            "permuted": deep.permute(1, 0, 2, 3),
            "expanded": wide[:1, :IN].expand(6, IN),
            "one row": wide[0, :IN],
            "empty": wide[:0, :IN],
        }
        for name, x in views.items():
            with self.subTest(name):
                self.assert_sums(ops.linear(x, weight, None, None, "none"), linear(x, weight))
                found = ops.fused_ffn(x, up, up, down, None, None, x, "silu")
                self.assert_sums(found, fused_ffn(x, up, up, down, residual=x))
        x = randn(4, IN)
        for strided in (weight.t().contiguous().t(), torch.cat([weight, weight], 1)[:, IN:]):
            self.assert_sums(ops.linear(x, strided, None, None, "none"), linear(x, weight))

    def test_more_tokens_than_were_prepared_at_first(self):
        weight = weight_like(16, 64, torch.bfloat16, seed=2)
        for tokens in (1, FIRST_ROWS, FIRST_ROWS + 1, 40 * FIRST_ROWS, 2):
            x = randn(tokens, 64)
            self.assert_sums(ops.linear(x, weight, None, None, "none"), linear(x, weight))


class Mistakes(Case):
    def refuses(self, kind: Any, name: str, operator: Any, *arguments: Any) -> None:
        with self.assertRaisesRegex(kind, f"^{name}: "):
            operator(*arguments)

    def test_those_of_a_linear_layer(self):
        for device in (DEVICE, torch.device("meta")):
            x, weight, bias, residual, activation = linear_arguments(torch.bfloat16)
            x, weight, bias, residual = (tensor.to(device) for tensor in (x, weight, bias, residual))
            good = x, weight, bias, residual, activation
            ops.linear(*good)  # prepared: the fast way has to notice, too
            for place, name in enumerate(("x", "weight", "bias", "residual")):
                elsewhere = torch.empty_like(good[place], device="cpu")
                for kind, wrong in ((TypeError, good[place].half()), (ValueError, elsewhere)):
                    # Another x is one that the others do not fit.
                    blamed = "(x|weight)" if name == "x" else name
                    self.refuses(kind, blamed, ops.linear, *good[:place], wrong, *good[place + 1 :])
                wrong = good[place][..., :-1]
                blamed = "weight" if name == "x" else name
                self.refuses(ValueError, blamed, ops.linear, *good[:place], wrong, *good[place + 1 :])
            self.refuses(ValueError, "activation", ops.linear, *good[:4], "tanh")
            norm = randn(IN).to(device)
            self.refuses(ValueError, "epsilon", ops.linear, *good, norm)
            self.refuses(ValueError, "epsilon", ops.linear, *good, None, 1e-5)
            self.refuses(ValueError, "norm_weight", ops.linear, *good, norm[1:], 1e-5)
            self.refuses(TypeError, "norm_weight", ops.linear, *good, norm.half(), 1e-5)

    def test_those_of_a_feed_forward_network(self):
        x, gate, up, down, _, _, residual, _ = ffn_arguments(torch.bfloat16)
        biases = randn(BETWEEN), randn(HIDDEN)
        ops.fused_ffn(x, gate, up, down, None, None, residual, "silu")
        for wrong, name in (
            ((x, gate[:-1], up, down, None, None, None, "silu"), "gate"),
            ((x, gate, up[:, :-1], down, None, None, None, "silu"), "up"),
            ((x, gate, up, down[:-1], None, None, None, "silu"), "down"),
            ((x, gate, up, up, None, None, None, "silu"), "down"),
            ((x, gate, up, down, *biases, None, "silu"), "up_bias"),
            ((x, None, up, down, biases[0], None, None, "silu"), "down_bias"),
            ((x, None, up, down, None, biases[1], None, "silu"), "up_bias"),
            ((x, None, up, down, biases[1], biases[1], None, "silu"), "up_bias"),
            ((x, gate, up, down, None, None, residual[:2], "silu"), "residual"),
            ((x, gate, up, down, None, None, None, "none"), "activation"),
            ((x, gate, up, down, None, None, None, "silu", x[0], None), "epsilon"),
            ((x, gate, up, down, None, None, None, "silu", x, 1e-5), "norm_weight"),
        ):
            self.refuses(ValueError, name, ops.fused_ffn, *wrong)


class Dispatch(Case):
    def test_opcheck_is_content(self):
        for name, (operator, arguments, _) in samples().items():
            with self.subTest(name):
                torch.library.opcheck(getattr(torch.ops.hone, operator.__name__).default, arguments)

    def test_fake_tensors_and_those_without_memory(self):
        from torch._subclasses.fake_tensor import FakeTensorMode

        for operator, arguments, wanted in samples(torch.bfloat16).values():
            with FakeTensorMode() as mode:
                fakes = [mode.from_tensor(a) if isinstance(a, torch.Tensor) else a for a in arguments]
                fake = operator(*fakes)
            meta = operator(*(a.to("meta") if isinstance(a, torch.Tensor) else a for a in arguments))
            for found in (fake, meta):
                self.assertEqual((found.shape, found.dtype), (wanted.shape, torch.bfloat16))
                self.assertEqual(found.stride(), wanted.stride())

    def test_there_is_no_gradient(self):
        for name, (operator, arguments, wanted) in samples().items():
            arguments = (arguments[0].requires_grad_(), *arguments[1:])
            out = operator(*arguments)
            self.assert_sums(out.detach(), wanted, 3 if "norm" in name else 1)
            with self.subTest(name):
                with self.assertRaisesRegex(NotImplementedError, "^hone::(linear|fused_ffn) has no gradient"):
                    out.sum().backward()

    def test_one_graph_of_dynamo(self):
        torch._dynamo.reset()
        for name, (operator, arguments, _) in samples(torch.bfloat16).items():
            with self.subTest(name):
                compiled = torch.compile(lambda *a: operator(*a), fullgraph=True, backend="aot_eager")
                with torch.no_grad():
                    self.assert_same(compiled(*arguments), operator(*arguments))

    def test_inductor_keeps_them_between_its_own_kernels(self):
        torch._dynamo.reset()
        x, gate, up, down, _, _, residual, _ = ffn_arguments(torch.bfloat16, tokens=16)

        def block(x: Any, residual: Any) -> Any:
            y = torch.ops.hone.fused_ffn(x * 2, gate, up, down, None, None, residual + 1, "silu")
            return torch.relu(torch.ops.hone.linear(y, down.t(), None, None, "none")) + 1

        with torch.no_grad():
            found, wanted = torch.compile(block, fullgraph=True)(x, residual), block(x, residual)
        self.assertLess(self.relative_error(found, wanted.double()), 1e-2)

    def test_a_graph(self):
        calls = samples(torch.bfloat16)
        wanted = [operator(*arguments) for operator, arguments, _ in calls.values()]
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = [operator(*arguments) for operator, arguments, _ in calls.values()]
        for _ in range(100):
            graph.replay()
        for one, other in zip(found, wanted):
            self.assert_same(one, other)

    def test_the_first_call_during_a_capture_says_to_warm_up(self):
        x, weight = randn(4, 80), randn(48, 80)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a graph without launches
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                with self.assertRaisesRegex(RuntimeError, "hone::linear .* warm up"):
                    ops.linear(x, weight, None, None, "none")


class Modules(Case):
    def pair(self, dtype: Any, bias: bool = True, activation: str = "none") -> Any:
        """Ours and PyTorch's, with the same parameters."""
        theirs = nn.Linear(IN, OUT, bias, DEVICE, dtype)
        ours = hone_nn.Linear(IN, OUT, bias, DEVICE, dtype, activation=activation)
        ours.load_state_dict(theirs.state_dict())
        return ours, theirs

    def test_values_are_those_of_pytorch(self):
        for dtype, bias, activation in ((torch.bfloat16, True, "none"), (torch.float16, False, "gelu_tanh")):
            ours, theirs = self.pair(dtype, bias, activation)
            x, residual = randn(2, 3, IN, dtype=dtype), randn(2, 3, OUT, dtype=dtype)
            for added in (None, residual):
                wanted = linear(x, theirs.weight, theirs.bias, added, activation).detach()
                with torch.no_grad():
                    self.assert_sums(ours(x, added), wanted)

    def test_the_kernel_runs_where_no_gradient_is_needed(self):
        ours, _ = self.pair(torch.bfloat16)
        x = randn(3, IN)
        with torch.no_grad():
            self.assert_same(ours(x), ops.linear(x, ours.weight, ours.bias, None, "none"))
        self.assertTrue(ours(x).requires_grad)

    def test_what_hone_has_no_kernel_for_runs_all_the_same(self):
        ours, theirs = self.pair(torch.float32)
        for x in (torch.randn(3, IN), randn(3, IN, dtype=torch.float64)):
            ours, theirs = ours.to(x), theirs.to(x)
            torch.testing.assert_close(ours(x), theirs(x))
        ours, theirs = self.pair(torch.bfloat16)
        with torch.autocast("cuda", dtype=torch.float16), torch.no_grad():
            self.assertEqual(ours(randn(3, IN)).dtype, theirs(randn(3, IN)).dtype)

    def test_both_are_trainable(self):
        for make in (
            lambda: hone_nn.Linear(IN, OUT, device=DEVICE, activation="silu"),
            lambda: hone_nn.FusedFFN(HIDDEN, BETWEEN, device=DEVICE),
        ):
            module = make()
            module(randn(4, IN, dtype=torch.float32)).square().sum().backward()
            self.assertTrue(all(parameter.grad is not None for parameter in module.parameters()))

    def test_feed_forward_networks(self):
        x, residual = randn(2, 3, HIDDEN), randn(2, 3, HIDDEN, seed=1)
        for activation, gated, bias in (("silu", True, False), ("gelu_erf", False, True)):
            options = {"activation": activation, "gated": gated, "bias": bias}
            ffn = hone_nn.FusedFFN(HIDDEN, BETWEEN, **options, device=DEVICE, dtype=torch.bfloat16)
            gate, up, down = ffn.gate_proj.weight if gated else None, ffn.up_proj, ffn.down_proj
            arguments = (gate, up.weight, down.weight, up.bias, down.bias)
            for added in (None, residual):
                wanted = fused_ffn(x, *arguments, added, activation).detach()
                with torch.no_grad():
                    found = ffn(x, added)
                self.assert_same(found, ops.fused_ffn(x, *arguments, added, activation).detach())
                self.assert_sums(found, wanted)
                self.assertLess(self.relative_error(ffn(x, added).detach(), wanted), 2e-2)  # PyTorch's

    def test_a_norm_in_front(self):
        x = randn(5, HIDDEN)
        for module, residual in (
            (hone_nn.FusedFFN(HIDDEN, BETWEEN, norm=True, eps=1e-5), x),
            (hone_nn.Linear(HIDDEN, OUT, norm=True, eps=1e-5), randn(5, OUT)),
            (hone_nn.Linear(HIDDEN, OUT, norm=True), None),
        ):
            module.to(DEVICE, torch.bfloat16)
            nn.init.uniform_(module.norm.weight, 0.5, 1.5)
            with torch.no_grad():
                found = module(x, residual)
            self.assertLess(self.relative_error(found, module(x, residual).detach().double()), 2e-2)
            module(x, residual).sum().backward()
            self.assertTrue(all(parameter.grad is not None for parameter in module.parameters()))
        self.assertIn("norm.weight", hone_nn.Linear(8, 16, norm=True).state_dict())
        self.assertNotIn("norm.weight", hone_nn.Linear(8, 16).state_dict())

    def test_names_of_the_parameters_are_those_of_llama(self):
        names = {"gate_proj.weight", "up_proj.weight", "down_proj.weight"}
        self.assertEqual(set(hone_nn.FusedFFN(8, 16).state_dict()), names)
        biases = {"up_proj.bias", "down_proj.bias"}
        plain = hone_nn.FusedFFN(8, 16, gated=False, bias=True)
        self.assertEqual(set(plain.state_dict()), names - {"gate_proj.weight"} | biases)

    def test_what_is_not_allowed(self):
        for kind, arguments in (
            (hone_nn.FusedFFN, {"hidden": 8, "intermediate": 16, "bias": True}),
            (hone_nn.FusedFFN, {"hidden": 8, "intermediate": 16, "activation": "none"}),
            (hone_nn.Linear, {"in_features": 8, "out_features": 16, "activation": "tanh"}),
        ):
            with self.assertRaisesRegex(ValueError, "^(bias|activation): "):
                kind(**arguments)

    def test_they_compile_into_one_graph(self):
        torch._dynamo.reset()
        layers = (
            hone_nn.Linear(HIDDEN, HIDDEN, activation="relu"),
            hone_nn.FusedFFN(HIDDEN, BETWEEN),
            hone_nn.FusedFFN(HIDDEN, BETWEEN, norm=True),
        )
        model = nn.Sequential(*layers).to(DEVICE, torch.bfloat16)
        x = randn(4, HIDDEN)
        with torch.no_grad():
            compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
            self.assert_same(compiled(x), model(x))


if __name__ == "__main__":
    unittest.main()
