"""Tells vLLM where Hone's attention is, without importing it."""

from __future__ import annotations

from .settings import attention_name

PATH = "hone.vllm.attention.HoneAttentionBackend"


def register() -> None:
    """Raises ImportError or AttributeError where vLLM has another interface."""
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    register_backend(getattr(AttentionBackendEnum, attention_name()), PATH)
