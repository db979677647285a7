"""The `hone` program as a child process: tuning, and what only it knows. Never through a shell."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Dict, IO, Iterable, List, Mapping, NoReturn, Optional, Sequence, Tuple, Union

from ._native import library
from ._native.integers import integer
from ._operators.description import dtype_name
from .errors import MissingLibraryError, ProgramError

_PACKAGE = Path(__file__).resolve().parent
# How long the program has to end by itself after a Ctrl-C, which the terminal sends to it, too.
_GRACE_S = 3.0


def find_program() -> str:
    """The path of the program. Raises MissingLibraryError."""
    wanted = os.environ.get("HONE_PROGRAM")
    candidates = [Path(wanted)] if wanted else [_PACKAGE / "bin" / "hone"]
    tree = library.source_tree()
    if tree is not None and not wanted:
        candidates.append(tree / "build" / "release" / "hone")
    for candidate in candidates:
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate)
    found = None if wanted else _on_path()
    if found is not None:
        return found
    tried = ", ".join(str(candidate) for candidate in candidates)
    if wanted:
        raise MissingLibraryError(f"HONE_PROGRAM names {tried}, which is no program")
    raise MissingLibraryError(
        f"the hone program was not found; tried {tried} and PATH. HONE_PROGRAM can name it"
    )


def _on_path() -> Optional[str]:
    """A `hone` of PATH that is a program: a Python script there is most likely ours, and would find
    itself."""
    found = shutil.which("hone")
    if found is None:
        return None
    with open(found, "rb") as file:
        return found if file.read(4) == b"\x7fELF" else None


def main() -> NoReturn:
    """The console script `hone`: becomes the program."""
    library.announce_environment()
    try:
        program = find_program()
    except MissingLibraryError as error:
        sys.exit(f"hone: {error}")
    os.execv(program, [program, *sys.argv[1:]])


def tune(
    model: Optional[str] = None, *, op: Optional[str] = None,
    fields: Union[str, Mapping[str, Any], None] = None, tokens: Union[int, str, Sequence[int], None] = None,
    dtype: Any = None, tp: Optional[int] = None, format: Optional[str] = None, group: Optional[int] = None,
    zeros: bool = False, lm_head: bool = False,
    gpu: Union[int, str, None] = None, effort: Optional[str] = None, budget: Union[float, str, None] = None,
    kernels: Optional[int] = None, retune: bool = False, offline: bool = False, arch: Optional[str] = None,
    dry_run: bool = False, shard: Optional[str] = None, quiet: bool = False,
) -> Dict[str, Any]:
    """Finds the fastest kernels for a model or one operator on this machine's GPU, and remembers them.

    The arguments are those of `hone tune`: a known model or a path to a Hugging Face config.json (with
    op="linear": only those operators of it), or op="rmsnorm" with
    fields={"dtype": "bf16", "hidden": 4096, "residual": True}; tokens=[1, 8, 512]; format="w4a16", "w8a16",
    "w8a8", "fp8" or "dense", of a model's linear layers (None: what its config.json says, else dense), with
    group, zeros and lm_head; gpu=0 or "all"; effort="quick", "standard", "exhaustive" or "known";
    budget="10m" or seconds; kernels=4: no more of a static problem for all its sizes; shard="3/8", the third
    of eight parts that machines tune side by side. Progress goes to stderr unless `quiet`. Operators that are
    prepared already keep their kernels; a new process sees what was found.

    Returns the `data` of docs/json-output.md. Raises ProgramError with the program's message, hint and exit
    code (and `data` where it got something done), MissingLibraryError without a program; after Ctrl-C, which
    the program gets, too, KeyboardInterrupt: what was measured is saved.
    """
    arguments = ["tune", "--json"]
    options = {
        "--op": op,
        "--fields": _fields_text(fields),
        "--tokens": _tokens_text(tokens),
        "--dtype": None if dtype is None else dtype_name(dtype),
        "--tp": tp,
        "--format": format,
        "--group": group,
        "--gpu": gpu,
        "--effort": effort,
        "--budget": _budget_text(budget),
        "--kernels": kernels,
        "--arch": arch,
        "--shard": shard,
    }
    # "--op=x" and not "--op", "x": a value that begins with a dash stays a value.
    arguments += [f"{option}={value}" for option, value in options.items() if value is not None]
    flags = {
        "--zeros": zeros, "--lm-head": lm_head, "--retune": retune, "--offline": offline,
        "--dry-run": dry_run,
    }  # fmt: skip
    for flag, wanted in flags.items():
        if not isinstance(wanted, bool):
            raise TypeError(f"{flag[2:].replace('-', '_')}: {wanted!r}; allowed are True and False")
        arguments += [flag] if wanted else []
    if model is not None:
        arguments += ["--", _model_text(model)]
    return run_json(arguments, quiet=quiet)


def _model_text(model: Any) -> str:
    text = str(model)
    if not text or "\0" in text:
        raise ValueError(f"model: {text!r}; allowed are a known model's name and the path of a config.json")
    return text


def _fields_text(fields: Union[str, Mapping[str, Any], None]) -> Optional[str]:
    if fields is None or isinstance(fields, str):
        return fields
    if not isinstance(fields, Mapping):
        raise TypeError(f"fields: {fields!r}; allowed are a str and a mapping from fields to values")
    words = {True: "yes", False: "no"}
    return " ".join(
        f"{name}={words[value] if isinstance(value, bool) else value}" for name, value in fields.items()
    )


def _tokens_text(tokens: Union[int, str, Sequence[int], None]) -> Optional[str]:
    if tokens is None or isinstance(tokens, str):
        return tokens
    if integer(tokens) is not None:
        return str(integer(tokens))
    if not isinstance(tokens, Iterable):
        raise TypeError(f"tokens: {tokens!r}; allowed are an int, several, and a str")
    return ",".join(str(count) for count in tokens)


def _budget_text(budget: Union[float, str, None]) -> Optional[str]:
    if budget is None or isinstance(budget, str):
        return budget
    if isinstance(budget, bool) or not hasattr(budget, "__float__"):
        raise TypeError(f"budget: {budget!r}; allowed are seconds, and a str such as '10m'")
    seconds = float(budget)
    if not 0.001 <= seconds < math.inf:
        raise ValueError(f"budget: {budget!r}; allowed are seconds, 0.001 and more")
    return f"{round(seconds * 1000)}ms"


def run_json(arguments: Sequence[str], quiet: bool) -> Dict[str, Any]:
    """Runs the program with arguments that contain --json; returns `data`. Raises as tune()."""
    library.announce_environment()
    code, out, err = _run([find_program(), *arguments], quiet)
    try:
        answer = json.loads(out)
    except ValueError:
        last_words = (err or out).strip()[-2000:] or "it said nothing"
        raise ProgramError(
            f"hone {arguments[0]} ended with exit code {code} and no answer: {last_words}", exit_code=code
        ) from None
    if not answer.get("ok"):
        error = answer.get("error", {})
        raise ProgramError(
            error.get("message", f"hone {arguments[0]} failed"),
            code=error.get("code", ""),
            hint=error.get("hint", ""),
            exit_code=code,
            data=answer.get("data"),
        )
    return answer["data"]


def _run(command: List[str], quiet: bool) -> Tuple[int, str, str]:
    """(exit code, stdout, what was read of stderr)"""
    own_stderr = None if quiet else _file_of(sys.stderr)
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if own_stderr is None else own_stderr,
        encoding="utf-8",
        errors="replace",
    )
    heard: List[str] = []
    listener = None
    if child.stderr is not None:
        listener = threading.Thread(target=_pass_on, args=(child.stderr, heard, quiet), daemon=True)
        listener.start()
    try:
        assert child.stdout is not None
        out = child.stdout.read()
        code = child.wait()
    except BaseException as error:
        _end(child, isinstance(error, KeyboardInterrupt))
        raise
    finally:
        if listener is not None:
            listener.join(timeout=_GRACE_S)
        for pipe in (child.stdout, child.stderr):
            if pipe is not None:
                pipe.close()
    return code, out, "".join(heard)


def _file_of(stream: Any) -> Optional[int]:
    """The file number behind sys.stderr; None where it is none, as in notebooks."""
    try:
        return stream.fileno()
    except (AttributeError, OSError, ValueError):
        return None


def _pass_on(pipe: IO[str], heard: List[str], quiet: bool) -> None:
    for line in pipe:
        heard.append(line)
        if not quiet and sys.stderr is not None:
            sys.stderr.write(line)


def _end(child: subprocess.Popen[str], interrupted: bool) -> None:
    """Ctrl-C in a terminal reaches the program as well, which saves and ends; whoever did not get it is
    told."""
    import signal

    try:
        child.wait(_GRACE_S if interrupted else 0)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGINT)
        try:
            child.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
