"""Exceptions of the package.

Everything that Hone itself reports is a HoneError; the subclasses say who can do something about it. Arrays
that do not fit an operator are plain TypeError and ValueError, which name the argument.
"""

from __future__ import annotations

from typing import Dict, Optional, Type


class HoneError(RuntimeError):
    """Something that Hone could not do: the message says what, what is allowed, and what to do.

    ``status`` is the number of ``hone_status`` (runtime/hone.h) and ``status_text`` its sentence; both are
    None and "" where the C library was not asked.
    """

    def __init__(self, message: str, status: Optional[int] = None, status_text: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.status_text = status_text


class BadArgumentError(HoneError, ValueError):
    """A size, dtype, option, row count, pointer or stride that the operator does not take."""


class NoGpuError(HoneError):
    """No driver, too old a driver, or no such device."""


class CompileError(HoneError):
    """NVRTC is missing, or refused the kernel."""


class FrozenError(HoneError):
    """A kernel would have to be compiled after ``hone.freeze()``."""


class LaunchError(HoneError):
    """The driver refused a launch."""


class ForkedError(HoneError):
    """An operator that was prepared before ``os.fork()`` was called in the child."""


class OutOfMemoryError(HoneError, MemoryError):
    """The host ran out of memory."""


class MissingLibraryError(HoneError):
    """libhone.so was not found, does not load, or is too old."""


class ProgramError(HoneError):
    """The ``hone`` program ended with an error.

    ``code`` is its word for programs (docs/json-output.md), ``hint`` what to do, ``exit_code`` its exit code,
    ``data`` what it reported all the same (an interrupted or partial run), or None.
    """

    def __init__(
        self, message: str, *, code: str = "", hint: str = "", exit_code: Optional[int] = None,
        data: Optional[dict] = None,
    ) -> None:
        super().__init__(f"{message}\n{hint}" if hint else message)
        self.code = code
        self.hint = hint
        self.exit_code = exit_code
        self.data = data


class HoneWarning(UserWarning):
    """Something only degrades: a cache that cannot be read, a stored result that does not load."""


# Statuses of runtime/hone.h that have an exception of their own.
_BY_STATUS: Dict[int, Type[HoneError]] = {
    1: BadArgumentError,  # HONE_BAD_ROWS
    2: BadArgumentError,  # HONE_NULL_POINTER
    3: BadArgumentError,  # HONE_MISALIGNED
    4: BadArgumentError,  # HONE_BAD_STRIDE
    7: ForkedError,
    8: LaunchError,
    9: BadArgumentError,  # HONE_BAD_EPSILON
    10: BadArgumentError,  # HONE_BAD_SCALE
    11: BadArgumentError,  # HONE_BAD_LENGTHS
    12: BadArgumentError,  # HONE_BAD_PAGES
    20: BadArgumentError,
    21: NoGpuError,
    22: CompileError,
    23: FrozenError,
    24: OutOfMemoryError,
}


def error_from(status: int, status_text: str, message: str) -> HoneError:
    """The exception for a status other than HONE_OK; ``message`` may be empty."""
    kind = _BY_STATUS.get(status, HoneError)
    return kind(message or status_text, status, status_text)
