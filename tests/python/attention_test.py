"""Calls of prepared attention and of the rotary embedding with its append: what reaches the library, and what
mistakes say."""

from __future__ import annotations

import unittest
from typing import Any, Dict

from fakes import arrays, torch as fake_torch
from fakes.case import Case, prepare

import hone

HEADS, KV_HEADS, DIM = 4, 2, 64
PLAIN = hone.Attention(HEADS, KV_HEADS, DIM, max_batch=4, max_q_len=32, max_kv_len=256)
FULL = hone.Attention(
    HEADS, KV_HEADS, DIM, max_batch=4, max_q_len=16, max_kv_len=256, dtype="fp16", window=20, softcap=True,
    lse=True, lengths=True, page_size=16,
)  # fmt: skip
CODES = hone.Attention(HEADS, KV_HEADS, DIM, max_batch=4, max_q_len=1, max_kv_len=64, kv_dtype="fp8")
PACKED = hone.Attention(
    HEADS, KV_HEADS, DIM, max_batch=4, max_q_len=32, max_kv_len=64, dtype="fp32", packed=True, lse=True
)
PACKED_PAGES = hone.Attention(
    HEADS, KV_HEADS, DIM, max_batch=4, max_q_len=32, max_kv_len=64, packed=True, page_size=16
)
PACKED_CODES = hone.Attention(
    HEADS, KV_HEADS, DIM, max_batch=4, max_q_len=32, max_kv_len=64, packed=True, page_size=16, kv_dtype="fp8",
    sinks=True,
)  # fmt: skip
ATTENTIONS = (PLAIN, FULL, CODES, PACKED, PACKED_PAGES, PACKED_CODES)

SPREAD = hone.RopeKvAppend(HEADS, KV_HEADS, DIM, max_tokens=64)
PAGES = hone.RopeKvAppend(HEADS, KV_HEADS, DIM, max_tokens=64, kv_dtype="fp8", norm=True, page_size=16)
SLOTS = hone.RopeKvAppend(
    HEADS, KV_HEADS, DIM, rotary_dim=32, max_tokens=64, dtype="fp32", style="interleaved", slots=True
)
COPY = hone.RopeKvAppend(HEADS, KV_HEADS, DIM, rotary_dim=0, max_tokens=64, slots=True, page_size=16)
ROPES = (SPREAD, PAGES, SLOTS, COPY)

Shapes = Dict[str, Any]  # name: (shape, dtype), or a number


def attention_shapes(description: hone.Attention) -> Shapes:
    """Of the arrays of a call of 2 sequences, and its numbers."""
    dtype = description.dtype
    kv_dtype = "fp8_e4m3" if description.kv_dtype == "fp8" else dtype
    found: Shapes = {"q": ((2, 3, HEADS, DIM), dtype), "out": ((2, 3, HEADS, DIM), dtype)}
    kv: Any = (2, 40, KV_HEADS, DIM)
    lse = (2, HEADS, 3)
    if description.max_q_len == 1:
        found = {"q": ((2, 1, HEADS, DIM), dtype), "out": ((2, 1, HEADS, DIM), dtype)}
    if description.page_size:
        kv = (9, 16, KV_HEADS, DIM)
        found["page_table"] = ((2, 4), "int32")
    if description.packed:
        found.update(q=((7, HEADS, DIM), dtype), out=((7, HEADS, DIM), dtype), q_len=4, kv_len=30)
        found["q_starts"], lse = ((3,), "int32"), (HEADS, 7)
    if description.packed and not description.page_size:
        found["kv_starts"], kv = ((3,), "int32"), (50, KV_HEADS, DIM)
    found.update(k=(kv, kv_dtype), v=(kv, kv_dtype))
    if description.lengths or (description.packed and description.page_size):
        found["kv_lengths"] = ((2,), "int32")
    if description.kv_dtype == "fp8":
        found.update(k_scale=((KV_HEADS,), "fp32"), v_scale=((KV_HEADS,), "fp32"))
    if description.softcap:
        found["softcap"] = 30.0
    if description.sinks:
        found["sinks"] = ((HEADS,), "fp32")
    if description.lse:
        found["lse"] = (lse, "fp32")
    return found


def rope_shapes(description: hone.RopeKvAppend) -> Shapes:
    """Of 6 tokens, 2 sequences of 3 without slots."""
    dtype = description.dtype
    tokens = (6,) if description.slots else (2, 3)
    cache_dtype = "fp8_e4m3" if description.kv_dtype == "fp8" else dtype
    cache = ((9, 16, KV_HEADS, DIM) if description.page_size else (2, 40, KV_HEADS, DIM), cache_dtype)
    row = ((*tokens, KV_HEADS, DIM), dtype)
    query = ((*tokens, HEADS, DIM), dtype)
    found: Shapes = {"q": query, "k": row, "v": row, "out": query, "k_cache": cache, "v_cache": cache}
    if description.rotary_dim:
        table = ((100, description.rotary_dim // 2), "fp32")
        found.update(cos=table, sin=table)
    if description.slots:
        found["slots"] = (tokens, "int32")
        if description.rotary_dim:
            found["positions"] = (tokens, "int32")
    else:
        found["kv_lengths"] = ((2,), "int32")
        if description.page_size:
            found["page_table"] = ((2, 4), "int32")
    if description.kv_dtype == "fp8":
        found.update(k_scale=((KV_HEADS,), "fp32"), v_scale=((KV_HEADS,), "fp32"))
    if description.norm:
        found.update(q_weight=((DIM,), dtype), k_weight=((DIM,), dtype))
    return found


def shapes_of(description: Any) -> Shapes:
    return (attention_shapes if isinstance(description, hone.Attention) else rope_shapes)(description)


class Two:
    """As integers of NumPy and PyTorch are, no int."""

    def __index__(self) -> int:
        return 2


class NoInteger:
    """As a tensor of 2.5 is."""

    def __index__(self) -> int:
        raise TypeError("only integer tensors of a single element can be converted to an index")


class AttentionCase(Case):
    def arguments(self, description: Any) -> Dict[str, Any]:
        return {
            name: self.exporter(*what[0], dtype=what[1]) if isinstance(what, tuple) else what
            for name, what in shapes_of(description).items()
        }

    def workspace_of(self, operator: Any, description: Any, given: Dict[str, Any]) -> Dict[str, Any]:
        """As the argument; no rotary embedding has one."""
        if not isinstance(description, hone.Attention):
            return {}
        kv_len = given.get("kv_len", 64 if description.page_size else 40)
        sizes = (2, given["q"].shape[1], kv_len) if not description.packed else (2, 4, 30)
        size = operator.workspace_bytes(*sizes)
        return {"workspace": arrays.Exporter(self.driver.allocate(1 << 20), (size,), "uint8")} if size else {}

    def assert_ran(self, operator: Any, given: Dict[str, Any], **more: Any) -> None:
        """Arrays by their pointers; what was not given is null."""
        found = {name: what for name, what in given.items() if not isinstance(what, (int, float))}
        found.update(more)
        self.assert_ran_with(operator, **found)

    def call(self, description: Any, **changes: Any) -> Any:
        """One call; the operator."""
        operator, given = prepare(description), {**self.arguments(description), **changes}
        operator(**given, **self.workspace_of(operator, description, given))
        return operator


class OtherArrays(AttentionCase):
    """Everything but torch tensors."""

    def test_everything_given_is_used_and_returned(self) -> None:
        for description in (*ATTENTIONS, *ROPES):
            with self.subTest(description=description):
                operator, given = prepare(description), self.arguments(description)
                workspace = self.workspace_of(operator, description, given)
                before = self.driver.launch_count()
                found = operator(**given, **workspace)
                self.assertGreater(self.driver.launch_count(), before)
                if getattr(description, "lse", False):
                    self.assertIs(found[1], given["lse"])
                    found = found[0]
                self.assertIs(found, given["out"])
                self.assert_ran(operator, {**given, **workspace})

    def test_sizes_are_those_of_the_arrays(self) -> None:
        for description, sizes in ((PLAIN, (2, 3, 40)), (FULL, (2, 3, 64)), (PACKED, (2, 4, 30))):
            self.assertEqual(self.call(description)._run.rows, [sizes])
        self.assertEqual(self.call(PLAIN, kv_len=17)._run.rows, [(2, 3, 17)])
        self.assertEqual(self.call(FULL, kv_len=17)._run.rows, [(2, 3, 17)])
        self.assert_ran_with(self.call(FULL), pool_pages=9, page_table_stride=4)
        self.assert_ran_with(self.call(PACKED), q_tokens=7, kv_tokens=50)
        pages = self.call(PACKED_PAGES, kv_len=None)
        self.assertEqual(pages._run.rows, [(2, 4, 64)])
        self.assert_ran_with(
            pages, q_tokens=7, kv_tokens=0, pool_pages=9, page_table_stride=4, prompts=0, q_batch_stride=0,
            k_batch_stride=16 * KV_HEADS * DIM, v_token_stride=KV_HEADS * DIM,
        )  # fmt: skip
        self.assert_ran_with(self.call(PACKED_PAGES, prompts=2), prompts=2)
        self.assert_ran_with(self.call(PACKED_PAGES, prompts=Two()), prompts=2)
        for description in (PLAIN, FULL, PACKED):
            with self.assertRaisesRegex(ValueError, "prompts: it is given, .* packed=True and a page_size"):
                self.call(description, prompts=1)
        for description in ROPES:
            self.assertEqual(self.call(description)._run.rows, [6])
        self.assert_ran_with(self.call(SPREAD), q_len=3, kv_len=40, pool_pages=2, table_rows=100)
        self.assert_ran_with(self.call(PAGES), q_len=3, kv_len=64, pool_pages=9, page_table_stride=4)
        self.assert_ran_with(self.call(SLOTS), q_len=1, kv_len=40, pool_pages=2)
        self.assert_ran_with(self.call(COPY), q_len=1, kv_len=16, pool_pages=9, table_rows=0)

    def test_strides_are_those_of_the_arrays(self) -> None:
        heads_first = self.exporter(2, 3, HEADS, DIM, strides=(3 * HEADS * DIM, DIM, 3 * DIM, 1))
        fused = (64 * 512, 512, DIM, 1)  # q, k and v beside each other
        k, v = (self.exporter(2, 40, KV_HEADS, DIM, strides=fused) for _ in range(2))
        operator = self.call(PLAIN, q=heads_first, k=k, v=v)
        self.assert_ran_with(
            operator, q_batch_stride=768, q_token_stride=64, q_head_stride=192, k_batch_stride=64 * 512,
            k_token_stride=512, k_head_stride=64, v_token_stride=512, out_token_stride=256,
        )  # fmt: skip
        packed = self.exporter(7, HEADS, DIM, dtype="fp32", strides=(512, DIM, 1))
        operator = self.call(PACKED, q=packed)
        self.assert_ran_with(operator, q_batch_stride=0, q_token_stride=512, q_head_stride=64)
        q = self.exporter(2, 3, HEADS, DIM, strides=(3 * 512, 512, DIM, 1))
        cache = [self.exporter(2, 40, KV_HEADS, DIM, strides=(40 * 128, 64, 40 * 64, 1)) for _ in range(2)]
        self.assert_ran_with(
            self.call(SPREAD, q=q, k_cache=cache[0], v_cache=cache[1]), q_token_stride=512, q_head_stride=64,
            k_token_stride=128, cache_batch_stride=5120, cache_token_stride=64, cache_head_stride=2560,
        )  # fmt: skip

    def test_dimensions_of_one_have_no_stride(self) -> None:
        """What a library says there may be anything."""
        q = self.exporter(1, 1, HEADS, DIM, strides=(7, 0, DIM, 1))
        k, v = (self.exporter(1, 40, KV_HEADS, DIM) for _ in range(2))
        operator = self.call(PLAIN, q=q, out=q, k=k, v=v)
        self.assert_ran_with(operator, q_batch_stride=0, q_token_stride=0, q_head_stride=64, k_batch_stride=0)

    def test_numbers(self) -> None:
        for given, wanted in (({}, 0.0), ({"scale": None}, 0.0), ({"scale": 2}, 2.0)):
            operator = self.call(PLAIN, **given)
            self.assertEqual(operator._run.arguments[-1]["scale"], wanted)
        self.assertEqual(self.call(FULL)._run.arguments[-1]["softcap"], 30.0)
        self.assertEqual(self.call(PAGES, epsilon=0.25)._run.arguments[-1]["epsilon"], 0.25)

    def test_no_tokens_launch_nothing(self) -> None:
        q = self.exporter(0, 3, HEADS, DIM)
        kv = self.exporter(0, 40, KV_HEADS, DIM)
        with self.launches(0):
            self.call(PLAIN, q=q, out=q, k=kv, v=kv)


class Mistakes(AttentionCase):
    """Each names its argument, what was found, and what is allowed."""

    def test_properties_of_arrays(self) -> None:
        for description in (*ATTENTIONS, *ROPES):
            operator, good = prepare(description), self.arguments(description)
            workspace = self.workspace_of(operator, description, good)
            shapes = {name: what for name, what in shapes_of(description).items() if isinstance(what, tuple)}
            for name, (shape, dtype) in shapes.items():
                mistakes = (
                    (TypeError, "its dtype is int8; allowed is ", self.exporter(*shape, dtype="int8")),
                    (ValueError, "its shape is ", self.exporter(1, *shape, dtype=dtype)),
                    (ValueError, "it is on CUDA device 1", self.exporter(*shape, dtype=dtype, device=(2, 1))),
                )
                for kind, pattern, value in mistakes:
                    with self.subTest(description=description, name=name, pattern=pattern):
                        with self.refuses(kind, f"^{name}: {pattern}"):
                            operator(**{**good, name: value}, **workspace)
            for name in ("out", "lse", "k_cache"):
                if name in good:
                    shape, dtype = shapes_of(description)[name]
                    with self.refuses(ValueError, f"^{name}: it is read-only"):
                        value = self.exporter(*shape, dtype=dtype, read_only=True)
                        operator(**{**good, name: value}, **workspace)

    def test_shapes_that_do_not_go_together(self) -> None:
        for description, name, shape, allowed in (
            (PLAIN, "q", (2, 3, 5, DIM), "batch, q_len, 4, 64"),
            (PLAIN, "k", (3, 40, KV_HEADS, DIM), "2, kv_len, 2, 64"),
            (PLAIN, "v", (2, 41, KV_HEADS, DIM), "2, 40, 2, 64"),
            (FULL, "k", (9, 32, KV_HEADS, DIM), "pool_pages, 16, 2, 64"),
            (FULL, "page_table", (3, 4), "2, pages"),
            (FULL, "lse", (2, 3, HEADS), "2, 4, 3"),
            (PACKED, "kv_starts", (4,), "3"),
            (PACKED_PAGES, "k", (9, 32, KV_HEADS, DIM), "pool_pages, 16, 2, 64"),
            (PACKED_PAGES, "kv_lengths", (3,), "2"),
            (PACKED_CODES, "sinks", (KV_HEADS,), "4"),
            (SPREAD, "k", (2, 4, KV_HEADS, DIM), "2, 3, 2, 64"),
            (SPREAD, "v_cache", (2, 41, KV_HEADS, DIM), "2, 40, 2, 64"),
            (SPREAD, "sin", (99, 32), "100, 32"),
            (SLOTS, "slots", (5,), "6"),
        ):
            dtype = shapes_of(description)[name][1]
            with self.subTest(name=name), self.refuses(ValueError, rf"^{name}: .*; allowed is \[{allowed}\]"):
                self.call(description, **{name: self.exporter(*shape, dtype=dtype)})

    def test_strides_that_no_kernel_reads(self) -> None:
        for strides in ((768, 256, 64, 2), (768, 256, 0, 1), (-768, 256, 64, 1)):
            with self.refuses(ValueError, r"^q: its strides are \["):
                self.call(PLAIN, q=self.exporter(2, 3, HEADS, DIM, strides=strides))
        with self.refuses(ValueError, "^q: its strides are .* one common stride"):
            self.call(SPREAD, q=self.exporter(2, 3, HEADS, DIM, strides=(1024, 256, 64, 1)))
        with self.refuses(ValueError, "^v_cache: its strides are .* those of k_cache"):
            cache = self.exporter(2, 40, KV_HEADS, DIM, strides=(5120, 64, 2560, 1))
            self.call(SPREAD, v_cache=cache)
        good = self.exporter(2, 3, HEADS, DIM)
        with self.refuses(ValueError, "^q: its address .* is no multiple of 16"):
            self.call(PLAIN, q=arrays.Exporter(good.pointer + 2, good.shape))

    def test_what_is_missing_or_too_much(self) -> None:
        for description, name, option in (
            (FULL, "kv_lengths", "lengths=True"),
            (FULL, "page_table", "a page_size"),
            (FULL, "softcap", "softcap=True"),
            (CODES, "k_scale", "kv_dtype='fp8'"),
            (PACKED, "q_starts", "packed=True"),
            (PACKED, "q_len", "packed=True"),
            (PACKED, "kv_len", "packed=True"),
            (PACKED, "kv_starts", "packed=True and no page_size"),
            (PACKED_PAGES, "kv_lengths", "packed=True and a page_size"),
            (PACKED_PAGES, "page_table", "a page_size"),
            (PACKED_CODES, "sinks", "sinks=True"),
            (PACKED_CODES, "k_scale", "kv_dtype='fp8'"),
            (SPREAD, "cos", "a rotary_dim above 0"),
            (SPREAD, "kv_lengths", "slots=False"),
            (PAGES, "page_table", "slots=False and a page_size"),
            (PAGES, "q_weight", "norm=True"),
            (SLOTS, "slots", "slots=True"),
        ):
            operator, given = prepare(description), self.arguments(description)
            workspace = self.workspace_of(operator, description, given)
            self.refuses_missing(operator, {**given, **workspace}, name, option)
        something = self.exporter(2, dtype="int32")
        for description, names in (
            (PLAIN, ("kv_lengths", "page_table", "q_starts", "q_len", "k_scale", "softcap", "sinks", "lse")),
            (PACKED_PAGES, ("kv_starts", "k_scale")),
            (SPREAD, ("page_table", "positions", "slots", "k_scale", "q_weight")),
            (COPY, ("cos", "kv_lengths", "positions", "page_table")),
        ):
            for name in names:
                with self.refuses(ValueError, f"^{name}: it is given, but this operator was prep"):
                    self.call(description, **{name: something})
        for name in ("q", "k", "v"):
            self.refuses_none(prepare(PLAIN), self.arguments(PLAIN), name)

    def test_numbers(self) -> None:
        for kind, changes, pattern in (
            (TypeError, {"scale": "x"}, "^scale: 'x'; allowed is a number"),
            (ValueError, {"scale": 0.0}, "^scale: 0.0; allowed are numbers above 0"),
            (ValueError, {"scale": float("nan")}, "^scale: nan"),
            (ValueError, {"kv_len": 41}, "^kv_len: 41; allowed are up to 40"),
        ):
            with self.refuses(kind, pattern):
                operator, given = prepare(PLAIN), {**self.arguments(PLAIN), **changes}
                operator(**given)
        for kind, changes, pattern in (
            (TypeError, {"kv_len": 2.5}, "^kv_len: 2.5; allowed is an integer"),
            (ValueError, {"kv_len": -1}, "^kv_len: -1; allowed are integers from 0"),
            (TypeError, {"kv_len": NoInteger()}, "^kv_len: .*NoInteger.*; allowed is an integer"),
            (TypeError, {"q_len": "4"}, "^q_len: '4'; allowed is an integer"),
            (ValueError, {"q_len": -1}, "^q_len: -1; allowed are integers from 0"),
            (TypeError, {"prompts": True}, "^prompts: True; allowed is an integer"),
            (ValueError, {"prompts": -1}, "^prompts: -1; allowed are integers from 0"),
            (ValueError, {"prompts": 1 << 70}, rf"^prompts: {1 << 70}; allowed are up to 2, the sequences"),
        ):
            with self.refuses(kind, pattern):
                operator, given = prepare(PACKED_PAGES), {**self.arguments(PACKED_PAGES), **changes}
                operator(**given)
        with self.refuses(ValueError, "^softcap: -1; allowed are numbers above 0"):
            operator, given = prepare(FULL), {**self.arguments(FULL), "softcap": -1}
            operator(**given)

    def test_more_than_was_prepared_for(self) -> None:
        sizes = {"batch": (5, 3, 8), "q_len": (2, 33, 8), "kv_len": (2, 3, 257)}
        for name, (batch, q_len, kv_len) in sizes.items():
            q = self.exporter(batch, q_len, HEADS, DIM)
            kv = self.exporter(batch, kv_len, KV_HEADS, DIM)
            with self.refuses(ValueError, rf"^{name}: \d+; allowed are up to \d+, the max_{name} that"):
                prepare(PLAIN)(q, kv, kv, out=q)
        q, row = self.exporter(2, 33, HEADS, DIM), self.exporter(2, 33, KV_HEADS, DIM)
        with self.refuses(ValueError, "^q: it has 66 tokens; allowed are up to 64, the max_tokens that"):
            self.call(SPREAD, q=q, out=q, k=row, v=row)

    def test_what_is_no_description(self) -> None:
        for kind, changes in (
            (TypeError, {"causal": 1}),
            (TypeError, {"window": 1.5}),
            (ValueError, {"kv_dtype": "int8"}),
        ):
            with self.assertRaisesRegex(kind, f"^{next(iter(changes))}: "):
                hone.Attention(HEADS, KV_HEADS, DIM, **changes)
        with self.assertRaisesRegex(ValueError, "^style: 'neox'; allowed are half, interleaved"):
            hone.RopeKvAppend(HEADS, KV_HEADS, DIM, style="neox")
        self.assertEqual(hone.Attention(HEADS, 0, DIM), hone.Attention(HEADS, HEADS, DIM))
        self.assertEqual(SPREAD, hone.RopeKvAppend(HEADS, KV_HEADS, DIM, rotary_dim=DIM, max_tokens=64))


class TorchTensors(AttentionCase):
    def setUp(self) -> None:
        self.torch = fake_torch.install()
        self.addCleanup(fake_torch.uninstall)

    def arguments(self, description: Any) -> Dict[str, Any]:
        names = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "fp8_e4m3": "float8_e4m3fn"}
        return {
            name: fake_torch.cuda_tensor(
                self.torch, *what[0], dtype=getattr(self.torch, names.get(what[1], what[1]))
            ) if isinstance(what, tuple) else what
            for name, what in shapes_of(description).items()
        }  # fmt: skip

    def test_both_ways_launch_the_same(self) -> None:
        """The first call goes the careful way, the second the fast one."""
        for description in (*ATTENTIONS, *ROPES):
            with self.subTest(description=description):
                operator, given = prepare(description), self.arguments(description)
                begin = operator._begin = fake_torch.counting(operator._begin)
                for _ in range(2):
                    operator(**given)
                    self.assert_ran(operator, given)
                first, second = operator._run.arguments
                first.pop("workspace", 0), second.pop("workspace", 0)
                self.assertEqual(first, second)
                self.assertEqual((begin.calls, *set(operator._run.rows)), (1, operator._run.rows[0]))

    def test_results_are_made_in_both_ways(self) -> None:
        for description in (PLAIN, PACKED, SPREAD):
            operator, given = prepare(description), self.arguments(description)
            out, lse = given.pop("out"), given.pop("lse", None)
            for _ in range(2):
                found = operator(**given)
                if lse is not None:
                    self.assertEqual((found[1].shape, found[1].dtype), (lse.shape, self.torch.float32))
                    self.assert_ran(operator, given, out=found[0], lse=found[1])
                    found = found[0]
                self.assertEqual((found.shape, found.dtype), (out.shape, out.dtype))
                self.assert_ran(operator, given, out=found)

    def test_transposed_views_take_the_fast_way(self) -> None:
        operator, given = prepare(PLAIN), self.arguments(PLAIN)
        operator(**given)
        begin = operator._begin = fake_torch.counting(operator._begin)
        given["q"] = fake_torch.cuda_tensor(self.torch, 2, HEADS, 3, DIM).transpose(1, 2)
        operator(**given)
        self.assert_ran(operator, given, q_batch_stride=768, q_token_stride=64, q_head_stride=192)
        self.assertEqual(begin.calls, 0)

    def test_mistakes_are_named_in_both_ways(self) -> None:
        operator, good = prepare(PLAIN), self.arguments(PLAIN)
        shorter = fake_torch.cuda_tensor(self.torch, 2, 39, KV_HEADS, DIM)
        half = fake_torch.cuda_tensor(self.torch, 2, 40, KV_HEADS, DIM, dtype=self.torch.float16)
        for _ in range(2):
            with self.refuses(ValueError, r"^v: its shape is \[2, 39, 2, 64\]; allowed is \[2, 40, 2, 64\]"):
                operator(**{**good, "v": shorter})
            with self.refuses(TypeError, "^k: its dtype is fp16; allowed is bf16"):
                operator(**{**good, "k": half})
            with self.refuses(ValueError, "^kv_len: 50; allowed are up to 40"):
                operator(**good, kv_len=50)
            operator(**good)


if __name__ == "__main__":
    unittest.main()
