"""Hone's attention for vLLM's V1 engine: the backend that says what it takes, the builder of a step's metadata, and
the layer's part. batch.py has what is computed of the metadata, operators.py what runs.

The KV cache is [blocks, 2, block_size, kv_heads, head_size], K and V of a block side by side. Calls come from one
thread of a process, as vLLM's are.
"""

from __future__ import annotations

from typing import Any, ClassVar, Dict, List, Optional, Tuple

import torch
from torch import Tensor
from vllm.v1.attention.backend import (
    AttentionBackend,
    AttentionCGSupport,
    AttentionImpl,
    AttentionMetadataBuilder,
    MultipleOf,
)

from .._operators.description import MOST_DECODED
from .._serving import operators
from .._serving.operators import Heads, Limits
from .._torch.heads import FP8
from .._torch.prepared import DTYPES
from .batch import HoneMetadata, limits_of, metadata_of, slots_for

MOST_HEAD_SIZE = 256
OLDEST_GPU = (7, 5)
_FP8_WORDS = ("fp8", "fp8_e4m3")
# Where vLLM writes to the cache by a call of its own, do_kv_cache_update(); else forward() has to.
_UPDATES_APART = hasattr(AttentionBackend, "forward_includes_kv_cache_update")

Scales = Dict[str, Tensor]


class HoneAttentionBackend(AttentionBackend):
    """What vLLM asks before it chooses. Where one of these says no, vLLM takes another backend, or ends with the
    reason where this one was named."""

    accept_output_buffer: bool = True
    forward_includes_kv_cache_update: bool = False
    supported_dtypes: ClassVar[List[torch.dtype]] = [torch.float16, torch.bfloat16, torch.float32]
    supported_kv_cache_dtypes: ClassVar[List[str]] = ["auto", "float16", "bfloat16", *_FP8_WORDS]

    @staticmethod
    def get_name() -> str:
        from .settings import attention_name

        return attention_name()

    @staticmethod
    def get_impl_cls() -> Any:
        return HoneAttentionImpl

    @staticmethod
    def get_builder_cls() -> Any:
        return HoneMetadataBuilder

    @staticmethod
    def get_supported_kernel_block_sizes() -> List[Any]:
        return [MultipleOf(16)]

    @staticmethod
    def get_kv_cache_shape(
        num_blocks: int, block_size: int, num_kv_heads: int, head_size: int, cache_dtype_str: str = "auto"
    ) -> Tuple[int, ...]:
        return num_blocks, 2, block_size, num_kv_heads, head_size

    @staticmethod
    def get_kv_cache_stride_order(include_num_layers_dimension: bool = False) -> Tuple[int, ...]:
        if include_num_layers_dimension:
            raise NotImplementedError("Hone's attention has a KV cache for each layer")
        return 0, 1, 2, 3, 4

    @classmethod
    def supports_sink(cls) -> bool:
        return True

    @classmethod
    def supports_head_size(cls, head_size: int) -> bool:
        return 0 < head_size <= MOST_HEAD_SIZE and head_size % 8 == 0

    @classmethod
    def supports_dtype(cls, dtype: torch.dtype) -> bool:
        return dtype in cls.supported_dtypes

    @classmethod
    def supports_kv_cache_dtype(cls, kv_cache_dtype: Optional[str]) -> bool:
        return kv_cache_dtype is None or kv_cache_dtype in cls.supported_kv_cache_dtypes

    @classmethod
    def supports_attn_type(cls, attn_type: str) -> bool:
        return attn_type == "decoder"

    @classmethod
    def supports_compute_capability(cls, capability: Any) -> bool:
        return (capability.major, capability.minor) >= OLDEST_GPU

    @classmethod
    def supports_combination(
        cls, head_size: int, dtype: torch.dtype, kv_cache_dtype: Optional[str], *others: Any, **more: Any
    ) -> Optional[str]:
        """The reason why not, or None."""
        word = str(dtype).replace("torch.", "")
        if kv_cache_dtype in ("float16", "bfloat16") and kv_cache_dtype != word:
            return f"a KV cache of {kv_cache_dtype} for queries of {word}; allowed are {word} and fp8_e4m3"
        if kv_cache_dtype in _FP8_WORDS and head_size % 16:
            return f"head size {head_size} with a KV cache of fp8; allowed are multiples of 16"
        return None


class HoneMetadataBuilder(AttentionMetadataBuilder):
    """Makes a step's metadata. It prepares all operators of its layers when it is made, so that serving compiles
    nothing, and has the memory that captured graphs read slots from."""

    _cudagraph_support: ClassVar[Any] = AttentionCGSupport.UNIFORM_BATCH

    def __init__(self, kv_cache_spec: Any, layer_names: List[str], vllm_config: Any, device: torch.device) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        self._init_reorder_batch_threshold(1, supports_spec_as_decode=True)
        self.limits = limits_of(vllm_config, kv_cache_spec.block_size)
        self.slots = torch.zeros(self.limits.tokens, dtype=torch.int32, device=device)
        layers = vllm_config.compilation_config.static_forward_context
        impls = [layers[name].impl for name in layer_names]
        for impl in impls:
            impl.prepare(self.limits, vllm_config.model_config.dtype, device)

    @classmethod
    def get_cudagraph_support(cls, vllm_config: Any, kv_cache_spec: Any) -> Any:
        """Batches of more queries a sequence than decoding takes are not captured."""
        speculative = vllm_config.speculative_config
        more = 0 if speculative is None else speculative.num_speculative_tokens or 0
        few = 1 + more <= MOST_DECODED
        return cls._cudagraph_support if few else AttentionCGSupport.UNIFORM_SINGLE_TOKEN_DECODE

    def build(self, common_prefix_len: int, common_attn_metadata: Any, fast_build: bool = False) -> HoneMetadata:
        return metadata_of(common_attn_metadata, self.limits, self.slots, captured=False)

    def build_for_cudagraph_capture(self, common_attn_metadata: Any) -> HoneMetadata:
        return metadata_of(common_attn_metadata, self.limits, self.slots, captured=True)

    def use_cascade_attention(self, *arguments: Any, **named: Any) -> bool:
        return False


class HoneAttentionImpl(AttentionImpl):
    """The attention of one layer."""

    def __init__(
        self, num_heads: int, head_size: int, scale: float, num_kv_heads: Optional[int] = None,
        alibi_slopes: Optional[List[float]] = None, sliding_window: Optional[int] = None,
        kv_cache_dtype: str = "auto", logits_soft_cap: Optional[float] = None, attn_type: str = "decoder",
        kv_sharing_target_layer_name: Optional[str] = None, sinks: Optional[Tensor] = None, **others: Any,
    ) -> None:  # fmt: skip
        _refuse(attn_type, alibi_slopes=alibi_slopes, **others)
        self.num_heads, self.head_size, self.scale = num_heads, head_size, float(scale)
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        self.kv_cache_dtype = kv_cache_dtype
        self.window = sliding_window or 0
        self.softcap = logits_soft_cap or 0.0
        self.kv_sharing_target_layer_name = kv_sharing_target_layer_name
        self.fp8 = kv_cache_dtype in _FP8_WORDS
        if sinks is not None and tuple(sinks.shape) != (num_heads,):
            raise ValueError(f"sinks: their shape is {list(sinks.shape)}; allowed is [{num_heads}], one a head")
        self._given_sinks, self._sinks = sinks, sinks
        self._limits: Optional[Limits] = None

    def prepare(self, limits: Limits, dtype: torch.dtype, device: torch.device) -> None:
        """Makes everything ready that steps within these limits need, but for rotations, of which it knows
        nothing. Weights have been loaded by now: sinks are read here."""
        self._limits = limits
        heads, ordinal = self._heads(dtype), _ordinal(device)
        operators.prepared(operators.decode_description(heads, limits), ordinal)
        operators.prepared(operators.append_description(heads, limits), ordinal)
        operators.prepared(operators.packed_description(heads, limits), ordinal)
        if self._given_sinks is not None:
            self._sinks = self._given_sinks.detach().to(device, torch.float32).contiguous()

    def forward(
        self, layer: Any, query: Tensor, key: Tensor, value: Tensor, kv_cache: Tensor,
        attn_metadata: Optional[HoneMetadata], output: Optional[Tensor] = None,
        output_scale: Optional[Tensor] = None, output_block_scale: Optional[Tensor] = None,
    ) -> Tensor:  # fmt: skip
        """query [tokens, heads, head_size], tokens beyond the step's are not looked at -> output, written."""
        if output_scale is not None or output_block_scale is not None:
            raise NotImplementedError("output_scale: it is given; Hone's attention writes the queries' dtype")
        if output is None:
            raise ValueError("output: it is missing; Hone's attention writes to a buffer of vLLM's")
        if attn_metadata is None:  # memory is being measured
            return output.fill_(0)
        if not _UPDATES_APART and self.kv_sharing_target_layer_name is None and key is not None:
            self.do_kv_cache_update(layer, key, value, kv_cache, attn_metadata.slot_mapping)
        q, out = (self._rows(tensor, self.num_heads)[: attn_metadata.tokens] for tensor in (query, output))
        cache = {**dict(zip(("k", "v"), self.caches(kv_cache))), **self._scales(layer)}
        self._decode(q, out, cache, attn_metadata)
        self._packed(q, out, cache, attn_metadata)
        return output

    def do_kv_cache_update(
        self, layer: Any, key: Tensor, value: Tensor, kv_cache: Tensor, slot_mapping: Tensor
    ) -> None:
        """key and value [tokens, kv_heads, head_size] to their slots; negative ones are none."""
        if not kv_cache.numel():
            return
        slots = self._slots(layer, slot_mapping)
        k, v = (self._rows(tensor, self.num_kv_heads)[: slots.shape[0]] for tensor in (key, value))
        k_cache, v_cache = self.caches(kv_cache)
        operator = self._operator(operators.append_description, k, kv_cache)
        operator(k[:, :1], k, v, k_cache, v_cache, slots=slots, **self._scales(layer))

    def fused_rope_kvcache_supported(self) -> bool:
        return _UPDATES_APART

    def do_rope_and_kv_cache_update(
        self, layer: Any, query: Tensor, key: Tensor, value: Tensor, positions: Tensor, cos_sin_cache: Tensor,
        is_neox: bool, kv_cache: Tensor, layer_slot_mapping: Tensor,
    ) -> None:  # fmt: skip
        """Turns query where it lies, and writes key, turned, and value to the cache. key itself stays as it was:
        forward() reads the cache alone."""
        if positions.dim() != 1:
            raise NotImplementedError(f"positions: they are {list(positions.shape)}; allowed is [tokens]")
        slots = self._slots(layer, layer_slot_mapping)
        count = slots.shape[0]
        q = self._rows(query, self.num_heads)[:count]
        k, v = (self._rows(tensor, self.num_kv_heads)[:count] for tensor in (key, value))
        k_cache, v_cache = self.caches(kv_cache)
        cos, sin = angles_of(cos_sin_cache)
        style = "half" if is_neox else "interleaved"
        operator = self._operator(operators.append_description, q, kv_cache, 2 * cos.shape[1], style)
        operator(
            q, k, v, k_cache, v_cache, cos=cos, sin=sin, positions=positions[:count].to(torch.int32), slots=slots,
            out=q, **self._scales(layer),
        )  # fmt: skip

    # The parts of a step.

    def _decode(self, q: Tensor, out: Tensor, cache: Scales, step: HoneMetadata) -> None:
        part = step.decode
        if part is None:
            return
        tokens = part.sequences * part.q_len
        batch = (part.sequences, part.q_len, self.num_heads, self.head_size)
        q, out = q[:tokens].view(batch), out[:tokens].view(batch)
        operator = self._operator(operators.decode_description, q, cache["k"])
        most = operator.description.max_batch
        for first in range(0, part.sequences, most):  # as many calls as the operator needs
            rows = slice(first, first + most)
            operator(
                q[rows], **cache, kv_lengths=part.kv_lengths[rows], page_table=part.page_table[rows],
                kv_len=step.kv_len, out=out[rows], **self._numbers(),
            )  # fmt: skip

    def _packed(self, q: Tensor, out: Tensor, cache: Scales, step: HoneMetadata) -> None:
        part = step.packed
        if part is None:
            return
        operator = self._operator(operators.packed_description, q, cache["k"])
        operator(
            q[part.first :], **cache, q_starts=part.q_starts, q_len=part.q_len, kv_lengths=part.kv_lengths,
            page_table=part.page_table, kv_len=step.kv_len, out=out[part.first :], **self._numbers(),
        )  # fmt: skip

    # What they have in common.

    def _heads(self, dtype: torch.dtype) -> Heads:
        return Heads(
            self.num_heads, self.num_kv_heads, self.head_size, DTYPES[dtype], "fp8" if self.fp8 else "same",
            self.window, self.softcap > 0, self._given_sinks is not None,
        )  # fmt: skip

    def _operator(self, describe: Any, x: Tensor, cache: Tensor, *more: Any) -> Any:
        """Prepared for calls with tensors like x and this cache, or a part of it."""
        page_size = cache.shape[-3]
        limits = self._limits
        if limits is None or limits.page_size != page_size:
            found = None if limits is None else limits.page_size
            raise ValueError(f"kv_cache: its blocks have {page_size} tokens; prepared is {found}")
        return operators.prepared(describe(self._heads(x.dtype), limits, *more), x.get_device())

    def _rows(self, tensor: Tensor, heads: int) -> Tensor:
        """[tokens, heads, head_size], as it lies."""
        return tensor if tensor.dim() == 3 else tensor.view(-1, heads, self.head_size)

    def caches(self, kv_cache: Tensor) -> Tuple[Tensor, ...]:
        cache = kv_cache.view(FP8) if self.fp8 else kv_cache
        return cache.unbind(1)

    def _scales(self, layer: Any) -> Scales:
        """Of an fp8 cache, one a head; vLLM's are of all heads, on the device, and may change."""
        if not self.fp8:
            return {}
        scales = {"k_scale": layer._k_scale, "v_scale": layer._v_scale}
        return {name: scale.float().expand(self.num_kv_heads).contiguous() for name, scale in scales.items()}

    def _numbers(self) -> Dict[str, Any]:
        return {"scale": self.scale, "softcap": self.softcap or None, "sinks": self._sinks}

    @staticmethod
    def _slots(layer: Any, slot_mapping: Tensor) -> Tensor:
        from vllm.forward_context import get_forward_context, is_forward_context_available

        steps = get_forward_context().attn_metadata if is_forward_context_available() else None
        found = steps.get(layer.layer_name) if isinstance(steps, dict) else None
        return slots_for(slot_mapping, found if isinstance(found, HoneMetadata) else None)


def _ordinal(device: torch.device) -> int:
    """As the driver counts; without an index it is PyTorch's current one."""
    if device.index is None and device.type == "cuda":
        return torch.cuda.current_device()
    return device.index or 0


def _refuse(attn_type: str, **wishes: Any) -> None:
    """Raises NotImplementedError for a layer that is none of ours."""
    if attn_type != "decoder":
        raise NotImplementedError(f"attn_type: {attn_type}; Hone's attention in vLLM takes 'decoder'")
    for name, value in wishes.items():
        if value is not None and value is not False:
            raise NotImplementedError(f"{name}: it is given; Hone's attention in vLLM knows none")


_angles: Dict[Tuple[int, Tuple[int, ...]], Tuple[Tensor, Tensor, Tensor]] = {}


def angles_of(cos_sin_cache: Tensor) -> Tuple[Tensor, Tensor]:
    """cos and sin, float32 [positions, rotary_dim / 2], of vLLM's table [positions, rotary_dim], cosines first. Kept
    with the table, but for what is made while a graph is captured, whose memory is the graph's."""
    key = (cos_sin_cache.data_ptr(), tuple(cos_sin_cache.shape))
    found = _angles.get(key)
    if found is not None:
        return found[1:]
    cos, sin = (half.float().contiguous() for half in cos_sin_cache.chunk(2, -1))
    if not (cos_sin_cache.is_cuda and torch.cuda.is_current_stream_capturing()):
        _angles[key] = (cos_sin_cache, cos, sin)
    return cos, sin
