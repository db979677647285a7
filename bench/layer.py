#!/usr/bin/env python3
"""A whole layer of a Llama: Hone beside PyTorch eager and torch.compile(mode="reduce-overhead").

    python3 bench/layer.py [--tokens 1,1024] [--kv 1074] [--json results.json]

One token stands behind --kv - 1 others in the cache; more are a prompt. Weights are Llama-3-8B's shapes, bf16, random;
a layer's exceed the L2 cache, so they come from memory as they do in a model. Microseconds a call, medians of calls that
take turns: "called" as a program calls it, "captured" the same as a CUDA graph of its own, without the host; of
torch.compile, which captures by itself, only the first. Every way is checked against float32 before it is timed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

sys.path.append(str(Path(__file__).resolve().parent.parent / "python"))  # where hone is not installed

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import hone  # noqa: E402
from hone._accelerated.layers import PAGE  # noqa: E402
from hone._torch.registered import calls  # noqa: E402

HIDDEN, INTERMEDIATE, HEADS, KV_HEADS, HEAD_DIM = 4096, 14336, 32, 8, 128
EPSILON = 1e-5
ROUNDS = 60
CALLS = 8  # between two waits, of those that are called
LARGEST_ERROR = 2e-2

Way = Callable[[], Tensor]


class Layer(NamedTuple):
    """Weights as torch.nn.functional.linear takes them."""

    norm: Tensor
    q: Tensor
    k: Tensor
    v: Tensor
    out: Tensor
    network_norm: Tensor
    gate: Tensor
    up: Tensor
    down: Tensor


class Call(NamedTuple):
    """What a call of the layer gets."""

    x: Tensor  # [1, tokens, HIDDEN]
    keys: Tensor  # [1, room, KV_HEADS, HEAD_DIM], as values: the cache
    values: Tensor
    cos: Tensor  # [room, HEAD_DIM / 2]
    sin: Tensor
    begin: int  # tokens that the cache has already

    @property
    def end(self) -> int:
        return self.begin + self.x.shape[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", default="1,1024")
    parser.add_argument("--kv", type=int, default=1074, help="keys of a single token, its own included")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, a layer of Llama-3-8B, bf16; us")
    results = []
    with torch.no_grad():
        layer = made_layer()
        for tokens in map(int, options.tokens.split(",")):
            results.append(measured(layer, made_call(tokens, options.kv)))
            print(line(results[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps({"schema": "hone.layer/1", "results": results}, indent=1) + "\n")
    return 0


def line(result: Dict[str, Any]) -> str:
    us = result["us"]
    ours = us["hone captured"]
    others = ", ".join(f"{name} {value:.1f} ({value / ours:.2f})" for name, value in us.items() if name != "hone captured")
    return f"{result['tokens']} tokens: hone captured {ours:.1f}; {others}"


def made_layer() -> Layer:
    generator = torch.Generator("cuda").manual_seed(5)

    def weight(rows: int, columns: int) -> Tensor:
        values = torch.randn(rows, columns, generator=generator, device="cuda")
        return (values * columns**-0.5).to(torch.bfloat16)

    def scale() -> Tensor:
        return (1 + 0.1 * torch.randn(HIDDEN, generator=generator, device="cuda")).to(torch.bfloat16)

    # Queries, keys and values one behind the other, which PyTorch does not see, and Hone takes as one.
    qkv = weight((HEADS + 2 * KV_HEADS) * HEAD_DIM, HIDDEN)
    q, k, v = qkv.split((HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM))
    return Layer(
        scale(), q, k, v, weight(HIDDEN, HEADS * HEAD_DIM), scale(), weight(INTERMEDIATE, HIDDEN),
        weight(INTERMEDIATE, HIDDEN), weight(HIDDEN, INTERMEDIATE),
    )  # fmt: skip


def made_call(tokens: int, kv: int) -> Call:
    generator = torch.Generator("cuda").manual_seed(6)
    begin = kv - 1 if tokens == 1 else 0
    room = -(-(begin + tokens) // PAGE) * PAGE
    x, keys, values = (
        torch.randn(shape, generator=generator, device="cuda").to(torch.bfloat16)
        for shape in ((1, tokens, HIDDEN), (1, room, KV_HEADS, HEAD_DIM), (1, room, KV_HEADS, HEAD_DIM))
    )
    frequencies = 500000.0 ** (-torch.arange(0, HEAD_DIM, 2, device="cuda") / HEAD_DIM)
    turned = torch.arange(room, device="cuda")[:, None] * frequencies
    return Call(x, keys, values, turned.cos(), turned.sin(), begin)


class TorchLayer(nn.Module):
    """The layer as models write it; the new tokens' keys and values are written to the cache. Weights and cache are parts of
    the module, so that torch.compile's graphs read them where they are."""

    def __init__(self, layer: Layer, call: Call) -> None:
        super().__init__()
        for name, weight in layer._asdict().items():
            setattr(self, name, nn.Parameter(weight, requires_grad=False))
        for name in ("keys", "values"):
            self.register_buffer(name, getattr(call, name))
        self.begin, self.end, self.causal = call.begin, call.end, call.x.shape[1] > 1
        for name in ("cos", "sin"):
            part = getattr(call, name)[call.begin : call.end, None].to(call.x.dtype)
            self.register_buffer(name, torch.cat((part, part), -1))

    def rotated(self, heads: Tensor) -> Tensor:
        first, second = heads.chunk(2, -1)
        return heads * self.cos + torch.cat((-second, first), -1) * self.sin

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.shape[1]
        normed = functional.rms_norm(x, (HIDDEN,), self.norm, EPSILON)
        q = functional.linear(normed, self.q).view(1, tokens, HEADS, HEAD_DIM)
        k = functional.linear(normed, self.k).view(1, tokens, KV_HEADS, HEAD_DIM)
        v = functional.linear(normed, self.v).view(1, tokens, KV_HEADS, HEAD_DIM)
        self.keys[:, self.begin : self.end] = self.rotated(k)
        self.values[:, self.begin : self.end] = v
        keys, values = (part[:, : self.end].transpose(1, 2) for part in (self.keys, self.values))
        attended = functional.scaled_dot_product_attention(
            self.rotated(q).transpose(1, 2), keys, values, is_causal=self.causal, enable_gqa=True
        )
        x = x + functional.linear(attended.transpose(1, 2).reshape(1, tokens, -1), self.out)
        normed = functional.rms_norm(x, (HIDDEN,), self.network_norm, EPSILON)
        inner = functional.silu(functional.linear(normed, self.gate)) * functional.linear(normed, self.up)
        return x + functional.linear(inner, self.down)


def by_hone(layer: Layer, call: Call) -> Way:
    """As hone.accelerate() runs a layer: six launches."""
    tokens = call.x.shape[1]
    qkv = torch.as_strided(layer.q, ((HEADS + 2 * KV_HEADS) * HEAD_DIM, HIDDEN), (HIDDEN, 1))
    lengths = torch.tensor([call.end], dtype=torch.int32, device="cuda")
    few = tokens == 1
    keys, values = ((part.view(-1, PAGE, KV_HEADS, HEAD_DIM) if few else part) for part in (call.keys, call.values))
    table = torch.arange(keys.shape[0], dtype=torch.int32, device="cuda")[None] if few else None
    scale = HEAD_DIM**-0.5

    def run() -> Tensor:
        heads = calls.linear(call.x, qkv, None, None, "none", layer.norm, EPSILON)
        q, k, v = heads.unflatten(-1, (HEADS + 2 * KV_HEADS, HEAD_DIM)).split((HEADS, KV_HEADS, KV_HEADS), 2)
        q = calls.rope_kv_append(
            q, k, v, keys, values, call.cos, call.sin, "half", lengths, table, None, None, None, None, None, None, None
        )
        if few:
            seen = calls.attention_with_cache(q, keys, values, lengths, table, False, 0, 0.0, scale, call.end)
        else:
            seen = calls.attention_with_cache(
                q, keys[:, :tokens], values[:, :tokens], None, None, True, 0, 0.0, scale, None
            )
        x = calls.linear(seen.flatten(-2), layer.out, None, call.x, "none", None, None)
        return calls.fused_ffn(
            x, layer.gate, layer.up, layer.down, None, None, x, "silu", layer.network_norm, EPSILON
        )

    return run


def measured(layer: Layer, call: Call) -> Dict[str, Any]:
    wide = Layer(*(weight.float() for weight in layer))
    wide_call = call._replace(x=call.x.float(), keys=call.keys.float(), values=call.values.float())
    wanted = TorchLayer(wide, wide_call)(wide_call.x)
    eager = TorchLayer(layer, call)
    torch._dynamo.reset()  # another number of tokens is another graph, not a symbol
    compiled = torch.compile(eager, mode="reduce-overhead", fullgraph=True, dynamic=False)
    called: Dict[str, Way] = {
        "hone": by_hone(layer, call),
        "eager": lambda: eager(call.x),
        "compile": lambda: compiled(call.x),
    }
    errors = {}
    for name, way in called.items():
        for _ in range(3):  # compiles, captures, replays
            out = way()
        errors[name] = ((out.float() - wanted).norm() / wanted.norm()).item()
        if not errors[name] <= LARGEST_ERROR:
            raise SystemExit(f"{name}: an error of {errors[name]:.2e}; allowed: up to {LARGEST_ERROR}")
    ways: Dict[str, Tuple[Way, int]] = {f"{name} called": (way, CALLS) for name, way in called.items()}
    for name in ("hone", "eager"):
        ways[f"{name} captured"] = (captured(called[name]).replay, 1)
    return {"tokens": call.x.shape[1], "kv": call.end, "errors": errors, "us": in_turns(ways)}


def captured(way: Way) -> Any:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        way()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            way()
    return graph


def in_turns(ways: Dict[str, Tuple[Way, int]]) -> Dict[str, float]:
    """Medians. A replay is of CALLS calls, too."""
    samples: Dict[str, List[float]] = {name: [] for name in ways}
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(ROUNDS):
        for name, (way, times) in ways.items():
            begin.record()
            for _ in range(times):
                way()
            end.record()
            end.synchronize()
            samples[name].append(1000 * begin.elapsed_time(end) / CALLS)
    return {name: round(statistics.median(values[3:]), 3) for name, values in samples.items()}


if __name__ == "__main__":
    sys.exit(main())
