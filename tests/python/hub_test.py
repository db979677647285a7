"""Hone's layers for kernelize(), its attention for transformers, and the folder in the Hub's layout: with a stand-in
for the package `kernels`, on the CPU. Ends with 77 where PyTorch or transformers is missing."""

from __future__ import annotations

import inspect
import subprocess
import sys
import tempfile
import types
import unittest
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import fakes  # finds the package
from fakes import hub_kernels

try:
    import torch
    import transformers
except ImportError:
    print("skipped: PyTorch or transformers is not installed")
    sys.exit(77)

_scratch = tempfile.TemporaryDirectory(prefix="hone-hub-test-")
for _name in [name for name in sys.modules if name.split(".")[0] == "transformers"]:
    del sys.modules[_name]  # it looks for `kernels` when it is imported
kernels = hub_kernels.install(Path(_scratch.name))

import transformers
from torch.nn import functional
from transformers import AttentionInterface, KernelConfig, LlamaConfig, LlamaForCausalLM
from transformers.models.gemma.modeling_gemma import GemmaConfig, GemmaMLP
from transformers.models.llama.modeling_llama import LlamaMLP, LlamaRMSNorm
from transformers.models.phi3.modeling_phi3 import Phi3Config, Phi3MLP

transformers.logging.set_verbosity_error()

import hone.hub
from hone._nn.common import ACTIVATIONS
from hone.hub import flash, interface, layers, paged

CONFIG = LlamaConfig(
    hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
    vocab_size=100, max_position_embeddings=64,
)  # fmt: skip
# What each layer takes the place of.
REPLACED = {
    layers.RMSNorm: LlamaRMSNorm,
    layers.LayerNorm: torch.nn.LayerNorm,
    layers.GatedMLP: LlamaMLP,
    layers.FusedGatedMLP: Phi3MLP,
}
IDS = torch.arange(14).view(2, 7)


class Recorded:
    """Stands for the calls of Hone's operators: remembers them, and computes their formulas."""

    def __init__(self) -> None:
        self.calls: list = []

    def rms_norm(self, x, weight, epsilon):
        self.calls.append("rms_norm")
        return functional.rms_norm(x, (x.shape[-1],), weight, epsilon)

    def layer_norm(self, x, weight, bias, epsilon):
        self.calls.append("layer_norm")
        return functional.layer_norm(x, (x.shape[-1],), weight, bias, epsilon)

    def fused_ffn(self, x, gate, up, down, up_bias, down_bias, residual, activation):
        self.calls.append(f"fused_ffn {activation}")
        if not up_bias is down_bias is residual is None:
            raise AssertionError("there are no biases and no residual")
        return (ACTIVATIONS[activation](x @ gate.T) * (x @ up.T)) @ down.T

    def attention_with_cache(self, q, k, v, lengths, table, causal, window, softcap, scale, sinks=None):
        self.calls.append(("attention_with_cache", causal, window, softcap, scale))
        if table is not None:  # pages
            k, v = (cache[table.long().clamp(min=0)].flatten(1, 2) for cache in (k, v))
        return by_formula(q, k, v, lengths, causal, window, scale, sinks)

    def rope_kv_append(self, q, k, v, k_cache, v_cache, cos, sin, style, lengths, table):
        self.calls.append("rope_kv_append")
        size = k_cache.shape[1]
        for row, length in enumerate(lengths.tolist()):
            for place in range(length - k.shape[1], length):
                page = row if table is None else int(table[row, place // size])
                at = place if table is None else place % size
                k_cache[page, at], v_cache[page, at] = k[row, place - length], v[row, place - length]
        return q.clone()


def by_formula(q, k, v, lengths, causal, window, scale, sinks=None):
    """[batch, tokens, heads, head_dim]; causal is aligned at the end of each sequence. Sinks are keys without
    values."""
    out = torch.empty_like(q)
    for row in range(q.shape[0]):
        length = k.shape[1] if lengths is None else int(lengths[row])
        one_k, one_v = (
            tensor[row, :length].repeat_interleave(q.shape[2] // k.shape[2], 1).transpose(0, 1) for tensor in (k, v)
        )
        scores = q[row].transpose(0, 1) @ one_k.transpose(1, 2) * (q.shape[-1] ** -0.5 if scale is None else scale)
        behind = torch.arange(length) - (torch.arange(q.shape[1])[:, None] + length - q.shape[1])
        hidden = (behind > 0) & causal | ((behind <= -window) if window else torch.tensor(False))
        scores = scores.masked_fill(hidden, float("-inf"))
        if sinks is not None:
            scores = torch.cat((scores, sinks[:, None, None].expand(-1, q.shape[1], 1)), -1)
        out[row] = (scores.softmax(-1)[..., :length] @ one_v).transpose(0, 1)
    return out


def small_llama(**options: Any) -> LlamaForCausalLM:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LlamaForCausalLM._from_config(CONFIG, **options).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.uniform_(0.5, 1.5)
    return model


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = hone.hub.write_repository(Path(_scratch.name, "hone_kernels"))

    def repository(self, layer: str) -> Any:
        return kernels.LocalLayerRepository(self.folder, package_name="hone_kernels", layer_name=layer)

    def record(self, module: types.ModuleType) -> Recorded:
        """From now on the module's calls have kernels on the CPU, which are recorded."""
        recorded = Recorded()

        def likes(*tensors):
            return len({tensor.dtype for tensor in tensors if tensor is not None}) == 1

        for name, stand_in in (("calls", recorded), ("_runs_natively", likes)):
            if hasattr(module, name):
                patch = mock.patch.object(module, name, stand_in)
                patch.start()
                self.addCleanup(patch.stop)
        return recorded


class Layers(Case):
    def test_they_are_what_the_interface_allows_and_have_the_arguments_of_what_they_replace(self) -> None:
        for layer, replaced in REPLACED.items():
            with self.subTest(layer.__name__):
                kernels.check_layer(replaced, layer)
                names = [list(inspect.signature(cls.forward).parameters) for cls in (layer, replaced)]
                self.assertEqual(*names)
                self.assertEqual((layer.can_torch_compile, layer.has_backward), (True, True))

    def test_the_check_finds_what_is_not_allowed(self) -> None:
        class WithMore(layers.RMSNorm):
            epsilon = 1e-5

        with self.assertRaisesRegex(TypeError, "additional members.*epsilon"):
            kernels.check_layer(LlamaRMSNorm, WithMore)
        with self.assertRaisesRegex(TypeError, "number of arguments"):
            kernels.check_layer(torch.nn.MultiheadAttention, layers.RMSNorm)

    def test_every_rms_norm_that_transformers_registers_has_these_arguments(self) -> None:
        pattern = '@use_kernel_forward_from_hub("RMSNorm")\nclass '
        sources = list(Path(transformers.__file__).parent.glob("models/*/modeling_*.py"))
        bodies = [text for file in sources for text in file.read_text(encoding="utf-8").split(pattern)[1:]]
        self.assertGreater(len(bodies), 50)
        for body in bodies:
            body = body.partition("\nclass ")[0]
            self.assertIn("def forward(self, hidden_states", body)
            self.assertIn("variance_epsilon", body)
            self.assertNotIn("1 + self.weight", body)

    def test_they_compute_what_the_modules_do_on_the_cpu(self) -> None:
        torch.manual_seed(1)
        for dtype in (torch.float32, torch.bfloat16):
            x = torch.randn(2, 3, 64, dtype=dtype)
            for layer, module in self.modules(dtype):
                with self.subTest(layer.__name__, dtype=dtype):
                    torch.testing.assert_close(layer.forward(module, x), module(x), rtol=0, atol=0)

    def modules(self, dtype: torch.dtype) -> list:
        sizes = {"hidden_size": 64, "intermediate_size": 96}
        norm = torch.nn.LayerNorm(64)
        torch.nn.init.uniform_(norm.weight)
        made = [
            (layers.RMSNorm, LlamaRMSNorm(64, 1e-5)),
            (layers.LayerNorm, norm),
            (layers.GatedMLP, LlamaMLP(CONFIG)),
            (layers.GatedMLP, GemmaMLP(GemmaConfig(**sizes))),
            (layers.FusedGatedMLP, Phi3MLP(Phi3Config(**sizes, pad_token_id=0))),
        ]
        return [(layer, module.to(dtype)) for layer, module in made]

    def test_where_there_is_a_kernel_it_is_called_with_the_modules_weights(self) -> None:
        torch.manual_seed(1)
        x = torch.randn(2, 3, 64)
        recorded = self.record(layers)
        with torch.no_grad():
            for layer, module in self.modules(torch.float32):
                torch.testing.assert_close(layer.forward(module, x), module(x))
        wanted = ["rms_norm", "layer_norm", "fused_ffn silu", "fused_ffn gelu_tanh", "fused_ffn silu"]
        self.assertEqual(recorded.calls, wanted)

    def test_other_networks_keep_their_own_formula(self) -> None:
        recorded, x = self.record(layers), torch.randn(2, 64)
        mlp = LlamaMLP(CONFIG)
        with torch.no_grad():
            for change in (
                lambda: setattr(mlp, "act_fn", torch.nn.Tanh()),
                lambda: setattr(mlp, "up_proj", torch.nn.Linear(64, 96)),
                lambda: mlp.down_proj.register_forward_hook(lambda *_: None),
            ):
                mlp = LlamaMLP(CONFIG)
                change()
                torch.testing.assert_close(layers.GatedMLP.forward(mlp, x), mlp(x), rtol=0, atol=0)
        layers.GatedMLP.forward(LlamaMLP(CONFIG), x).sum().backward()  # PyTorch's gradient
        self.assertEqual(recorded.calls, [])

    def test_where_a_gradient_is_needed_pytorchs_functions_run_but_for_rms_norms(self) -> None:
        recorded = self.record(layers)
        for layer, module in self.modules(torch.float32):
            layer.forward(module, torch.randn(2, 64))
        self.assertEqual(recorded.calls, ["rms_norm"])

    def test_they_compile_without_a_break(self) -> None:
        """The kernels' own way on tensors without memory, which Hone's operators take as fake ones."""
        for native in (False, True):
            for layer, module in self.modules(torch.float32):
                device = "meta" if native else "cpu"
                module, x = module.to(device), torch.randn(2, 64, device=device)
                module.forward = types.MethodType(layer.forward, module)
                with self.subTest(layer.__name__, native=native), torch.no_grad(), \
                        mock.patch.object(layers, "_runs_natively", lambda *_: native):
                    torch._dynamo.reset()
                    found = torch.compile(module.forward, fullgraph=True, backend="eager")(x)
                    self.assertEqual(found.shape, x.shape)

    def test_gradients_pass(self) -> None:
        for layer, module in self.modules(torch.float32):
            x = torch.randn(2, 64, requires_grad=True)
            layer.forward(module, x).square().sum().backward()
            self.assertGreater(float(x.grad.abs().sum()), 0, layer)


class Kernelized(Case):
    def test_a_model_takes_the_layers_of_a_local_folder(self) -> None:
        model = small_llama()
        wanted = model(IDS).logits
        kernels.replace_kernel_forward_from_hub(LlamaMLP, "MLP")
        self.addCleanup(delattr, LlamaMLP, "kernel_layer_name")
        mapping = {name: {"cuda": {mode: self.repository(layer)}}
                   for name, layer in (("RMSNorm", "RMSNorm"), ("MLP", "GatedMLP"))
                   for mode in (kernels.Mode.INFERENCE | kernels.Mode.TORCH_COMPILE,)}  # fmt: skip
        with kernels.use_kernel_mapping(mapping):
            kernels.kernelize(model, mode=kernels.Mode.INFERENCE, device="cuda")
        replaced = [type(module).__name__ for module in model.modules() if "forward" in vars(module)]
        self.assertEqual((replaced.count("LlamaRMSNorm"), replaced.count("LlamaMLP")), (5, 2))
        torch.testing.assert_close(model(IDS).logits, wanted, rtol=0, atol=0)
        recorded = self.record(layers)
        with torch.no_grad():
            torch.testing.assert_close(model(IDS).logits, wanted)
        self.assertEqual([recorded.calls.count(name) for name in ("rms_norm", "fused_ffn silu")], [5, 2])

    def test_the_kernel_config_of_transformers_leads_to_them(self) -> None:
        model = small_llama()
        config = KernelConfig({"RMSNorm": f"{self.folder}:RMSNorm"}, use_local_kernel=True)
        with mock.patch("transformers.utils.kernel_config.infer_device", return_value="cuda"):
            config.sanitize_kernel_mapping(model)
            config.create_compatible_mapping(model)
        with kernels.use_kernel_mapping(config.kernel_mapping, inherit_mapping=False):
            kernels.kernelize(model, mode=kernels.Mode.INFERENCE, device=kernels.Device("cuda"))
        replaced = [module for module in model.modules() if "forward" in vars(module)]
        self.assertEqual(len(replaced), 5)
        self.assertIs(replaced[0].forward.__func__, layers.RMSNorm.forward)


class Repository(Case):
    def test_both_layouts_are_the_same_package(self) -> None:
        for flat in (False, True):
            kernel = kernels.get_local_kernel(self.folder, "hone_kernels", flat)
            self.assertIs(kernel.layers.GatedMLP, layers.GatedMLP)
            self.assertIs(kernel.flash_attn_varlen_func, flash.flash_attn_varlen_func)

    def test_without_hone_it_says_what_to_install(self) -> None:
        file = self.folder / "build" / "torch-noarch" / "hone_kernels" / "__init__.py"
        code = f"import runpy; runpy.run_path({str(file)!r})"
        ended = subprocess.run([sys.executable, "-I", "-c", code], stderr=subprocess.PIPE, text=True)
        self.assertRegex(ended.stderr, "ImportError: these kernels stand on the Python package hone, .*build_wheel.py")

    def test_the_command(self) -> None:
        def run(name: str) -> subprocess.CompletedProcess:
            return subprocess.run([sys.executable, "-m", "hone.hub", name], cwd=_scratch.name, text=True,
                                  capture_output=True, env={"PYTHONPATH": str(fakes.TREE / "python")})  # fmt: skip

        ended = run("our_kernels")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(Path(ended.stdout.strip()), Path(_scratch.name, "our_kernels").resolve())
        self.assertTrue(Path(_scratch.name, "our_kernels/build/torch-noarch/our_kernels/layers.py").is_file())
        self.assertRegex(run("our-kernels").stderr, "^hone.hub: folder: its name is 'our-kernels'; allowed are")


class Flash(Case):
    """The functions of flash-attn's interface."""

    def test_transformers_knows_everything_that_it_may_pass(self) -> None:
        """What a function does not have, transformers leaves out without a word."""
        parameters = inspect.signature(flash.flash_attn_varlen_func).parameters
        for name in ("dropout_p", "window_size", "softcap", "s_aux", "max_seqlen_q", "max_seqlen_k"):
            self.assertIn(name, parameters)
        self.assertIn("block_table", inspect.signature(flash.flash_attn_with_kvcache).parameters)

    def test_what_no_kernel_does_is_refused(self) -> None:
        q = torch.randn(1, 3, 4, 64)
        starts = torch.tensor([0, 3])
        for wish in ({"dropout_p": 0.1}, {"alibi_slopes": torch.zeros(4)}):
            (name,) = wish
            with self.assertRaisesRegex(ValueError, f"^{name}: it is given"):
                flash.flash_attn_func(q, q, q, **wish)
            with self.assertRaisesRegex(ValueError, f"^{name}: it is given"):
                flash.flash_attn_varlen_func(q[0], q[0], q[0], starts, starts, 3, 3, **wish)
        with self.assertRaisesRegex(ValueError, r"^window_size: \(3, 3\); allowed where causal is False"):
            flash.flash_attn_func(q, q, q, window_size=(3, 3))
        with self.assertRaisesRegex(NotImplementedError, "has no gradient"):
            flash.flash_attn_func(q.clone().requires_grad_(), q, q)
        with self.assertRaisesRegex(ValueError, "^q: it is on device 'cpu'"):
            flash.flash_attn_varlen_func(q[0], q[0], q[0], starts, starts, 3, 3)

    def test_a_window_counts_its_own_key(self) -> None:
        windows = [flash.window_of(window, True) for window in ((-1, -1), (0, 0), (7, 0), (7, 7))]
        self.assertEqual(windows, [0, 1, 8, 8])

    def test_packed_sequences_reach_a_packed_operator(self) -> None:
        q, kv = (torch.randn(5, heads, 64).to(torch.bfloat16) for heads in (4, 2))
        starts, seen = torch.tensor([0, 2, 5]), []

        def operator(*tensors, **options):
            seen.append((tensors, options))
            return tensors[0]

        def for_call(kind, device, sizes):
            seen.append(kind)
            return operator

        with mock.patch.object(flash, "check_query"), mock.patch.object(flash, "on", lambda _: torch.no_grad()), \
                mock.patch.object(flash._PACKED, "for_call", for_call):
            flash.flash_attn_varlen_func(
                q, kv, kv, starts, starts, 3, torch.tensor(3), causal=True, window_size=(1, 1)
            )
        kind, (tensors, options) = seen
        self.assertEqual(tuple(kind), (4, 2, 64, "bf16", True, 2, False, False))
        self.assertIsNone(options["sinks"])
        self.assertEqual((options["q_len"], options["kv_len"], options["softcap"]), (3, 3, None))
        self.assertEqual(options["kv_starts"].dtype, torch.int32)
        described = flash._describe(kind, (64, 8192, 8192))
        self.assertEqual((described.packed, described.page_size, described.window), (True, 0, 2))

    def test_sinks_are_those_of_s_aux(self) -> None:
        recorded = self.record(flash)
        torch.manual_seed(3)
        q, k, v = torch.randn(2, 5, 4, 64), torch.randn(2, 9, 2, 64), torch.randn(2, 9, 2, 64)
        sinks = torch.tensor([-1.0, 0.5, 2.0, 4.0])
        out = flash.flash_attn_func(q, k, v, causal=True, s_aux=sinks.to(torch.bfloat16))
        torch.testing.assert_close(out, by_formula(q, k, v, None, True, 0, None, sinks))
        self.assertEqual(len(recorded.calls), 1)

    def test_a_cache_gets_the_new_keys_first(self) -> None:
        recorded = self.record(flash)
        torch.manual_seed(2)
        q, new_k, new_v = torch.randn(2, 1, 4, 64), torch.randn(2, 1, 2, 64), torch.randn(2, 1, 2, 64)
        k_cache, v_cache = torch.randn(2, 9, 8, 2, 64)
        table = torch.tensor([[3, 1, -1], [4, 2, 7]], dtype=torch.int32)
        lengths = torch.tensor([11, 20])
        wanted_k, wanted_v = k_cache.clone(), v_cache.clone()
        for cache, new in ((wanted_k, new_k), (wanted_v, new_v)):
            cache[1, 3], cache[7, 4] = new[0, 0], new[1, 0]
        options = {"cache_seqlens": lengths, "block_table": table, "causal": True, "window_size": (15, 0)}
        out = flash.flash_attn_with_kvcache(q, k_cache, v_cache, new_k, new_v, **options)
        torch.testing.assert_close((k_cache, v_cache), (wanted_k, wanted_v))
        pages = [cache[table.long().clamp(min=0)].flatten(1, 2) for cache in (wanted_k, wanted_v)]
        torch.testing.assert_close(out, by_formula(q, *pages, lengths + 1, True, 16, None))
        self.assertEqual(recorded.calls[0], "rope_kv_append")
        with self.assertRaisesRegex(ValueError, "^k, v: one of them"):
            flash.flash_attn_with_kvcache(q, k_cache, v_cache, new_k)


class Attention(Case):
    def test_a_model_runs_it_where_no_mask_is_needed(self) -> None:
        hone.hub.register_attention()
        self.assertIn("hone", AttentionInterface.valid_keys(AttentionInterface()))
        wanted = small_llama().generate(IDS, max_new_tokens=5, do_sample=False)
        model = small_llama(attn_implementation="hone")
        recorded = self.record(interface)
        found = model.generate(IDS, max_new_tokens=5, do_sample=False)
        self.assertTrue(torch.equal(found, wanted))
        causal = [call[1] for call in recorded.calls]
        self.assertEqual((causal.count(True), causal.count(False)), (2, 8))  # the prompt, then token by token
        mask = torch.ones_like(IDS)
        mask[0, :3] = 0
        before = len(recorded.calls)
        torch.testing.assert_close(
            model(IDS, attention_mask=mask).logits, small_llama()(IDS, attention_mask=mask).logits
        )
        self.assertEqual(len(recorded.calls), before)

    def test_packed_sequences_over_pages(self) -> None:
        """As continuous batching calls it: with keys gathered by the cache, and with a table of pages."""
        hone.hub.register_attention()
        function = AttentionInterface()["paged|hone"]
        torch.manual_seed(4)
        module = torch.nn.Module()
        module.layer_idx, module.sliding_window = 3, 2
        q, k = torch.randn(1, 4, 5, 64), torch.randn(1, 2, 5, 64)
        gathered, seen = torch.randn(7, 2, 64), []
        cache = types.SimpleNamespace(
            update=lambda **given: seen.append(given) or (gathered, gathered),
            layer_index_to_group_indices={3: (1, 0)}, block_size=8, num_key_value_heads=2, head_dim=64,
            key_cache=[torch.randn(6 * 8, 2, 64)], value_cache=[torch.randn(6 * 8, 2, 64)],
        )  # fmt: skip
        starts = {"cu_seq_lens_q": torch.tensor([0, 2, 5]), "max_seqlen_q": 3, "scaling": 0.3, "cache": cache,
                  "cu_seq_lens_k": {"sliding_attention": torch.tensor([0, 3, 7])},
                  "max_seqlen_k": {"sliding_attention": 4}}  # fmt: skip
        with mock.patch.object(paged, "flash_attn_varlen_func") as packed:
            out, _ = function(module, q, k, k, None, read_index="r", write_index="w", **starts)
        self.assertIs(out, packed.return_value)
        self.assertEqual((seen[0]["layer_idx"], seen[0]["read_index"], seen[0]["write_index"]), (3, "r", "w"))
        self.assertEqual(packed.call_args.args[0].shape, (5, 4, 64))
        self.assertEqual(packed.call_args.args[5:], (3, 4, 0.0))
        self.assertEqual(packed.call_args.kwargs["window_size"], (1, 0))
        self.record(flash)
        table = torch.tensor([[[0, 0]], [[4, 2]]], dtype=torch.int32)
        starts["cu_seq_lens_k"] = {"sliding_attention": torch.tensor([0, 11])}
        one = q[:, :, :1], k[:, :, :1]
        out, _ = function(module, one[0], one[1], one[1], None, block_table=table, **starts)
        keys = cache.key_cache[0].view(6, 8, 2, 64)[[4, 2]].flatten(0, 1)[None, :11]
        torch.testing.assert_close(keys[0, 10], k[0, :, 0])
        values = cache.value_cache[0].view(6, 8, 2, 64)[[4, 2]].flatten(0, 1)[None, :11]
        wanted = by_formula(one[0].transpose(1, 2), keys, values, None, True, 2, 0.3)
        torch.testing.assert_close(out, wanted.squeeze(1))

    def test_continuous_batching_is_told_that_it_takes_pages(self) -> None:
        """Only of our implementation, and where there is a GPU."""
        from transformers.generation.continuous_batching import initialization

        ensure = initialization.ensure_decode_fast_path_is_available
        self.assertEqual(ensure.__name__, ensure.hone_original.__name__)
        for name, cuda, most in (("hone", True, 32), ("paged|hone", True, 32), ("sdpa", True, 0), ("hone", False, 0)):
            asked = types.SimpleNamespace(max_blocks_per_request=32)
            config = LlamaConfig(attn_implementation=name)
            with self.subTest(name, cuda=cuda), mock.patch("torch.cuda.is_available", lambda: cuda):
                ensure(config, asked, False)
                self.assertEqual(asked.max_blocks_per_request, most)

    def test_a_cap_and_weights_that_pytorch_would_drop_are_computed(self) -> None:
        torch.manual_seed(3)
        q, k = torch.randn(1, 4, 3, 64), torch.randn(1, 2, 3, 64)
        seen = torch.ones(3, 3, dtype=torch.bool).tril()
        wide = k.repeat_interleave(2, 1)
        for cap in (None, 2.0):
            scores = q @ wide.transpose(2, 3) / 8
            scores = scores if cap is None else cap * torch.tanh(scores / cap)
            weights = scores.masked_fill(~seen, float("-inf")).softmax(-1)
            for mask in (None, seen[None, None], torch.zeros(3, 3).masked_fill(~seen, float("-inf"))):
                out, found = interface.attention_forward(
                    torch.nn.Module(), q, k, k, mask, softcap=cap, output_attentions=True
                )
                torch.testing.assert_close(found, weights)
                torch.testing.assert_close(out, (weights @ wide).transpose(1, 2))
        with self.assertRaisesRegex(ValueError, "^s_aux: PyTorch's attention.*'eager'"):
            interface.attention_forward(torch.nn.Module(), q, q, q, None, s_aux=torch.zeros(4))


if __name__ == "__main__":
    unittest.main()
