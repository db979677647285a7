"""Weights of 4 or 8 bits: packing, and reading checkpoints."""
