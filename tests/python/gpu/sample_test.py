"""hone::sample and the prepared operator: the tokens that PyTorch's functions allow, the same for the same
seed, and at home in what PyTorch does with operators."""

from __future__ import annotations

import unittest
import warnings
from typing import Any, Dict, Optional, Tuple

from support import DEVICE, DTYPES, Case, prepared, randn

import torch
from torch import Tensor

import hone
from hone import ops

VOCABULARY = 5000


def logits_of(rows: int, vocabulary: int = VOCABULARY, dtype: Any = torch.bfloat16, seed: int = 0) -> Tensor:
    return (2 * randn(rows, vocabulary, dtype=torch.float32, seed=seed)).to(dtype)


def every(rows: int, value: float, dtype: Any = torch.float32) -> Tensor:
    return torch.full((rows,), value, dtype=dtype, device=DEVICE)


def draw(rows: int, temperature: float = 1.0, counter: int = 1, first_seed: int = 0) -> Tuple[Tensor, ...]:
    """temperature, seed, counter; every row has its own seed."""
    seeds = torch.arange(first_seed, first_seed + rows, device=DEVICE)
    return every(rows, temperature), seeds, every(rows, counter, torch.int64)


def filters(rows: int, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0) -> Tuple[Tensor, ...]:
    return every(rows, top_k, torch.int32), every(rows, top_p), every(rows, min_p)


def largest(logits: Tensor) -> Tensor:
    """The first of the likeliest tokens."""
    place = torch.arange(logits.shape[-1], device=logits.device)
    return place.where(logits == logits.amax(-1, keepdim=True), logits.shape[-1]).amin(-1)


def allowed(
    logits: Tensor, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0,
    slack: float = 1e-4,
) -> Tensor:  # fmt: skip
    """[rows, vocabulary]: whether a token may be drawn; ties stay, and near an edge either is right."""
    logits = logits.double() / temperature
    if 0 < top_k < logits.shape[-1]:
        logits = logits.masked_fill(logits < logits.topk(top_k, -1).values[:, -1:] - slack, -torch.inf)
    probabilities = logits.softmax(-1)
    ordered = probabilities.sort(-1, descending=True).values
    if top_p < 1:
        before = ordered.cumsum(-1) - ordered
        least = ordered.masked_fill(before >= top_p + slack, 2.0).amin(-1, keepdim=True)
        probabilities = probabilities.masked_fill(probabilities < least, 0.0)
    least = max(min_p - slack, 0.0) * ordered[:, :1]
    return (probabilities > 0) & (probabilities >= least)


def samples(dtype: Any = torch.float32) -> Dict[str, Any]:
    """Calls by name: (operator, arguments)."""
    logits = logits_of(3, dtype=dtype)
    plain, filtered = (logits, *draw(3)), (logits, *draw(3), *filters(3, 40, 0.9, 0.01))
    return {
        "sample": (ops.sample, plain),
        "filters": (ops.sample, filtered),
        "log-probability": (ops.sample_log_probability, plain),
        "filters and log-probability": (ops.sample_log_probability, filtered),
    }


def tensors_of(result: Any) -> tuple:
    return result if isinstance(result, tuple) else (result,)


class Values(Case):
    def assert_allowed(self, tokens: Tensor, mask: Tensor) -> None:
        self.assertEqual((tokens.dtype, tokens.shape), (torch.int32, mask.shape[:1]))
        self.assertTrue(bool(((tokens >= 0) & (tokens < mask.shape[1])).all()))
        drawn = mask.gather(-1, tokens.long()[:, None])
        self.assertTrue(bool(drawn.all()), f"{int((~drawn).sum())} of {len(tokens)} tokens are not allowed")

    def test_a_temperature_of_zero_is_argmax(self):
        for name, dtype in DTYPES.items():
            for vocabulary in (1, 7, 1000, 32000, 128256):
                logits = logits_of(5, vocabulary, dtype, seed=vocabulary)
                with self.subTest(dtype=name, vocabulary=vocabulary):
                    wanted = largest(logits).int()
                    self.assert_same(ops.sample(logits, *draw(5, 0.0)), wanted)
                    self.assert_same(ops.sample(logits, *draw(5, 0.0), *filters(5, 10, 0.5)), wanted)
        logits = torch.randperm(VOCABULARY, device=DEVICE).float()[None]  # no ties
        self.assertEqual(int(ops.sample(logits, *draw(1, 0.0))), int(logits.argmax()))

    def test_tokens_are_those_that_filters_allow(self):
        rows = 200
        for asked in (
            {"top_k": 1}, {"top_k": 5}, {"top_k": 700}, {"top_p": 0.1}, {"top_p": 0.9}, {"top_p": 0.999},
            {"min_p": 0.2}, {"top_k": 50, "top_p": 0.8, "min_p": 0.05}, {},
        ):  # fmt: skip
            for dtype, temperature in ((torch.bfloat16, 1.0), (torch.float16, 0.7), (torch.float32, 2.0)):
                logits = logits_of(rows, dtype=dtype)
                with self.subTest(asked, dtype=dtype):
                    found = ops.sample(logits, *draw(rows, temperature), *filters(rows, **asked))
                    self.assert_allowed(found, allowed(logits, temperature, **asked))

    def test_rows_may_ask_for_different_things(self):
        logits = logits_of(4)
        temperature = torch.tensor([0.0, 1.0, 0.5, 1.0], device=DEVICE)
        _, seed, counter = draw(4)
        top_k = torch.tensor([0, 3, 0, 0], dtype=torch.int32, device=DEVICE)
        top_p = torch.tensor([1.0, 1.0, 0.3, 1.0], device=DEVICE)
        found = ops.sample(logits, temperature, seed, counter, top_k, top_p, every(4, 0.0))
        self.assertEqual(int(found[0]), int(largest(logits)[0]))
        for row, asked in ((1, {"top_k": 3}), (2, {"temperature": 0.5, "top_p": 0.3}), (3, {})):
            self.assert_allowed(found[row : row + 1], allowed(logits[row : row + 1], **asked))

    def test_frequencies_are_probabilities(self):
        draws, vocabulary, temperature = 40000, 20, 1.5
        row = logits_of(1, vocabulary, torch.float32)
        logits = row.expand(draws, vocabulary).contiguous()
        for asked in ({}, {"top_k": 6}, {"top_p": 0.7}):
            wanted = (row.double() / temperature).softmax(-1)[0]
            wanted = wanted * allowed(row, temperature, slack=0, **asked)[0]
            wanted /= wanted.sum()
            found = ops.sample(logits, *draw(draws, temperature), *filters(draws, **asked))
            share = torch.bincount(found.long(), minlength=vocabulary) / draws
            deviation = (wanted * (1 - wanted) / draws).sqrt()
            with self.subTest(asked):
                self.assertTrue(bool(((share - wanted).abs() <= 5 * deviation + 1e-9).all()))

    def test_a_seed_and_a_counter_give_one_token_whatever_the_batch(self):
        rows = 64
        for dtype, vocabulary in ((torch.bfloat16, 32000), (torch.float32, 777)):
            logits = logits_of(rows, vocabulary, dtype)
            for more in ((), filters(rows, 100, 0.9)):
                arguments = (logits, *draw(rows, 0.8), *more)
                together = ops.sample(*arguments)
                self.assert_same(ops.sample(*arguments), together)
                order = torch.randperm(rows, device=DEVICE)
                self.assert_same(ops.sample(*(one[order] for one in arguments)), together[order])
                for row in (0, 17, rows - 1):
                    alone = ops.sample(*(one[row : row + 1] for one in arguments))
                    self.assert_same(alone, together[row : row + 1])
                shaped = ops.sample(*(one.view(4, 16, *one.shape[1:]) for one in arguments))
                self.assert_same(shaped, together.view(4, 16))

    def test_another_counter_or_seed_draws_anew(self):
        logits = logits_of(200)
        first = ops.sample(logits, *draw(200))
        for other in (draw(200, counter=2), draw(200, first_seed=1000)):
            self.assertGreater(int((ops.sample(logits, *other) != first).sum()), 150)

    def test_log_probabilities_are_those_of_log_softmax(self):
        for name, dtype in DTYPES.items():
            for temperature, more in ((0.0, ()), (0.6, ()), (1.0, filters(9, 30, 0.9))):
                logits = logits_of(9, 32000, dtype)
                with self.subTest(dtype=name, temperature=temperature):
                    arguments = (logits, *draw(9, temperature), *more)
                    tokens, found = ops.sample_log_probability(*arguments)
                    self.assert_same(tokens, ops.sample(*arguments))
                    wanted = logits.double().log_softmax(-1).gather(-1, tokens.long()[:, None])[:, 0]
                    self.assertEqual((found.dtype, found.shape), (torch.float32, (9,)))
                    torch.testing.assert_close(found.double(), wanted, rtol=2e-5, atol=2e-5)

    def test_any_strides(self):
        wide = logits_of(12, 2 * VOCABULARY + 1)
        for name, logits in (
            ("rows apart", wide[:, :VOCABULARY]),
            ("misaligned", wide[:, 1 : VOCABULARY + 1]),
            ("every other row", wide[::2, :VOCABULARY]),
            ("elements apart", wide[:, : 2 * VOCABULARY : 2]),
        ):
            rows = len(logits)
            with self.subTest(name):
                wanted = ops.sample(logits.contiguous(), *draw(rows))
                self.assert_same(ops.sample(logits, *draw(rows)), wanted)
                halves = (torch.stack((one, one), 1)[:, 0] for one in draw(rows))  # elements apart
                self.assert_same(ops.sample(logits, *halves), wanted)

    def test_no_rows(self):
        tokens, log_probability = ops.sample_log_probability(logits_of(0), *draw(0))
        self.assertEqual((tokens.shape, log_probability.shape), ((0,), (0,)))

    def test_the_prepared_operator(self):
        logits = logits_of(7)
        arguments = (logits, *draw(7), *filters(7, 40, 0.9))
        description = hone.Sample(VOCABULARY, max_rows=16, filters=True, log_probability=True)
        sample = prepared(description)
        wanted = ops.sample_log_probability(*arguments)
        for _ in range(2):
            for found, one in zip(sample(*arguments), wanted):
                self.assert_same(found, one)
        out = torch.empty(7, dtype=torch.int32, device=DEVICE)
        self.assertIs(sample(*arguments, out=out)[0], out)
        self.assert_same(out, wanted[0])


class Mistakes(Case):
    def refuses(self, kind: Any, name: str, *arguments: Optional[Tensor]) -> None:
        with self.assertRaisesRegex(kind, f"^{name}: "):
            ops.sample(*arguments)

    def test_every_mistake_names_its_argument(self):
        logits, temperature, seed, counter, top_k, top_p, min_p = samples()["filters"][1]
        draws = (temperature, seed, counter)
        for _ in range(2):  # the fast way has to notice, too
            self.refuses(TypeError, "logits", logits.double(), *draws)
            self.refuses(ValueError, "logits", logits.cpu(), *(one.cpu() for one in draws))
            self.refuses(ValueError, "logits", logits[:, :0], *draws)
            self.refuses(TypeError, "temperature", logits, temperature.half(), seed, counter)
            self.refuses(ValueError, "temperature", logits, temperature[:1], seed, counter)
            self.refuses(TypeError, "seed", logits, temperature, seed.int(), counter)
            self.refuses(ValueError, "counter", logits, temperature, seed, counter.cpu())
            self.refuses(ValueError, "top_p", logits, *draws, top_k)
            self.refuses(ValueError, "min_p", logits, *draws, top_k, top_p)
            self.refuses(TypeError, "top_k", logits, *draws, top_k.long(), top_p, min_p)
            ops.sample(logits, *draws, top_k, top_p, min_p)


class Dispatch(Case):
    def test_opcheck_is_content(self):
        for name, (operator, arguments) in samples().items():
            with self.subTest(name):
                torch.library.opcheck(getattr(torch.ops.hone, operator.__name__).default, arguments)

    def test_fake_tensors_and_those_without_memory(self):
        from torch._subclasses.fake_tensor import FakeTensorMode

        for name, (operator, arguments) in samples(torch.bfloat16).items():
            wanted = tensors_of(operator(*arguments))
            with FakeTensorMode() as mode:
                fake = operator(*(mode.from_tensor(a) for a in arguments))
            meta = operator(*(a.to("meta") for a in arguments))
            for found in (tensors_of(fake), tensors_of(meta)):
                with self.subTest(name, device=str(found[0].device)):
                    self.assertEqual(
                        [(one.shape, one.stride(), one.dtype) for one in found],
                        [(one.shape, one.stride(), one.dtype) for one in wanted],
                    )

    def test_there_is_no_gradient(self):
        for name, (operator, arguments) in samples().items():
            logits = arguments[0].requires_grad_()
            tokens, *more = tensors_of(operator(logits, *arguments[1:]))
            with self.subTest(name):
                self.assertFalse(tokens.requires_grad)  # whole numbers have none
                for log_probability in more:
                    with self.assertRaisesRegex(NotImplementedError, "^hone::sample_log_.* has no gradient"):
                        log_probability.sum().backward()

    def test_one_graph_of_dynamo(self):
        torch._dynamo.reset()
        for name, (operator, arguments) in samples(torch.bfloat16).items():
            with self.subTest(name):
                compiled = torch.compile(lambda *a: operator(*a), fullgraph=True, backend="aot_eager")
                with torch.no_grad():
                    found = tensors_of(compiled(*arguments))
                for one, other in zip(found, tensors_of(operator(*arguments))):
                    self.assert_same(one, other)

    def test_inductor_keeps_it_between_its_own_kernels(self):
        torch._dynamo.reset()
        logits, draws = logits_of(16, dtype=torch.float32), draw(16)

        def step(logits: Any, temperature: Any, seed: Any, counter: Any) -> Any:
            return torch.ops.hone.sample(logits * 2, temperature, seed, counter + 1) * 2

        with torch.no_grad():
            self.assert_same(torch.compile(step, fullgraph=True)(logits, *draws), step(logits, *draws))

    def test_a_graph_draws_anew_with_another_counter(self):
        logits = logits_of(64)
        temperature, seed, counter = draw(64)
        ops.sample(logits, temperature, seed, counter)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            tokens = ops.sample(logits, temperature, seed, counter)
            counter += 1
        seen = []
        for _ in range(3):
            now = counter.clone()
            graph.replay()
            self.assert_same(tokens, ops.sample(logits, temperature, seed, now))
            seen.append(tokens.clone())
        self.assertFalse(torch.equal(seen[0], seen[1]))

    def test_the_first_call_during_a_capture_says_to_warm_up(self):
        logits, draws = logits_of(2, 90), draw(2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a graph without launches
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                with self.assertRaisesRegex(RuntimeError, "hone::sample .* warm up"):
                    ops.sample(logits, *draws)


if __name__ == "__main__":
    unittest.main()
