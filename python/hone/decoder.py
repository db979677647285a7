"""A model of a Hugging Face folder, run on this machine's GPU: text, or tokens, as they are drawn.

    with hone.Decoder("models/llama-3-8b") as decoder:
        print(decoder.generate("Once upon a time", max_tokens=64).text)
        for piece in decoder.stream("Once upon a time"):
            print(piece, end="", flush=True)

Needs no PyTorch. A decoder may be used by many threads; what they ask for at the same time is computed together.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import sys
import threading
import warnings
import weakref
from collections import deque
from ctypes import byref, c_char_p, c_int32, c_size_t, c_void_p
from dataclasses import dataclass
from typing import (
    Any, Callable, Deque, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union, cast,
)  # fmt: skip

from ._native import decoder_structs
from ._native.decoder_library import check, decoder_library
from ._native.integers import integer
from ._native.runtime_structs import WARNING_CALLBACK
from .errors import HoneError, HoneWarning
from .runtime import device_ordinal

__all__ = ["Completion", "Decoder", "LogProbabilities", "TextStream"]

Message = Mapping[str, str]
Prompt = Union[str, Sequence[int], Sequence[Message]]

# How long a call of the library waits at a time: Python looks for Ctrl-C in between.
_SLICE_MS = 100

# Files whose lines no warning is of: a finalizer is called by weakref's.
_OURS = (__file__, weakref.__file__)

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class LogProbabilities:
    """Natural logarithms of what the model gave tokens, before temperature and filters: in `of_tokens` one each, in
    `likeliest` the likeliest in each one's place, (id, logarithm) in their order. NaN, and none of the likeliest, where
    its logits were not all numbers."""

    of_tokens: List[float]
    likeliest: List[List[Tuple[int, float]]]


@dataclass(frozen=True)
class Completion:
    """What followed a prompt: its text and its tokens, and why it ended: "end_token" (the model's, or one of
    `end_ids`), "length" (max_tokens, or the context is full), or "stop" (one of `stop` was found). `ids` has the token
    that ended it. Where they were asked for, `log_probabilities` are those of `ids`, and `prompt_log_probabilities`
    those of the prompt's tokens but the first."""

    text: str
    ids: List[int]
    end: str
    log_probabilities: Optional[LogProbabilities] = None
    prompt_log_probabilities: Optional[LogProbabilities] = None

    def __str__(self) -> str:
        return self.text


class _OneOfAKind:
    """What holds a handle of the library: a copy would be left with one that is destroyed."""

    def __reduce_ex__(self, _protocol: Any) -> Any:  # which copy.copy() asks, too
        raise TypeError(f"a {type(self).__name__} is neither copied nor pickled: it holds a part of the GPU")


class _Handle:
    """A handle of the library, apart from the object that has it: at the end of the process it is destroyed while other
    threads may be at work with it. Who holds `using` uses it; who holds `handling` may cancel it meanwhile."""

    def __init__(self, made: c_void_p) -> None:
        self.made = made  # which is to be destroyed
        self.value = made.value  # the same while it may be used
        self.is_cut = False  # a text's: its decoder was closed
        self.renew_locks()
        _handles.add(self)

    def renew_locks(self) -> None:
        self.using = threading.RLock()
        self.handling = threading.RLock()


_handles: weakref.WeakSet[_Handle] = weakref.WeakSet()


def _renew_locks() -> None:
    """A child of fork() has the locks as they were, held by threads that it has not."""
    for held in list(_handles):
        held.renew_locks()


os.register_at_fork(after_in_child=_renew_locks)


class _Warnings:
    """What the library warns of, on a thread of its own: told to `warnings` where Python calls, as it would be lost in a
    callback. Decoder and texts hold it, since the callback may be called until the last of them is destroyed."""

    def __init__(self) -> None:
        self._texts: Deque[str] = deque()
        self.callback = WARNING_CALLBACK(lambda _user, text: self._texts.append(text.decode(errors="replace")))

    def tell(self) -> None:
        """At the line that called this module, or let the last reference go."""
        while self._texts:
            frame, level = sys._getframe(1), 2
            while frame.f_back is not None and frame.f_code.co_filename in _OURS:
                frame, level = frame.f_back, level + 1
            warnings.warn(self._texts.popleft(), HoneWarning, stacklevel=level)


class TextStream(_OneOfAKind, Iterator[str]):
    """A text in the making: iterating waits for its pieces. `ids` and `text` have what was iterated over, as
    `log_probabilities` and `prompt_log_probabilities` where they were asked for; `end` is None until it is known. The
    text grows in the meantime; close() and the end of a `with` block stop it."""

    def __init__(
        self, library: ctypes.CDLL, made: c_void_p, warned: _Warnings, *, likeliest: bool = False, score_prompt: bool = False,
    ) -> None:
        self.text = ""
        self.ids: List[int] = []
        self.end: Optional[str] = None
        self.log_probabilities = LogProbabilities([], []) if likeliest else None
        self.prompt_log_probabilities: Optional[LogProbabilities] = None
        self._score_prompt = score_prompt
        self._library = library
        self._held = _Handle(made)
        self._destroy = weakref.finalize(self, _destroy_text, library, self._held, warned)

    def __iter__(self) -> TextStream:
        return self

    def __next__(self) -> str:
        while self.end is None:
            piece = self.next_piece(_SLICE_MS)
            if piece:
                return piece
        if self._held.is_cut:
            raise HoneError("the decoder was closed while this text was in the making")
        raise StopIteration

    def next_piece(self, timeout_ms: int) -> str:
        """What has come, within so many milliseconds: "" when nothing has, and after the end."""
        with self._held.using:
            if self._held.value is None:
                return ""
            piece = decoder_structs.DecoderPiece(struct_size=ctypes.sizeof(decoder_structs.DecoderPiece))
            wait_ms = _integer("timeout_ms", timeout_ms, 63)
            try:
                check(self._library.hone_decoder_next(self._held.value, wait_ms, byref(piece)))
            except HoneError:
                self._finish("cancelled")
                raise
            text = ctypes.string_at(piece.text, piece.text_bytes).decode()
            if piece.id_count:
                self._read_log_probabilities()
                self.ids += piece.ids[: piece.id_count]
            self.text += text
            if piece.end != decoder_structs.GOES_ON:
                self._finish(decoder_structs.ENDS[piece.end])
            return text

    def _read_log_probabilities(self) -> None:
        """Of the last piece, and with the first of the prompt."""
        if self.log_probabilities is None:
            return
        made = self._log_probabilities(0)
        self.log_probabilities.of_tokens.extend(made.of_tokens)
        self.log_probabilities.likeliest.extend(made.likeliest)
        if self._score_prompt and self.prompt_log_probabilities is None:
            self.prompt_log_probabilities = self._log_probabilities(1)

    def _log_probabilities(self, of_prompt: int) -> LogProbabilities:
        found = decoder_structs.DecoderLogProbabilities(struct_size=ctypes.sizeof(decoder_structs.DecoderLogProbabilities))
        check(self._library.hone_decoder_read_log_probabilities(self._held.value, of_prompt, byref(found)))
        if not found.count:
            return LogProbabilities([], [])
        width, whole = found.likeliest, found.count * found.likeliest
        pairs = list(zip(found.likeliest_ids[:whole], found.of_likeliest[:whole])) if whole else []
        likeliest = [[pair for pair in pairs[i * width : (i + 1) * width] if pair[0] >= 0] for i in range(found.count)]
        return LogProbabilities(found.of_tokens[: found.count], likeliest)

    def close(self) -> None:
        """Stops the text, also while another thread waits for it. What it held on the GPU is free again."""
        with self._held.handling:
            if self._held.value is None:
                return
            self._library.hone_decoder_cancel(self._held.value)
        with self._held.using:
            if self._held.value is not None:
                self._finish("cancelled")

    def _cut(self) -> None:
        """As close(), by the decoder: for who iterates it is no end."""
        self._held.is_cut = self.end is None
        self.close()

    def _finish(self, end: str) -> None:
        with self._held.handling:
            self.end = end
            self._held.value = None
            self._destroy()

    def __enter__(self) -> TextStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Decoder(_OneOfAKind):
    """A model on a GPU, and the thread of the library that computes its texts.

    `folder` has config.json, safetensors and a tokenizer, as `hone generate` takes it. `device` is as for
    :func:`hone.prepare`; `format` ("w4a16", "w8a16", "w8a8", "fp8", with `group`, `zeros` and `lm_head`) makes codes of
    the weights while they are read. Up to `max_sequences` texts are computed together, of up to `max_context` tokens
    each, prompt included (None: as many as the model knows, at most 8192), `max_step_tokens` in a step; `memory_share`
    of the GPU's free memory is for keys and values at most, which are codes of 8 bits with `kv_cache` "fp8" (None: numbers
    of the model's dtype).

    Raises BadArgumentError for what cannot be read, run or does not fit, NoGpuError, CompileError and
    MissingLibraryError. close(), the end of a `with` block, and the last reference give the GPU's memory back.
    """

    def __init__(
        self, folder: Union[str, os.PathLike[str]], *, device: Any = None, format: Optional[str] = None,
        group: Optional[int] = None, zeros: bool = False, lm_head: bool = False, max_sequences: int = 16,
        max_context: Optional[int] = None, max_step_tokens: int = 2048, memory_share: float = 0.9,
        kv_cache: Optional[str] = None,
    ) -> None:
        self._library = decoder_library()
        self._streams: weakref.WeakSet[TextStream] = weakref.WeakSet()
        self._warned = _Warnings()
        options = decoder_structs.DecoderOptions(
            struct_size=ctypes.sizeof(decoder_structs.DecoderOptions),
            device=_integer("device", device_ordinal(device), 31),
            max_sequences=_integer("max_sequences", max_sequences, 31),
            max_context=_integer("max_context", 0 if max_context is None else max_context, 63),
            max_step_tokens=_integer("max_step_tokens", max_step_tokens, 63),
            memory_share=_number("memory_share", memory_share),
            format=None if format is None else _bytes_of("format", format),
            group=_integer("group", -1 if group is None else group, 63),
            zeros=_flag("zeros", zeros),
            lm_head=_flag("lm_head", lm_head),
            on_warning=self._warned.callback,
            kv_cache=None if kv_cache is None else _bytes_of("kv_cache", kv_cache),
        )
        if not isinstance(folder, (str, bytes, os.PathLike)):
            raise TypeError(f"folder: {_shown(folder)}; allowed is the path of a folder")
        path = _bytes_of("folder", os.fsdecode(folder), os.fsencode)
        made = c_void_p()
        try:
            status = self._library.hone_decoder_create(path, byref(options), byref(made))
            self._warned.tell()
            check(status)
        except BaseException:  # Ctrl-C during a long load, or a warning that is an error
            self._library.hone_decoder_destroy(made)
            raise
        self._held = _Handle(made)
        self._destroy = weakref.finalize(self, _destroy_decoder, self._library, self._held, self._warned)

    @property
    def closed(self) -> bool:
        return self._held.value is None

    def generate(
        self, prompt: Prompt, *, max_tokens: Optional[int] = 128, temperature: float = 0.0, top_k: int = 0,
        top_p: float = 1.0, min_p: float = 0.0, seed: Optional[int] = None,
        stop: Union[str, Sequence[str]] = (), ignore_end: bool = False, plain_prompt: bool = False,
        enable_thinking: bool = True, end_ids: Sequence[int] = (), likeliest: Optional[int] = None,
        score_prompt: bool = False,
    ) -> Completion:
        """What follows a prompt: a text; ids, which are taken as they are; or a conversation, a list of messages such as
        `{"role": "user", "content": "..."}`, of which the model gives the next by its folder's chat template.

        At most `max_tokens` (None: until the context is full), and the text ends before the first of `stop`.
        temperature=0 takes the likeliest token each time; above, tokens are drawn from the `top_k` likeliest (0: all),
        of the likeliest with the share `top_p`, those at least `min_p` times as likely as the likeliest. The same
        `seed` draws the same text; None: another one each time. With `ignore_end` the text goes on behind the model's
        end token; with `plain_prompt` a prompt's "<|end_of_text|>" is plain text, as it should be in prompts of others.
        `enable_thinking` is render_chat()'s. `end_ids` are tokens that end the text, too.

        With `likeliest`, from 0 to 20, each token has its log probability, and those of so many of the likeliest; with
        `score_prompt` the prompt's tokens have them, too, all of which are computed for it.
        """
        return self.generate_many(
            [prompt], max_tokens=max_tokens, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p,
            seed=seed, stop=stop, ignore_end=ignore_end, plain_prompt=plain_prompt, enable_thinking=enable_thinking,
            end_ids=end_ids, likeliest=likeliest, score_prompt=score_prompt,
        )[0]  # fmt: skip

    def generate_many(
        self, prompts: Sequence[Prompt], *, max_tokens: Optional[int] = 128, temperature: float = 0.0,
        top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0, seed: Optional[int] = None,
        stop: Union[str, Sequence[str]] = (), ignore_end: bool = False, plain_prompt: bool = False,
        enable_thinking: bool = True, end_ids: Sequence[int] = (), likeliest: Optional[int] = None,
        score_prompt: bool = False,
    ) -> List[Completion]:
        """The same for several prompts, which are computed together; with a `seed`, the next prompt has the next
        seed."""
        if isinstance(prompts, str):
            raise TypeError(f"prompts: {_shown(prompts)} is one text; allowed is a list of prompts")
        prompts = _list_of("prompts", prompts, "prompts")
        streams: List[TextStream] = []
        try:
            for number, prompt in enumerate(prompts):
                streams.append(self.stream(
                    prompt, max_tokens=max_tokens, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p,
                    seed=None if seed is None else _integer("seed", seed, 63) + number, stop=stop, ignore_end=ignore_end,
                    plain_prompt=plain_prompt, enable_thinking=enable_thinking, end_ids=end_ids, likeliest=likeliest,
                    score_prompt=score_prompt,
                ))  # fmt: skip
            _finish(streams)
        finally:
            for stream in streams:
                stream.close()
        return [
            Completion(
                stream.text, stream.ids, stream.end or "", stream.log_probabilities, stream.prompt_log_probabilities
            )
            for stream in streams
        ]

    def stream(
        self, prompt: Prompt, *, max_tokens: Optional[int] = 128, temperature: float = 0.0, top_k: int = 0,
        top_p: float = 1.0, min_p: float = 0.0, seed: Optional[int] = None,
        stop: Union[str, Sequence[str]] = (), ignore_end: bool = False, plain_prompt: bool = False,
        enable_thinking: bool = True, end_ids: Sequence[int] = (), likeliest: Optional[int] = None,
        score_prompt: bool = False,
    ) -> TextStream:
        """Arguments as for generate(). The text begins to grow at once; iterating gives it piece by piece, in whole
        characters."""
        flags = _prompt_flags(_flag("plain_prompt", plain_prompt), True)
        flags |= decoder_structs.IGNORE_END if _flag("ignore_end", ignore_end) else 0
        flags |= 0 if likeliest is None else decoder_structs.LOG_PROBABILITIES
        flags |= decoder_structs.SCORE_PROMPT if _flag("score_prompt", score_prompt) else 0
        _flag("enable_thinking", enable_thinking)
        if _is_conversation(prompt):
            flags |= decoder_structs.CHAT
            prompt = self.render_chat(cast(Sequence[Message], prompt), enable_thinking=enable_thinking)
        request = decoder_structs.DecoderRequest(
            struct_size=ctypes.sizeof(decoder_structs.DecoderRequest),
            flags=flags,
            max_tokens=0 if max_tokens is None else _at_least_one("max_tokens", max_tokens),
            temperature=_number("temperature", temperature),
            top_k=_integer("top_k", top_k, 31),
            top_p=_number("top_p", top_p),
            min_p=_number("min_p", min_p),
            seed=secrets.randbits(62) if seed is None else _integer("seed", seed, 63),
            likeliest=0 if likeliest is None else _integer("likeliest", likeliest, 31),
        )
        if isinstance(prompt, str):
            request.prompt = text = _bytes_of("prompt", prompt)
            request.prompt_bytes = len(text)
        else:
            request.prompt_ids = ids = _ids_of("prompt", cast(Sequence[int], prompt))
            request.prompt_id_count = len(ids)
        stops = [stop] if isinstance(stop, str) else _list_of("stop", stop, "texts")
        request.stops = (c_char_p * len(stops))(*[_bytes_of("stop", one) for one in stops])
        request.stop_count = len(stops)
        request.end_ids = ends = _ids_of("end_ids", end_ids)
        request.end_id_count = len(ends)
        with self._held.using:
            made = c_void_p()
            try:
                check(self._library.hone_decoder_submit(self._open_handle(), byref(request), byref(made)))
            except BaseException:  # Ctrl-C while a long prompt is read
                self._library.hone_decoder_text_destroy(made)
                raise
            stream = TextStream(
                self._library, made, self._warned, likeliest=likeliest is not None, score_prompt=score_prompt
            )
            self._streams.add(stream)
        self._warned.tell()
        return stream

    def encode(self, text: str, *, special: bool = True, plain: bool = False) -> List[int]:
        """The ids of a text, with what the model wants around it (`special`); `plain` as `plain_prompt` of
        generate()."""
        given = _bytes_of("text", text)
        flags, count = _prompt_flags(_flag("plain", plain), _flag("special", special)), c_size_t()
        ids = (c_int32 * (len(given) + 16))()
        with self._held.using:
            handle = self._open_handle()
            while True:
                check(self._library.hone_decoder_encode(
                    handle, given, len(given), flags, ids, len(ids), byref(count)
                ))  # fmt: skip
                if count.value <= len(ids):
                    return ids[: count.value]
                ids = (c_int32 * count.value)()

    def render_chat(self, messages: Sequence[Message], *, enable_thinking: bool = True) -> str:
        """The text behind which the model answers a conversation, as its folder's chat template has it. Each message has
        a "role" ("system", "user" or "assistant") and a "content". Without `enable_thinking` the answer begins behind
        thoughts that are none, where the template reads that, as Qwen3's does."""
        given = [_parts_of(*numbered) for numbered in enumerate(_list_of("messages", messages, "messages"))]
        roles, contents = ((c_char_p * len(given))(*parts) for parts in zip(*given)) if given else (None, None)
        text, length = ctypes.create_string_buffer(4096), c_size_t()
        flags = 0 if _flag("enable_thinking", enable_thinking) else decoder_structs.NO_THINKING
        with self._held.using:
            handle = self._open_handle()
            while True:
                check(self._library.hone_decoder_render_chat_with(
                    handle, roles, contents, len(given), flags, text, len(text), byref(length)
                ))  # fmt: skip
                if length.value < len(text):
                    return text.raw[: length.value].decode()
                text = ctypes.create_string_buffer(length.value + 1)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, without special tokens."""
        given, length = _ids_of("ids", ids), c_size_t()
        text = ctypes.create_string_buffer(16 * len(given) + 1)
        with self._held.using:
            handle = self._open_handle()
            while True:
                check(self._library.hone_decoder_decode(
                    handle, given, len(given), text, len(text), byref(length)
                ))  # fmt: skip
                if length.value < len(text):
                    return text.raw[: length.value].decode()
                text = ctypes.create_string_buffer(length.value + 1)

    def state(self) -> Dict[str, int]:
        """Now: `max_context`, `vocabulary`, texts `running` and `waiting`, `pages` of keys and values and `pages_used`,
        and since the start `new_tokens` and `shared_tokens` (of prompts, found in pages of others)."""
        state = decoder_structs.DecoderState(struct_size=ctypes.sizeof(decoder_structs.DecoderState))
        with self._held.using:
            check(self._library.hone_decoder_read_state(self._open_handle(), byref(state)))
        names = [name for name, _ in decoder_structs.DecoderState._fields_]
        return {name: getattr(state, name) for name in names if name not in ("struct_size", "reserved")}

    def close(self) -> None:
        """Stops all texts and gives the GPU's memory back. Whoever waits for a text gets HoneError."""
        with self._held.using:
            self._held.value = None
            streams = list(self._streams)
        for stream in streams:
            stream._cut()
        self._destroy()

    def _open_handle(self) -> int:
        if self._held.value is None:
            raise HoneError("the decoder is closed")
        return self._held.value

    def __enter__(self) -> Decoder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _destroy_decoder(library: ctypes.CDLL, held: _Handle, warned: _Warnings) -> None:
    with held.using:
        held.value = None
    library.hone_decoder_destroy(held.made)
    warned.tell()


def _destroy_text(library: ctypes.CDLL, held: _Handle, warned: _Warnings) -> None:
    """When the process ends, threads may still wait for the text: they are woken, and leave before it is destroyed."""
    held.is_cut = held.is_cut or held.value is not None
    library.hone_decoder_cancel(held.made)
    with held.using, held.handling:
        held.value = None
        library.hone_decoder_text_destroy(held.made)
    warned.tell()


def _finish(streams: Sequence[TextStream]) -> None:
    """Asks all of them in turn, so that a stop is seen soon after it has come, and waits for the first."""
    growing = [stream for stream in streams if stream.end is None]
    while growing:
        for number, stream in enumerate(growing):
            stream.next_piece(_SLICE_MS if number == 0 else 0)
        growing = [stream for stream in growing if stream.end is None]
    for stream in streams:
        if stream.end == "cancelled":
            next(stream)  # which says why


def _is_conversation(prompt: Prompt) -> bool:
    return isinstance(prompt, (list, tuple)) and len(prompt) > 0 and isinstance(prompt[0], Mapping)


def _parts_of(number: int, message: Message) -> Tuple[bytes, bytes]:
    if not isinstance(message, Mapping) or set(message) != {"role", "content"}:
        raise TypeError(f"message {number}: {_shown(message)}; allowed is a dict with 'role' and 'content'")
    return _bytes_of(f"role of message {number}", message["role"]), _bytes_of(
        f"content of message {number}", message["content"]
    )


def _prompt_flags(plain: bool, special: bool) -> int:
    return (decoder_structs.PLAIN_PROMPT if plain else 0) | (0 if special else decoder_structs.BARE_PROMPT)


def _shown(value: object) -> str:
    """In a message, where a prompt that is given in place of a number need not stand whole."""
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:160]}... ({len(text)} characters)"


def _integer(name: str, value: Any, bits: int) -> int:
    """ctypes would cut off what is too large."""
    number = integer(value)
    if number is None:
        raise TypeError(f"{name}: {_shown(value)}; allowed is an int")
    if not _fits(number, bits):
        raise ValueError(f"{name}: {_shown(number)}; allowed are numbers of {bits + 1} bits")
    return number


def _fits(number: int, bits: int) -> bool:
    return -(1 << bits) <= number < 1 << bits


def _flag(name: str, value: bool) -> bool:
    """Another truth, "no" or None, would be a guess."""
    if not isinstance(value, bool):
        raise TypeError(f"{name}: {_shown(value)}; allowed is a bool")
    return value


def _number(name: str, value: float) -> float:
    if not hasattr(value, "__float__"):
        raise TypeError(f"{name}: {_shown(value)}; allowed is a number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name}: {_shown(value)}; allowed are numbers that fit 64 bits") from None


def _list_of(name: str, given: Iterable[_Item], what: str) -> List[_Item]:
    try:
        return list(given)
    except TypeError:
        raise TypeError(f"{name}: a {type(given).__name__}; allowed is a list of {what}") from None


def _at_least_one(name: str, value: int) -> int:
    number = _integer(name, value, 63)
    if number < 1:
        raise ValueError(f"{name}: {number}; allowed are numbers from 1, or None: until the context is full")
    return number


def _bytes_of(name: str, text: str, encode: Callable[[str], bytes] = str.encode) -> bytes:
    """For C, where a 0 ends a text; prompts come with their length."""
    if not isinstance(text, str):
        raise TypeError(f"{name}: {_shown(text)}; allowed is a str")
    if "\0" in text and name not in ("prompt", "text"):
        raise ValueError(f"{name}: {_shown(text)} has the character 0, which is not allowed here")
    try:
        return encode(text)
    except UnicodeEncodeError:
        raise ValueError(f"{name}: has half of a surrogate pair, which is no character") from None


def _ids_of(name: str, ids: Sequence[int]) -> ctypes.Array[c_int32]:
    if isinstance(ids, (str, bytes)):
        raise TypeError(f"{name}: {_shown(ids)}; allowed is a list of ids")
    try:
        given = list(ids)
    except TypeError:
        raise TypeError(f"{name}: a {type(ids).__name__}; allowed are a text and ids, a list of int") from None
    listed = []
    for place, one in enumerate(given):
        number = integer(one)
        if number is None:
            raise TypeError(f"{name}[{place}]: {_shown(one)}; allowed is an int, the id of a token")
        if not _fits(number, 31):
            raise ValueError(f"{name}[{place}]: {_shown(number)}; allowed are numbers of 32 bits")
        listed.append(number)
    return (c_int32 * len(listed))(*listed)
