"""The `hone` program as a child process: what it is given, what comes back, and the operators of a model."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import fakes

import hone
from hone import descriptions, models, program
from hone._native import library
from hone._operators.model_names import operator_names


class Case(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="hone-program-test-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def use(self, **environment: str) -> None:
        changed = mock.patch.dict(os.environ, environment)
        changed.start()
        self.addCleanup(changed.stop)

    def use_program(self, body: str) -> None:
        """Takes the place of the program: Python whose `arguments` are its own, run in this folder."""
        path = self.folder / "stand-in"
        path.write_text(
            f"#!{sys.executable}\nimport json, os, signal, sys, time\narguments = sys.argv[1:]\n"
            f"os.chdir({str(self.folder)!r})\n{body}\n"
        )
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        self.use(HONE_PROGRAM=str(path))


class Tuning(Case):
    """The real program, on the fake GPU."""

    def test_what_it_finds_is_returned_and_used(self) -> None:
        self.use(HONE_CACHE=str(self.folder / "cache.db"))
        fields = {"dtype": "bf16", "hidden": 256, "residual": True}
        found = hone.tune(op="rmsnorm", fields=fields, tokens=[1, 8], effort="quick", quiet=True)
        problems = found["runs"][0]["problems"]
        self.assertEqual([problem["winner"]["status"] for problem in problems], ["ok", "ok"])
        self.assertIn("residual=yes hidden=256 rows=8", problems[1]["problem"])
        code = "import hone; print(hone.explain(hone.RmsNorm(256, residual=True), 8)['origin'])"
        ended = subprocess.run(
            [sys.executable, "-B", "-c", code], env={**os.environ, "PYTHONPATH": str(fakes.TREE / "python")},
            stdout=subprocess.PIPE, text=True, check=True,
        )  # fmt: skip
        self.assertEqual(ended.stdout.strip(), "exact")

    def test_a_model(self) -> None:
        found = hone.tune("llama-3-8b", tokens=1, dry_run=True, quiet=True)
        self.assertEqual(found["name"], "llama-3-8b")
        self.assertEqual(
            [entry["problem"] for entry in found["operators"] if entry["role"] == "output projection"],
            ["linear dtype=bf16 norm=no activation=none gated=no bias=no residual=no in=4096 out=4096 tokens=1"],
        )

    def test_an_error_has_its_words(self) -> None:
        with self.assertRaisesRegex(hone.ProgramError, "no-such-model") as caught:
            hone.tune("no-such-model", quiet=True)
        self.assertEqual((caught.exception.code, caught.exception.exit_code), ("bad_input", 2))
        self.assertIsNone(caught.exception.status)
        self.use(HONE_CUDA_LIBRARY="/nonexistent", HONE_NVRTC_LIBRARY="/nonexistent")
        with self.assertRaisesRegex(hone.ProgramError, "no GPU to measure on") as caught:
            hone.tune(op="rmsnorm", fields="dtype=bf16 hidden=64", tokens=1, quiet=True)
        self.assertEqual((caught.exception.code, caught.exception.exit_code), ("no_nvrtc", 3))
        self.assertIn("set CUDA_HOME", caught.exception.hint)
        self.assertTrue(str(caught.exception).endswith(caught.exception.hint))


class Arguments(Case):
    def arguments_of(self, *given, **named) -> list:
        self.use_program("print(json.dumps({'ok': True, 'data': {'arguments': arguments}}))")
        return hone.tune(*given, quiet=True, **named)["arguments"]

    def test_every_option(self) -> None:
        self.assertEqual(self.arguments_of("gpt2"), ["tune", "--json", "--", "gpt2"])
        self.assertEqual(
            self.arguments_of(
                Path("a b.json"), dtype="float16", tp=4, gpu="all", effort="quick", budget=1.5, kernels=4,
            ),
            ["tune", "--json", "--dtype=fp16", "--tp=4", "--gpu=all", "--effort=quick", "--budget=1500ms",
             "--kernels=4", "--", "a b.json"],
        )  # fmt: skip
        fields = {"dtype": "bf16", "hidden": 64, "residual": True, "bias": False}
        self.assertEqual(
            self.arguments_of(
                op="rmsnorm", fields=fields, tokens=[1, 8], gpu=0, budget="10m", retune=True, offline=True,
                arch="sm_90a", dry_run=True, shard="3/8",
            ),
            ["tune", "--json", "--op=rmsnorm", "--fields=dtype=bf16 hidden=64 residual=yes bias=no",
             "--tokens=1,8", "--gpu=0", "--budget=10m", "--arch=sm_90a", "--shard=3/8", "--retune",
             "--offline", "--dry-run"],
        )  # fmt: skip
        self.assertEqual(
            self.arguments_of("gpt2", format="w4a16", group=0, zeros=True, lm_head=True),
            ["tune", "--json", "--format=w4a16", "--group=0", "--zeros", "--lm-head", "--", "gpt2"],
        )
        self.assertIn("--tokens=16", self.arguments_of("gpt2", tokens=16))
        self.assertIn("--tokens=1,2", self.arguments_of("gpt2", tokens="1,2"))

    def test_the_program_knows_every_option(self) -> None:
        options = {"--json"}
        for words in (
            self.arguments_of("gpt2", op="x", fields="x", tokens=1, dtype="bf16", tp=1, gpu=0, effort="x"),
            self.arguments_of(budget=1, arch="x", retune=True, offline=True, dry_run=True, shard="x"),
            self.arguments_of(format="x", group=1, zeros=True, lm_head=True),
        ):
            options |= {word.partition("=")[0] for word in words if len(word) > 2 and word.startswith("--")}
        command = [fakes.PROGRAM, "tune", "--help"]
        told = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertEqual({option for option in options if option not in told}, set())

    def test_a_value_with_a_dash_stays_a_value(self) -> None:
        self.assertEqual(self.arguments_of("--help")[-2:], ["--", "--help"])
        self.assertIn("--fields=--help", self.arguments_of(op="rmsnorm", fields="--help"))

    def test_what_makes_no_sense_is_named(self) -> None:
        for name, value, error in (
            ("budget", [], TypeError), ("budget", float("nan"), ValueError), ("budget", float("inf"), ValueError),
            ("budget", 0, ValueError), ("tokens", 1.5, TypeError), ("tokens", True, TypeError), ("fields", 3, TypeError),
            ("retune", "no", TypeError), ("dry_run", None, TypeError), ("lm_head", 1, TypeError),
            ("model", "", ValueError), ("model", "gpt2\0", ValueError),
        ):  # fmt: skip
            with self.subTest(name=name, value=value), self.assertRaisesRegex(error, f"^{name}: .*; allowed are"):
                hone.tune(op="rmsnorm", **{name: value})
        with self.assertRaisesRegex(ValueError, "^model: ''; allowed are a known model's name"):
            hone.prepare("")

    def test_a_dtype_that_is_none(self) -> None:
        with self.assertRaisesRegex(ValueError, "^dtype: 'int3'; allowed are fp32"):
            hone.tune("gpt2", dtype="int3")


class Answers(Case):
    def test_no_answer(self) -> None:
        self.use_program("print('Segmentation'); print('the last words', file=sys.stderr); sys.exit(9)")
        with self.assertRaisesRegex(hone.ProgramError, "^hone tune ended .* 9 .*: the last words$") as caught:
            hone.tune("gpt2", quiet=True)
        self.assertEqual(caught.exception.exit_code, 9)

    def test_partial_results_come_with_the_error(self) -> None:
        answer = {
            "ok": False, "data": {"runs": [1]},
            "error": {"code": "budget", "message": "the budget ended", "hint": "run it again"},
        }  # fmt: skip
        self.use_program(f"print({json.dumps(answer)!r}); sys.exit(7)")
        with self.assertRaisesRegex(hone.ProgramError, "^the budget ended\nrun it again$") as caught:
            hone.tune("gpt2", quiet=True)
        error = caught.exception
        self.assertEqual((error.code, error.exit_code, error.data), ("budget", 7, {"runs": [1]}))

    def test_progress_is_shown_where_stderr_is_no_file_unless_quiet(self) -> None:
        self.use_program(
            "print('half done', file=sys.stderr); print(json.dumps({'ok': True, 'data': {}}))"
        )
        for quiet, wanted in ((False, "half done\n"), (True, "")):
            with contextlib.redirect_stderr(io.StringIO()) as heard:
                hone.tune("gpt2", quiet=quiet)
            self.assertEqual(heard.getvalue(), wanted)

    def test_much_on_both_pipes_does_not_stop_it(self) -> None:
        self.use_program(
            "sys.stderr.write('x' * (1 << 20) + '\\n')\n"
            "print(json.dumps({'ok': True, 'data': {'text': 'y' * (1 << 20)}}))"
        )
        self.assertEqual(len(hone.tune("gpt2", quiet=True)["text"]), 1 << 20)

    def test_ctrl_c_waits_for_the_program_to_save(self) -> None:
        self.use_program(
            "def save(*_):\n"
            "    time.sleep(0.2); open('saved', 'w').close(); sys.exit(130)\n"
            "signal.signal(signal.SIGINT, save)\n"
            "open('ready', 'w').close()\n"
            "time.sleep(60)"
        )
        caller = subprocess.Popen(
            [sys.executable, "-B", "-c",
             "import hone\n"
             "try:\n    hone.tune('gpt2', quiet=True)\n"
             "except KeyboardInterrupt:\n    print('interrupted')"],
            env={**os.environ, "PYTHONPATH": str(fakes.TREE / "python")}, stdout=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        while not (self.folder / "ready").exists():
            self.assertIsNone(caller.poll())
            time.sleep(0.01)
        os.killpg(caller.pid, signal.SIGINT)  # as a terminal does
        self.assertEqual(caller.communicate(timeout=30)[0].strip(), "interrupted")
        self.assertTrue((self.folder / "saved").exists())


class Finding(Case):
    def test_a_name_that_is_wrong(self) -> None:
        self.use(HONE_PROGRAM=str(self.folder / "hone"))
        with self.assertRaisesRegex(hone.MissingLibraryError, "^HONE_PROGRAM names .*, which is no program$"):
            hone.tune("gpt2")

    def test_the_path_is_searched_for_a_program_that_is_no_script(self) -> None:
        real = os.environ["HONE_PROGRAM"]
        self.use(HONE_PROGRAM="", PATH=str(self.folder))
        for module in (program, library):
            elsewhere = mock.patch.object(module, "_PACKAGE", self.folder)
            elsewhere.start()
            self.addCleanup(elsewhere.stop)
        script = self.folder / "hone"
        script.write_text("#!/bin/sh\n")
        script.chmod(0o755)
        with self.assertRaisesRegex(hone.MissingLibraryError, "^the hone program was not found"):
            program.find_program()
        script.unlink()
        shutil.copy(real, script)
        self.assertEqual(program.find_program(), str(script))

    def test_the_console_script_becomes_the_program(self) -> None:
        code = "import sys; sys.argv[0] = 'hone'; from hone.program import main; main()"
        command = [sys.executable, "-B", "-c", code, "--version"]
        environment = {**os.environ, "PYTHONPATH": str(fakes.TREE / "python")}
        ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
        self.assertEqual((ended.returncode, hone.__version__ in ended.stdout), (0, True))
        environment["HONE_PROGRAM"] = "/nonexistent"
        ended = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True)
        self.assertEqual((ended.returncode, ended.stderr.split(" names")[0]), (1, "hone: HONE_PROGRAM"))


def one_family_each() -> list:
    """The kinds of descriptions whose fields are one family's, but for those of linear layers, whose formats,
    activations and the like are not in their names or go with one another."""
    kinds = (getattr(hone, name) for name in descriptions.__all__)
    linear = (hone.Linear, hone.QuantizedLinear, hone.QuantizedExpertLinear)
    return [kind for kind in kinds if kind.FAMILY and kind not in linear]


def variants(kind: type) -> list:
    """Descriptions of a kind with each value of each field that is no size, others as they are by default."""
    fields = dataclasses.fields(kind)
    needed = {field.name: 32 for field in fields if field.default is dataclasses.MISSING}
    flags = {field.name: (False, True) for field in fields if field.type == "bool"}
    values = {**flags, **kind.WORDS}
    goes_with = {"swiglu_oai": {"gated": True}}
    return [kind(**needed, **{name: value}, **goes_with.get(value, {})) for name in values for value in values[name]]


def of_kernels(problem: str, description: Any) -> tuple:
    """The fields of a problem for which kernels are chosen, and those of what the description would run."""
    fields = dict(word.split("=") for word in problem.split()[1:])
    sizes = tuple(int(fields.get(name, 1)) for name in description.CALL_SIZES)
    explained = hone.explain(description, sizes if len(sizes) > 1 else 1)
    found = [half["problem"] for half in explained.get("parts", [explained])]
    return without_sizes(problem), list(map(without_sizes, found))


def without_sizes(problem: str) -> str:
    return re.sub(r" (rows|tokens=1 q_tokens|tokens|batch|q_len|kv_len)=\d+", "", problem)


class Models(Case):
    def test_the_operators_of_a_model(self) -> None:
        llama = hone.prepare("llama-3-8b", max_rows=16)
        linears = [f"linear_{size}" for size in ("4096_6144", "4096_4096", "4096_128256")]
        attention = [f"attention_decode{more}" for more in ("", "_lengths_paged")]
        appends = ["rope_kv_append", "rope_kv_append_paged"]
        names = {"rmsnorm", "rmsnorm_residual", "fused_ffn", *linears, *attention, *appends}
        self.assertLessEqual(names, set(llama))
        self.assertEqual(llama["rmsnorm"].description, hone.RmsNorm(4096, max_rows=16))
        with_residual = hone.RmsNorm(4096, max_rows=16, residual=True)
        self.assertEqual(llama["rmsnorm_residual"].description, with_residual)
        self.assertEqual(llama["fused_ffn"].description, hone.FusedFfn(4096, 14336, max_tokens=16))
        self.assertEqual(llama[llama.roles["output projection"]].description, hone.Linear(4096, 4096, 16))
        self.assertEqual(llama.roles["feed-forward"], "fused_ffn")
        self.assertEqual(llama.without_family, [])
        self.assertRegex(str(llama), "^llama-3-8b: rmsnorm, rmsnorm_residual, [^;]*$")

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one core")
    def test_the_images_of_a_model_are_compiled_side_by_side(self) -> None:
        config, log = self.folder / "config.json", self.folder / "compiles"
        config.write_text(json.dumps({
            "hidden_size": 1280, "intermediate_size": 2560, "num_attention_heads": 10, "num_hidden_layers": 2,
            "vocab_size": 100, "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16",
        }))  # fmt: skip
        # None is done before a second one has begun.
        self.use(HONE_FAKE_SCRIPT=f"compile:log={log}:meet=2")
        model = hone.prepare(str(config), max_rows=1)
        self.assertEqual(model["fused_ffn"].description, hone.FusedFfn(1280, 2560, max_tokens=1))
        compiles = [line.split(" ", 1) for line in log.read_text().splitlines()]
        processes = {process for process, _ in compiles}
        self.assertIn(str(os.getpid()), processes)
        self.assertGreater(len(processes), 1)
        images = [image for _, image in compiles]
        self.assertEqual(len(images), len(set(images)))

    def test_a_cap_of_logits_is_the_samplers(self) -> None:
        gemma = hone.prepare("gemma-2-9b", max_rows=1)
        self.assertEqual(gemma[gemma.roles["sampling"]].description, hone.Sample(256000, 1, softcap=30))
        self.assertEqual(hone.prepare("gpt2", max_rows=1)["sample"].description, hone.Sample(50257, 1, "fp16"))

    def test_the_operators_of_a_quantized_model(self) -> None:
        llama = hone.prepare("llama-3-8b", max_rows=2, format="w4a16", group=64, zeros=True)
        self.assertEqual([name for name in llama if "linear" in name or "ffn" in name], [
            "quantized_linear_4096_6144", "quantized_linear_4096_4096", "quantized_ffn", "linear"
        ])  # fmt: skip
        weights = {"group": 64, "zeros": True, "max_tokens": 2}
        self.assertEqual(
            llama[llama.roles["query, key, value projection"]].description,
            hone.QuantizedLinear(4096, 6144, "w4a16", **weights),
        )
        self.assertEqual(
            llama[llama.roles["feed-forward"]].description,
            hone.QuantizedFfn(4096, 14336, "w4a16", **weights),
        )
        head = llama[llama.roles["language head"]].description
        self.assertEqual(head, hone.Linear(4096, 128256, max_tokens=2))

    def test_a_config_says_how_it_is_quantized(self) -> None:
        config = self.folder / "config.json"
        config.write_text(json.dumps({
            "hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4, "num_hidden_layers": 2,
            "vocab_size": 100, "rms_norm_eps": 1e-5, "torch_dtype": "float16",
            "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128},
        }))  # fmt: skip
        wanted = hone.QuantizedFfn(
            256, 512, "w4a16", group=128, zeros=True, max_tokens=1, dtype="fp16"
        )
        self.assertEqual(hone.prepare(str(config), max_rows=1)["quantized_ffn"].description, wanted)
        dense = hone.prepare(str(config), max_rows=1, format="dense")
        self.assertEqual(dense["fused_ffn"].description, hone.FusedFfn(256, 512, max_tokens=1, dtype="fp16"))
        with self.assertRaisesRegex(hone.ProgramError, "--group goes with --format"):
            hone.prepare(str(config), max_rows=1, group=32)

    def test_attention_of_a_model(self) -> None:
        gpt2 = hone.prepare("gpt2", max_rows=32)
        prompt = hone.Attention(12, 12, 64, max_q_len=32, dtype="fp16")
        self.assertEqual(gpt2[gpt2.roles["attention over a prompt"]].description, prompt)
        paged = hone.Attention(12, 12, 64, max_q_len=32, dtype="fp16", packed=True, page_size=16)
        self.assertEqual(gpt2[gpt2.roles["attention over a prompt, paged cache"]].description, paged)
        llama = hone.prepare("llama-3-8b", max_rows=16)
        self.assertNotIn("attention over a prompt", llama.roles)
        token = hone.Attention(32, 8, 128, max_batch=16, max_q_len=1, causal=False)
        self.assertEqual(llama[llama.roles["attention over one token"]].description, token)
        pages = hone.Attention(
            32, 8, 128, max_batch=16, max_q_len=1, causal=False, lengths=True, page_size=16
        )
        self.assertEqual(llama[llama.roles["attention over one token, paged cache"]].description, pages)
        append = hone.RopeKvAppend(32, 8, 128, max_tokens=16)
        self.assertEqual(llama[llama.roles["rotary embedding and cache append"]].description, append)

    def test_what_hone_has_no_kernel_for_is_said(self) -> None:
        config = self.folder / "config.json"
        config.write_text(json.dumps({
            "hidden_size": 1024, "intermediate_size": 128, "num_attention_heads": 2, "num_hidden_layers": 2,
            "vocab_size": 100, "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16", "head_dim": 512,
        }))  # fmt: skip
        wide = hone.prepare(str(config), max_rows=1)
        self.assertIn("attention_decode", {missing["family"] for missing in wide.without_family})
        self.assertRegex(str(wide), "; no kernel yet for attention_")

    def test_a_network_without_a_gate_has_its_biases(self) -> None:
        wanted = hone.FusedFfn(
            768, 3072, max_tokens=1, dtype="fp16", activation="gelu_tanh", gated=False, bias=True
        )
        self.assertEqual(hone.prepare("gpt2", max_rows=1)["fused_ffn"].description, wanted)

    def test_another_dtype_and_an_own_config(self) -> None:
        config = self.folder / "config.json"
        config.write_text(json.dumps({
            "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "num_hidden_layers": 2,
            "vocab_size": 100, "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16",
        }))  # fmt: skip
        operators = hone.prepare(str(config), dtype="float16", tp=2, max_rows=1)
        self.assertEqual(operators["rmsnorm"].description, hone.RmsNorm(64, max_rows=1, dtype="fp16"))

    def test_a_model_that_is_not_known(self) -> None:
        with self.assertRaisesRegex(hone.ProgramError, "no-such-model"):
            hone.prepare("no-such-model")

    def test_every_model_by_name_is_prepared_for_the_problems_that_the_program_lists(self) -> None:
        """libhone names those of what is prepared."""
        for file in (fakes.TREE / "configs" / "models").glob("*.yaml"):
            operators = hone.prepare(file.stem, max_rows=32)
            listed = hone.tune(file.stem, tokens=[1, 17], dry_run=True, quiet=True)["operators"]
            roles = set()
            for entry in listed:
                if entry["of_steps"]:
                    continue
                role = re.sub(", (first|second) half$", "", entry["role"])
                roles.add(role)
                with self.subTest(file.stem, role=entry["role"]):
                    description = operators[operators.roles[role]].description
                    self.assertIn(*of_kernels(entry["problem"], description))
            self.assertEqual(set(operators.roles), roles)
            self.assertEqual(set(operators.roles.values()), set(operators))

    def test_descriptions_are_those_of_the_problems(self) -> None:
        for description in (
            hone.RopeKvAppend(4, 2, 64, rotary_dim=32, dtype="fp16", style="interleaved", slots=True),
            hone.RopeKvAppend(4, 2, 64, kv_dtype="fp8", norm=True, page_size=16),
            hone.QuantizedLinear(128, 64, group=32, zeros=True, norm=True),
            hone.QuantizedLinear(128, 64, "w8a8", quantized_x=True, dtype="fp16", activation="relu"),
            hone.Linear(128, 64, dtype="fp32", activation="silu", bias=True, residual=True, norm=True),
            hone.QuantizedExpertLinear(128, 64, 8, 2, "w8a8", dtype="fp16", activation="silu", gated=True, gather=True),
            hone.QuantizedExpertLinear(128, 64, 8, 2, group=32, zeros=True, bias=True, combine=True),
        ):
            problem = hone.explain(description, 1)["problem"]
            self.assertEqual(models.description_of(problem, 8192), description)
        for kind in one_family_each():
            for description in variants(kind):
                with self.subTest(description=description):
                    found = models.description_of(hone.explain(description, 1)["problem"], 8192)
                    most = 512 if kind.ROWS_ARE_SEQUENCES else 8192
                    self.assertEqual(found, dataclasses.replace(description, **{kind.LIMIT: most}))
        for description, sizes in (
            (hone.Attention(4, 2, 64, window=100, softcap=True, lse=True), (1, 64, 64)),
            (hone.Attention(4, 2, 64, dtype="fp32", causal=False, lengths=True), (2, 17, 64)),
            (hone.Attention(4, 2, 64, packed=True), (2, 1, 1)),
            (hone.Attention(4, 2, 64, max_batch=512, max_q_len=8, page_size=16, kv_dtype="fp8"), (1, 5, 64)),
        ):
            problem = hone.explain(description, sizes)["problem"]
            self.assertEqual(models.description_of(problem, 8192), description)
        with self.assertRaisesRegex(TypeError, r"^rows: 3; allowed is \(batch, q_len, kv_len\)"):
            hone.explain(hone.Attention(4, 2, 64), 3)

    def test_names_say_what_differs(self) -> None:
        descriptions = [
            hone.RmsNorm(64), hone.RmsNorm(128), hone.RmsNorm(64, output="int8", residual=True),
            hone.LayerNorm(64, bias=False), hone.Linear(64, 128), hone.Linear(128, 64), hone.FusedFfn(64, 128),
            hone.Linear(64, 128, activation="gelu_tanh", bias=True), hone.Linear(64, 128, residual=True),
            hone.Linear(64, 128, norm=True), hone.Attention(4, 2, 64), hone.Attention(4, 2, 128),
            hone.Attention(4, 2, 64, max_q_len=1, window=100, lengths=True, page_size=16, kv_dtype="fp8"),
            hone.RopeKvAppend(4, 2, 64, norm=True, slots=True),
        ]  # fmt: skip
        self.assertEqual(
            operator_names(descriptions),
            [
                "rmsnorm_64", "rmsnorm_128", "rmsnorm_int8_residual", "layernorm_without_bias",
                "linear_64_128", "linear_128_64", "fused_ffn", "linear_gelu_tanh_bias", "linear_residual",
                "linear_norm", "attention_4_2_64", "attention_4_2_128",
                "attention_decode_window_100_lengths_paged_fp8", "rope_kv_append_norm_slots",
            ],
        )  # fmt: skip

    def test_every_option_is_in_the_name(self) -> None:
        for kind in one_family_each():
            distinct = {description for description in variants(kind) if description.dtype == "bf16"}
            names = dict(zip(distinct, operator_names(list(distinct))))
            self.assertEqual(len(set(names.values())), len(distinct), names)
            for description, name in names.items():
                given = [(field, getattr(description, field.name)) for field in dataclasses.fields(kind)]
                changed = [(field.name, value) for field, value in given
                           if field.default not in (dataclasses.MISSING, value)]
                words = [field if value is True else value or f"without_{field}" for field, value in changed]
                self.assertEqual(name, "_".join([kind.FAMILY, *words]))

    def test_linear_layers_of_problems(self) -> None:
        problem = (
            "linear dtype=fp16 norm=yes activation=gelu_tanh gated=no bias=yes residual=no in=4096 out=14336 "
            "tokens=1"
        )
        self.assertEqual(
            models.description_of(problem, 64),
            hone.Linear(
                4096, 14336, max_tokens=64, dtype="fp16", activation="gelu_tanh", bias=True, norm=True
            ),
        )


if __name__ == "__main__":
    unittest.main()
