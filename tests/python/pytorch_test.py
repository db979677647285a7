"""hone.ops and hone.patch in a real PyTorch, where there is one, without a GPU: tensors have shapes and no
memory. What is computed, tests/python/gpu checks. Ends with 77 where there is no PyTorch.
"""

from __future__ import annotations

import sys
import unittest
import warnings

import fakes  # finds the package
from fakes.case import replaced_variables

try:
    import torch
except ImportError:
    sys.exit(77)

from torch._subclasses.fake_tensor import FakeTensorMode

import hone
from hone import ops

HIDDEN, BETWEEN, EPSILON = 64, 96, 1e-5


def samples(device: str) -> dict:
    """Arguments of each operator by its name, and the shapes of what it returns."""

    def made(*shape: int, dtype=torch.bfloat16):
        return torch.empty(*shape, dtype=dtype, device=device)

    def codes(rows: int, columns: int) -> tuple:
        """4 bits each, in groups of 32."""
        from hone._operators.stored import StoredWeight

        stored = StoredWeight(rows, columns, "w4a16", 32)
        return made(*stored.codes_shape, dtype=torch.uint8), made(*stored.scales_shape)

    x, residual, weight = made(3, 5, HIDDEN), made(3, 5, HIDDEN), made(HIDDEN)
    wide, down, bias = made(BETWEEN, HIDDEN), made(HIDDEN, BETWEEN), made(BETWEEN)
    q, cache = made(2, 3, 4, 64), made(2, 40, 2, 64)
    wishes = made(5, dtype=torch.float32), made(5, dtype=torch.int64), made(5, dtype=torch.int64)
    like, rows = (3, 5, HIDDEN), (3, 5)
    up = codes(BETWEEN, HIDDEN)
    return {
        "rms_norm": ((x, weight, EPSILON), [like]),
        "rms_norm_residual": ((x, residual, weight, EPSILON), [like, like]),
        "rms_norm_offset": ((x, weight, EPSILON), [like]),
        "rms_norm_residual_offset": ((x, residual, weight, EPSILON), [like, like]),
        "rms_norm_quantized": ((x, weight, EPSILON, "fp8"), [like, rows]),
        "rms_norm_residual_quantized": ((x, residual, weight, EPSILON, "int8"), [like, like, rows]),
        "layer_norm": ((x, weight, None, EPSILON), [like]),
        "layer_norm_residual": ((x, residual, weight, weight, EPSILON), [like, like]),
        "rms_norm_backward": ((residual, x, weight, None, EPSILON), [like, (HIDDEN,)]),
        "linear": ((x, wide, bias, None, "silu"), [(3, 5, BETWEEN)]),
        "fused_ffn": ((x, wide, wide, down, None, None, x, "silu", weight, EPSILON), [like]),
        "quantized_linear": ((x, *up, "w4a16", 32, BETWEEN, "none"), [(3, 5, BETWEEN)]),
        "attention": ((made(2, 4, 7, 64), made(2, 4, 7, 64), made(2, 4, 7, 64)), [(2, 4, 7, 64)]),
        "attention_with_cache": ((q, cache, cache), [(2, 3, 4, 64)]),
        "attention_with_cache_lse": ((q, cache, cache), [(2, 3, 4, 64), (2, 4, 3)]),
        "embedding": ((made(3, 5, dtype=torch.int64), made(100, HIDDEN)), [like]),
        "sample": ((made(5, 100, dtype=torch.float32), *wishes), [(5,)]),
    }


def shapes_of(result) -> list:
    return [tuple(one.shape) for one in (result if isinstance(result, tuple) else (result,))]


def tiny_model(device: str) -> torch.nn.Module:
    norm = torch.nn.RMSNorm(HIDDEN, eps=EPSILON)
    return torch.nn.Sequential(norm, torch.nn.Linear(HIDDEN, HIDDEN), torch.nn.LayerNorm(HIDDEN)).to(device)


class Operators(unittest.TestCase):
    def test_they_have_the_schemas_of_the_declarations(self) -> None:
        from hone._torch.declared import DECLARED

        self.assertGreater(len(DECLARED), 10)
        for declared in DECLARED:
            found = getattr(torch.ops.hone, declared.name).default._schema
            self.assertEqual([one.name for one in found.arguments], [name for _, name in declared.arguments])

    def test_tensors_without_memory_have_the_shapes_of_results(self) -> None:
        for name, (arguments, shapes) in samples("meta").items():
            with self.subTest(name):
                self.assertEqual(shapes_of(getattr(ops, name)(*arguments)), shapes)

    def test_fake_tensors_of_a_gpu_stay_on_it(self) -> None:
        with FakeTensorMode():
            for name, (arguments, shapes) in samples("cuda").items():
                with self.subTest(name):
                    result = getattr(ops, name)(*arguments)
                    self.assertEqual(shapes_of(result), shapes)
                    first = result[0] if isinstance(result, tuple) else result
                    self.assertEqual(first.device.type, "cuda")

    def test_tensors_of_the_processor_are_refused_by_name(self) -> None:
        x, weight = torch.ones(3, HIDDEN), torch.ones(HIDDEN)
        with self.assertRaisesRegex(ValueError, "^x: "):
            ops.rms_norm(x, weight, EPSILON)

    def test_wrong_shapes_are_refused_by_name(self) -> None:
        with self.assertRaisesRegex(ValueError, "^weight: "):
            ops.rms_norm(torch.empty(3, 64, device="meta"), torch.empty(63, device="meta"), EPSILON)


class Graphs(unittest.TestCase):
    def test_every_operator_is_compiled_into_one_graph(self) -> None:
        for name, (arguments, shapes) in samples("meta").items():
            operator = getattr(ops, name)
            torch._dynamo.reset()  # what it counts for each function
            with self.subTest(name), torch.no_grad():
                compiled = torch.compile(lambda *a: operator(*a), fullgraph=True, backend="aot_eager")
                self.assertEqual(shapes_of(compiled(*arguments)), shapes)

    def test_one_graph_serves_any_number_of_rows(self) -> None:
        graphs = []

        def backend(graph, inputs):
            graphs.append(graph)
            return graph.forward

        norm = torch.compile(
            lambda x, w: ops.rms_norm(x, w, EPSILON), fullgraph=True, dynamic=True, backend=backend
        )
        weight = torch.empty(HIDDEN, device="meta")
        for rows in (2, 3, 17, 100):
            y = norm(torch.empty(rows, HIDDEN, device="meta"), weight)
            self.assertEqual(tuple(y.shape), (rows, HIDDEN))
        self.assertEqual(len(graphs), 1)


class Dispatch(unittest.TestCase):
    """Calls pass by PyTorch's dispatcher (direct.py), but where somebody has to see them."""

    def setUp(self) -> None:
        self.call = (torch.empty(3, HIDDEN, device="meta"), torch.empty(HIDDEN, device="meta"), EPSILON)

    def seen_by(self, mode: type) -> list:
        """Names of what a mode sees of a call."""
        seen = []

        class Watcher(mode):
            def __torch_dispatch__(self, function, types, arguments=(), named=None):
                seen.append(str(function))
                return function(*arguments, **(named or {}))

            __torch_function__ = __torch_dispatch__

        with torch.no_grad(), Watcher():
            ops.rms_norm(*self.call)
        return seen

    def test_modes_see_the_operator(self) -> None:
        from torch.overrides import TorchFunctionMode
        from torch.utils._python_dispatch import TorchDispatchMode

        for mode in (TorchDispatchMode, TorchFunctionMode):
            self.assertIn("hone.rms_norm.default", self.seen_by(mode))

    def test_a_profiler_sees_the_operator(self) -> None:
        with torch.no_grad(), torch.profiler.profile() as profiler:
            ops.rms_norm(*self.call)
        self.assertIn("hone::rms_norm", [event.name for event in profiler.events()])

    def test_tracers_see_the_operator(self) -> None:
        from torch.fx.experimental.proxy_tensor import make_fx

        x, weight, _ = self.call

        def norm(x, weight):
            return ops.rms_norm(x, weight, EPSILON)

        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced = torch.jit.trace(norm, (x, weight), check_trace=False)
            self.assertIn("hone::rms_norm", str(traced.graph))
            for pre_dispatch in (False, True):
                graph = make_fx(norm, pre_dispatch=pre_dispatch)(x, weight)
                self.assertIn("hone.rms_norm.default", graph.code)

    def test_transforms_see_the_operator(self) -> None:
        x, weight, _ = self.call
        batched = torch.func.vmap(lambda x: ops.rms_norm(x, weight, EPSILON))(torch.stack([x, x]))
        self.assertEqual(tuple(batched.shape), (2, 3, HIDDEN))

    def test_what_pytorch_refuses_is_refused(self) -> None:
        x, weight, _ = self.call
        for wrong in ((x, weight, "1e-5"), (x, weight, None), (x, EPSILON, EPSILON)):
            with torch.no_grad(), self.assertRaisesRegex((RuntimeError, TypeError), "hone::rms_norm"):
                ops.rms_norm(*wrong)

    def test_nobody_watching_there_is_no_dispatch(self) -> None:
        from hone._torch.registered import calls

        if calls.rms_norm is torch.ops.hone.rms_norm.default:
            self.skipTest("this PyTorch lacks what direct.py asks for")
        with replaced_variables(calls.rms_norm, operator=None), torch.no_grad():
            self.assertEqual(tuple(ops.rms_norm(*self.call).shape), (3, HIDDEN))


class Gradients(unittest.TestCase):
    def test_norms_have_them(self) -> None:
        x = torch.empty(3, HIDDEN, device="meta", requires_grad=True)
        residual = torch.empty(3, HIDDEN, device="meta", requires_grad=True)
        weight = torch.empty(HIDDEN, device="meta", requires_grad=True)
        y, total = ops.rms_norm_residual(x, residual, weight, EPSILON)
        (ops.rms_norm(y, weight, EPSILON).sum() + total.sum()).backward()
        for leaf in (x, residual, weight):
            self.assertEqual(leaf.grad.shape, leaf.shape)

    def test_other_operators_say_what_has_one(self) -> None:
        x = torch.empty(3, HIDDEN, device="meta", requires_grad=True)
        y = ops.layer_norm(x, torch.empty(HIDDEN, device="meta"), None, EPSILON)
        with self.assertRaisesRegex(NotImplementedError, "layer_norm"):
            y.sum().backward()


class Modules(unittest.TestCase):
    def test_patch_swaps_the_norms_of_a_model(self) -> None:
        model = tiny_model("meta")
        names = list(model.state_dict())
        self.assertEqual([name for name, _, _ in hone.patch(model)], ["0", "2"])
        self.assertEqual(list(model.state_dict()), names)
        self.assertEqual(tuple(model(torch.empty(3, HIDDEN, device="meta")).shape), (3, HIDDEN))
        self.assertEqual(hone.patch(model), [])

    def test_what_has_no_gpu_runs_as_before(self) -> None:
        model = tiny_model("cpu")
        x = torch.randn(3, HIDDEN)
        wanted = model(x)
        hone.patch(model)
        torch.testing.assert_close(model(x), wanted)

    def test_a_transformers_model_is_patched(self) -> None:
        try:
            from transformers import LlamaConfig, LlamaForCausalLM
        except ImportError:
            self.skipTest("there is no transformers")
        config = LlamaConfig(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                             num_key_value_heads=2, vocab_size=100)  # fmt: skip
        with torch.device("meta"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = LlamaForCausalLM(config)
        self.assertEqual(len(hone.patch(model)), 5)
        logits = model(torch.zeros(1, 7, dtype=torch.int64, device="meta")).logits
        self.assertEqual(tuple(logits.shape), (1, 7, 100))


if __name__ == "__main__":
    unittest.main()
