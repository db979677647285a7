"""What a model of transformers is made of, read from its modules: which tensors its layers hold, and its config's numbers.

A model is known by its class and the module that this comes from; other classes, their subclasses, too, are refused, since
nothing says that they compute the same.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Union

import torch
from torch import Tensor, nn

from .._nn.common import activation_of
from .._nn.probe import epsilon_of
from .._torch.prepared import DTYPES
from .weights import Experts, Network, Norm, Product, Unsupported, experts_of, halves_of, product_of

# What a config calls parts of training that are drawn by chance.
_NOISE = ("attention_dropout", "resid_pdrop", "embd_pdrop", "router_jitter_noise")
_STATIC_ROTARIES = ("default", "linear", "llama3", "yarn", "longrope")


class Layer(NamedTuple):
    """A layer of a transformer. Norms behind attention and network are Gemma's; None: there are none."""

    norm: Norm
    qkv: Product
    head_norms: Optional[Tuple[Tensor, Tensor, float]]  # weights of queries and keys, epsilon
    out: Product
    behind_attention: Optional[Norm]
    network_norm: Norm
    network: Union[Network, Experts]
    behind_network: Optional[Norm]
    window: int  # keys that a query sees; 0: all
    scale: float

    @property
    def whole(self) -> bool:
        """Whether norms are parts of the products behind them, and sums of those before them: with codes of fp8, which are
        made of what a norm gives. Others take up to 2 % longer so (docs/performance.md)."""
        return (
            not self.norm.centred and self.behind_attention is None and self.behind_network is None
            and isinstance(self.network, Network) and self.qkv.format == "fp8"
        )  # fmt: skip


class Rotary(NamedTuple):
    """The angles of positions are their products with the frequencies."""

    frequencies: Tensor
    factor: float  # of cosines and sines
    most: int  # positions that these frequencies are right for; 0: all


class Anatomy(NamedTuple):
    """A model but for its head."""

    embedding: Tensor
    embedding_scale: Optional[float]
    positions: Optional[Tensor]  # learned ones [positions, hidden]
    rotary: Optional[Rotary]
    layers: List[Layer]
    norm: Norm
    heads: int
    kv_heads: int
    head_dim: int
    softcap: float
    dropout: float  # the largest, while it is trained

    @property
    def whole(self) -> bool:
        """Whether all layers are run so."""
        return all(layer.whole for layer in self.layers)

    @property
    def dtype(self) -> torch.dtype:
        return self.embedding.dtype

    @property
    def device(self) -> torch.device:
        return self.embedding.device


class Family(NamedTuple):
    """How the models of one architecture are read."""

    model_type: str
    base: str  # class of the model without a head
    head: str  # class of that with a language head
    read: Callable[[Any], Anatomy]

    @property
    def module(self) -> str:
        return f"transformers.models.{self.model_type}.modeling_{self.model_type}"


def family_of(base: nn.Module) -> Family:
    """Raises Unsupported for a class that is not known."""
    found = FAMILIES.get(f"{_original(base).__module__}.{_original(base).__name__}")
    if found is None:
        known = ", ".join(sorted({family.model_type for family in FAMILIES.values()}))
        raise Unsupported(
            f"model: its class is {type(base).__module__}.{type(base).__name__}; allowed are transformers' models of "
            f"{known}; hone.patch(model) gives the norms of any model Hone's kernels"
        )
    return found


def _original(module: nn.Module) -> Any:
    """The class of a model, of an accelerated one that which it had before."""
    return getattr(type(module), "hone_original", type(module))


def head_of(model: nn.Module, family: Family) -> Optional[nn.Module]:
    """The language head of a model that is known to compute nothing but it and a cap; None: it has none."""
    cls = _original(model)
    return model.lm_head if (cls.__module__, cls.__name__) == (family.module, family.head) else None


# Models.


def _rotary_layers(
    base: Any, one: Callable[[Any, Any, int], Layer], norm: Norm, embedding_scale: Optional[float] = None,
    softcap: float = 0.0,
) -> Anatomy:  # fmt: skip
    """A model with rotary embeddings whose layers `one` reads."""
    config = base.config
    heads = config.num_attention_heads
    return Anatomy(
        embedding=base.embed_tokens.weight.detach(),
        embedding_scale=embedding_scale,
        positions=None,
        rotary=_rotary(base.rotary_emb),
        layers=[one(layer, config, index) for index, layer in enumerate(base.layers[: config.num_hidden_layers])],
        norm=norm,
        heads=heads,
        kv_heads=config.num_key_value_heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // heads,
        softcap=softcap,
        dropout=max(getattr(config, name, 0.0) for name in _NOISE),
    )


def _llama(base: Any) -> Anatomy:
    return _rotary_layers(base, _llama_layer, _rms_norm(base.norm))


def _llama_layer(layer: Any, config: Any, index: int) -> Layer:
    attention = layer.self_attn
    return Layer(
        norm=_rms_norm(layer.input_layernorm),
        qkv=product_of(attention.q_proj, attention.k_proj, attention.v_proj),
        head_norms=_head_norms(attention),
        out=product_of(attention.o_proj),
        behind_attention=None,
        network_norm=_rms_norm(layer.post_attention_layernorm),
        network=_network(layer.mlp, config),
        behind_network=None,
        window=_window(config, index),
        scale=attention.scaling,
    )


def _network(module: Any, config: Any) -> Union[Network, Experts]:
    if hasattr(module, "experts"):
        renormalize = bool(getattr(config, "norm_topk_prob", True))  # Mixtral's always
        return experts_of(module, renormalize, _activation(module.experts.act_fn))
    gate, up = product_of(module.gate_proj), product_of(module.up_proj)
    return Network(gate, up, product_of(module.down_proj), _activation(module.act_fn))


def _gemma2(base: Any) -> Anatomy:
    if getattr(base.config, "use_bidirectional_attention", False):
        raise Unsupported("model: its config has use_bidirectional_attention; allowed is causal attention")
    scale = getattr(base.embed_tokens, "scalar_embed_scale", None) or base.config.hidden_size**0.5
    scale = float(torch.tensor(scale).to(base.embed_tokens.weight.dtype))  # as the model rounds it
    softcap = float(base.config.attn_logit_softcapping or 0.0)
    return _rotary_layers(base, _gemma2_layer, _gemma_norm(base.norm), scale, softcap)


def _gemma2_layer(layer: Any, config: Any, index: int) -> Layer:
    attention, network = layer.self_attn, layer.mlp
    gate, up = product_of(network.gate_proj), product_of(network.up_proj)
    return Layer(
        norm=_gemma_norm(layer.input_layernorm),
        qkv=product_of(attention.q_proj, attention.k_proj, attention.v_proj),
        head_norms=None,
        out=product_of(attention.o_proj),
        behind_attention=_gemma_norm(layer.post_attention_layernorm),
        network_norm=_gemma_norm(layer.pre_feedforward_layernorm),
        network=Network(gate, up, product_of(network.down_proj), _activation(network.act_fn)),
        behind_network=_gemma_norm(layer.post_feedforward_layernorm),
        window=_window(config, index),
        scale=attention.scaling,
    )


def _phi3(base: Any) -> Anatomy:
    return _rotary_layers(base, _phi3_layer, _rms_norm(base.norm))


def _phi3_layer(layer: Any, config: Any, index: int) -> Layer:
    attention, network = layer.self_attn, layer.mlp
    gate, up = halves_of(network.gate_up_proj)
    return Layer(
        norm=_rms_norm(layer.input_layernorm),
        qkv=product_of(attention.qkv_proj),
        head_norms=None,
        out=product_of(attention.o_proj),
        behind_attention=None,
        network_norm=_rms_norm(layer.post_attention_layernorm),
        network=Network(gate, up, product_of(network.down_proj), _activation(network.activation_fn)),
        behind_network=None,
        window=_window(config, index),
        scale=attention.scaling,
    )


def _gpt2(base: Any) -> Anatomy:
    config = base.config
    if config.add_cross_attention:
        raise Unsupported("model: its config has add_cross_attention; allowed is a decoder alone")
    heads = config.num_attention_heads
    return Anatomy(
        embedding=base.wte.weight.detach(),
        embedding_scale=None,
        positions=base.wpe.weight.detach(),
        rotary=None,
        layers=[_gpt2_layer(block) for block in base.h],
        norm=_layer_norm(base.ln_f),
        heads=heads,
        kv_heads=heads,
        head_dim=config.hidden_size // heads,
        softcap=0.0,
        dropout=max(config.attn_pdrop, config.resid_pdrop, config.embd_pdrop),
    )


def _gpt2_layer(block: Any) -> Layer:
    up, down = product_of(block.mlp.c_fc), product_of(block.mlp.c_proj)
    return Layer(
        norm=_layer_norm(block.ln_1),
        qkv=product_of(block.attn.c_attn),
        head_norms=None,
        out=product_of(block.attn.c_proj),
        behind_attention=None,
        network_norm=_layer_norm(block.ln_2),
        network=Network(None, up, down, _activation(block.mlp.act)),
        behind_network=None,
        window=0,
        scale=float(block.attn.scaling),
    )


_ALL = (
    Family("llama", "LlamaModel", "LlamaForCausalLM", _llama),
    Family("mistral", "MistralModel", "MistralForCausalLM", _llama),
    Family("qwen2", "Qwen2Model", "Qwen2ForCausalLM", _llama),
    Family("qwen3", "Qwen3Model", "Qwen3ForCausalLM", _llama),
    Family("mixtral", "MixtralModel", "MixtralForCausalLM", _llama),
    Family("qwen3_moe", "Qwen3MoeModel", "Qwen3MoeForCausalLM", _llama),
    Family("gemma2", "Gemma2Model", "Gemma2ForCausalLM", _gemma2),
    Family("phi3", "Phi3Model", "Phi3ForCausalLM", _phi3),
    Family("gpt2", "GPT2Model", "GPT2LMHeadModel", _gpt2),
)
FAMILIES: Dict[str, Family] = {f"{family.module}.{family.base}": family for family in _ALL}


# Their parts.


def _rms_norm(norm: Any) -> Norm:
    return Norm(norm.weight.detach(), None, float(epsilon_of(norm)))


def _gemma_norm(norm: Any) -> Norm:
    """It scales by 1 + weight, in fp32."""
    return Norm(norm.weight.detach(), None, float(epsilon_of(norm)), unit_offset=True)


def _layer_norm(norm: Any) -> Norm:
    if norm.weight is None:
        raise Unsupported("norm: it has no weight; allowed are LayerNorms with one")
    return Norm(norm.weight.detach(), None if norm.bias is None else norm.bias.detach(), norm.eps, True)


def _head_norms(attention: Any) -> Optional[Tuple[Tensor, Tensor, float]]:
    q_norm = getattr(attention, "q_norm", None)
    if q_norm is None:
        return None
    k_norm = attention.k_norm
    if epsilon_of(q_norm) != epsilon_of(k_norm):
        raise Unsupported("attention: the norms of its queries and keys have two epsilons; allowed is one")
    return q_norm.weight.detach(), k_norm.weight.detach(), float(epsilon_of(q_norm))


def _activation(module: Any) -> str:
    found = activation_of(module)
    if found is None:
        raise Unsupported(
            f"activation: it is a {type(module).__name__}; allowed are SiLU, ReLU, and GELU, exact or by tanh"
        )
    return found


def _window(config: Any, index: int) -> int:
    """As the model makes its masks."""
    types = getattr(config, "layer_types", None)
    if config.model_type in ("qwen2", "qwen3", "gemma2") and types is not None:
        return int(config.sliding_window or 0) if types[index] == "sliding_attention" else 0
    return int(config.sliding_window or 0) if config.model_type in ("mistral", "phi3", "mixtral", "qwen3_moe") else 0


def _rotary(module: Any) -> Rotary:
    kind = getattr(module, "rope_type", "default")
    if kind not in _STATIC_ROTARIES:
        raise Unsupported(
            f"rotary embedding: its rope_type is {kind!r}; allowed are {', '.join(map(repr, _STATIC_ROTARIES))}"
        )
    frequencies, most = module.inv_freq, None
    if kind == "longrope":  # which has others beyond the length that it was trained for at first
        parameters = getattr(module.config, "rope_parameters", None) or {}
        most = parameters.get("original_max_position_embeddings") or getattr(
            module.config, "original_max_position_embeddings", 0
        )
        frequencies = getattr(module, "original_inv_freq", frequencies)
    return Rotary(frequencies.detach(), float(getattr(module, "attention_scaling", 1.0)), int(most or 0))


def check_tensors(base: nn.Module, devices: Tuple[str, ...]) -> None:
    """Raises Unsupported for a model whose tensors are of several devices or dtypes, or of others than kernels take."""
    floats = [(name, p) for name, p in base.named_parameters() if p.is_floating_point()]
    places, dtypes = {p.device for _, p in floats}, {p.dtype for _, p in floats}
    if len(places) > 1:
        found = ", ".join(sorted(map(str, places)))
        raise Unsupported(f"model: its parameters are on the devices {found}; allowed is one CUDA device for all")
    if places and next(iter(places)).type not in devices:
        raise Unsupported(f"model: it is on the device {next(iter(places))}; allowed is a CUDA device: move it there first")
    if len(dtypes) > 1:
        found = ", ".join(sorted(map(str, dtypes)))
        raise Unsupported(f"model: its parameters have the dtypes {found}; allowed is one dtype for all")
    if dtypes and next(iter(dtypes)) not in DTYPES:
        allowed = ", ".join(map(str, DTYPES))
        raise Unsupported(f"model: its dtype is {next(iter(dtypes))}; allowed are {allowed}")
