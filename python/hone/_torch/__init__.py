"""The kernels behind hone.ops, and their gradients."""

from .._native import pytorch

pytorch.require("hone.ops")  # before anything asks a PyTorch that is too old for what it does not have
