"""A step captured as a CUDA graph."""

from __future__ import annotations

from typing import Any, Callable, Optional

import torch
from torch import Tensor


class Captured:
    """A function of tensors that stay where they are, launched again by replay(). It has to have run before, so that
    everything it needs is prepared."""

    def __init__(self, function: Callable[[], Tensor], pool: Any) -> None:
        self._graph = torch.cuda.CUDAGraph()
        current, side = torch.cuda.current_stream(), torch.cuda.Stream()
        side.wait_stream(current)
        with torch.cuda.stream(side):
            # Other threads of the program may allocate meanwhile.
            self._graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            try:
                self.result = function()
            finally:
                self._graph.capture_end()
        current.wait_stream(side)

    def replay(self) -> Tensor:
        """What the function returned, computed anew; valid until the next replay."""
        self._graph.replay()
        return self.result


def new_pool(device: torch.device) -> Optional[Any]:
    """Memory that graphs share which run one after another."""
    return torch.cuda.graph_pool_handle() if device.type == "cuda" else None
