"""Times calls side by side, as they run when deployed.

One sample is one replay of a CUDA graph that makes the call once on each of K input sets; together the sets
exceed three times the L2 cache, so that weights and activations come from device memory as they do in a
model. Replays of all calls are interleaved; the figure is the median over replays, a call.
"""

from __future__ import annotations

import math
import statistics
from typing import Any, Dict, List, NamedTuple, Sequence

import torch

from torch_cases import Call, Inputs

MOST_BYTES = 24 * 10**9  # of all input sets
MOST_SETS = 64
LEAST_SAMPLES = 7


class Timing(NamedTuple):
    """Microseconds a call."""

    us: float  # median
    p10: float
    p90: float
    samples: int


def set_count(bytes_per_call: int, inputs: Inputs) -> int:
    """K, from what a call moves and what a set holds."""
    held = sum(tensor.numel() * tensor.element_size() for tensor in inputs.values())
    wanted = math.ceil(3 * torch.cuda.get_device_properties(0).L2_cache_size / max(bytes_per_call, 1))
    return max(2, min(MOST_SETS, wanted, MOST_BYTES // max(held, 1)))


def capture(call: Call, sets: Sequence[Inputs]) -> Any:
    """A graph of the call on every set, after two warm-up rounds on another stream, as PyTorch asks for."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            for inputs in sets:
                call(inputs)
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for inputs in sets:
            call(inputs)
    return graph


def interleaved(graphs: Dict[str, Any], calls: int, budget_ms: float) -> Dict[str, Timing]:
    """Replays the graphs in turn until each has had `budget_ms` of the GPU on average, and LEAST_SAMPLES
    replays.

    `calls`: how many of them are in each graph.
    """
    samples: Dict[str, List[float]] = {name: [] for name in graphs}
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    spent_ms = 0.0
    rounds = 0
    while graphs and (spent_ms < budget_ms * len(graphs) or rounds < LEAST_SAMPLES):
        rounds += 1
        for name, graph in graphs.items():
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            elapsed_ms = begin.elapsed_time(end)
            spent_ms += elapsed_ms
            samples[name].append(elapsed_ms * 1000 / calls)
    return {name: _summary(values[1:]) for name, values in samples.items()}  # the first round warms up


def _summary(values: List[float]) -> Timing:
    ordered = sorted(values)
    count = len(ordered)
    return Timing(statistics.median(ordered), ordered[count // 10], ordered[count * 9 // 10], count)
