"""The kernels behind hone.ops, and their gradients."""
