"""Stands for vLLM: the modules, names and signatures that Hone's plugin uses, as vLLM's documents and sources of its V1
engine have them (docs/vllm.md says which). Nothing runs; the tests compare signatures with these.

install() puts them where `import vllm` finds them, and returns what was registered.
"""

from __future__ import annotations

import enum
import sys
import types
from abc import ABC, abstractmethod
from collections import namedtuple
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

import torch

VERSION = "0.0.stub"


class AttentionType(str, enum.Enum):
    DECODER = "decoder"
    ENCODER = "encoder"
    ENCODER_ONLY = "encoder_only"
    ENCODER_DECODER = "encoder_decoder"


class AttentionCGSupport(enum.Enum):
    ALWAYS = 3
    UNIFORM_BATCH = 2
    UNIFORM_SINGLE_TOKEN_DECODE = 1
    NEVER = 0


@dataclass
class MultipleOf:
    base: int


DeviceCapability = namedtuple("DeviceCapability", "major minor")


class AttentionBackend(ABC):
    accept_output_buffer: bool = False
    supported_dtypes = [torch.float16, torch.bfloat16]
    supported_kv_cache_dtypes = ["auto"]
    forward_includes_kv_cache_update: bool = True

    @staticmethod
    def get_supported_kernel_block_sizes() -> List[Any]:
        return [MultipleOf(1)]

    @staticmethod
    @abstractmethod
    def get_name() -> str: ...

    @staticmethod
    @abstractmethod
    def get_impl_cls() -> Any: ...

    @staticmethod
    @abstractmethod
    def get_builder_cls() -> Any: ...

    @staticmethod
    @abstractmethod
    def get_kv_cache_shape(
        num_blocks: int, block_size: int, num_kv_heads: int, head_size: int, cache_dtype_str: str = "auto"
    ) -> Tuple[int, ...]: ...

    @staticmethod
    def get_kv_cache_stride_order(include_num_layers_dimension: bool = False) -> Tuple[int, ...]:
        raise NotImplementedError

    @classmethod
    def supports_head_size(cls, head_size: int) -> bool:
        return True

    @classmethod
    def supports_dtype(cls, dtype: torch.dtype) -> bool:
        return dtype in cls.supported_dtypes

    @classmethod
    def supports_kv_cache_dtype(cls, kv_cache_dtype: Optional[str]) -> bool:
        return kv_cache_dtype is None or kv_cache_dtype in cls.supported_kv_cache_dtypes

    @classmethod
    def supports_block_size(cls, block_size: Optional[int]) -> bool:
        sizes = cls.get_supported_kernel_block_sizes()
        return block_size is None or any(
            block_size % size.base == 0 if isinstance(size, MultipleOf) else block_size == size for size in sizes
        )

    @classmethod
    def is_mla(cls) -> bool:
        return False

    @classmethod
    def supports_sink(cls) -> bool:
        return False

    @classmethod
    def supports_mm_prefix(cls) -> bool:
        return False

    @classmethod
    def is_sparse(cls) -> bool:
        return False

    @classmethod
    def supports_attn_type(cls, attn_type: str) -> bool:
        return attn_type == AttentionType.DECODER

    @classmethod
    def supports_compute_capability(cls, capability: Any) -> bool:
        return True

    @classmethod
    def supports_combination(
        cls, head_size: int, dtype: torch.dtype, kv_cache_dtype: Optional[str], block_size: int, use_mla: bool,
        has_sink: bool, use_sparse: bool, device_capability: Any,
    ) -> Optional[str]:
        return None

    @classmethod
    def validate_configuration(
        cls, head_size: int, dtype: torch.dtype, kv_cache_dtype: Optional[str], block_size: int, use_mla: bool,
        has_sink: bool, use_sparse: bool, use_mm_prefix: bool, device_capability: Any, attn_type: str,
    ) -> List[str]:
        """The reasons why not; none: vLLM may choose it."""
        checks = {
            "head_size not supported": cls.supports_head_size(head_size),
            "dtype not supported": cls.supports_dtype(dtype),
            "kv_cache_dtype not supported": cls.supports_kv_cache_dtype(kv_cache_dtype),
            "block_size not supported": cls.supports_block_size(block_size),
            "MLA not supported": cls.is_mla() or not use_mla,
            "sink setting not supported": cls.supports_sink() or not has_sink,
            "sparse not supported": cls.is_sparse() or not use_sparse,
            "partial multimodal token full attention not supported": cls.supports_mm_prefix() or not use_mm_prefix,
            "compute capability not supported": cls.supports_compute_capability(device_capability),
            "attention type not supported": cls.supports_attn_type(attn_type),
        }
        reasons = [reason for reason, held in checks.items() if not held]
        combination = cls.supports_combination(
            head_size, dtype, kv_cache_dtype, block_size, use_mla, has_sink, use_sparse, device_capability
        )
        return reasons + ([combination] if combination is not None else [])


class AttentionMetadataBuilder(ABC):
    _cudagraph_support = AttentionCGSupport.NEVER
    reorder_batch_threshold: Optional[int] = None

    @abstractmethod
    def __init__(self, kv_cache_spec: Any, layer_names: List[str], vllm_config: Any, device: torch.device) -> None:
        self.kv_cache_spec, self.layer_names = kv_cache_spec, layer_names
        self.vllm_config, self.device = vllm_config, device

    @classmethod
    def get_cudagraph_support(cls, vllm_config: Any, kv_cache_spec: Any) -> Any:
        return cls._cudagraph_support

    def _init_reorder_batch_threshold(
        self, reorder_batch_threshold: Optional[int] = 1, supports_spec_as_decode: bool = False,
        supports_dcp_with_varlen: bool = False,
    ) -> None:
        speculative = self.vllm_config.speculative_config
        if supports_spec_as_decode and speculative is not None:
            reorder_batch_threshold = max(reorder_batch_threshold, 1 + speculative.num_speculative_tokens)
        self.reorder_batch_threshold = reorder_batch_threshold

    @abstractmethod
    def build(self, common_prefix_len: int, common_attn_metadata: Any, fast_build: bool = False) -> Any: ...

    def build_for_cudagraph_capture(self, common_attn_metadata: Any) -> Any:
        return self.build(0, common_attn_metadata)


class AttentionImpl(ABC):
    @abstractmethod
    def __init__(
        self, num_heads: int, head_size: int, scale: float, num_kv_heads: Optional[int] = None,
        alibi_slopes: Optional[List[float]] = None, sliding_window: Optional[int] = None,
        kv_cache_dtype: str = "auto", logits_soft_cap: Optional[float] = None,
        attn_type: str = AttentionType.DECODER, kv_sharing_target_layer_name: Optional[str] = None,
    ) -> None: ...

    @abstractmethod
    def forward(
        self, layer: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, kv_cache: torch.Tensor,
        attn_metadata: Any, output: Optional[torch.Tensor] = None, output_scale: Optional[torch.Tensor] = None,
        output_block_scale: Optional[torch.Tensor] = None,
    ) -> torch.Tensor: ...

    def do_kv_cache_update(
        self, layer: Any, key: torch.Tensor, value: torch.Tensor, kv_cache: torch.Tensor, slot_mapping: torch.Tensor
    ) -> None:
        raise NotImplementedError

    def fused_rope_kvcache_supported(self) -> bool:
        return False

    def do_rope_and_kv_cache_update(
        self, layer: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, positions: torch.Tensor,
        cos_sin_cache: torch.Tensor, is_neox: bool, kv_cache: torch.Tensor, layer_slot_mapping: torch.Tensor,
    ) -> None:
        raise NotImplementedError


@dataclass
class CommonAttentionMetadata:
    query_start_loc: torch.Tensor
    query_start_loc_cpu: torch.Tensor
    seq_lens: torch.Tensor
    num_reqs: int
    num_actual_tokens: int
    max_query_len: int
    max_seq_len: int
    block_table_tensor: torch.Tensor
    slot_mapping: torch.Tensor
    causal: bool = True


class AttentionBackendEnum(enum.Enum):
    FLASH_ATTN = "vllm.v1.attention.backends.flash_attn.FlashAttentionBackend"
    CUSTOM = ""


class PlatformEnum(enum.Enum):
    CUDA = enum.auto()


class scalar_types:
    uint4b8, uint4, uint8b128, float4 = "uint4b8", "uint4", "uint8b128", "float4"


@dataclass
class MPLinearLayerConfig:
    full_weight_shape: Tuple[int, int]  # [in, out]
    partition_weight_shape: Tuple[int, int]
    weight_type: Any
    act_type: torch.dtype
    group_size: int
    zero_points: bool
    has_g_idx: bool
    out_type: Optional[torch.dtype] = None


class MPLinearKernel(ABC):
    @classmethod
    @abstractmethod
    def get_min_capability(cls) -> int: ...

    @classmethod
    @abstractmethod
    def can_implement(cls, c: MPLinearLayerConfig) -> Tuple[bool, Optional[str]]: ...

    def __init__(
        self, c: MPLinearLayerConfig, w_q_param_name: str, w_s_param_name: str, w_zp_param_name: Optional[str] = None,
        w_gidx_param_name: Optional[str] = None,
    ) -> None:
        assert self.can_implement(c)[0]
        self.config, self.w_q_name, self.w_s_name = c, w_q_param_name, w_s_param_name
        self.w_zp_name, self.w_gidx_name = w_zp_param_name, w_gidx_param_name

    @abstractmethod
    def process_weights_after_loading(self, layer: torch.nn.Module) -> None: ...

    @abstractmethod
    def apply_weights(
        self, layer: torch.nn.Module, x: torch.Tensor, bias: Optional[torch.Tensor] = None
    ) -> torch.Tensor: ...

    def _get_weight_params(self, layer: torch.nn.Module) -> Tuple[Any, ...]:
        return (
            getattr(layer, self.w_q_name), getattr(layer, self.w_s_name),
            getattr(layer, self.w_zp_name or "", None), getattr(layer, self.w_gidx_name or "", None),
        )


class FP8ScaledMMLinearKernel(ABC):
    @classmethod
    @abstractmethod
    def is_supported(cls, compute_capability: Optional[int] = None) -> Tuple[bool, Optional[str]]: ...

    @classmethod
    @abstractmethod
    def can_implement(cls, c: Any) -> Tuple[bool, Optional[str]]: ...

    def __init__(self, c: Any, layer_param_names: Any) -> None:
        self.config, self.layer_param_names = c, layer_param_names

    @abstractmethod
    def apply_scaled_mm(
        self, *, A: torch.Tensor, B: torch.Tensor, out_dtype: torch.dtype, As: torch.Tensor, Bs: torch.Tensor,
        bias: Optional[torch.Tensor], output_shape: List[int],
    ) -> torch.Tensor: ...


class QuantizeMethodBase(ABC):
    pass


class LinearMethodBase(QuantizeMethodBase):
    @abstractmethod
    def create_weights(
        self, layer: torch.nn.Module, input_size_per_partition: int, output_partition_sizes: List[int],
        input_size: int, output_size: int, params_dtype: torch.dtype, **extra_weight_attrs: Any,
    ) -> None: ...

    @abstractmethod
    def apply(
        self, layer: torch.nn.Module, x: torch.Tensor, bias: Optional[torch.Tensor] = None
    ) -> torch.Tensor: ...

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None: ...


class UnquantizedLinearMethod(LinearMethodBase):
    create_weights = apply = lambda self, *arguments, **named: None


class LinearBase(torch.nn.Module):
    pass


class QuantizationConfig(ABC):
    def __init__(self) -> None:
        self.packed_modules_mapping: Dict[str, List[str]] = {}

    @abstractmethod
    def get_name(self) -> str: ...

    @abstractmethod
    def get_supported_act_dtypes(self) -> List[torch.dtype]: ...

    @classmethod
    @abstractmethod
    def get_min_capability(cls) -> int: ...

    @staticmethod
    @abstractmethod
    def get_config_filenames() -> List[str]: ...

    @classmethod
    @abstractmethod
    def from_config(cls, config: Dict[str, Any]) -> "QuantizationConfig": ...

    @abstractmethod
    def get_quant_method(self, layer: torch.nn.Module, prefix: str) -> Optional[QuantizeMethodBase]: ...


class ModelWeightParameter(torch.nn.Parameter):
    def __new__(cls, data: torch.Tensor, **kwargs: Any) -> Any:
        return super().__new__(cls, data=data, requires_grad=False)

    def __init__(self, data: torch.Tensor, *, input_dim: int, output_dim: int, weight_loader: Any) -> None:
        self.input_dim, self.output_dim, self.weight_loader = input_dim, output_dim, weight_loader


class CustomOp(torch.nn.Module):
    oot: Dict[str, type] = {}

    @classmethod
    def register_oot(cls, _decorated_op_cls: Any = None, name: Optional[str] = None) -> Any:
        def decorate(op: type) -> type:
            if name in cls.oot:
                raise AssertionError(f"Duplicate op name: {name}")
            op.name = name
            cls.oot[name] = op
            return op

        return decorate if _decorated_op_cls is None else decorate(_decorated_op_cls)


class RMSNorm(CustomOp):
    name = "rms_norm"

    def __init__(self, hidden_size: int, eps: float = 1e-6, var_hidden_size: Optional[int] = None) -> None:
        super().__init__()
        self.variance_epsilon, self.has_weight = eps, True
        self.variance_size_override = None if hidden_size == var_hidden_size else var_hidden_size
        self.weight = torch.nn.Parameter(torch.ones(hidden_size))

    def forward_cuda(self, x: torch.Tensor, residual: Optional[torch.Tensor] = None) -> Any:
        return "vLLM's own"


class Registered:
    """What the plugin registered, and the forward context."""

    def __init__(self) -> None:
        self.backends: Dict[Any, str] = {}
        self.linear_kernels: List[Tuple[type, Any, str]] = []
        self.configs: Dict[str, type] = {}
        self.attn_metadata: Any = None

    def register_backend(self, backend: Any, class_path: Optional[str] = None, is_mamba: bool = False) -> Any:
        self.backends[backend] = class_path

    def register_linear_kernel(self, kernel_class: type, platform: Any, kernel_type: str = "mp") -> None:
        self.linear_kernels.append((kernel_class, platform, kernel_type))

    def register_quantization_config(self, quantization: str) -> Any:
        def decorate(config: type) -> type:
            if not issubclass(config, QuantizationConfig):
                raise ValueError("The quantization config must be a subclass of `QuantizationConfig`.")
            self.configs[quantization] = config
            return config

        return decorate


def install() -> Registered:
    registered = Registered()
    modules = {
        "vllm": {"__version__": VERSION},
        "vllm.v1.attention.backend": dict(
            AttentionBackend=AttentionBackend, AttentionCGSupport=AttentionCGSupport, AttentionImpl=AttentionImpl,
            AttentionMetadataBuilder=AttentionMetadataBuilder, MultipleOf=MultipleOf, AttentionType=AttentionType,
        ),
        "vllm.v1.attention.backends.registry": dict(
            AttentionBackendEnum=AttentionBackendEnum, register_backend=registered.register_backend
        ),
        "vllm.v1.attention.backends.fa_utils": {},
        "vllm.forward_context": dict(
            get_forward_context=lambda: types.SimpleNamespace(attn_metadata=registered.attn_metadata),
            is_forward_context_available=lambda: True,
        ),
        "vllm.platforms": dict(PlatformEnum=PlatformEnum),
        "vllm.scalar_type": dict(scalar_types=scalar_types),
        "vllm.model_executor.kernels.linear": dict(
            MPLinearKernel=MPLinearKernel, FP8ScaledMMLinearKernel=FP8ScaledMMLinearKernel,
            register_linear_kernel=registered.register_linear_kernel,
        ),
        "vllm.model_executor.layers.linear": dict(
            LinearBase=LinearBase, LinearMethodBase=LinearMethodBase, UnquantizedLinearMethod=UnquantizedLinearMethod
        ),
        "vllm.model_executor.layers.quantization": dict(
            register_quantization_config=registered.register_quantization_config
        ),
        "vllm.model_executor.layers.quantization.base_config": dict(QuantizationConfig=QuantizationConfig),
        "vllm.model_executor.parameter": dict(ModelWeightParameter=ModelWeightParameter),
        "vllm.model_executor.custom_op": dict(CustomOp=CustomOp),
        "vllm.model_executor.layers.layernorm": dict(RMSNorm=RMSNorm),
        "vllm._custom_ops": {},
    }
    for path, members in modules.items():
        for end in range(1, path.count(".") + 2):
            name = ".".join(path.split(".")[:end])
            sys.modules.setdefault(name, types.ModuleType(name)).__path__ = []
            if "." in name:
                parent, _, child = name.rpartition(".")
                setattr(sys.modules[parent], child, sys.modules[name])
        vars(sys.modules[path]).update(members)
    return registered
