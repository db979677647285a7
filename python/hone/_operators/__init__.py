"""Prepared operators: descriptions, the checks of a call, and its fast way."""
