"""hone.load_quantized(): models on the GPU, on the CPU and without memory, of folders that `hone quantize`
makes."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

from support import DEVICE, Case, randn

import torch
from torch import Tensor, nn

import hone
from hone import program
from hone._weights import safetensors
from hone import nn as hone_nn

CPU = torch.device("cpu")
NAMES = {
    torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int32: "I32",
    torch.uint8: "U8", torch.int8: "I8",
}  # fmt: skip
IN, OUT = 128, 96


class Block(nn.Module):
    def __init__(self, device: Any = DEVICE, dtype: Any = torch.bfloat16, gain: bool = True) -> None:
        super().__init__()
        options = {"device": device, "dtype": dtype}
        self.first = nn.Linear(IN, OUT, **options)
        self.second = hone_nn.Linear(OUT, IN, bias=False, activation="silu", **options)
        self.gain = nn.Parameter(torch.ones(IN, **options)) if gain else None
        self.register_buffer("steps", torch.zeros(2, dtype=torch.int32, device=device))
        self.register_buffer("scratch", torch.zeros(2, device="cpu"), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x)) * self.gain


class Model(nn.Module):
    """With a language head that is the embedding."""

    def __init__(self, device: Any = DEVICE, dtype: Any = torch.bfloat16) -> None:
        super().__init__()
        self.embed = nn.Embedding(32, IN, device=device, dtype=dtype)
        self.blocks = nn.ModuleList([Block(device, dtype), Block(device, dtype)])
        self.lm_head = nn.Linear(IN, 32, bias=False, device="meta")
        self.lm_head.weight = self.embed.weight


def entry(tensor: Tensor) -> Tuple[str, List[int], bytes]:
    """(dtype, shape, bytes) of a file."""
    flat = tensor.detach().cpu().contiguous()
    return NAMES[flat.dtype], list(flat.shape), bytes(flat.view(-1).view(torch.uint8).tolist())


def write(path: Path, tensors: Dict[str, Tuple[str, List[int], bytes]]) -> None:
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        offsets = [len(data), len(data) + len(content)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


class LoadingCase(Case):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root, self.count = Path(folder.name), 0

    def new(self) -> Path:
        self.count += 1
        return self.root / str(self.count)

    def packed(self, tensors: Dict[str, Tensor], format: str, *options: str, config: Any = None) -> Path:
        """What `hone quantize` makes of a checkpoint of these tensors."""
        before, after = self.new(), self.new()
        before.mkdir()
        write(before / "model.safetensors", {name: entry(tensor) for name, tensor in tensors.items()})
        (before / "config.json").write_text(json.dumps(config or {}))
        command = ["quantize", "--json", "--format", format, "-o", str(after), *options, "--", str(before)]
        program.run_json(command, quiet=True)
        return after

    def packed_model(self, model: nn.Module, format: str = "w4a16", *options: str) -> Path:
        state = {name: t for name, t in model.state_dict().items() if name != "lm_head.weight"}
        return self.packed(state, format, *options)

    def changed(self, folder: Path, change: Callable[[Dict[str, Any]], Any], **packing: Any) -> Path:
        """A copy with other tensors, and another quantization_config."""
        after = self.new()
        after.mkdir()
        found = safetensors.open_folder(folder)
        tensors = {name: (t.dtype, list(t.shape), bytes(t.read())) for name, t in found.items()}
        change(tensors)
        write(after / "model.safetensors", tensors)
        config = json.loads((folder / "config.json").read_text())
        config["quantization_config"].update(packing)
        (after / "config.json").write_text(json.dumps(config))
        return after


class Loading(LoadingCase):
    FORMATS = (
        ("w4a16", ("--group", "32"), 0.12), ("w4a16", ("--group", "32", "--zeros"), 0.11),
        ("w8a16", (), 0.015), ("w8a8", (), 0.015), ("fp8", (), 0.035),
    )  # fmt: skip

    def test_models_of_every_kind_in_every_format(self):
        for device in (CPU, DEVICE):
            source = Model(device)
            source.blocks[0].steps[1] = 7
            for format, options, loss in self.FORMATS:
                folder = self.packed_model(source, format, *options)
                for target in (Model(device), Model("meta")):
                    swaps = hone.load_quantized(target, folder, device=device)
                    with self.subTest(device=str(device), format=format, options=options):
                        self.check_model(target, source, swaps, loss)

    def check_model(self, found: Model, source: Model, swaps: List[Any], loss: float) -> None:
        classes = {"first": nn.Linear, "second": hone_nn.Linear}
        wanted = [(f"blocks.{b}.{name}", old) for b in (0, 1) for name, old in classes.items()]
        self.assertEqual([(name, old) for name, old, _ in swaps], wanted)
        self.assertIs(found.lm_head.weight, found.embed.weight)
        self.assert_same(found.embed.weight.detach(), source.embed.weight.detach())
        self.assert_same(found.blocks[0].steps, source.blocks[0].steps)
        self.assertEqual(found.blocks[1].second.activation, "silu")
        for block, before in zip(found.blocks, source.blocks):
            self.assert_same(block.first.bias.detach(), before.first.bias.detach())
            for layer, weight in ((block.first, before.first.weight), (block.second, before.second.weight)):
                self.assertIs(type(layer), hone_nn.QuantizedLinear)
                self.assertLess(self.relative_error(layer.dequantized(torch.float64), weight.double()), loss)
            x = randn(5, IN).to(block.gain.device)
            with torch.no_grad():
                wanted = before(x).double()
                self.assertLess(self.relative_error(block(x), wanted), 3 * loss + 0.02)
            other = hone_nn.QuantizedLinear(
                IN, OUT, block.first.format, block.first.group, zeros=block.first.zeros is not None,
                device=x.device,
            )  # fmt: skip
            other.load_state_dict(block.first.state_dict())

    def test_what_a_model_has_keeps_its_dtype(self):
        folder = self.packed_model(Model(CPU), "w4a16", "--group", "32")
        model = Model(CPU, torch.float32)
        hone.load_quantized(model, folder)
        self.assertEqual(model.embed.weight.dtype, torch.float32)
        self.assertEqual(model.blocks[0].first.scales.dtype, torch.bfloat16)

    def test_one_scale_for_all(self):
        weight = torch.randint(0, 100, (64, IN), dtype=torch.uint8)
        before, after = self.new(), self.new()
        before.mkdir()
        write(
            before / "model.safetensors",
            {"0.weight": ("F8_E4M3", [64, IN], bytes(weight.view(-1).tolist())),
             "0.weight_scale": entry(torch.tensor(0.5))},
        )  # fmt: skip
        (before / "config.json").write_text('{"quantization_config": {"quant_method": "fp8"}}')
        program.run_json(["quantize", "--json", "--format", "fp8", "-o", str(after), str(before)], quiet=True)
        model = nn.Sequential(nn.Linear(IN, 64, bias=False, device="meta"))
        hone.load_quantized(model, after)
        self.assert_same(model[0].codes, weight)
        self.assert_same(model[0].scales, torch.full((64,), 0.5))

    def test_shards(self):
        source = Model(CPU)
        state = {n: entry(t) for n, t in source.state_dict().items() if n != "lm_head.weight"}
        before, after = self.new(), self.new()
        before.mkdir()
        of_file = {name: f"m-{index % 2}.safetensors" for index, name in enumerate(sorted(state))}
        for file in set(of_file.values()):
            write(before / file, {name: state[name] for name in state if of_file[name] == file})
        index = {"weight_map": of_file}
        (before / "model.safetensors.index.json").write_text(json.dumps(index))
        program.run_json(["quantize", "--json", "--format", "fp8", "-o", str(after), str(before)], quiet=True)
        found = Model("meta")
        self.check_model(found, source, hone.load_quantized(found, after), 0.035)

    def test_feed_forward_networks(self):
        for gated in (True, False):
            options = {"gated": gated, "bias": not gated, "norm": True}
            source = nn.Sequential(hone_nn.FusedFFN(64, 128, device=CPU, dtype=torch.bfloat16, **options))
            folder = self.packed(source.state_dict(), "w4a16", "--group", "64")
            found = nn.Sequential(hone_nn.FusedFFN(64, 128, device="meta", **options))
            swaps = hone.load_quantized(found, folder)
            self.assertEqual(swaps, [("0", hone_nn.FusedFFN, hone_nn.QuantizedFFN)])
            x = randn(5, 64).cpu()
            with torch.no_grad():
                wanted = found[0](x)
                self.assertLess(self.relative_error(wanted, source[0](x).double()), 0.3)
                again = nn.Sequential(hone_nn.QuantizedFFN(64, 128, 8, device=CPU, **options))
                hone.load_quantized(again, folder)
                self.assert_same(again[0](x), wanted)


class ActivationOrder(LoadingCase):
    """GPTQ checkpoints whose columns belong to groups in no order."""

    def gptq(self, name: str, groups: Tensor, group: int) -> Tuple[Dict[str, Tensor], Tensor]:
        """The tensors of a layer [64, 128], and its values."""
        generator = torch.Generator().manual_seed(3)
        codes = torch.randint(0, 16, (64, IN), generator=generator)
        zeros = torch.randint(1, 16, (64, IN // group), generator=generator)
        scales = torch.rand(64, IN // group, generator=generator).half() + 0.25
        values = (codes - zeros[:, groups]).double() * scales[:, groups].double()

        def words(numbers: Tensor) -> Tensor:
            """The last dimension, 8 to a word, low end first."""
            shifted = numbers.long().view(*numbers.shape[:-1], -1, 8) << (4 * torch.arange(8))
            total = shifted.sum(-1)
            return torch.where(total >= 1 << 31, total - (1 << 32), total).int()

        tensors = {
            f"{name}.qweight": words(codes).t().contiguous(),
            f"{name}.qzeros": words(zeros.t().contiguous() - 1),
            f"{name}.scales": scales.t().contiguous(),
            f"{name}.g_idx": groups.int(),
        }
        return tensors, values

    def loaded(self, groups: Tensor, group: int) -> Tuple[hone_nn.QuantizedLinear, Tensor, Path]:
        tensors, values = self.gptq("0", groups, group)
        config = {"quant_method": "gptq", "bits": 4, "group_size": group, "desc_act": True, "sym": False}
        folder = self.packed(tensors, "w4a16", config={"quantization_config": config})
        model = nn.Sequential(nn.Linear(IN, 64, bias=False, device="meta"))
        hone.load_quantized(model, folder, device=DEVICE)
        return model[0], values, folder

    def test_the_layer_multiplies_as_the_checkpoint_says(self):
        for group in (32, 64):
            shuffled = torch.randperm(IN, generator=torch.Generator().manual_seed(1)) // group
            layer, values, _ = self.loaded(shuffled, group)
            self.assertIsNotNone(layer.input_order)
            self.assert_same(layer.dequantized(torch.float64).cpu(), values)
            x = randn(5, IN, dtype=torch.float16)
            with torch.no_grad():
                wanted = x.double() @ values.to(DEVICE).t()
                self.assertLess(self.relative_error(layer(x), wanted), 2e-3)
                self.assertLess(self.relative_error(layer(x[0]), wanted[0]), 2e-3)
            other = hone_nn.QuantizedLinear(IN, 64, 4, group, False, zeros=True, input_order=True)
            other.load_state_dict(layer.state_dict())
            self.assert_same(other.input_order, layer.input_order.cpu())
            with self.assertRaisesRegex(RuntimeError, "same bits, group, zeros and input_order"):
                wrong = hone_nn.QuantizedLinear(IN, 64, 4, group, False, zeros=True)
                wrong.load_state_dict(layer.state_dict(), strict=False)

    def test_groups_that_stand_side_by_side_need_no_order(self):
        layer, values, _ = self.loaded(torch.arange(IN) // 32, 32)
        self.assertIsNone(layer.input_order)
        self.assert_same(layer.dequantized(torch.float64).cpu(), values)

    def test_an_order_that_is_none_is_refused(self):
        _, _, folder = self.loaded(torch.arange(IN) % 4, 32)
        for index, wrong in ((0, IN), (1, -1), (2, 7)):
            order = torch.arange(IN, dtype=torch.int32)
            order[index] = wrong
            broken = self.changed(folder, lambda t: t.update({"0.input_order": entry(order)}))
            model = nn.Sequential(nn.Linear(IN, 64, bias=False, device="meta"))
            with self.assertRaisesRegex(ValueError, "'0.input_order': .*allowed: a permutation of 0 to 127"):
                hone.load_quantized(model, broken)


class Mistakes(LoadingCase):
    def setUp(self) -> None:
        super().setUp()
        self.folder = self.packed_model(Model(CPU), "w4a16", "--group", "32")

    def refused(self, pattern: str, folder: Path, model: Optional[nn.Module] = None, **options: Any) -> None:
        """And the model is as it was."""
        model = Model(CPU) if model is None else model
        before, types = model.state_dict(), [type(module) for module in model.modules()]
        with self.assertRaisesRegex(ValueError, pattern):
            hone.load_quantized(model, folder, **options)
        self.assertEqual(types, [type(module) for module in model.modules()])
        after = model.state_dict()
        self.assertTrue(all(torch.equal(after[name], tensor) for name, tensor in before.items()))

    def test_what_config_json_says(self):
        for packing, pattern in (
            ({"quant_method": "gptq"}, "it is none of Hone's; allowed are folders that `hone quantize`"),
            ({"layout": 2}, "layout version 2; this package reads version 1: quantize the weights again"),
            ({"format": "w2"}, "format is 'w2'; allowed are w4a16, w8a16, w8a8, fp8"),
            ({"group": 48}, "group is 48; allowed are 0, 32, 64, 128"),
            ({"zeros": 1}, "zeros is 1; allowed are False, True"),
            ({"dtype": "fp32"}, "dtype is 'fp32'; allowed are bf16, fp16"),
            ({"layers": {}}, "no object layers"),
            ({"layers": {"a": [64, 0]}}, r"layer 'a' is '\[64, 0\]'; allowed is \[out, in\]"),
        ):
            self.refused(pattern, self.changed(self.folder, lambda tensors: None, **packing))
        (self.folder / "config.json").write_text("{}")
        self.refused("none of Hone's", self.folder)

    def test_tensors_of_layers(self):
        name = "blocks.0.first"
        other = ("F32", [1], bytes(4))
        for change, pattern in (
            (lambda t: t.pop(f"{name}.codes"), f"layer '{name}': the folder has no tensor '{name}.codes'"),
            (lambda t: t.pop(f"{name}.scales"), f"the folder has no tensor '{name}.scales'"),
            (lambda t: t.pop(f"{name}.bias"), f"it has a bias; the folder has no tensor '{name}.bias'"),
            (lambda t: t.update({f"{name}.codes": other}), r"it is F32 \[1\]; needed is U8 \[2, 2, 2048\]"),
            (lambda t: t.update({f"{name}.scales": other}), r"needed is BF16 \[2, 4, 64\]"),
            (lambda t: t.update({f"{name}.bias": other}), rf"its shape is \[1\]; needed is \[{OUT}\]"),
        ):
            self.refused(pattern, self.changed(self.folder, change), strict=False)

    def test_tensors_of_the_rest(self):
        other = ("F32", [1], bytes(4))
        without = self.changed(self.folder, lambda t: t.pop("blocks.1.gain"))
        self.refused("^the folder lacks 'blocks.1.gain', which the model has; strict=False", without)
        more = self.changed(self.folder, lambda t: t.update({"inv_freq": other}))
        self.refused("^the model lacks 'inv_freq', which the folder has", more)
        for folder in (without, more):
            model = Model(CPU)
            hone.load_quantized(model, folder, strict=False)
            self.assertIs(type(model.blocks[1].first), hone_nn.QuantizedLinear)
        wrong = self.changed(self.folder, lambda t: t.update({"blocks.1.gain": other}))
        self.refused(rf"'blocks.1.gain': its shape is \[1\]; the model needs \[{IN}\]", wrong, strict=False)

    def test_layers_of_the_model(self):
        model = Model(CPU)
        model.blocks[1].first = nn.Linear(IN, 64, device="cpu")
        self.refused(r"layer 'blocks.1.first': it is \[64, 128\] in the model; the folder has \[96, 128\]",
                     self.folder, model)  # fmt: skip
        model.blocks[1].first = nn.ReLU()
        self.refused("it is a ReLU in the model; allowed are torch.nn.Linear", self.folder, model)
        model.blocks[1].first = nn.Linear(IN, OUT, device="cpu")
        model.blocks[1].first.register_forward_hook(lambda *_: None)
        self.refused("it has hooks", self.folder, model)
        del model.blocks[1].first
        self.refused("layer 'blocks.1.first': the model has no module of this name", self.folder, model)

    def test_a_network_that_is_packed_in_part(self):
        source = nn.Sequential(hone_nn.FusedFFN(64, 128, device=CPU, dtype=torch.bfloat16))
        folder = self.packed(source.state_dict(), "w4a16", "--group", "64", "--skip", "down_proj")
        self.refused("whose layers are replaced together, and the folder does not pack '0.down_proj'", folder,
                     source)  # fmt: skip

    def test_values_that_mean_nothing(self):
        for part, value in (
            ("scales", torch.full((2, 4, 64), torch.inf, dtype=torch.bfloat16)),
            ("scales", torch.full((2, 4, 64), torch.nan, dtype=torch.bfloat16)),
            ("scales", torch.full((2, 4, 64), -(2.0**35), dtype=torch.bfloat16)),
        ):
            change = {f"blocks.0.first.{part}": entry(value)}
            with self.assertRaisesRegex(ValueError, "scales that are too large, .*; allowed: magnitudes below"):
                hone.load_quantized(Model(CPU), self.changed(self.folder, lambda t: t.update(change)))


if __name__ == "__main__":
    unittest.main()
