"""How kernel_templates/<folder>/operators.py declares a family. docs/add-a-kernel.md leads through one.

A declaration is data: calls of the constructors below with literals, no loops and no conditions. Expressions
are C++ over the family's fields: a field's bare name means the problem's, `p` is the problem itself, so
"tokens, in" and "p.scale_rows(), 64" are shapes. What is wrong is refused with the file and line.
"""
import dataclasses
import pathlib
import re
import sys
import typing

from generate.enums import DTYPES, ENUMS


class DeclarationError(Exception):
    """What is wrong with a declaration, where it stands first."""


def _place() -> str:
    """File and line of a declaration that calls a constructor: "kernel_templates/norm/operators.py:12"."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(("generate.", "dataclasses")):
        frame = frame.f_back
    if frame is None:
        return "generate:0"
    return f"{'/'.join(pathlib.Path(frame.f_code.co_filename).parts[-3:])}:{frame.f_lineno}"


@dataclasses.dataclass
class Record:
    """What a constructor makes: it knows where."""

    name: str
    place: str = dataclasses.field(default_factory=_place, init=False, repr=False, compare=False)

    def __post_init__(self):
        if not re.fullmatch(r"[a-z][a-z0-9_]*", self.name):
            self.refuse("is no name: lower case letters, digits and _")

    def refuse(self, problem: str):
        raise DeclarationError(f"{self.place}: {self.name}: {problem}")


@dataclasses.dataclass
class Field(Record):
    """One dimension of what a call asks, as `Field` of kernel_templates/problem.h."""

    kind: str  # choice, extent, dynamic, free
    words: str
    least: int
    most: int
    default: typing.Optional[int]
    choices: typing.List[str] = dataclasses.field(default_factory=list)
    enum: str = ""  # of choices: bool, Dtype, an enum of generate/enums.py, or one of the folder's own
    default_as: str = ""
    only: str = ""  # the one family of the folder that has it
    quiet_default: bool = False
    finer: bool = False

    @property
    def type(self) -> str:
        return self.enum or "std::int64_t"


def _position(record_name: str, choices: typing.List[str],
              value: typing.Optional[str]) -> typing.Optional[int]:
    if value is None:
        return None
    if value not in choices:
        raise DeclarationError(f"{_place()}: {record_name}: {value!r} is none of {', '.join(choices)}")
    return choices.index(value)


def choice(name: str, choices: str, words: str, *, default: typing.Optional[str] = None, enum: str,
           least: typing.Optional[str] = None, only: str = "", quiet_default: bool = False) -> Field:
    """One of the words; `enum` is one of generate/enums.py, whose words they are, or a new one of the folder.
    `quiet_default` as for extent()."""
    named = choices.split()
    if enum in ENUMS and [value.word for value in ENUMS[enum].values][:len(named)] != named:
        raise DeclarationError(f"{_place()}: {name}: the words of {enum} are "
                               f"{' '.join(value.word for value in ENUMS[enum].values)}")
    return Field(name, "choice", words, _position(name, named, least) or 0, len(named) - 1,
                 _position(name, named, default), named, enum, only=only, quiet_default=quiet_default)


def dtype(choices: str, words: str, *, name: str = "dtype", default: typing.Optional[str] = None,
          least: typing.Optional[str] = None) -> Field:
    """An element type; the words stand in the order of `Dtype`, without gaps."""
    named = choices.split()
    first = _position(name, DTYPES, named[0])
    if DTYPES[first:first + len(named)] != named:
        raise DeclarationError(f"{_place()}: {name}: {choices!r} is no run of {' '.join(DTYPES)}")
    return Field(name, "choice", words, _position(name, named, least) or 0, len(named) - 1,
                 _position(name, named, default), named, "Dtype")


def flag(name: str, words: str, *, default: bool = False, only: str = "", quiet_default: bool = False) -> Field:
    """no or yes. `quiet_default` as for extent()."""
    return Field(name, "choice", words, 0, 1, int(default), ["no", "yes"], "bool", only=only,
                 quiet_default=quiet_default)


def extent(name: str, least: int, most: int, words: str, *, default: typing.Optional[int] = None,
           quiet_default: bool = False) -> Field:
    """A static number. `quiet_default`: problems' texts say it only where it is not the default, for it came when
    problems without it had been stored."""
    if quiet_default and default is None:
        raise DeclarationError(f"{_place()}: {name}: quiet_default needs a default")
    return Field(name, "extent", words, least, most, default, quiet_default=quiet_default)


def dynamic(name: str, least: int, most: int, words: str, *, default: typing.Optional[int] = None,
            finer: bool = False) -> Field:
    """A number known at call time, tuned at the edges of buckets. `finer`: sizes between powers of two have buckets of
    their own where a winner was measured."""
    return Field(name, "dynamic", words, least, most, default, finer=finer)


def free(name: str, least: int, most: int, words: str, *, default: typing.Optional[int] = None,
         default_as: str = "") -> Field:
    """A number known at call time that chooses nothing."""
    return Field(name, "free", words, least, most, default, default_as=default_as)


@dataclasses.dataclass
class Fill:
    """What tuning draws; numbers, or expressions."""

    kind: str
    scale: typing.Union[float, str] = 1.0
    offset: typing.Union[float, str] = 0.0


def normal(deviation=1.0, mean=0.0) -> Fill:
    return Fill("normal", deviation, mean)


def uniform(half_width=1.0, middle=0.0) -> Fill:
    return Fill("uniform", half_width, middle)


def constant(value) -> Fill:
    return Fill("constant", 1.0, value)


def ramp(step=1.0, first=0.0) -> Fill:
    return Fill("ramp", step, first)


def uneven_ramp(step=1.0, together=1.0) -> Fill:
    return Fill("uneven_ramp", step, together)


def permutation(scale=1.0, first=0.0) -> Fill:
    return Fill("permutation", scale, first)


def drawn(kind: str, scale=1.0, offset=0.0) -> Fill:
    """A fill whose kind is an expression, too: "p.code_fill()"."""
    return Fill(kind, scale, offset)


@dataclasses.dataclass
class Pointer(Record):
    """One pointer of a call, as `Argument` of kernel_templates/family.h."""

    role: str
    dtype: str
    shape: typing.List[str]
    strides: typing.Dict[str, str]  # name -> tuning value, outermost first
    when: str = ""
    fill: Fill = dataclasses.field(default_factory=normal)
    words: str = ""
    called: str = ""  # an expression in place of its name, in texts
    rows: str = ""  # of ids: the number of rows of the table that they are looked up in
    appended: bool = False  # a weight of which a call also writes elements


def split_commas(text: str) -> typing.List[str]:
    """Parts between commas that stand in no parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _product(factors: typing.List[str]) -> str:
    return " * ".join(f"({factor})" if re.search(r"[?+:-]", factor.replace("::", "")) else factor
                      for factor in factors)


def _strides(name: str, shape: typing.List[str], strided) -> typing.Dict[str, str]:
    if not strided:
        return {}
    if isinstance(strided, dict):
        return strided
    words = [""] if strided is True else strided.split()
    if len(words) >= len(shape):
        raise DeclarationError(f"{_place()}: {name}: {len(words)} strides need more than {len(shape)} extents")
    first = len(shape) - len(words)
    return {f"{name}_{word}_stride" if word else f"{name}_stride": _product(shape[first + i:])
            for i, word in enumerate(words)}


def _pointer(role: str, name: str, shape: str, element: str, strided, **rest) -> Pointer:
    extents = split_commas(shape)
    if len(extents) > 4:
        raise DeclarationError(f"{_place()}: {name}: more than four extents")
    return Pointer(name, role, element, extents, _strides(name, extents, strided), **rest)


def read(name: str, shape: str, dtype: str = "dtype", *, strided=False, when: str = "",
         fill: Fill = Fill("normal"),
         words: str = "", called: str = "", rows: str = "") -> Pointer:
    """An activation. `strided`: True for one stride, <name>_stride, that of the last extent but one; words for
    several, outermost first ("batch token head": <name>_batch_stride, ...); or {stride: tuning value}. `rows`: it
    holds ids of a table's rows, and the field of that name says how many there are; tuning draws from all of them,
    and HONE_CHECK_INDICES can look at them."""
    if rows:
        fill = permutation(f"id_step({rows}, {split_commas(shape)[0]})")
    return _pointer("input", name, shape, dtype, strided, when=when, fill=fill, words=words, called=called,
                    rows=rows)


def weight(name: str, shape: str, dtype: str = "dtype", *, strided=False, when: str = "",
           fill: Fill = Fill("normal"), words: str = "", called: str = "", appended: bool = False) -> Pointer:
    """Read; each layer has its own. `appended`: a call also writes elements of it, the same ones every time."""
    return _pointer("weight", name, shape, dtype, strided, when=when, fill=fill, words=words, called=called,
                    appended=appended)


def write(name: str, shape: str, dtype: str = "dtype", *, strided=False, when: str = "", words: str = "",
          called: str = "") -> Pointer:
    """Every element is written."""
    return _pointer("output", name, shape, dtype, strided, when=when, words=words, called=called)


def workspace(dtype: str = "fp32", *, words: str = "") -> Pointer:
    return _pointer("workspace", "workspace", "1", dtype, False, words=words)


@dataclasses.dataclass
class Scalar(Record):
    """One number of a call."""

    kind: str  # scalar (a long long), narrow (an int), float
    value: str  # what tuning passes
    words: str = ""
    of: str = ""  # of a row stride: the pointer
    is_size: bool = False  # a field's


def size(name: str, *, narrow: bool = False, words: str = "") -> Scalar:
    """A field as an argument of the kernel; `narrow`: an int there, not a long long."""
    return Scalar(name, "narrow" if narrow else "scalar", name, words, is_size=True)


def number(name: str, value, words: str = "", *, narrow: bool = False) -> Scalar:
    """An integer that tuning passes as `value`."""
    return Scalar(name, "narrow" if narrow else "scalar", str(value), words)


def real(name: str, value, words: str = "") -> Scalar:
    """A float."""
    return Scalar(name, "float", f"{value}f" if isinstance(value, float) else value, words)


def stride(name: str, value: str, *, of: str, words: str = "", narrow: bool = False) -> Scalar:
    """A row stride of a pointer that is not `strided`, or of several: name the first."""
    return Scalar(name, "narrow" if narrow else "scalar", value, words, of)


def strides() -> Scalar:
    """Here stand the strides of all pointers that are `strided`, in their order."""
    return Scalar("strides", "strides", "")


def epsilon(words: str = "") -> Scalar:
    return Scalar("epsilon", "float", "1e-5f", words)


@dataclasses.dataclass
class Family(Record):
    """The families of a folder: one, or several that differ in a field and share everything else."""

    says: typing.Dict[str, str]  # family -> one line
    problem: str
    header: str
    fields: typing.List[Field]
    pointers: typing.List[Pointer]
    scalars: typing.List[Scalar]

    @property
    def declares_problem(self) -> bool:
        """Whether the problem's struct follows from the fields."""
        return self.header.endswith("/declaration.h")

    def field(self, name: str) -> Field:
        for field in self.fields:
            if field.name == name:
                return field
        return self.refuse(f"has no field {name}")

    def cpp(self, expression: str) -> str:
        """A declared expression as C++: fields' bare names become the problem's."""
        names = "|".join(field.name for field in self.fields)
        return re.sub(rf"(?<![\w.:>])({names})(?!\w|\(|::)", r"p.\1", expression)


def family(name: str, *, says, problem: str = "", header: str = "", fields: typing.List[Field],
           pointers: typing.List[Pointer], scalars: typing.List[Scalar]) -> Family:
    """`problem`: the struct derived from Fields in `header` (<folder>/<folder>.h) that `p` is. Without one it is
    declared, too: <Family>Problem, with element_bytes() and the <choice>_type() of an IndexType."""
    if isinstance(says, str):
        says = {name: says}
    flat = [field for item in fields for field in (item if isinstance(item, list) else [item])]
    if not problem:
        problem, header = "".join(map(str.capitalize, name.split("_"))) + "Problem", f"{name}/declaration.h"
    made = Family(name, says, problem, header or f"{name}/{name}.h", flat, pointers, [])
    for scalar in scalars:
        if scalar.kind != "strides":
            made.scalars.append(scalar)
            continue
        made.scalars += [Scalar(stride_name, "scalar", value, "", pointer.name) for pointer in pointers
                         for stride_name, value in pointer.strides.items()]
    _check(made)
    return made


def shared(family_: Family, names: str) -> typing.List[Field]:
    """Fields of another family, word by word: fields=[flag("zeros", ...), shared(linear, "norm activation")]."""
    return [family_.field(name) for name in names.split()]


MOST_DYNAMIC = 2  # fields of a problem's bucket
ELEMENTS = (*DTYPES, "int32", "int64", "untyped")


def _bare_names(expression: str) -> typing.List[str]:
    """Names of an expression that are no members, functions, namespaces, casts or types of integers."""
    expression = re.sub(r'"[^"]*"', '""', expression)
    names = re.findall(r"(?<![\w.])(?<!->)(?<!::)([a-z_]\w*)(?!\w|\(|::)", expression)
    return [name for name in names if name not in ("static_cast", "int", "std")]


def _check_names(made: Family, pointer: Pointer):
    """What C++ would say of a name that nothing declares, it would say of a generated file."""
    fields = {field.name: field for field in made.fields}
    for what, expression in [("when", pointer.when), *(("shape", extent) for extent in pointer.shape)]:
        for name in _bare_names(expression):
            if name not in fields and name not in ("p", "true", "false"):
                pointer.refuse(f"{name} of its {what} is no field")
    if re.fullmatch(r"\w+", pointer.dtype) and pointer.dtype not in ELEMENTS and (
            pointer.dtype not in fields or fields[pointer.dtype].enum != "Dtype"):
        pointer.refuse(f"{pointer.dtype} is no dtype: neither a field's name nor one of {', '.join(ELEMENTS)}")


def _check(made: Family):
    for kind, records in (("field", made.fields), ("pointer", made.pointers), ("scalar", made.scalars)):
        seen = set()
        for record in records:
            if record.name in seen:
                record.refuse(f"is a {kind} twice")
            seen.add(record.name)
    pointers = {pointer.name for pointer in made.pointers}
    fields = [field.name for field in made.fields]
    if sum(field.kind == "dynamic" for field in made.fields) > MOST_DYNAMIC:
        made.refuse(f"has more than {MOST_DYNAMIC} dynamic fields")
    for pointer in made.pointers:
        _check_names(made, pointer)
        if pointer.rows and pointer.rows not in fields:
            pointer.refuse(f"holds rows of {pointer.rows}, which is no field")
    for scalar in made.scalars:
        if scalar.is_size and scalar.name not in fields:
            scalar.refuse("is a size, and no field of this name")
        if scalar.name in pointers:
            scalar.refuse("is a pointer's name, too")
        if scalar.of and scalar.of not in pointers:
            scalar.refuse(f"is a stride of {scalar.of}, which is no pointer")
    for i, field in enumerate(made.fields):
        if field.default_as and field.default_as not in fields[:i]:
            field.refuse(f"defaults to {field.default_as}, which is no field before it")
        if field.only and field.only not in made.says:
            field.refuse(f"is for {field.only} only, which is no family of this folder")
        if not field.least <= field.most:
            field.refuse("has an empty range")
