"""How operators.py declares a public operator: what describes it, the arguments of a call, and its sizes.

What a family has already said is taken by name. Prose is for every language: {Linear} is the operator's
description there, {Linear.args} its arguments, {null} a null pointer.
"""
import dataclasses
import re
import typing

from generate.enums import ENUMS, Value
from generate.families import Family, Field, Record

def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


@dataclasses.dataclass
class Given(Record):
    """A member of a description."""

    kind: str  # int64, flag, enum, dtype
    default: typing.Union[int, bool, str]
    words: str
    enum: str = ""  # of `enum`
    field: str = ""  # the family's field that it is; of a maximum, the dynamic one
    largest: bool = False
    sequences: bool = False  # of a maximum: a call has one for each sequence
    allowed: str = ""
    words_of: typing.Optional[Field] = None  # of `enum`: the field whose words are the first of the enum's

    @property
    def values(self) -> typing.List[Value]:
        """What a choice may be."""
        every = ENUMS[self.enum].values
        return every[:len(self.words_of.choices)] if self.words_of else every


def integer(name: str, default: int, words: str = "", *, allowed: str = "") -> Given:
    return Given(name, "int64", default, words, allowed=allowed)


def flag_field(name: str, words: str = "", *, default: bool = False) -> Given:
    return Given(name, "flag", default, words)


def choice_field(name: str, enum: str, default: str, words: str = "", *, of: typing.Optional[Family] = None) -> Given:
    """`of`: the family that has the field, too, with what it allows."""
    return Given(name, "enum", default, words, enum, words_of=of.field(name) if of else None)


def dtype_field(words: str, *, name: str = "dtype", default: str = "bf16") -> Given:
    return Given(name, "dtype", default, words)


def taken(name: str, words: str = "", *, default=None) -> Given:
    """The family's field of that name."""
    return Given(name, "", default, words, field=name)


def largest(field: str, default: int, words: str, *, sequences: bool = False) -> Given:
    """max_<field>: the most that the family's dynamic field is in one call. `sequences`: a model has one for
    each sequence, not for each token."""
    return Given(f"max_{field}", "int64", default, words, field=field, largest=True, sequences=sequences)


@dataclasses.dataclass
class CallArgument(Record):
    """A member of the arguments of a call."""

    kind: str  # tensor, weight, strides, int64, float
    type: str = ""  # of a tensor: in C++
    shape: str = ""
    words: str = ""
    default: typing.Union[int, float] = 0
    parts: typing.List[str] = dataclasses.field(default_factory=list)  # in C: those of a weight, or of strides
    role: str = ""
    when: str = ""  # the flag of the description that it needs, or an expression
    computed: str = ""  # of a tensor whose element type is neither dtype nor always the same: the problem's method

    def c_members(self) -> typing.List[str]:
        return self.parts or [self.name]

    @property
    def real(self) -> str:
        """The default of a float in every language, but for C's suffix."""
        text = f"{self.default:g}".replace("e-0", "e-")
        return text if "." in text or "e" in text else text + ".0"


_TYPES = {("", False): "const void*", ("fp32", False): "const float*",
          ("int32", False): "const std::int32_t*",
          ("int64", False): "const std::int64_t*", ("int64", True): "std::int64_t*", ("", True): "void*",
          ("fp32", True): "float*", ("int32", True): "std::int32_t*"}


def tensor(name: str, shape: str, words: str = "", *, element: str = "", out: bool = False, when: str = "",
           role: str = "input", computed: str = "") -> CallArgument:
    """`element`: fp32, int32 or int64 where it is always that; `computed`: what says it where it depends on more than dtype;
    `when`: the flag it is needed for."""
    return CallArgument(name, "tensor", _TYPES[element, out], shape, words, when=when,
                        role="output" if out else role,
                        computed=computed)


def weight_argument(name: str, shape: str, words: str = "", *, when: str = "") -> CallArgument:
    """A quantized weight: codes, scales and zero points."""
    lead = "" if name == "weight" else name + "_"
    return CallArgument(name, "weight", "QuantizedWeightPointers", shape, words, when=when, role="weight",
                        parts=[name, f"{lead}scales", f"{lead}zeros"])


def strides_argument(name: str, parts: str, words: str = "") -> CallArgument:
    """Strides of a tensor of several dimensions."""
    return CallArgument(f"{name}_strides", "strides", "AttentionStrides", "", words,
                        parts=[f"{name}_{part}_stride" for part in parts.split()])


def number_argument(name: str, words: str = "", *, default: int = 0) -> CallArgument:
    return CallArgument(name, "int64", "std::int64_t", "", words, default)


def real_argument(name: str, default: float, words: str = "") -> CallArgument:
    return CallArgument(name, "float", "float", "", words, default)


def workspace_argument() -> CallArgument:
    return CallArgument("workspace", "tensor", "void*", "", "{workspace}", role="workspace")


@dataclasses.dataclass
class Call(Record):
    """What run() takes: the arguments in the order of C++, and the sizes."""

    title: str  # "Linear": LinearArgs, hone_linear_args, hone_linear_run()
    says: str
    sizes: typing.List[str]
    arguments: typing.List[CallArgument]
    given: typing.Dict[str, str]  # scalar of the family -> expression over `d`, the description, and `args`
    run: str = ""  # what run() adds to "Enqueues the operator"
    python: str = ""  # what a call from Python takes first, where that is not the required tensors
    keywords: str = ""  # what it takes by name, where its tensors are read by hand
    python_says: str = ""  # of such a call

    @property
    def size_type(self) -> str:
        return "std::int64_t" if len(self.sizes) == 1 else f"{self.title}Sizes"


@dataclasses.dataclass
class TorchCall(Record):
    """torch.ops.hone.<name>: the operator with some fields fixed, and others taken from the tensors of a call."""

    arguments: typing.List[str]  # of a call: names, or theirs=ours
    optional: typing.List[str]  # the same, behind them, each with None as its default
    fixed: typing.Dict[str, typing.Union[bool, str]]
    instead: str
    says: str


def torch_call(name: str, arguments: str, *, instead: str, says: str = "",
               **fixed: typing.Union[bool, str]) -> TorchCall:
    """`arguments`: tensors, epsilon and fields of the description in the order of the call, "theirs=ours" where a name
    is another, "name!" where a tensor is written; those behind a | may be left out. `instead`: what has a gradient;
    empty: it has one. `says`: what is PyTorch's affair alone."""
    first, _, rest = arguments.partition("|")
    return TorchCall(name, first.split(), rest.split(), fixed, instead, says)


@dataclasses.dataclass
class Part(Record):
    """A problem and a call of one family, of an operator whose names are not all the family's."""

    family: Family
    takes: str
    fields: typing.Dict[str, typing.Union[str, int]]
    let: typing.Dict[str, str]
    given: typing.Dict[str, str]


def part(name: str, family: Family, *, takes: str = "",
         fields: typing.Optional[typing.Dict[str, typing.Union[str, int]]] = None,
         let: typing.Optional[typing.Dict[str, str]] = None,
         given: typing.Optional[typing.Dict[str, str]] = None) -> Part:
    """<name>_problem(d) and <name>_call(d, args, sizes): what has the same name on both sides, and max_<field> of a
    run-time field, is taken. C++ over these says the rest: `fields` of the problem, of which `takes` is a parameter;
    pointers and scalars of the call in `given`, with what `let` names before, of which tensors' strides are the scalars
    <name>_<dimension>_stride."""
    made = Part(name, family, takes, fields or {}, let or {}, given or {})
    known = {record.name for record in [*family.pointers, *family.scalars]}
    for name in made.fields:
        family.field(name)
    for name in made.given:
        if name not in known:
            made.refuse(f"gives {name}, which is no pointer and no scalar of {family.name}")
    return made


@dataclasses.dataclass
class Operator(Record):
    title: str
    says: str
    family: typing.Optional[Family]
    family_name: str
    fields: typing.List[Given]
    call: Call
    halves: bool = False
    is_function: bool = False
    is_checked: bool = False
    checks_indices: bool = False
    torch: typing.List["TorchCall"] = dataclasses.field(default_factory=list)
    python: str = ""  # the fields that stand first in Python
    parts: typing.List[Part] = dataclasses.field(default_factory=list)
    helpers: str = ""
    prepared: str = ""
    problems: typing.List[str] = dataclasses.field(default_factory=list)
    folder: str = ""

    @property
    def c_workspace(self) -> str:
        """The function of C that says how many bytes a call's workspace has."""
        has_own = self.is_function or len(self.call.sizes) > 1
        return f"hone_{self.call.name}_workspace" if has_own else "hone_operator_workspace"

    @property
    def has_indices(self) -> bool:
        """Whether HONE_CHECK_INDICES looks at tensors of its calls: ids of a table's rows, or by hand."""
        return self.checks_indices or \
            self.family is not None and any(pointer.rows for pointer in self.family.pointers)


def _needed(when: str, flags: typing.Iterable[str]) -> str:
    if when not in flags:
        return ""
    article = "" if when.endswith("s") and not when.endswith("as") else "an " if when[0] in "aeiou" else "a "
    return f"needed when the operator has {article}{when}"


def _taken_argument(family: Family, name: str, words: typing.Dict[str, str]) -> CallArgument:
    for pointer in family.pointers:
        if pointer.name != name:
            continue
        if pointer.role == "workspace":
            return workspace_argument()
        element = pointer.dtype if pointer.dtype in ("fp32", "int32", "int64") else ""
        shape = f"[{', '.join(pointer.shape)}]" if len(pointer.shape) > 1 or pointer.shape[0] != "1" else ""
        shape = shape.replace(", 1]", "]")
        flags = [field.name for field in family.fields if field.enum == "bool"]
        said = "; ".join(filter(None, ["" if element else "dtype", _needed(pointer.when, flags)]))
        return tensor(name, shape, words.get(name, said), element=element, out=pointer.role == "output",
                      role=pointer.role, when=pointer.when,
                      computed=pointer.dtype[2:-2] if pointer.dtype.startswith("p.") else "")
    for scalar in family.scalars:
        if scalar.name != name:
            continue
        if scalar.kind == "float":
            return real_argument(name, float(scalar.value.rstrip("f")), words.get(name, scalar.words))
        return number_argument(name, words.get(name, scalar.words))
    return family.refuse(f"has no pointer and no scalar {name}")


def call(title: str, *, says: str, sizes: str, family: typing.Optional[Family] = None,
         arguments: typing.Union[str, typing.List], words: typing.Optional[typing.Dict[str, str]] = None,
         given: typing.Optional[typing.Dict[str, str]] = None, run: str = "", python: str = "", keywords: str = "", python_says: str = "") -> Call:
    """`arguments`: records, or strings with the names of the family's pointers and scalars; in the order of C++.
    `given`: what other scalars of the family are, over `d` (the description) and `args`. `python`: the tensors that a
    call from Python takes first. `keywords`: where a class written by hand reads the tensors, everything else that such
    a call takes, with "name=default" for numbers that have one; `python_says` tells of it."""
    words = words or {}
    records: typing.List[CallArgument] = []
    for item in [arguments] if isinstance(arguments, str) else arguments:
        records += [_taken_argument(family, name, words)
                    for name in item.split()] if isinstance(item, str) else [item]
    made = Call(snake(title), title, says, sizes.split(), records, given or {}, run, python,
                keywords, python_says)
    names = {record.name for record in records}
    for name in words:
        if name not in names:
            made.refuse(f"has words for {name}, which is no argument")
    return made


def _resolved(family: typing.Optional[Family], given: Given) -> Given:
    if not given.field:
        return given
    if family is None:
        given.refuse("is taken, and the operator has no family")
    field = family.field(given.field)
    if field.kind != "choice":
        given.allowed = "" if given.largest else f"{field.least} to {field.most}"
        given.kind, given.default = "int64", field.default or 0 if given.default is None else given.default
    elif field.enum == "bool":
        given.kind, given.default = "flag", bool(field.default) if given.default is None else given.default
    else:
        given.kind = "dtype" if field.enum == "Dtype" else "enum"
        given.enum = "" if field.enum == "Dtype" else field.enum
        given.words_of = field
        index = field.default or 0
        word = "bf16" if field.enum == "Dtype" and field.default is None else field.choices[index]
        given.default = word if given.default is None else given.default
    return given


def operator(title: str, *, says: str, family: typing.Optional[Family] = None, fields: typing.List[Given],
             call: Call,
             halves: bool = False, function: bool = False, checked: bool = False, indices: bool = False,
             name: str = "", python: str = "",
             torch: typing.Sequence[TorchCall] = (), parts: typing.Sequence[Part] = (),
             helpers: str = "", prepared: str = "", problems: typing.Sequence[str] = ()) -> Operator:
    """`family` where the operator is one family's problem and call, taken by names; `name`: which of the folder's.
    `halves`: two problems that run one after the other. `function`: nothing is prepared; what it does is written by
    hand. `checked`: check_description(), written by hand, says what the family does not know. `indices`:
    check_indices(), written by hand, looks at what a call says on the device. `python`: the fields that a
    description in Python takes first; `torch`: PyTorch's operators. Without a family of its own: `parts`, whose
    expressions call functions of the header `helpers`, and the header `prepared` of a class Prepared<title>, all
    written by hand. `problems`, where operators share a family: "field=value" or "field!=value", one of which holds
    for those of the family's problems that a person means by this operator."""
    fields = [_resolved(family, given) for given in fields]
    made = Operator(snake(title), title, says, family, name or (family.name if family else ""), fields, call,
                    halves,
                    function, checked, indices, list(torch), python, list(parts), helpers, prepared, list(problems))
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", title):
        made.refuse(f"{title} is no name of an operator: words that begin with capitals, as RmsNorm")
    for given in fields:
        if given.kind == "enum" and given.enum not in ENUMS:
            given.refuse(f"has no enum {given.enum} in generate/enums.py")
    if family is not None and not halves and not function:
        _check_call(made, family)
    return made


def _check_call(made: Operator, family: Family):
    """Everything that the family's kernels take comes from a call, and its sizes are the family's."""
    for size in made.call.sizes:
        if size not in [field.name for field in family.fields]:
            made.call.refuse(f"{size} of its sizes is no field of {family.name}")
    has = {*made.call.sizes, *made.call.given, *(argument.name for argument in made.call.arguments),
           *(part for argument in made.call.arguments for part in argument.parts)}
    optional = {pointer.name for pointer in family.pointers if pointer.when or pointer.role == "workspace"}
    for record in [*family.pointers, *family.scalars]:
        if record.name not in has | optional and getattr(record, "of", "") not in optional:
            made.call.refuse(f"{record.name} of {family.name} is none of its arguments or sizes, and not given")
