"""torch.ops.hone: right, and at home in everything that PyTorch does with operators."""

from __future__ import annotations

import subprocess
import sys
import threading
import unittest
import warnings
from typing import Any

from support import DTYPES, EPSILON, FIRST_ROWS, Case, layer_norm, randn, rms_norm, shaped_inputs, summed

import torch

from hone import ops

HIDDEN = 256


def samples(dtype: Any = torch.float32, rows: int = 3) -> dict:
    """A call of each operator: {operator: arguments}."""
    x, residual, weight, bias = shaped_inputs(rows, HIDDEN, dtype)
    return {
        ops.rms_norm: (x, weight, EPSILON),
        ops.rms_norm_residual: (x, residual, weight, EPSILON),
        ops.rms_norm_offset: (x, weight, EPSILON),
        ops.rms_norm_residual_offset: (x, residual, weight, EPSILON),
        ops.rms_norm_quantized: (x, weight, EPSILON, "int8"),
        ops.rms_norm_residual_quantized: (x, residual, weight, EPSILON, "int8"),
        ops.layer_norm: (x, weight, bias, EPSILON),
        ops.layer_norm_residual: (x, residual, weight, None, EPSILON),
        ops.rms_norm_backward: (x, residual, weight, None, EPSILON),
    }


class Values(Case):
    def test_every_operator_and_dtype(self):
        for name, dtype in DTYPES.items():
            with self.subTest(dtype=name):
                x, residual, weight, bias = shaped_inputs(5, HIDDEN, dtype)
                total = summed(x, residual).to(dtype)
                self.assert_near(ops.rms_norm(x, weight, EPSILON), rms_norm(x, weight))
                y, found = ops.rms_norm_residual(x, residual, weight, EPSILON)
                self.assert_near(y, rms_norm(x, weight, residual))
                self.assert_same(found, total)
                one_more = weight.double() + 1  # which the dtype cannot hold
                self.assert_near(ops.rms_norm_offset(x, weight, EPSILON), rms_norm(x, one_more))
                y, found = ops.rms_norm_residual_offset(x, residual, weight, EPSILON)
                self.assert_near(y, rms_norm(x, one_more, residual))
                self.assert_same(found, total)
                self.assert_near(ops.layer_norm(x, weight, bias, EPSILON), layer_norm(x, weight, bias))
                y, found = ops.layer_norm_residual(x, residual, weight, None, EPSILON)
                self.assert_near(y, layer_norm(x, weight, None, residual))
                self.assert_same(found, total)
                for output in ("int8", "fp8"):
                    codes, scale = ops.rms_norm_quantized(x, weight, EPSILON, output)
                    self.assert_codes(codes, scale, rms_norm(x, weight), dtype)
                    codes, found, scale = ops.rms_norm_residual_quantized(
                        x, residual, weight, EPSILON, output
                    )
                    self.assert_codes(codes, scale, rms_norm(x, weight, residual), dtype)
                    self.assert_same(found, total)

    def test_any_strides_and_alignment(self):
        wide, weight = randn(6, 3 * HIDDEN + 1), randn(HIDDEN, seed=1)
        deep = randn(2, 3, 5, HIDDEN)
        views = {
            "rows apart": wide[:, :HIDDEN],
            "misaligned": wide[:, 1 : HIDDEN + 1],
            "elements apart": wide[:, : 2 * HIDDEN : 2],
            "transposed": randn(HIDDEN, 6).t(),
            "permuted": deep.permute(1, 0, 2, 3),
            "expanded": wide[:1, :HIDDEN].expand(6, HIDDEN),
            "one row": wide[0, :HIDDEN],
            "empty": wide[:0, :HIDDEN],
        }
        for name, x in views.items():
            with self.subTest(name):
                y = ops.rms_norm(x, weight, EPSILON)
                self.assertTrue(y.is_contiguous())
                self.assert_near(y, rms_norm(x, weight))
                y, total = ops.rms_norm_residual(x, x, weight, EPSILON)
                self.assert_near(y, rms_norm(x, weight, x))
        strided = randn(2 * HIDDEN, seed=2)[::2]
        self.assert_near(ops.rms_norm(deep, strided, EPSILON), rms_norm(deep, strided))

    def test_more_rows_than_were_prepared_at_first(self):
        weight = randn(64, seed=1)
        for rows in (1, FIRST_ROWS, FIRST_ROWS + 1, 40000, 2):
            x = randn(rows, 64)
            self.assert_near(ops.rms_norm(x, weight, EPSILON), rms_norm(x, weight))

    def test_no_rows(self):
        x, weight = randn(0, HIDDEN), randn(HIDDEN)
        codes, scale = ops.rms_norm_quantized(x, weight, EPSILON, "fp8")
        self.assertEqual((codes.shape, scale.shape), ((0, HIDDEN), (0,)))
        dx, dweight = ops.rms_norm_backward(x, x, weight, None, EPSILON)
        self.assertEqual(dx.shape, x.shape)
        self.assert_same(dweight, torch.zeros_like(weight))

    def test_two_threads_that_prepare_at_once(self):
        results = {}

        def work(hidden: int, index: int) -> None:
            x, weight = randn(4, hidden, seed=index), randn(hidden, seed=9)
            for _ in range(50):
                results[index] = (ops.rms_norm(x, weight, EPSILON), x, weight)
            torch.cuda.synchronize()

        threads = [threading.Thread(target=work, args=(80 + 16 * (i // 2), i)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(results), 4)
        for y, x, weight in results.values():
            self.assert_near(y, rms_norm(x, weight))

    def test_the_current_device_may_be_another(self):
        if torch.cuda.device_count() < 2:
            self.skipTest("there is one GPU")
        x, weight = randn(4, HIDDEN).to("cuda:1"), randn(HIDDEN).to("cuda:1")
        self.assert_near(ops.rms_norm(x, weight, EPSILON), rms_norm(x, weight))
        self.assertEqual(torch.cuda.current_device(), 0)


class Mistakes(Case):
    def refuses(self, kind: Any, name: str, operator: Any, *arguments: Any) -> None:
        with self.assertRaisesRegex(kind, f"^{name}: "):
            operator(*arguments)

    def test_every_mistake_names_its_argument(self):
        x, residual, weight, bias = shaped_inputs(3, HIDDEN, torch.bfloat16)
        ops.rms_norm(x, weight, EPSILON)  # prepared: the fast way has to notice, too
        ops.rms_norm_residual(x, residual, weight, EPSILON)
        self.refuses(ValueError, "x", ops.rms_norm, x.cpu(), weight.cpu(), EPSILON)
        self.refuses(ValueError, "weight", ops.rms_norm, x, weight.cpu(), EPSILON)
        self.refuses(TypeError, "x", ops.rms_norm, x.double(), weight.double(), EPSILON)
        self.refuses(TypeError, "weight", ops.rms_norm, x, weight.float(), EPSILON)
        self.refuses(ValueError, "weight", ops.rms_norm, x, weight[:-1], EPSILON)
        self.refuses(ValueError, "x", ops.rms_norm, x[0, 0], weight, EPSILON)
        self.refuses(ValueError, "residual", ops.rms_norm_residual, x, residual[:2], weight, EPSILON)
        self.refuses(TypeError, "residual", ops.rms_norm_residual, x, residual.half(), weight, EPSILON)
        self.refuses(ValueError, "residual", ops.rms_norm_residual, x, residual.cpu(), weight, EPSILON)
        self.refuses(ValueError, "bias", ops.layer_norm, x, weight, bias[:-1], EPSILON)
        self.refuses(ValueError, "output", ops.rms_norm_quantized, x, weight, EPSILON, "int4")

    def test_tensors_without_memory_are_checked_alike(self):
        x, weight = torch.empty(3, 64, device="meta"), torch.empty(63, device="meta")
        self.refuses(ValueError, "weight", ops.rms_norm, x, weight, EPSILON)


class Dispatch(Case):
    def test_opcheck_is_content_with_every_operator(self):
        for operator, arguments in samples().items():
            with self.subTest(operator.__name__):
                torch.library.opcheck(getattr(torch.ops.hone, operator.__name__).default, arguments)

    def test_opcheck_is_content_with_fp8(self):
        x, _, weight, _ = shaped_inputs(3, HIDDEN, torch.bfloat16)
        for test in ("test_schema", "test_faketensor"):
            operator = torch.ops.hone.rms_norm_quantized.default
            torch.library.opcheck(operator, (x, weight, EPSILON, "fp8"), test_utils=test)

    def test_opcheck_is_content_with_gradients(self):
        for operator in (ops.rms_norm, ops.rms_norm_residual):
            *tensors, epsilon = samples()[operator]
            tensors = [tensor.requires_grad_() for tensor in tensors]
            with self.subTest(operator.__name__):
                torch.library.opcheck(getattr(torch.ops.hone, operator.__name__).default, (*tensors, epsilon))

    def test_fake_tensors_have_the_shapes_and_strides_of_real_ones(self):
        from torch._subclasses.fake_tensor import FakeTensorMode

        for operator, arguments in samples(torch.bfloat16).items():
            with FakeTensorMode() as mode:
                fakes = [mode.from_tensor(a) if isinstance(a, torch.Tensor) else a for a in arguments]
                fake = operator(*fakes)
            for found, wanted in zip(tensors_of(fake), tensors_of(operator(*arguments))):
                self.assertEqual(
                    (found.shape, found.stride(), found.dtype, found.device),
                    (wanted.shape, wanted.stride(), wanted.dtype, wanted.device),
                )

    def test_tensors_without_memory(self):
        for operator, arguments in samples(torch.bfloat16).items():
            metas = [a.to("meta") if isinstance(a, torch.Tensor) else a for a in arguments]
            for found, wanted in zip(tensors_of(operator(*metas)), tensors_of(operator(*arguments))):
                self.assertTrue(found.is_meta)
                self.assertEqual((found.shape, found.dtype), (wanted.shape, wanted.dtype))

    def test_inference_mode(self):
        with torch.inference_mode():
            for operator, arguments in samples(torch.bfloat16).items():
                inside = [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments]
                found = tensors_of(operator(*inside))
                for one, other in zip(found, tensors_of(operator(*arguments))):
                    self.assert_same(one, other)

    def test_autocast_changes_nothing(self):
        x, _, weight, _ = shaped_inputs(3, HIDDEN, torch.float32)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            y = ops.rms_norm(x, weight, EPSILON)
        self.assert_near(y, rms_norm(x, weight))

    def test_vmap_calls_once_a_slice(self):
        x, weight = randn(4, 3, HIDDEN), randn(HIDDEN, seed=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about its speed
            y = torch.vmap(lambda rows: ops.rms_norm(rows, weight, EPSILON))(x)
        self.assert_near(y, rms_norm(x, weight))

    def test_transforms_of_gradients_are_refused(self):
        x, _, weight, _ = shaped_inputs(3, HIDDEN, torch.float32)
        with self.assertRaisesRegex(NotImplementedError, "hone::rms_norm"):
            torch.func.grad(lambda value: ops.rms_norm(value, weight, EPSILON).sum())(x)
        with self.assertRaisesRegex(NotImplementedError, "hone::rms_norm"):
            torch.func.jvp(lambda value: ops.rms_norm(value, weight, EPSILON), (x,), (x,))

    def test_forward_mode_gradients_are_refused(self):
        from torch.autograd import forward_ad

        x, _, weight, _ = shaped_inputs(3, HIDDEN, torch.float32)
        with forward_ad.dual_level():
            with self.assertRaisesRegex(NotImplementedError, "hone::rms_norm"):
                ops.rms_norm(forward_ad.make_dual(x, x), weight, EPSILON)
            self.assert_near(ops.rms_norm(x, weight, EPSILON), rms_norm(x, weight))


def tensors_of(result: Any) -> tuple:
    return result if isinstance(result, tuple) else (result,)


class Compiled(Case):
    def setUp(self) -> None:
        torch._dynamo.reset()

    def test_every_operator_in_a_full_graph(self):
        for operator, arguments in samples(torch.bfloat16).items():
            torch._dynamo.reset()  # which would count the operators as recompilations of one function
            with self.subTest(operator.__name__):
                compiled = torch.compile(lambda *a: operator(*a), fullgraph=True, backend="aot_eager")
                with torch.no_grad():
                    found = compiled(*arguments)
                for one, other in zip(tensors_of(found), tensors_of(operator(*arguments))):
                    self.assert_same(one, other)

    def test_inductor_keeps_it_between_its_own_kernels(self):
        x, residual, weight, _ = shaped_inputs(16, HIDDEN, torch.bfloat16)

        def block(x: Any, residual: Any, weight: Any) -> Any:
            y, total = torch.ops.hone.rms_norm_residual(x * 2, residual, weight, EPSILON)
            return torch.relu(y) + 1, total

        with torch.no_grad():
            found = torch.compile(block, fullgraph=True)(x, residual, weight)
            wanted = block(x, residual, weight)
        for one, other in zip(found, wanted):
            self.assert_near(one, other.double())

    def test_any_number_of_rows_with_one_graph(self):
        graphs = []

        def backend(graph: Any, inputs: Any) -> Any:
            graphs.append(graph)
            return graph.forward

        compiled = torch.compile(
            lambda x, w: ops.rms_norm(x, w, EPSILON), fullgraph=True, dynamic=True, backend=backend
        )
        weight = randn(HIDDEN, seed=1)
        for rows in (2, 3, 17, 100):
            x = randn(rows, HIDDEN)
            self.assert_near(compiled(x, weight), rms_norm(x, weight))
        self.assertEqual(len(graphs), 1)

    def test_gradients_in_a_full_graph(self):
        x, residual, weight, _ = shaped_inputs(8, HIDDEN, torch.float32)

        def loss(x: Any, residual: Any, weight: Any) -> Any:
            y, total = ops.rms_norm_residual(x, residual, weight, EPSILON)
            return (y * y.detach()).sum() + ops.rms_norm(total, weight, EPSILON).sum()

        gradients = []
        for function in (loss, torch.compile(loss, fullgraph=True, backend="aot_eager")):
            leaves = [tensor.detach().clone().requires_grad_() for tensor in (x, residual, weight)]
            gradients.append(torch.autograd.grad(function(*leaves), leaves))
        for one, other in zip(*gradients):
            torch.testing.assert_close(one, other)


class Graphs(Case):
    def test_the_first_call_during_a_capture_says_to_warm_up(self):
        x, weight = randn(4, 1040), randn(1040)
        graph = torch.cuda.CUDAGraph()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a graph without launches
            with torch.cuda.graph(graph):
                with self.assertRaisesRegex(RuntimeError, "hone::rms_norm .* warm up"):
                    ops.rms_norm(x, weight, EPSILON)
        self.assert_near(ops.rms_norm(x, weight, EPSILON), rms_norm(x, weight))

    def test_every_operator_in_a_graph(self):
        calls = samples(torch.bfloat16)
        wanted = {operator: tensors_of(operator(*arguments)) for operator, arguments in calls.items()}
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = {operator: tensors_of(operator(*arguments)) for operator, arguments in calls.items()}
        for _ in range(100):
            graph.replay()
        for operator in calls:
            for one, other in zip(found[operator], wanted[operator]):
                self.assert_same(one, other)

    def test_an_operator_that_grew_keeps_what_a_graph_launches(self):
        x, weight = randn(16, 96), randn(96)
        wanted = ops.rms_norm(x, weight, EPSILON)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = ops.rms_norm(x, weight, EPSILON)
        ops.rms_norm(randn(20000, 96), weight, EPSILON)
        graph.replay()
        self.assert_same(y, wanted)


class WithoutPrivateInterfaces(unittest.TestCase):
    def test_another_pytorch_gets_the_public_registration(self):
        program = """
import torch
from torch.testing import assert_close
name = "_are_functorch_transforms_active"
held = getattr(torch._C, name)
delattr(torch._C, name)
from hone._torch import autograd
setattr(torch._C, name, held)
assert not autograd._FAST
from hone import ops
x = torch.randn(4, 64, device="cuda", requires_grad=True)
weight = torch.randn(64, device="cuda", requires_grad=True)
wanted = torch.autograd.grad(torch.nn.functional.rms_norm(x, (64,), weight, 1e-5).square().sum(), (x, weight))
found = torch.autograd.grad(ops.rms_norm(x, weight, 1e-5).square().sum(), (x, weight))
assert_close(found, wanted, rtol=1e-4, atol=1e-4)
y, total = ops.rms_norm_residual(x, x, weight, 1e-5)
torch.autograd.grad(total.sum(), x)
torch.library.opcheck(torch.ops.hone.rms_norm.default, (x, weight, 1e-5))
q = torch.randn(1, 1, 2, 64, device="cuda", requires_grad=True)
k, cache = torch.randn(1, 1, 1, 64, device="cuda"), torch.zeros(1, 8, 1, 64, device="cuda")
lengths = torch.ones(1, dtype=torch.int32, device="cuda")
call = (k, k, cache, cache.clone(), None, None, "half", lengths)
try:
    ops.rope_kv_append(q, *call)
except NotImplementedError as error:
    assert "hone::rope_kv_append has no gradient" in str(error)
else:
    raise AssertionError("a gradient through rope_kv_append")
with torch.no_grad():
    assert_close(ops.rope_kv_append(q, *call), q)
try:
    ops.layer_norm(x, weight, None, 1e-5).sum().backward()
except NotImplementedError as error:
    assert "hone::layer_norm" in str(error)
else:
    raise AssertionError("a gradient through layer_norm")
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])


if __name__ == "__main__":
    unittest.main()
