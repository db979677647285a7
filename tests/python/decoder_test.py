"""hone.Decoder on the fake driver, whose kernels compute nothing: every token that is drawn is 0. examples/tiny-llama
has its begin token there, which shows as no text; with the tokenizer of tests/decoder/data/llama3 it is "!"."""

from __future__ import annotations

import copy
import gc
import json
import math
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

import fakes
from fakes import arrays

import hone
from hone._native import decoder_library

MODEL = fakes.TREE / "examples" / "tiny-llama"
DATA = fakes.TREE / "tests" / "decoder" / "data"


def small(folder: Path, **options) -> hone.Decoder:
    return hone.Decoder(folder, **{"max_sequences": 4, "max_context": 256, "max_step_tokens": 64, **options})


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="hone-decoder-test-")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = Path(scratch.name)
        cls.with_tokenizer("marks", "llama3/tokenizer.json")
        cls.decoder = small(cls.folder / "marks")
        cls.addClassCleanup(cls.decoder.close)

    def assert_idle(self) -> None:
        """What was cancelled gives its pages back after the step under way."""
        end = time.monotonic() + 20
        while True:
            state = self.decoder.state()
            busy = [name for name in ("running", "waiting", "pages_used") if state[name] != 0]
            if not busy or time.monotonic() > end:
                return self.assertEqual(busy, [], state)
            time.sleep(0.001)

    @classmethod
    def with_tokenizer(cls, name: str, *files: str) -> Path:
        """A folder of the model with another tokenizer."""
        folder = cls.folder / name
        folder.mkdir()
        for file in ("config.json", "model.safetensors"):
            os.symlink(MODEL / file, folder / file)
        for file in files:
            shutil.copy(DATA / file, folder)
        return folder


class Conversations(Case):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        folder = cls.with_tokenizer("talks", "llama3/tokenizer.json")
        config = json.loads((MODEL / "config.json").read_text())
        (folder / "config.json").unlink()
        kept = {name: value for name, value in config.items() if name not in ("bos_token_id", "eos_token_id")}
        (folder / "config.json").write_text(json.dumps(kept))
        template = (
            "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
            "{{ raise_exception('user and assistant alternate') }}{% endif %}{% if message['role'] == 'user' %}"
            "{{ '[INST] ' + message['content'] + ' [/INST]' }}{% else %}{{ message['content'] + eos_token }}{% endif %}{% endfor %}"
        )
        (folder / "tokenizer_config.json").write_text(json.dumps({
            "bos_token": "<|begin_of_text|>", "eos_token": "<|endoftext|>", "chat_template": template,
        }))  # fmt: skip
        cls.talker = small(folder)
        cls.addClassCleanup(cls.talker.close)

    def test_a_conversation_is_rendered_as_the_folder_says(self) -> None:
        said = [{"role": "user", "content": "Hi"}]
        self.assertEqual(self.talker.render_chat(said), "<|begin_of_text|>[INST] Hi [/INST]")
        said += [{"role": "assistant", "content": "Ho" * 3000}, {"role": "user", "content": "?"}]
        self.assertEqual(
            self.talker.render_chat(said),
            f"<|begin_of_text|>[INST] Hi [/INST]{'Ho' * 3000}<|endoftext|>[INST] ? [/INST]",
        )

    def test_a_conversation_may_be_answered_without_thoughts(self) -> None:
        said = [{"role": "user", "content": "Hi"}]
        folder = self.with_tokenizer("thinks", "qwen/tokenizer.json")
        template = (
            "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{% endfor %}"
            "{{ '<|im_start|>assistant\\n' }}"
            "{% if enable_thinking is defined and enable_thinking is false %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}"
        )
        (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template, "eos_token": "<|endoftext|>"}))
        with small(folder) as thinker:
            text = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
            self.assertEqual(thinker.render_chat(said), text)
            self.assertEqual(thinker.render_chat(said, enable_thinking=True), text)
            self.assertEqual(thinker.render_chat(said, enable_thinking=False), text + "<think>\n\n</think>\n\n")
            self.assertEqual(thinker.generate(said, max_tokens=2, enable_thinking=False).end, "length")
        self.assertEqual(self.talker.render_chat(said, enable_thinking=False), self.talker.render_chat(said))

    def test_a_conversation_is_answered(self) -> None:
        said = [{"role": "user", "content": "Hi"}]
        self.assertEqual(self.talker.generate(said, max_tokens=3).ids, [0, 0, 0])
        self.assertEqual("".join(self.talker.stream(said, max_tokens=2)), "!!")
        before = self.talker.state()["new_tokens"]
        both = self.talker.generate_many([said, "Hi"], max_tokens=4)
        self.assertEqual([made.end for made in both], ["length", "length"])
        self.assertEqual(self.talker.state()["new_tokens"] - before, 8)

    def test_what_is_no_conversation_is_refused(self) -> None:
        user = {"role": "user", "content": "Hi"}
        for said, words in (
            ([{"role": "tool", "content": "Hi"}], "system, user, assistant"),
            ([user, user], "the model's chat template refuses the conversation: user and assistant alternate"),
            ([], "1 to 65536"),
        ):
            with self.assertRaisesRegex(hone.BadArgumentError, words):
                self.talker.render_chat(said)
        for bad in ({"role": "user"}, {**user, "name": "x"}, "Hi", {"role": "user", "content": 3}):
            with self.assertRaises(TypeError):
                self.talker.render_chat([user, bad])
        with self.assertRaisesRegex(ValueError, "the character 0"):
            self.talker.render_chat([{"role": "user", "content": "a\0b"}])
        with self.assertRaisesRegex(hone.BadArgumentError, "chat template"):
            self.decoder.generate([user])
        with self.assertRaisesRegex(hone.BadArgumentError, "HONE_DECODER_CHAT without"):
            self.talker.generate([user], plain_prompt=True)


class Generating(Case):
    def test_a_text_its_tokens_and_its_end(self) -> None:
        made = self.decoder.generate("Once upon a time", max_tokens=5)
        self.assertEqual(made, hone.Completion("!!!!!", [0] * 5, "length"))
        self.assertEqual(str(made), "!!!!!")

    def test_numbers_may_be_those_of_numpy(self) -> None:
        two, seed = arrays.Integer(2), arrays.Integer(7)
        self.assertEqual(len(self.decoder.generate([two, two], max_tokens=two, top_k=two, seed=seed).ids), 2)

    def test_ids_are_taken_as_they_are(self) -> None:
        self.assertEqual(self.decoder.generate([5, 6, 7], max_tokens=2).ids, [0, 0])
        self.assertEqual(len(self.decoder.generate((5, 6, 7), max_tokens=None).ids), 256 - 3)

    def test_several_prompts_are_computed_together(self) -> None:
        made = self.decoder.generate_many(["a", [1, 2], "b"] * 3, max_tokens=7, seed=3, temperature=0.5)
        self.assertEqual([(one.text, one.end) for one in made], [("!" * 7, "length")] * 9)
        self.assertEqual(self.decoder.generate_many([]), [])

    def test_a_text_ends_before_its_stop(self) -> None:
        made = self.decoder.generate("a", max_tokens=100, stop="!!!")
        self.assertEqual((made.text, made.end), ("", "stop"))
        self.assertEqual(self.decoder.generate("a", max_tokens=4, stop=["?", "."]).text, "!!!!")

    def test_a_text_ends_by_a_token(self) -> None:
        made = self.decoder.generate("a", max_tokens=100, end_ids=[7, 0])
        self.assertEqual((made.text, made.ids, made.end), ("", [0], "end_token"))
        self.assertEqual(self.decoder.generate("a", max_tokens=3, end_ids=(7,)).end, "length")

    def test_log_probabilities_of_tokens_and_of_the_prompt(self) -> None:
        even, ids = -math.log(1024), [5, 6, 7, 8, 9]  # the fake GPU's logits are all alike
        for likeliest in (0, 3):
            likely = [(token, even) for token in range(likeliest)]
            made = self.decoder.generate(ids, max_tokens=4, likeliest=likeliest, score_prompt=True)
            for found, tokens in ((made.log_probabilities, 4), (made.prompt_log_probabilities, 4)):
                assert found is not None
                self.assertEqual(len(found.of_tokens), tokens)
                self.assertEqual(len(found.likeliest), tokens)
                for one, others in zip(found.of_tokens, found.likeliest):
                    self.assertAlmostEqual(one, even)
                    self.assertEqual([token for token, _ in others], [token for token, _ in likely])
                    for _, other in others:
                        self.assertAlmostEqual(other, even)
        stream = self.decoder.stream(ids, max_tokens=50, likeliest=1)
        list(stream)
        self.assertEqual((len(stream.log_probabilities.of_tokens), stream.prompt_log_probabilities), (50, None))
        both = self.decoder.generate_many([ids, [1]], max_tokens=2, likeliest=0, score_prompt=True)
        self.assertEqual([len(made.prompt_log_probabilities.of_tokens) for made in both], [4, 0])
        plain = self.decoder.generate(ids, max_tokens=2)
        self.assertEqual((plain.log_probabilities, plain.prompt_log_probabilities), (None, None))
        stopped = self.decoder.generate("a", max_tokens=100, stop="!!!", likeliest=0)
        self.assertEqual(len(stopped.log_probabilities.of_tokens), len(stopped.ids))

    def test_log_probabilities_that_are_none_are_refused(self) -> None:
        for asked, words in (
            ({"likeliest": 21}, "likeliest is 21; allowed: 0 to 20"),
            ({"likeliest": -2}, "likeliest is -2"),
            ({"score_prompt": True}, "HONE_DECODER_SCORE_PROMPT with HONE_DECODER_LOG_PROBABILITIES"),
            ({"end_ids": range(65)}, "end_id_count is 65; allowed: 0 to 64"),
        ):
            with self.assertRaisesRegex(hone.BadArgumentError, words):
                self.decoder.generate("a", **asked)
        for asked in ({"likeliest": 1.5}, {"score_prompt": 1}, {"end_ids": "5"}, {"end_ids": ["5"]}):
            with self.assertRaises(TypeError):
                self.decoder.generate("a", **asked)

    def test_pieces_come_as_they_grow(self) -> None:
        stream = self.decoder.stream("a", max_tokens=200)
        pieces = list(stream)
        self.assertEqual("".join(pieces), "!" * 200)
        self.assertTrue(all(pieces))
        self.assertEqual((stream.text, stream.ids, stream.end), ("!" * 200, [0] * 200, "length"))
        self.assertEqual(list(stream), [])

    def test_a_stream_that_is_left_is_computed_no_further(self) -> None:
        for leave in (hone.TextStream.close, lambda stream: stream.__exit__()):
            stream = self.decoder.stream("a", max_tokens=None)
            leave(stream)
            self.assertIn(stream.end, ("cancelled", "length"))
            self.assertEqual(list(stream), [])
        stream = self.decoder.stream("a", max_tokens=None)
        del stream
        gc.collect()
        self.assert_idle()

    def test_threads_share_a_decoder(self) -> None:
        made: list = []
        threads = [
            threading.Thread(target=lambda: made.append(self.decoder.generate("a", max_tokens=50).text))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(made, ["!" * 50] * 8)

    def test_tokens_and_back(self) -> None:
        with small(MODEL) as tiny:
            text = "It is a truth – universally"
            ids = tiny.encode(text)
            self.assertEqual(ids[0], 0)
            self.assertEqual(tiny.encode(text, special=False), ids[1:])
            self.assertEqual(tiny.decode(ids), text)
            self.assertEqual(tiny.encode("<|end_of_text|>", special=False), [1])
            self.assertGreater(len(tiny.encode("<|end_of_text|>", special=False, plain=True)), 1)
            self.assertEqual(tiny.decode([]), "")
            long = "a b " * 5000
            self.assertEqual(tiny.decode(tiny.encode(long)), long)
            self.assertEqual(tiny.state()["vocabulary"], 1024)

    def test_keys_and_values_may_be_codes(self) -> None:
        with small(self.folder / "marks", kv_cache="fp8") as decoder:
            self.assertEqual(decoder.generate([1, 2, 3], max_tokens=5, ignore_end=True).ids, [0] * 5)

    def test_codes_of_weights_are_made(self) -> None:
        script = "launch:match=kernel=quantize_weights_clear:write=4:value=0x7fffffff7fffffff"
        code = (
            "import hone\n"
            f"with hone.Decoder({str(MODEL)!r}, format='w8a16', max_context=64) as decoder:\n"
            "    print(len(decoder.generate('a', max_tokens=3).ids))\n"
        )
        environment = {**os.environ, "HONE_FAKE_SCRIPT": f"{script};{script}:offset=8",
                       "PYTHONPATH": str(fakes.TREE / "python")}
        ended = subprocess.run([sys.executable, "-B", "-c", code], env=environment, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
        self.assertEqual(ended.stdout, "3\n")

    def test_a_module_of_the_library_is_found_beside_it(self) -> None:
        folder = self.with_tokenizer("pieces", "sentencepiece_bpe/tokenizer.model")
        with small(folder) as decoder:
            self.assertGreater(len(decoder.encode("the")), 0)


class Example(Case):
    def test_it_runs_to_its_end(self) -> None:
        ended = subprocess.run(
            [sys.executable, "-B", str(MODEL / "generate.py")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, env={**os.environ, "PYTHONPATH": str(fakes.TREE / "python")}, timeout=60,
        )  # fmt: skip
        self.assertEqual(ended.returncode, 0, ended.stdout)
        self.assertIn("64 tokens, ended by length", ended.stdout)


class Closing(Case):
    def test_a_closed_decoder_says_so(self) -> None:
        decoder = small(MODEL)
        self.assertFalse(decoder.closed)
        with decoder:
            pass
        self.assertTrue(decoder.closed)
        decoder.close()
        for call in (lambda: decoder.generate("a"), lambda: decoder.encode("a"), decoder.state):
            with self.assertRaisesRegex(hone.HoneError, "^the decoder is closed$"):
                call()

    def test_who_waits_for_a_text_is_told(self) -> None:
        decoder = small(self.folder / "marks", max_context=1024)
        stream = decoder.stream("a", max_tokens=None)
        said: list = []

        def wait() -> None:
            try:
                for _ in stream:
                    time.sleep(0.001)
            except hone.HoneError as error:
                said.append(str(error))

        waiting = threading.Thread(target=wait)
        waiting.start()
        decoder.close()
        waiting.join(20)
        self.assertFalse(waiting.is_alive())
        if stream.end == "cancelled":  # else it was faster
            self.assertEqual(said, ["the decoder was closed while this text was in the making"])

    def test_what_is_left_open_does_not_disturb_the_end_of_the_process(self) -> None:
        code = (
            "import hone\n"
            f"kept = hone.Decoder({str(MODEL)!r})\n"
            "stream = kept.stream('a', max_tokens=None)\n"
            "print('end')\n"
        )
        ended = subprocess.run(
            [sys.executable, "-B", "-c", code], env={**os.environ, "PYTHONPATH": str(fakes.TREE / "python")},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
        )  # fmt: skip
        self.assertEqual((ended.returncode, ended.stdout), (0, "end\n"))

    def test_threads_that_wait_for_texts_do_not_disturb_the_end_of_the_process(self) -> None:
        code = (
            "import hone, threading, time\n"
            f"kept = hone.Decoder({str(MODEL)!r})\n"
            "def ask():\n"
            "    try:\n"
            "        while True:\n"
            "            kept.generate('a', max_tokens=None, ignore_end=True)\n"
            "    except hone.HoneError:\n"
            "        pass\n"
            "for _ in range(8):\n"
            "    threading.Thread(target=ask, daemon=True).start()\n"
            "time.sleep(0.2)\n"
            "print('end')\n"
        )
        for _ in range(5):
            ended = subprocess.run(
                [sys.executable, "-B", "-c", code], env={**os.environ, "PYTHONPATH": str(fakes.TREE / "python")},
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
            )  # fmt: skip
            self.assertEqual((ended.returncode, ended.stdout), (0, "end\n"))

    def test_what_degrades_later_is_told_at_the_callers_line(self) -> None:
        captured = self.folder / "later"
        captured.mkdir()
        with mock.patch.dict(os.environ, {"HONE_CAPTURE": str(captured / "calls")}):
            decoder = small(self.folder / "marks")
        decoder.generate("a", max_tokens=2)
        shutil.rmtree(captured)
        with self.assertWarnsRegex(hone.HoneWarning, "captured calls wait to be written: .*/later/calls") as caught:
            decoder.close()
        self.assertEqual(caught.filename, __file__)

    def test_a_text_that_outlives_its_decoder_still_has_whom_to_warn(self) -> None:
        """The last of them writes captured calls. A callback that is gone is called by chance, or another one in its
        place."""
        code = textwrap.dedent(f"""
            import gc, os, shutil, warnings, hone
            warnings.showwarning = lambda message, *_: print(str(message).partition(":")[0])
            from hone._native.runtime_structs import WARNING_CALLBACK
            decoder = hone.Decoder({str(self.folder / "marks")!r}, max_sequences=4, max_context=256, max_step_tokens=64)
            text = decoder.stream("a", max_tokens=100)
            shutil.rmtree(os.path.dirname(os.environ["HONE_CAPTURE"]))
            del decoder
            gc.collect()
            others = [WARNING_CALLBACK(lambda user, text: print("the wrong one")) for _ in range(100)]
            text.close()
            print("end")
        """)
        captured = self.folder / "captured"
        captured.mkdir()
        ended = subprocess.run(
            [sys.executable, "-B", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
            env={**os.environ, "PYTHONPATH": str(fakes.TREE / "python"), "HONE_CAPTURE": str(captured / "calls")},
        )  # fmt: skip
        self.assertEqual((ended.returncode, ended.stdout), (0, "captured calls wait to be written\nend\n"))

    def test_one_whose_making_ends_in_an_exception_leaves_nothing(self) -> None:
        """Ctrl-C while a model is loaded, and warnings that are errors, come when the library is done."""
        create = self.decoder._library.hone_decoder_create
        destroyed = []

        def interrupted(*arguments) -> int:
            create(*arguments)
            raise KeyboardInterrupt

        destroy = self.decoder._library.hone_decoder_destroy
        spy = lambda handle: destroyed.append(handle.value) or destroy(handle)  # noqa: E731
        library = self.decoder._library
        with mock.patch.object(library, "hone_decoder_destroy", spy), mock.patch.object(
            library, "hone_decoder_create", interrupted
        ):
            with self.assertRaises(KeyboardInterrupt) as caught:
                small(MODEL)
            self.assertEqual([handle is not None for handle in destroyed], [True])
            del caught

    def test_there_are_no_copies(self) -> None:
        stream = self.decoder.stream("a", max_tokens=2)
        for one in (self.decoder, stream):
            for copied in (copy.copy, copy.deepcopy, pickle.dumps):
                with self.subTest(one=one, how=copied), self.assertRaisesRegex(TypeError, "neither copied nor pickled"):
                    copied(one)
        stream.close()
        self.assert_idle()

    def test_a_child_is_refused(self) -> None:
        ours, theirs = os.pipe()
        if os.fork() == 0:
            try:
                self.decoder.generate("a")
            except hone.ForkedError:
                os.write(theirs, b"refused")
            os._exit(0)
        os.close(theirs)
        with os.fdopen(ours) as pipe:
            self.assertEqual(pipe.read(), "refused")
        os.wait()


    def test_a_child_of_a_busy_process_is_refused_and_ends(self) -> None:
        """Its parent's threads hold locks that nobody gives back in the child."""
        code = textwrap.dedent(f"""
            import os, signal, sys, threading, hone
            decoder = hone.Decoder({str(self.folder / "marks")!r}, max_sequences=4, max_context=256, max_step_tokens=64)
            def work():
                while True:
                    decoder.generate("a", max_tokens=200)
            for _ in range(4):
                threading.Thread(target=work, daemon=True).start()
            ends = []
            for number in range(12):
                child = os.fork()
                if child == 0:
                    signal.alarm(15)
                    if number % 3 == 0:
                        sys.exit(5)  # which destroys all decoders and texts
                    try:
                        decoder.close() if number % 3 == 1 else decoder.generate("a")
                        os._exit(5 if number % 3 == 1 else 6)
                    except hone.ForkedError:
                        os._exit(5)
                ends.append(os.waitpid(child, 0)[1])
            print([os.waitstatus_to_exitcode(end) for end in ends])
            sys.stdout.flush()
            os._exit(0)
        """)
        ended = subprocess.run(
            [sys.executable, "-B", "-c", code], env={**os.environ, "PYTHONPATH": str(fakes.TREE / "python")},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240,
        )  # fmt: skip
        self.assertEqual((ended.returncode, ended.stdout), (0, f"{[5] * 12}\n"))


class Refusing(Case):
    def test_options_by_name_and_value(self) -> None:
        for options, kind, words in (
            ({"format": "w5"}, hone.BadArgumentError, "format is w5; allowed: w4a16, w8a16, w8a8, fp8"),
            ({"group": 64}, hone.BadArgumentError, "group is 64; allowed: -1 without a format"),
            ({"kv_cache": "int4"}, hone.BadArgumentError, "kv_cache is int4; allowed: same, fp8"),
            ({"max_sequences": 0}, hone.BadArgumentError, "sequences is 0; allowed: 1 to 1024"),
            ({"max_context": 2000}, hone.BadArgumentError, "context is 2000; allowed: 1 to 1024"),
            ({"memory_share": 2}, hone.BadArgumentError, "memory_share is 2; allowed: above 0, to 1"),
            ({"max_sequences": 1 << 40}, ValueError, "max_sequences: 1099511627776; allowed are numbers of 32 bits"),
            ({"max_context": 1.5}, TypeError, "max_context: 1.5; allowed is an int"),
            ({"zeros": "no"}, TypeError, "^zeros: 'no'; allowed is a bool"),
            ({"lm_head": None}, TypeError, "^lm_head: None; allowed is a bool"),
            ({"device": 63}, hone.NoGpuError, "63"),
            ({"device": "cpu"}, ValueError, "device: 'cpu'"),
        ):
            with self.subTest(options), self.assertRaisesRegex(kind, words):
                small(MODEL, **options)
        for folder in ("/nowhere", b"/nowhere", Path("/nowhere")):
            with self.assertRaisesRegex(hone.BadArgumentError, "/nowhere"):
                hone.Decoder(folder)
        with self.assertRaisesRegex(ValueError, "folder: .* has the character 0"):
            hone.Decoder("a\0b")
        with self.assertRaisesRegex(TypeError, "^folder: None; allowed is the path of a folder"):
            hone.Decoder(None)

    def test_long_values_are_not_repeated_whole(self) -> None:
        long = "x" * 1_000_000
        for wrong in (
            lambda: small(MODEL, format=long),
            lambda: hone.Decoder("/nowhere/" + long),
            lambda: self.decoder.generate("a", max_tokens=long),
            lambda: self.decoder.generate_many(long),
        ):
            with self.assertRaisesRegex((hone.BadArgumentError, TypeError), "xxx") as raised:
                wrong()
            self.assertLess(len(str(raised.exception)), 1000)

    def test_requests_by_name_and_value(self) -> None:
        for arguments, kind, words in (
            ({"temperature": -1}, hone.BadArgumentError, "temperature is -1; allowed: 0 to 100"),
            ({"temperature": float("nan")}, hone.BadArgumentError, "temperature is nan"),
            ({"temperature": "hot"}, TypeError, "^temperature: 'hot'; allowed is a number"),
            ({"top_p": []}, TypeError, r"^top_p: \[\]; allowed is a number"),
            ({"min_p": 10**400}, ValueError, "^min_p: 10*\\.\\.\\. \\(401 characters\\); allowed are numbers that fit"),
            ({"top_p": 0}, hone.BadArgumentError, "top_p is 0; allowed: above 0, to 1"),
            ({"top_k": 1 << 31}, ValueError, "top_k: 2147483648; allowed are numbers of 32 bits"),
            ({"max_tokens": 0}, ValueError, "max_tokens: 0; allowed are numbers from 1, or None"),
            ({"max_tokens": 10_000}, hone.BadArgumentError, "up to the context, 256"),
            ({"stop": ""}, hone.BadArgumentError, r"the length of stops\[0\] is 0; allowed: 1 to 4096"),
            ({"stop": "a\0b"}, ValueError, "stop: .* has the character 0"),
            ({"stop": [3]}, TypeError, "stop: 3; allowed is a str"),
            ({"stop": 3}, TypeError, "^stop: a int; allowed is a list of texts"),
            ({"seed": 1 << 70}, ValueError, "seed: "),
            ({"seed": range(2)}, TypeError, "^seed: .* allowed is an int"),
            ({"ignore_end": 1}, TypeError, "^ignore_end: 1; allowed is a bool"),
            ({"plain_prompt": "no"}, TypeError, "^plain_prompt: 'no'; allowed is a bool"),  # was yes
            ({"enable_thinking": 0}, TypeError, "^enable_thinking: 0; allowed is a bool"),
        ):
            with self.subTest(arguments), self.assertRaisesRegex(kind, words):
                self.decoder.generate("a", **arguments)
        for prompt, kind, words in (
            ([], hone.BadArgumentError, "the prompt's number of tokens is 0"),
            ([1, 1024], hone.BadArgumentError, "the prompt has the token 1024; the model knows 0 to 1023"),
            ([-1], hone.BadArgumentError, "the token -1"),
            ([1.5], TypeError, r"^prompt\[0\]: 1.5; allowed is an int, the id of a token"),
            ([5, True], TypeError, r"^prompt\[1\]: True; allowed is an int"),
            (b"a", TypeError, "prompt: b'a'"),
            (7, TypeError, "prompt: a int"),
            ("\ud800", ValueError, "surrogate"),
        ):
            with self.subTest(prompt), self.assertRaisesRegex(kind, words):
                self.decoder.generate(prompt)
        with self.decoder.stream("a", max_tokens=1) as stream:
            for timeout, kind in ((None, TypeError), (0.5, TypeError), (1 << 64, ValueError)):  # the last was 0
                with self.assertRaisesRegex(kind, "^timeout_ms: "):
                    stream.next_piece(timeout)
        with self.assertRaisesRegex(TypeError, "is one text; allowed is a list of prompts"):
            self.decoder.generate_many("ab")
        with self.assertRaisesRegex(TypeError, "^prompts: a int; allowed is a list of prompts"):
            self.decoder.generate_many(7)
        with self.assertRaisesRegex(TypeError, "^messages: a int; allowed is a list of messages"):
            self.decoder.render_chat(7)
        self.assert_idle()

    def test_a_prompt_of_many_that_is_wrong_stops_the_others(self) -> None:
        with self.assertRaises(hone.BadArgumentError):
            self.decoder.generate_many(["a", [5000]], max_tokens=None)
        self.assert_idle()

    def test_without_the_library_it_says_what_is_missing(self) -> None:
        for variables, words in (
            ({"HONE_DECODER_LIBRARY": "/nowhere.so"}, "HONE_DECODER_LIBRARY names /nowhere.so, which is no file"),
            ({"HONE_LIBRARY": "/nowhere/libhone.so.0"}, "/nowhere/libhone_decoder.so.0"),
            ({"HONE_DECODER_LIBRARY": os.environ["HONE_CUDA_LIBRARY"]}, "is no libhone_decoder"),
        ):
            with mock.patch.dict(os.environ, variables), self.assertRaisesRegex(hone.MissingLibraryError, words):
                decoder_library._open()


if __name__ == "__main__":
    unittest.main()
