"""Layers for kernelize() of the `kernels` package, which binds a class's forward to the module of a model that it
takes the place of: classes without constructor and state, each with the arguments of what it replaces.

`self` is that module, not one of these classes: what a forward reads of it is said there. Hone's kernels run for
CUDA tensors of one dtype, bf16, fp16 or fp32, and the module's own formula for everything else: on the CPU, under
torch.autocast, and, but for RMSNorm, where a gradient is needed.
"""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch
from torch import Tensor
from torch.nn import functional

from .._nn.common import activation_of, needs_gradient
from .._nn.probe import epsilon_of
from .._torch.prepared import DTYPES
from .._torch.registered import calls


def _runs_natively(x: Tensor, *parameters: Optional[Tensor]) -> bool:
    """Whether there is a kernel for x with these parameters."""
    return (
        x.is_cuda
        and x.dtype in DTYPES
        and all(tensor is None or tensor.dtype == x.dtype for tensor in parameters)
        and not torch.is_autocast_enabled()  # that is, for CUDA
    )


def _rms_norm_formula(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """As model libraries compute it: in float32, rounded to x's dtype before it is multiplied with the weight."""
    wide = x.float()
    normalized = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon)
    return weight * normalized.to(x.dtype)


class RMSNorm(torch.nn.Module):
    """For what transformers registers as "RMSNorm" (LlamaRMSNorm and its like): a module with a weight [hidden] and
    variance_epsilon, or eps. Not for those that scale by 1 + weight. The kernel rounds once, they round twice."""

    can_torch_compile = True
    has_backward = True

    def forward(self, hidden_states: Tensor) -> Tensor:
        """[..., hidden] -> the same."""
        weight: Any = self.weight
        if _runs_natively(hidden_states, weight):
            return calls.rms_norm(hidden_states, weight, epsilon_of(self))
        return _rms_norm_formula(hidden_states, weight, epsilon_of(self))


class LayerNorm(torch.nn.Module):
    """For torch.nn.LayerNorm over the last dimension."""

    can_torch_compile = True
    has_backward = True  # PyTorch's

    def forward(self, input: Tensor) -> Tensor:
        """[..., hidden] -> the same."""
        weight, bias, shape = self.weight, self.bias, self.normalized_shape
        one = len(shape) == 1 and weight is not None
        if one and _runs_natively(input, weight, bias) and not needs_gradient(input, weight, bias):
            return calls.layer_norm(input, weight, bias, self.eps)
        return functional.layer_norm(input, shape, weight, bias, self.eps)


class GatedMLP(torch.nn.Module):
    """For the feed-forward networks of Llama, Mistral, Qwen, Gemma and their like, SwiGLU or gated GELU: a module
    with gate_proj, up_proj and down_proj, torch.nn.Linear without biases, and act_fn. Both halves in two launches."""

    can_torch_compile = True
    has_backward = True  # PyTorch's

    def forward(self, x: Tensor) -> Tensor:
        """[..., hidden] -> the same."""
        weights = _weights_of(self.gate_proj, self.up_proj, self.down_proj)
        activation = activation_of(self.act_fn)
        if weights is None or activation is None or not _multiplies(x, *weights):
            return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))
        return calls.fused_ffn(x, *weights, None, None, None, activation)


class FusedGatedMLP(torch.nn.Module):
    """The same for Phi-3's: gate_up_proj has the weights of the gate above those of up, and the activation is
    activation_fn."""

    can_torch_compile = True
    has_backward = True  # PyTorch's

    def forward(self, hidden_states: Tensor) -> Tensor:
        """[..., hidden] -> the same."""
        weights = _weights_of(self.gate_up_proj, self.down_proj)
        activation = activation_of(self.activation_fn)
        if weights is None or activation is None or not _multiplies(hidden_states, *weights):
            gate, up = self.gate_up_proj(hidden_states).chunk(2, dim=-1)
            return self.down_proj(up * self.activation_fn(gate))
        gate, up = weights[0].chunk(2)
        return calls.fused_ffn(hidden_states, gate, up, weights[1], None, None, None, activation)


def _weights_of(*layers: Any) -> Optional[Tuple[Tensor, ...]]:
    """The weights of plain linear layers without biases; None: one of them is something else."""
    plain = all(type(layer) is torch.nn.Linear and layer.bias is None for layer in layers)
    hooked = any(layer._forward_hooks or layer._forward_pre_hooks for layer in layers)
    return tuple(layer.weight for layer in layers) if plain and not hooked else None


def _multiplies(x: Tensor, *weights: Tensor) -> bool:
    return _runs_natively(x, *weights) and not needs_gradient(x, *weights)
