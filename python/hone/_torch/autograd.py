"""Gradients of PyTorch's operators of Hone: a kernel for the autograd key of each, made by with_gradient() or
no_gradient().

A formula of torch.library.register_autograd makes each call go through Python twice, since its kernel calls
the dispatcher again even where no gradient is wanted. The kernels here call the implementation themselves
then, unless a mode, a transform or a tensor subclass (FakeTensor, FunctionalTensor) has to see the call. What
they ask PyTorch for that is not public (PyTorch 2.4 to 2.11 have it) is asked for once, at import: where any
of it is missing, register_autograd takes over, and calls cost more. It does not take operators that write to
their arguments: those then have no autograd kernel, and refuse arguments that require a gradient in their
implementation, refusing().
"""

from __future__ import annotations

from typing import Any, Callable, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor
from torch.autograd import forward_ad

# Their meanings: whether any argument is a tensor that requires a gradient; a context in which calls pass
# over autograd; how many modes see calls (torch.compile, torch.library.opcheck, ...); whether torch.func is
# at work.
_PRIVATE = (
    "_any_requires_grad",
    "_AutoDispatchBelowAutograd",
    "_len_torch_dispatch_stack",
    "_are_functorch_transforms_active",
)
_FAST = all(hasattr(torch._C, name) for name in _PRIVATE)

_grad_enabled = torch.is_grad_enabled
_interfaces: List[Any] = [getattr(torch._C, name, None) for name in _PRIVATE]
_any_requires_grad, _below_autograd, _modes, _transforms = _interfaces

# No code but ours has to see a call with arguments of these types.
_PLAIN_TYPES = frozenset({Tensor, torch.nn.Parameter, float, int, bool, str, type(None)})


class Formula(NamedTuple):
    """What torch.library.register_autograd takes: remember(ctx, inputs, output), backward(ctx,
    *gradients)."""

    remember: Callable[..., None]
    backward: Callable[..., Any]


def with_gradient(
    library: torch.library.Library, operator: Any, implementation: Callable[..., Any], formula: Formula
) -> None:
    """Gives an operator (torch.ops.hone.<name>.default) its autograd kernel; `implementation` is its CUDA
    one."""
    if _FAST:
        library.impl(operator, _autograd_kernel(operator, implementation, formula), "Autograd")
    else:
        torch.library.register_autograd(
            operator, formula.backward, setup_context=formula.remember, lib=library
        )


def no_gradient(
    library: torch.library.Library, operator: Any, schema: str, implementation: Callable[..., Any],
    instead: str,
) -> None:  # fmt: skip
    """The same for one that runs forward only: backward() through it raises NotImplementedError."""
    if _FAST or not _writes(schema):
        with_gradient(library, operator, implementation, _no_formula(schema, instead))


def refusing(schema: str, kernel: Callable[..., Any], instead: str) -> Callable[..., Any]:
    """A kernel, CUDA's or the fake one, of an operator that runs forward only, as it has to be registered."""
    if _FAST or not _writes(schema):
        return kernel

    def refuses(*arguments: Any) -> Any:
        if _grad_enabled() and any(isinstance(a, Tensor) and a.requires_grad for a in arguments):
            raise NotImplementedError(_no_gradient(schema, instead))
        return kernel(*arguments)

    return refuses


def _writes(schema: str) -> bool:
    return "!" in schema


def _no_gradient(schema: str, instead: str) -> str:
    return f"hone::{schema.partition('(')[0]} has no gradient; {instead}"


def _autograd_kernel(
    operator: Any, implementation: Callable[..., Any], formula: Formula
) -> Callable[..., Any]:
    below = _below_autograd_call(operator)

    class Gradient(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *arguments: Any) -> Any:
            output = below(*arguments)
            formula.remember(ctx, arguments, output)
            return output

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            return formula.backward(ctx, *gradients)

    def kernel(*arguments: Any) -> Any:
        if _grad_enabled() and _any_requires_grad(*arguments):
            if _transforms():
                raise NotImplementedError(
                    f"{operator.name()} has no gradient under the transforms of torch.func; use "
                    f"tensor.backward(), torch.autograd.grad(), or the function of torch.nn.functional there"
                )
            return Gradient.apply(*arguments)
        if _PLAIN_TYPES.issuperset(map(type, arguments)) and not (
            _modes() or _transforms() or getattr(forward_ad, "_current_level", -1) >= 0
        ):
            return implementation(*arguments)
        return below(*arguments)

    return kernel


def _below_autograd_call(operator: Any) -> Callable[..., Any]:
    """The operator itself, for whoever comes next in the dispatcher; a tangent would be lost on the way."""

    def below(*arguments: Any) -> Any:
        for argument in arguments:
            if isinstance(argument, Tensor) and forward_ad.unpack_dual(argument).tangent is not None:
                raise NotImplementedError(
                    f"{operator.name()} has no forward-mode gradient; use the function of torch.nn.functional"
                )
        with _below_autograd():
            return operator(*arguments)

    return below


def rms_norm_formula(backward_operator: Any) -> Formula:
    """For hone::rms_norm(x, weight, epsilon)."""

    def remember(ctx: Any, inputs: Tuple[Any, ...], output: Tensor) -> None:
        x, weight, ctx.epsilon = inputs
        ctx.save_for_backward(x, weight)

    def backward(ctx: Any, dy: Tensor) -> Tuple[Optional[Tensor], ...]:
        x, weight = ctx.saved_tensors
        dx, dweight = backward_operator(dy, x, weight, None, ctx.epsilon)
        return dx, dweight, None

    return Formula(remember, backward)


def rms_norm_residual_formula(backward_operator: Any) -> Formula:
    """For hone::rms_norm_residual(x, residual, weight, epsilon) -> (y, sum): dx is the gradient of both
    summands."""

    def remember(ctx: Any, inputs: Tuple[Any, ...], output: Tuple[Tensor, Tensor]) -> None:
        ctx.set_materialize_grads(False)
        ctx.epsilon = inputs[3]
        ctx.save_for_backward(output[1], inputs[2])

    def backward(ctx: Any, dy: Optional[Tensor], dsum: Optional[Tensor]) -> Tuple[Optional[Tensor], ...]:
        if dy is None:  # only the sum was used
            return dsum, dsum, None, None
        total, weight = ctx.saved_tensors
        dx, dweight = backward_operator(dy, total, weight, dsum, ctx.epsilon)
        return dx, dx, dweight, None

    return Formula(remember, backward)


def _no_formula(schema: str, instead: str) -> Formula:
    def remember(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
        pass

    def backward(ctx: Any, *gradients: Any) -> Any:
        raise NotImplementedError(_no_gradient(schema, instead))

    return Formula(remember, backward)
