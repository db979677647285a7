"""hone.ops on stand-ins for PyTorch: what it registers, what its operators launch, and what mistakes
say."""

from __future__ import annotations

import inspect
import itertools
import re
import unittest
from unittest import mock

from fakes import torch as fake_torch, torch_library
from fakes.case import HIDDEN, Case, replaced_variables

import hone
from hone._native.arrays import TORCH_DTYPES
from hone._operators import calls
from hone._operators.stored import StoredWeight

BETWEEN = 96
SIZES = {size for kind in calls.KINDS.values() for tensor in kind.TENSORS for size in tensor.shape}


class TorchCase(Case):
    PRIVATE = True

    def setUp(self) -> None:
        self.torch = fake_torch.install()
        torch_library.install(self.torch, private=self.PRIVATE)
        self.addCleanup(fake_torch.uninstall)
        self.addCleanup(torch_library.uninstall)
        from hone._torch import registered

        self.ops = registered

    def tensor(self, *shape: int, **more) -> fake_torch.Tensor:
        return fake_torch.cuda_tensor(self.torch, *shape, **more)

    def stored(self, rows: int, columns: int) -> tuple:
        """Codes and scales of a weight of 4 bits, in groups of 32."""
        stored = StoredWeight(rows, columns, "w4a16", 32)
        return self.tensor(*stored.codes_shape, dtype=self.torch.uint8), self.tensor(*stored.scales_shape)

    def stored_experts(self, rows: int, columns: int) -> tuple:
        """Those of 8 experts."""
        stored = StoredWeight(rows, columns, "w4a16", 32)
        return (
            self.tensor(8, *stored.codes_shape, dtype=self.torch.uint8),
            self.tensor(8, *stored.scales_shape),
        )

    def starts(self) -> fake_torch.Tensor:
        return self.tensor(9, dtype=self.torch.int32)

    def pairs(self, *tokens: int) -> fake_torch.Tensor:
        return self.tensor(*tokens, 2, dtype=self.torch.int32)

    def samples(self) -> dict:
        """Arguments by the operator's name, and the shapes of what it returns: by hand where a call has words
        or what excludes something else, else everything that the declaration has."""
        declared = {one.name: self.declared_sample(one) for one in self.declared_alone()}
        return {**declared, **self.samples_by_hand()}

    def declared_alone(self) -> list:
        """The operators whose calls are told by their declarations alone."""
        by_hand = (*self.samples_by_hand(), "rope_kv_append")
        return [one for one in self.ops.DECLARED if one.name not in by_hand]

    def declared_sample(self, declared) -> tuple:
        tensors = calls.KINDS[declared.description].TENSORS
        known = {tensor.name: self.of_declared(tensor, declared.description) for tensor in tensors}
        made = [known[tensor.name] for tensor in tensors
                if tensor.written and (not tensor.when or declared.fixed.get(tensor.when))]
        arguments = tuple(known.get(name, 1.5) for name in declared.names)
        return arguments, [tuple(tensor.shape) for tensor in made]

    def of_declared(self, tensor, description) -> fake_torch.Tensor:
        """One that an operator takes or writes; every size of a table has a number of its own."""
        sizes = [16 * (4 + sorted(SIZES).index(name)) for name in tensor.shape]
        word = list(description.WORDS.get(tensor.dtype, {tensor.dtype or "bf16": 0}))[-1]
        dtype = getattr(self.torch, TORCH_DTYPES[word])
        return self.tensor(*((3, 5) if tensor.rows else ()), *sizes, dtype=dtype)

    def samples_by_hand(self) -> dict:
        x, residual, weight = self.tensor(3, 5, HIDDEN), self.tensor(3, 5, HIDDEN), self.tensor(HIDDEN)
        wide, down, bias = self.tensor(BETWEEN, HIDDEN), self.tensor(HIDDEN, BETWEEN), self.tensor(BETWEEN)
        rows, like = (3, 5), (3, 5, HIDDEN)
        packed, packed_down = self.stored(BETWEEN, HIDDEN), self.stored(HIDDEN, BETWEEN)
        return {
            "quantized_linear": ((x, *packed, "w4a16", 32, BETWEEN, "none"), [(3, 5, BETWEEN)]),
            "quantized_ffn": (
                (x, *packed, *packed, *packed_down, "w4a16", 32, BETWEEN, "silu", *[None] * 5, x, None, weight, 1e-5),
                [like],
            ),
            "expert_linear": (
                (x, self.starts(), self.tensor(8, BETWEEN, HIDDEN), self.pairs(3, 5), 2, "silu", True,
                 self.tensor(8, BETWEEN, HIDDEN), self.tensor(8, BETWEEN), self.tensor(8, BETWEEN)),
                [(3, 5, 2, BETWEEN)],
            ),
            "quantized_expert_linear": (
                (self.tensor(3, 5, 2, HIDDEN), self.starts(), *self.stored_experts(BETWEEN, HIDDEN), self.pairs(3, 5),
                 "w4a16", 32, BETWEEN, 2, "none", False, *[None] * 6, self.tensor(3, 5, 2, dtype=self.torch.float32)),
                [(3, 5, BETWEEN)],
            ),
            "rms_norm": ((x, weight, 1e-5), [like]),
            "rms_norm_residual": ((x, residual, weight, 1e-5), [like, like]),
            "rms_norm_offset": ((x, weight, 1e-5), [like]),
            "rms_norm_residual_offset": ((x, residual, weight, 1e-5), [like, like]),
            "rms_norm_quantized": ((x, weight, 1e-5, "fp8"), [like, rows]),
            "rms_norm_residual_quantized": ((x, residual, weight, 1e-5, "int8"), [like, like, rows]),
            "layer_norm": ((x, weight, None, 1e-5), [like]),
            "layer_norm_residual": ((x, residual, weight, weight, 1e-5), [like, like]),
            "rms_norm_backward": ((residual, x, weight, None, 1e-5), [like, (HIDDEN,)]),
            "linear": ((x, wide, bias, None, "silu"), [(3, 5, BETWEEN)]),
            "fused_ffn": ((x, wide, wide, down, None, None, x, "silu", weight, 1e-5), [like]),
        }


class Heads(TorchCase):
    """Operators whose options follow from their schemas: those that are left out have its defaults."""

    def test_the_append_prepares_what_its_tensors_say(self) -> None:
        kv, cache, angles = (2, 3, 2, 64), (2, 40, 2, 64), (50, 16)
        tables = [self.tensor(*angles, dtype=self.torch.float32) for _ in range(2)]
        given = [self.tensor(2, 3, 4, 64), *map(lambda shape: self.tensor(*shape), (kv, kv, cache, cache)), *tables]
        lengths = self.tensor(2, dtype=self.torch.int32)
        for kernel in ("CUDA", "Meta"):
            out = self.ops.rope_kv_append.kernels[kernel](*given, "interleaved", lengths)
            self.assertEqual(tuple(out.shape), (2, 3, 4, 64))
        with self.refuses(ValueError, "^epsilon: 1e-05; it goes with"):
            self.ops.rope_kv_append.kernels["Meta"](*given, "half", lengths, *[None] * 7, 1e-5)
        from hone._torch import rope

        ((kind, _),) = rope._PREPARED
        self.assertEqual(kind, (4, 2, 64, 32, "bf16", "same", "interleaved", False, False, 0))

    def test_attention_with_a_cache_prepares_what_its_options_say(self) -> None:
        q, cache = self.tensor(2, 3, 4, 64), self.tensor(2, 40, 2, 64)
        out, sums = self.ops.attention_with_cache_lse(q, cache, cache, None, None, True, 5, 30.0)
        self.assertEqual((tuple(out.shape), tuple(sums.shape)), ((2, 3, 4, 64), (2, 4, 3)))
        sinks = self.tensor(4, dtype=self.torch.float32)
        options = (None, None, True, 0, 0.0, *[None] * 4)
        self.ops.attention_with_cache(self.tensor(2, 30, 4, 64), cache, cache, *options, sinks)
        with self.refuses(ValueError, "^sinks: "):
            few = self.tensor(2, dtype=self.torch.float32)
            self.ops.attention_with_cache(q, cache, cache, *options, few)
        from hone._torch import attention

        found = [operator.description for operator, _ in attention._PREPARED.values()]
        self.assertEqual([(one.window, one.softcap, one.lse) for one in found], [(5, True, True), (0, False, False)])
        self.assertEqual([(one.min_q_len, one.max_q_len) for one in found], [(3, 4), (17, 8192)])
        self.assertEqual([one.sinks for one in found], [False, True])


def refuse_care(kernel) -> None:
    """From now on a kernel fails where it would take the careful way."""
    names = kernel.__globals__
    for name in ("with_care", "_with_care"):
        if name in names:
            names[name] = None


class Calls(TorchCase):
    def test_the_second_call_goes_the_fast_way_and_launches_the_same(self) -> None:
        for name, (arguments, shapes) in self.samples().items():
            with self.subTest(name):
                operator = getattr(self.ops, name)
                for way in ("careful", "fast"):
                    before = self.driver.launch_count()
                    found = operator(*arguments)
                    launched = self.driver.launch_count() - before
                    found = found if isinstance(found, tuple) else (found,)
                    self.assertEqual([tuple(tensor.shape) for tensor in found], shapes)
                    self.assertGreater(launched, 0)
                    refuse_care(operator.kernels["CUDA"])  # the second call has no use for it

    def test_more_rows_prepare_a_larger_operator(self) -> None:
        weight = self.tensor(HIDDEN)
        for rows in (1, 8192, 20000, 1):
            y = self.ops.rms_norm(self.tensor(rows, HIDDEN), weight, 1e-5)
            self.assertEqual(tuple(y.shape), (rows, HIDDEN))

    def test_no_rows_launch_nothing_and_a_sum_over_them_is_zero(self) -> None:
        x, weight = self.tensor(0, HIDDEN), self.tensor(HIDDEN)
        self.ops.rms_norm_backward(self.tensor(2, HIDDEN), self.tensor(2, HIDDEN), weight, None, 1e-5)
        with self.launches(0):
            dx, dweight = self.ops.rms_norm_backward(x, x, weight, None, 1e-5)
        self.assertEqual((tuple(dx.shape), dweight.zeroed), ((0, HIDDEN), True))

    def test_fake_tensors_get_the_same_shapes(self) -> None:
        for name, (arguments, shapes) in self.samples().items():
            with self.subTest(name), self.launches(0):
                found = getattr(self.ops, name).kernels["Meta"](*arguments)
                found = found if isinstance(found, tuple) else (found,)
                self.assertEqual([tuple(tensor.shape) for tensor in found], shapes)

    def test_every_tensor_is_checked(self) -> None:
        for name, (arguments, _) in self.samples().items():
            for place, value in enumerate(arguments):
                if not isinstance(value, fake_torch.Tensor):
                    continue
                with self.subTest(name, place=place):
                    self.check_mistakes(getattr(self.ops, name), arguments, place, value)

    def check_mistakes(self, operator, arguments, place, value) -> None:
        integers = (self.torch.int32, self.torch.int64)
        other = self.torch.float16 if value.dtype in integers else self.torch.int32
        shape = (*value.shape[:-1], 1000)  # sizes of samples are smaller
        others = [other for other in arguments if isinstance(other, fake_torch.Tensor) and other is not value]
        if not any(value.shape[-1] in other.shape for other in others):  # none is held to its last dimension
            shape = (4, *value.shape)
        for kind, wrong in (
            (ValueError, self.tensor(*shape, dtype=value.dtype)),
            (TypeError, self.tensor(*value.shape, dtype=other)),
            (ValueError, fake_torch.Tensor(value.shape, value.dtype, fake_torch.device("cpu"))),
        ):
            given = [*arguments[:place], wrong, *arguments[place + 1 :]]
            for kernel in (operator, operator.kernels["Meta"]):
                with self.refuses(kind, r"^\w+: its |^\w+: it is on device"):
                    kernel(*given)

    def test_what_belongs_together(self) -> None:
        x, norm, wide = self.tensor(2, HIDDEN), self.tensor(HIDDEN), self.tensor(BETWEEN, HIDDEN)
        down, bias = self.tensor(HIDDEN, BETWEEN), self.tensor(BETWEEN)
        ffn, linear = self.ops.fused_ffn, self.ops.linear
        for pattern, operator, arguments in (
            ("^epsilon: it is missing", linear, (x, wide, None, None, "none", norm)),
            ("^epsilon: 1e-05; allowed is None", linear, (x, wide, None, None, "none", None, 1e-5)),
            ("^activation: 'tanh'; allowed are none, ", linear, (x, wide, None, None, "tanh")),
            ("^activation: 'none'; allowed are .* with a gate", ffn, (x, wide, wide, down, None, None, None, "none")),
            ("^down_bias: it is missing", ffn, (x, None, wide, down, bias, None, None, "silu")),
            ("^up_bias: it is given", ffn, (x, wide, wide, down, bias, norm, None, "silu")),
            ("^output: 'int4'", self.ops.rms_norm_quantized, (x, norm, 1e-5, "int4")),
        ):  # fmt: skip
            linear(x, wide, None, None, "none")  # good calls of which the next ones are not
            ffn(x, wide, wide, down, None, None, None, "silu")
            with self.refuses(ValueError, pattern):
                operator(*arguments)


class Options(TorchCase):
    """What an operator has follows from the arguments of a call, each time anew."""

    def options_of(self, declared) -> dict:
        """Names of arguments that may be left out, by the flag that they are there for."""
        kind, found = calls.KINDS[declared.description], {}
        whens = {tensor.name: tensor.when for tensor in kind.TENSORS}
        for name in declared.names:
            flag = whens.get(name, name if name in kind.NUMBERS else "")
            if flag:
                found.setdefault(flag, []).append(name)
        return found

    def test_what_a_call_has_is_what_is_prepared(self) -> None:
        for declared in self.declared_alone():
            with self.subTest(declared.name):
                operator, options = getattr(self.ops, declared.name), self.options_of(declared)
                values = dict(zip(declared.names, self.declared_sample(declared)[0]))
                wanted = set()
                for given in itertools.product((False, True), repeat=len(options)):
                    chosen = dict(zip(options, given))
                    absent = {name for flag, names in options.items() if not chosen[flag] for name in names}
                    for _ in range(2):
                        with self.one_launch():
                            operator(*(None if name in absent else value for name, value in values.items()))
                    wanted.add(tuple({**declared.fixed, **chosen}.items()))
                prepared = operator.kernels["CUDA"].__globals__["with_care"].__self__._prepared
                flags = (*declared.fixed, *options)
                found = [
                    tuple((flag, getattr(one.description, flag)) for flag in flags) for one, _ in prepared.values()
                ]
                self.assertCountEqual(found, wanted)

    def test_ids_may_be_of_every_type_that_is_declared(self) -> None:
        for declared in self.declared_alone():
            kind, words = calls.KINDS[declared.description], declared.description.WORDS
            named = {one.name: words[one.dtype] for one in kind.TENSORS if one.dtype in words}
            values = dict(zip(declared.names, self.declared_sample(declared)[0]))
            for word in {word for allowed in named.values() for word in allowed}:
                for name in named:
                    values[name] = self.tensor(3, 5, dtype=getattr(self.torch, word))
                with self.subTest(declared.name, word=word), self.one_launch():
                    getattr(self.ops, declared.name)(*values.values())

    def test_tensors_that_are_there_for_one_reason_come_together(self) -> None:
        for declared in self.declared_alone():
            operator = getattr(self.ops, declared.name)
            values = dict(zip(declared.names, self.declared_sample(declared)[0]))
            operator(*values.values())  # a good call of which the next ones are not
            for names in self.options_of(declared).values():
                for name in names if len(names) > 1 else ():
                    with self.refuses(ValueError, f"^{name}: it is missing; it is needed with "):
                        operator(*(None if one == name else value for one, value in values.items()))


class Embeddings(TorchCase):
    def test_a_table_may_have_any_rows_and_the_ids_any_dimensions(self) -> None:
        for rows in (1, BETWEEN):
            for shape in ((), (3,), (2, 3, 4)):
                ids = self.tensor(*shape, dtype=self.torch.int32)
                found = self.ops.embedding(ids, self.tensor(rows, HIDDEN))
                self.assertEqual(tuple(found.shape), (*shape, HIDDEN))

    def test_dtypes_are_refused_by_name(self) -> None:
        ids, table = self.tensor(4, dtype=self.torch.int32), self.tensor(BETWEEN, HIDDEN)
        wide = self.tensor(4, dtype=self.torch.int64)
        of_ids = self.tensor(4, 4, dtype=self.torch.int32)
        half = self.tensor(2, HIDDEN, dtype=self.torch.float16)
        for pattern, arguments in (
            ("^ids: its dtype is .*; allowed are torch.int32, torch.int64", (self.tensor(4), table)),
            ("^table: its dtype is torch.int32; allowed are ", (ids, of_ids)),
            ("^position_ids: .* torch.int32, the dtype of ids", (ids, table, None, wide, table)),
            ("^position_table: .* the dtype of table", (ids, table, None, ids, half)),
        ):
            with self.refuses(TypeError, pattern):
                self.ops.embedding(*arguments)


class Registration(TorchCase):
    def test_the_schemas(self) -> None:
        self.assertEqual(
            self.ops.rope_kv_append.schema,
            "rope_kv_append(Tensor q, Tensor k, Tensor v, Tensor(a!) k_cache, Tensor(b!) v_cache, Tensor? cos,"
            " Tensor? sin, str style, Tensor? kv_lengths=None, Tensor? page_table=None, Tensor? positions=None,"
            " Tensor? slots=None, Tensor? k_scale=None, Tensor? v_scale=None, Tensor? q_weight=None,"
            " Tensor? k_weight=None, float? epsilon=None) -> Tensor",
        )
        self.assertEqual(
            self.ops.quantized_linear.schema,
            "quantized_linear(Tensor x, Tensor codes, Tensor scales, str format, int group, int out_features,"
            " str activation, Tensor? zeros=None, Tensor? bias=None, Tensor? residual=None, Tensor? x_scales=None,"
            " Tensor? norm_weight=None, float? epsilon=None, str? out_dtype=None) -> Tensor",
        )
        self.assertEqual(
            self.ops.layer_norm_residual.schema,
            "layer_norm_residual(Tensor x, Tensor residual, Tensor weight, Tensor? bias, float epsilon)"
            " -> (Tensor, Tensor)",
        )

    def test_schemas_of_lookups_and_draws(self) -> None:
        self.assertEqual(
            self.ops.embedding.schema,
            "embedding(Tensor ids, Tensor table, float? scale=None, Tensor? position_ids=None,"
            " Tensor? position_table=None) -> Tensor",
        )
        draw = "(Tensor logits, Tensor temperature, Tensor seed, Tensor counter, Tensor? top_k=None,"
        draw += " Tensor? top_p=None, Tensor? min_p=None)"
        self.assertEqual(self.ops.sample.schema, f"sample{draw} -> Tensor")
        found = self.ops.sample_log_probability.schema
        self.assertEqual(found, f"sample_log_probability{draw} -> (Tensor, Tensor)")

    def test_help_says_what_an_operator_computes_and_where_its_tensors_are_told(self) -> None:
        for declared in self.ops.DECLARED:
            with self.subTest(declared.name):
                function = getattr(hone.ops, declared.name)
                computes, *_, pointer = inspect.getdoc(function).split("\n\n")
                self.assertIn(" ".join(declared.says.split()), " ".join(function.__doc__.split()))
                self.assertEqual(computes.split(), declared.description.__doc__.split("\n\n")[0].split())
                kind = getattr(hone, re.search(r"help\(hone\.(\w+)\.__call__\)", pointer)[1])
                self.assertIn("Raises TypeError", kind.__call__.__doc__)

    def test_functions_have_the_arguments_of_their_operators(self) -> None:
        names = set(vars(self.torch.ops.hone))
        self.assertEqual(set(hone.ops.__all__), names)
        for name in names:
            pieces = re.search(r"\((.*)\) ->", getattr(self.ops, name).schema)[1].split(", ")
            wanted = [piece.rpartition(" ")[2].partition("=") for piece in pieces]
            found = inspect.signature(getattr(hone.ops, name)).parameters.values()
            self.assertEqual([one.name for one in found], [argument for argument, *_ in wanted])
            self.assertEqual([one.default is not one.empty for one in found], [bool(given) for _, given, _ in wanted])

    def test_a_function_calls_its_operator(self) -> None:
        for name, (arguments, shapes) in self.samples().items():
            with self.subTest(name):
                found = getattr(hone.ops, name)(*arguments)
                found = found if isinstance(found, tuple) else (found,)
                self.assertEqual([tuple(one.shape) for one in found], shapes)

    def test_every_operator_has_an_autograd_kernel(self) -> None:
        for operator in vars(self.torch.ops.hone).values():
            self.assertIn("Autograd", operator.default.kernels)


class Direct(TorchCase):
    """Functions that pass by the dispatcher where nobody else has to see a call."""

    def setUp(self) -> None:
        super().setUp()
        self.x, self.weight = self.tensor(3, HIDDEN), self.tensor(HIDDEN)

    def replaced(self, **names):
        """For a while the function of rms_norm sees these instead of its own."""
        return replaced_variables(self.ops.calls.rms_norm, **names)

    def dispatched(self, *arguments) -> int:
        """How often a call of rms_norm reached the dispatcher."""
        operator = mock.Mock(side_effect=self.ops.rms_norm)
        with self.replaced(operator=operator), self.one_launch():
            y = self.ops.calls.rms_norm(*(arguments or (self.x, self.weight, 1e-5)))
        self.assertEqual(tuple(y.shape), (3, HIDDEN))
        return operator.call_count

    def test_a_call_that_nobody_watches_is_not_dispatched(self) -> None:
        for _ in range(2):
            self.assertEqual(self.dispatched(), 0)

    def test_whoever_watches_sees_the_operator(self) -> None:
        for name in ("modes", "function_modes", "transforms", "tracing", "profiled", "is_compiling"):
            with self.subTest(name), self.replaced(**{name: lambda: 1}):
                self.assertEqual(self.dispatched(), 1)
        self.torch.autograd.forward_ad._current_level = 0
        self.assertEqual(self.dispatched(), 1)

    def test_gradients_are_the_operators(self) -> None:
        self.weight.requires_grad = True
        with self.replaced(operator=mock.Mock(return_value="with a gradient")):
            self.assertEqual(self.ops.calls.rms_norm(self.x, self.weight, 1e-5), "with a gradient")
        self.torch.grad = False
        self.assertEqual(self.dispatched(), 0)

    def test_arguments_that_pytorch_converts_or_refuses_are_dispatched(self) -> None:
        other = type("Other", (fake_torch.Tensor,), {})
        x = other(self.x.shape, self.x.dtype, self.x.device)
        self.assertEqual(self.dispatched(x, self.weight, 1e-5), 1)
        self.assertEqual(self.dispatched(self.x, self.weight, 1), 1)

    def test_a_tensor_that_only_the_dispatcher_understands_is_dispatched(self) -> None:
        refuses = mock.Mock(side_effect=RuntimeError("doesn't have storage"))
        with self.replaced(implementation=refuses):
            self.assertEqual(self.dispatched(), 1)
        refuses.assert_called_once()

    def test_what_hone_could_not_do_is_not_tried_twice(self) -> None:
        fails = mock.Mock(side_effect=hone.HoneError("no kernel", 7, "unsupported"))
        with self.replaced(implementation=fails, operator=None), self.refuses(hone.HoneError, "no kernel"):
            self.ops.calls.rms_norm(self.x, self.weight, 1e-5)

    def test_operators_that_write_are_always_dispatched(self) -> None:
        self.assertIs(self.ops.calls.rope_kv_append, self.ops.rope_kv_append)

    def test_every_other_operator_has_one(self) -> None:
        for name, operator in vars(self.torch.ops.hone).items():
            found = getattr(self.ops.calls, name)
            self.assertEqual(found is operator.default, "!" in operator.default.schema)


class WithoutPrivateInterfaces(TorchCase):
    PRIVATE = False

    def test_every_call_is_dispatched(self) -> None:
        for name, operator in vars(self.torch.ops.hone).items():
            self.assertIs(getattr(self.ops.calls, name), operator.default)

    def test_operators_that_write_refuse_gradients_themselves(self) -> None:
        q, k = self.tensor(1, 1, 2, 64), self.tensor(1, 1, 1, 64)
        cache, lengths = self.tensor(1, 8, 1, 64), self.tensor(1, dtype=self.torch.int32)
        call = (q, k, k, cache, cache, None, None, "half", lengths)
        with self.one_launch():
            self.ops.rope_kv_append(*call)
        q.requires_grad = True
        for key in ("CUDA", "Meta"):
            with self.refuses(NotImplementedError, "^hone::rope_kv_append has no gradient; train with"):
                self.ops.rope_kv_append.kernels[key](*call)
        self.torch.grad = False
        with self.one_launch():
            self.ops.rope_kv_append(*call)


if __name__ == "__main__":
    unittest.main()
