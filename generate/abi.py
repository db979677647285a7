"""The structs of C: which members, in which order, at which offsets. What abi.lock has once, stays."""
import dataclasses
import pathlib
import typing

from generate import cpp
from generate.enums import ENUMS
from generate.families import DeclarationError
from generate.operators import Call, CallArgument, Given, Operator

LOCK = "generate/abi.lock"
SIZES = {"uint32_t": 4, "int32_t": 4, "float": 4}


@dataclasses.dataclass
class Member:
    name: str
    type: str
    init: str
    words: str = ""
    when: str = ""
    offset: int = 0

    @property
    def size(self) -> int:
        return SIZES.get(self.type, 8)


@dataclasses.dataclass
class Struct:
    name: str  # without hone_
    members: typing.List[Member]

    @property
    def size(self) -> int:
        return (self.members[-1].offset + self.members[-1].size + 7) // 8 * 8


Lock = typing.Dict[str, typing.List[typing.Tuple[int, str, str]]]  # struct -> offset, member, type


def read_lock(root: pathlib.Path) -> Lock:
    lock: Lock = {}
    path = root / LOCK
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        if line and not line.startswith("#"):
            struct, offset, member, kind = line.split(maxsplit=3)
            lock.setdefault(struct, []).append((int(offset), member, kind))
    return lock


def lock_text(structs: typing.List[Struct]) -> str:
    lines = ["# The layout of every struct of hone.h: struct, offset, member, type. Lines are only ever added,"
             " by `./hone generate`."]
    lines += [f"{struct.name} {member.offset} {member.name} {member.type}" for struct in structs
              for member in struct.members]
    return "\n".join(lines) + "\n"


def _joined(*parts: str) -> str:
    return ": ".join(part for part in parts if part)


def _given(given: Given) -> Member:
    if given.kind == "int64":
        return Member(given.name, "int64_t", str(given.default),
                      ", ".join(filter(None, [given.words, given.allowed])))
    if given.kind == "flag":
        return Member(given.name, "int32_t", str(int(given.default)), _joined("0 or 1", given.words))
    if given.kind == "dtype":
        return Member(given.name, "int32_t", f"HONE_{given.default.upper()}",
                      _joined("hone_dtype", given.words))
    enum = ENUMS[given.enum]
    value = next(value for value in enum.values if value.word == given.default)
    return Member(given.name, "int32_t", value.c, _joined(f"hone_{enum.c}", given.words))


def argument_words(argument: CallArgument) -> str:
    """Shape, element type, and what else is to be said."""
    between = ", " if argument.words.startswith("dtype") else "; "
    return between.join(filter(None, [argument.shape, argument.words]))


def _argument(argument: CallArgument) -> typing.List[Member]:
    words = argument_words(argument)
    if argument.kind == "tensor":
        return [Member(argument.name, argument.type.replace("std::", ""), "NULL", words, argument.when)]
    if argument.kind == "weight":
        return [Member(name, "const void*", "NULL", words if i == 0 else "", argument.when)
                for i, name in enumerate(argument.parts)]
    if argument.kind == "strides":
        return [Member(name, "int64_t", "0", argument.words if i == 0 else "") for i,
                name in enumerate(argument.parts)]
    if argument.kind == "float":
        text = cpp.real(argument.default, "f")
        return [Member(argument.name, "float", text, words)]
    return [Member(argument.name, "int64_t", str(argument.default), words)]


def _reserved() -> Member:
    return Member("reserved", "uint32_t", "0", "0")


def _by_rule(members: typing.List[Member]) -> typing.List[Member]:
    """The order of a new struct: the size, dtype or floats, what has 8 bytes, what has 4."""
    first = [member for member in members if member.name == "dtype" or member.type == "float"]
    long = [member for member in members if member.size == 8]
    rest = [member for member in members if member.size == 4 and member not in first]
    start = [Member("struct_size", "uint32_t", ""), *first]
    ordered = start + ([_reserved()] if len(start) % 2 else []) + long + rest
    return ordered + ([_reserved()] if len(rest) % 2 and not any(m.name == "reserved" for m in ordered)
                      else [])


def _by_lock(name: str, members: typing.List[Member], locked) -> typing.List[Member]:
    known = {member.name: member for member in members}
    known["struct_size"] = Member("struct_size", "uint32_t", "")
    known.setdefault("reserved", _reserved())
    ordered = []
    for _, member, kind in locked:
        if member not in known or known[member].type != kind:
            raise DeclarationError(f"{LOCK}: hone_{name} has a member {kind} {member}, which nothing declares: what a "
                                   "release has stays; lines of a struct that no release has may be deleted there")
        ordered.append(known[member])
    have = {member for _, member, _ in locked}
    return ordered + [member for member in members if member.name not in have]


def _struct(name: str, members: typing.List[Member], lock: Lock) -> Struct:
    ordered = _by_lock(name, members, lock[name]) if name in lock else _by_rule(members)
    offset = 0
    for member in ordered:
        if offset % member.size:
            raise DeclarationError(f"{LOCK}: hone_{name}: {member.name} would leave a gap before it")
        member.offset = offset
        offset += member.size
    for member, (at, _, _) in zip(ordered, lock.get(name, [])):
        if member.offset != at:
            raise DeclarationError(f"{LOCK}: hone_{name}: {member.name} moves from {at} to {member.offset}")
    return Struct(name, ordered)


def description(operator: Operator, lock: Lock) -> Struct:
    return _struct(operator.name, [_given(given) for given in operator.fields], lock)


def arguments(call: Call, lock: Lock) -> Struct:
    members = [member for argument in call.arguments for member in _argument(argument)]
    return _struct(f"{call.name}_args", members, lock)


def structs(operators: typing.List[Operator], lock: Lock) -> typing.List[Struct]:
    found: typing.Dict[str, Struct] = {}
    for operator in operators:
        found.setdefault(operator.name, description(operator, lock))
        found.setdefault(f"{operator.call.name}_args", arguments(operator.call, lock))
    return list(found.values())
