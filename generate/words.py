"""Prose that every language shares: names of operators become those of the language."""
import re
import typing

from generate.operators import snake


def in_c(text: str, workspace: str = "hone_operator_workspace") -> str:
    """`workspace`: the function that says how many bytes that takes."""
    return _replaced(text, lambda title: f"hone_{snake(title)}", lambda title: f"hone_{snake(title)}_args",
                     "NULL",
                     f"{workspace}() bytes; NULL when that is 0")


def in_cpp(text: str) -> str:
    return _replaced(text, str, lambda title: f"{title}Args", "nullptr",
                     "workspace_bytes(), aligned to 256; nullptr when that is 0")


def in_python(text: str) -> str:
    return _replaced(text, str, lambda title: f"{title}.run()", "None",
                     "workspace_bytes() bytes, aligned to 256; made where it is None")


def in_rust(text: str) -> str:
    return _replaced(text, str, lambda title: f"{title}Args", "null",
                     "workspace_bytes(), aligned to 256; null when that is 0")


def in_go(text: str) -> str:
    return _replaced(text, str, lambda title: f"{title}Args", "0",
                     "WorkspaceBytes(), aligned to 256; 0 when that is 0")


def _replaced(text: str, name: typing.Callable, arguments: typing.Callable, null: str, workspace: str) -> str:
    text = text.replace("{null}", null).replace("{workspace}", workspace)
    text = re.sub(r"\{(\w+)\.args\}", lambda found: arguments(found[1]), text)
    return re.sub(r"\{(\w+)\}", lambda found: name(found[1]), text)
