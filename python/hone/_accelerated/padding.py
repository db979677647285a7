"""What a mask and positions say of the new tokens of a call: padding on one side, or something that no kernel takes."""

from __future__ import annotations

from typing import NamedTuple, Optional

import torch
from torch import Tensor

from .cache import Contents


class Padding(NamedTuple):
    """Columns of each sequence [sequences] that are padding (None: there are none), on the left, or behind its tokens and
    before the column `before`."""

    missing: Optional[Tensor] = None
    before: int = 0


def of_prompt(mask: Optional[Tensor], positions: Optional[Tensor], tokens: int) -> Optional[Padding]:
    """Of the first tokens of sequences; None: neither side. Waits for the GPU, unless both are left out."""
    if mask is None and positions is None:
        return Padding()
    if mask is None:
        assert positions is not None
        column = torch.arange(tokens, device=positions.device)
        return Padding() if bool((positions == column).all()) else None
    if mask.dim() != 2 or mask.shape[1] != tokens:
        return None
    column = torch.arange(tokens, device=mask.device)[None, :]
    usual = mask.all()
    if bool(usual if positions is None else usual & (positions == column).all()):
        return Padding()
    seen = mask != 0
    count = seen.sum(1, keepdim=True)
    missing = tokens - count
    on_left, on_right = seen == (column >= missing), seen == (column < count)
    if positions is not None:
        on_left &= (positions == column - missing) | ~seen
        on_right &= (positions == column) | ~seen
    left, right = torch.stack((on_left.all(), on_right.all())).tolist()
    if left and positions is not None:  # else the model would count padding as positions
        return Padding(missing[:, 0].int(), 0)
    return Padding(missing[:, 0].int(), tokens) if right else None


def is_as_before(
    mask: Optional[Tensor], positions: Optional[Tensor], tokens: int, contents: Contents
) -> bool:
    """Whether they say of tokens behind those of a cache nothing but what it knows. Waits for the GPU unless they are known."""
    missing, columns = contents.missing, contents.columns + tokens
    known_mask = mask is contents.trusted_mask
    if missing is not None and (mask is None or positions is None):
        return False
    if mask is not None and (mask.dim() != 2 or mask.shape[1] != columns):
        return False
    known_positions = positions is None or (
        positions is contents.step_positions and contents.source_positions is contents.trusted_positions
    )
    if (known_mask or mask is None) and known_positions:
        return True
    good = []
    device = contents.lengths.device
    column = torch.arange(columns, device=device)[None, :]
    if mask is not None and not known_mask:
        wanted = torch.ones((1, columns), dtype=torch.bool, device=device)
        if missing is not None:
            wanted = column >= missing[:, None]
            if contents.padded_from:
                wanted = (column < contents.padded_from - missing[:, None]) | (column >= contents.padded_from)
        good.append(((mask != 0) == wanted).all())
    if positions is not None and not known_positions:
        wanted = contents.lengths[:, None] + torch.arange(tokens, device=device)[None, :]
        good.append((positions == wanted).all())
    return bool(torch.stack(good).all())
