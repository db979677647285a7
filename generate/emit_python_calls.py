"""python/hone/_operators/calls.py: the calls of prepared operators; and PyTorch's operators on them."""
import re
import textwrap
import typing

from generate import abi
from generate.emit_python import calls_of, class_name, field_name, filled, origin, wrapped
from generate.operators import Call, CallArgument, Operator, TorchCall
from generate.words import in_python


def _parameters(call: Call) -> typing.List[str]:
    """Those of run_pointers(): everything of a call in the order of C++; strides of a tensor of heads are one tuple."""
    found = []
    for argument in call.arguments:
        if argument.kind == "strides":
            zeros = ", ".join("0" for _ in argument.parts)
            found.append(f"{argument.name}: Tuple[int, ...] = ({zeros})")
        elif argument.kind == "float":
            found.append(f"{argument.name}: float = {argument.real}")
        else:
            found += [f"{name}: int = {argument.default}" for name in argument.c_members()]
    return found


def _packed(call: Call, lock: abi.Lock) -> typing.List[str]:
    """The members of the C struct after its size, as run_pointers() has them."""
    tuples = {part: argument.name for argument in call.arguments if argument.kind == "strides"
              for part in argument.parts}
    found: typing.List[str] = []
    for member in abi.arguments(call, lock).members[1:]:
        text = f"*{tuples[member.name]}" if member.name in tuples else "0" if member.name == "reserved" else member.name
        if text not in found or text == "0":
            found.append(text)
    return found


def _run_pointers(call: Call, lock: abi.Lock) -> typing.List[str]:
    sizes = [f"{size}: int" for size in call.sizes]
    lines = filled("def run_pointers(", ["self", "stream: int", *sizes, *_parameters(call)], ") -> None:", 4)
    lines += wrapped('"""Enqueues the operator for device pointers (0: none). Strides are in elements, 0 meaning no gaps. '
                     'Nothing is checked but what the library checks. Raises HoneError."""', 8)
    lines += filled("packed = self._pack(", ["self._bytes", *_packed(call, lock)], ")", 8)
    passed = [f"c_int64({size})" for size in call.sizes]
    lines += filled("status = self._run(", ["self._pointer", "c_void_p(stream)", "packed", *passed], ")", 8)
    return [*lines, "        if status:", "            check(status)"]


# Regular operators: of tensors whose shapes and dtypes follow from the description.


def tensors(call: Call) -> typing.List[CallArgument]:
    return [argument for argument in call.arguments if argument.kind in ("tensor", "weight")]


def _names(argument: CallArgument) -> typing.List[str]:
    return argument.c_members() if argument.kind == "weight" else [argument.name]


def _wanted(when: str) -> str:
    """The flag or property of a description that says whether a tensor is needed."""
    return re.sub(r"^p\.(\w+)\(\)$", r"\1", when)


def _always(argument: CallArgument) -> str:
    """The dtype of a tensor that has the same one in every operator; "" for others."""
    words = {"float": "fp32", "int32": "int32", "int64": "int64"}
    return next((word for kind, word in words.items() if kind in argument.type), "")


def _record(argument: CallArgument, operator: Operator) -> str:
    """A record of operators of rows, as hone/_operators/tensors.py has them."""
    call = operator.call
    dims = [part for part in argument.shape.strip("[]").split(", ") if part]
    rows = bool(dims) and dims[0] in call.sizes
    columns = " ".join(field_name(part) for part in (dims[1:] if rows else dims))
    strided = any(other.name == f"{argument.name}_stride" for other in call.arguments)
    options = [f'when="{_wanted(argument.when)}"'] if argument.when else []
    if argument.kind == "weight":
        strided = any(other.name == f"{argument.name}_stride" for other in call.arguments)
        options += ["strided=True"] if strided else []
        return f"stored({', '.join([chr(34) + ' '.join(argument.parts) + chr(34), chr(34) + columns + chr(34), *options])})"
    named = {f"{given.name}_type": given.name for given in operator.fields if given.kind == "enum"}
    computed = named.get(argument.computed, argument.computed)
    element = _always(argument) or computed
    options += [f'dtype="{element}"'] if element else []
    if not dims:
        options += ["written=True"] if argument.role == "output" else []
        return f"computed({', '.join([chr(34) + argument.name + chr(34), *options])})"
    options += ["strided=True"] if strided else []
    options += ["written=True"] if argument.role == "output" else []
    maker = "rows" if rows else "fixed"
    return f"{maker}({', '.join([chr(34) + argument.name + chr(34), chr(34) + columns + chr(34), *options])})"


def signature(call: Call) -> typing.Tuple[typing.List[str], typing.List[str], typing.List[str]]:
    """Names of what a call takes: required, optional, and by keyword alone."""
    inputs = [(name, argument) for argument in tensors(call) for name in _names(argument)
              if argument.role in ("input", "weight")]
    needed = [name for name, argument in inputs if not argument.when and not name.endswith("zeros")]
    first = call.python.split() or needed
    split = max([i for i, name in enumerate(first) if name in needed], default=-1) + 1
    rest = [name for name, _ in inputs if name not in first]
    written = [argument.name for argument in tensors(call) if argument.role in ("output", "workspace")]
    return first[:split], first[split:] + rest, written


def _call(group: typing.List[Operator]) -> typing.List[str]:
    call = group[0].call
    required, optional, written = signature(call)
    reals = [argument for argument in call.arguments if argument.kind == "float"]
    given = [f"{name}: Array" for name in required] + [f"{name}: Optional[Array] = None" for name in optional] + ["*"]
    given += [f"{name}: Optional[Array] = None" for name in written]
    given += [f"{real.name}: float = {real.real}" for real in reals] + ["stream: Any = None"]
    lines = filled("def __call__(", ["self", *given], ") -> Any:", 4) + _documentation(group)
    names = [*required, *optional, *written, *(real.name for real in reals)]
    lines += [f"        if type({required[0]}) is self._tensor:", "            try:",
              *filled("return self._plain(", [*names, "stream"], ")", 16), "            except NOT_PLAIN:",
              "                pass"]
    return lines + filled("return self._call_checked((", names, "), stream)", 8)


def _shape(argument: CallArgument, call: Call) -> str:
    dims = [part for part in argument.shape.strip("[]").split(", ") if part]
    shown = ["..." if part in call.sizes else field_name(part) for part in dims]
    return f"[{', '.join(shown)}]" if shown else ""


def _documentation(group: typing.List[Operator]) -> typing.List[str]:
    call = group[0].call
    outputs = [argument for argument in tensors(call) if argument.role == "output"]
    names = ", ".join(argument.name for argument in outputs)
    conditions = "" if len(outputs) == 1 else ": those that the operator has"
    lines = wrapped(f'"""Returns {names if len(outputs) == 1 else f"({names})"}{conditions}.', 8) + [""]
    for argument in tensors(call):
        if argument.role == "workspace":
            text = "workspace_bytes() bytes, aligned to 256, that no other call uses meanwhile"
        else:
            dtype = "" if _always(argument) in argument.words else _always(argument)
            text = ", ".join(filter(None, [_shape(argument, call), dtype, in_python(argument.words)]))
        text = text.replace("[out, in]", "[out_features, in_features]")
        title = ", ".join(_names(argument))
        lines += wrapped(f"{title}: {text}" if text else title, 8)
    lines += ["", *wrapped(
        "Leading dimensions, ..., are the same in all tensors and have to collapse into rows of one common stride. What is "
        "written and not given is made by PyTorch when the first argument is its tensor. stream is an int (CUstream) or an "
        "object of PyTorch, CuPy or Numba; None: the caller's current one. A captured graph keeps addresses alone: what was "
        "given, workspace too, has to live as long as it is replayed.", 8), "",
        "        Raises TypeError and ValueError naming the argument, and HoneError.", '        """']
    return lines


def _regular_class(group: typing.List[Operator], lock: abi.Lock) -> typing.List[str]:
    call = group[0].call
    titles = [operator.title for operator in group]
    lines = ["", "", f"class {class_name(call)}(RowsOperator):",
             f'    """A prepared {" or ".join(titles)}."""', "",
             f'    CALL = "{call.name}"', f"    ARGUMENTS = structs.{call.title}Args", "    TENSORS = ("]
    lines += [f"        {_record(argument, group[0])}," for argument in tensors(call)
              if argument.role != "workspace"]
    lines.append("    )")
    required, optional, written = signature(call)
    reals = [argument.name for argument in call.arguments if argument.kind == "float"]
    lines += filled("GIVEN = (", [f'"{name}"' for name in [*required, *optional, *written, *reals]], ")", 4)
    lines.append(f"    NUMBERS = ({', '.join(chr(34) + name + chr(34) for name in reals)}{',' * (len(reals) == 1)})")
    return [*lines, "", *_run_pointers(call, lock), "", *_call(group)]


# Irregular ones: classes written by hand read their tensors.


def _keyword(call: Call, text: str) -> str:
    """The parameter that an argument by name is."""
    name, _, default = text.partition("=")
    if default:
        return f"{name}: float = {default}"
    real = any(argument.name == name and argument.kind == "float" for argument in call.arguments)
    whole = name in call.sizes or any(argument.name == name and argument.kind == "int64" for argument in call.arguments)
    kind = "Optional[int]" if whole else "Optional[float]" if real else "Optional[Array]"
    return f"{name}: {kind} = None"


def _irregular_class(call: Call, lock: abi.Lock) -> typing.List[str]:
    names = [*call.python.split(), *(text.partition("=")[0] for text in call.keywords.split())]
    parameters = [*(f"{name}: Array" for name in call.python.split()), "*",
                  *(_keyword(call, text) for text in call.keywords.split()), "stream: Any = None"]
    return ["", "", f"class {call.title}Given(NamedTuple):", '    """What a call is given, but for its stream."""', "",
            *(f"    {name}: Any" for name in names), "", "",
            f"class {call.title}Call(HeadsOperator):", f'    """Runs a prepared {call.title}."""', "",
            f'    CALL = "{call.name}"', f"    ARGUMENTS = structs.{call.title}Args", "", *_run_pointers(call, lock), "",
            *filled("def __call__(", ["self", *parameters], ") -> Any:", 4),
            *wrapped(f'"""{in_python(call.python_says)}', 8), "",
            "        Raises TypeError and ValueError naming the argument, and HoneError.", '        """',
            *filled(f"given = {call.title}Given(", names, ")", 8),
            f"        if type({names[0]}) is self._tensor:", "            try:",
            "                return self._call_plain(given, stream)", "            except NOT_PLAIN:",
            "                pass", "        return self._call_checked(given, stream)"]


def calls_source(operators: typing.List[Operator], lock: abi.Lock) -> str:
    groups = calls_of(operators)
    regular = [group for group in groups if not group[0].call.keywords]
    lines = origin("Prepared operators: what :func:`hone.prepare` returns. They may be called from many threads at once, "
                   "and under stream capture; gradients are not recorded (hone.ops has operators for autograd). Launches "
                   "go to the caller's current stream.")
    lines += ["from ctypes import c_int64, c_void_p", "from typing import Any, NamedTuple, Optional, Tuple", "",
              "from .. import descriptions", "from .._native import structs",
              "from .._native.arrays import Array",
              "from .._native.library import check",
              "from .base import NOT_PLAIN", "from .heads import HeadsOperator", "from .rows import RowsOperator",
              "from .tensors import computed, fixed, rows, stored", "", "__all__ = ["]
    lines += [f'    "{name}",' for name in sorted(class_name(group[0].call) for group in regular)] + ["]"]
    for group in groups:
        call = group[0].call
        if group in regular:
            lines += _regular_class(group, lock)
        else:
            lines += _irregular_class(call, lock)
    lines += ["", "", "# By description; hand-written ones are in prepare.py.", "KINDS = {"]
    lines += [f"    descriptions.{operator.title}: {class_name(group[0].call)}," for group in regular
              for operator in group]
    return "\n".join([*lines, "}", ""])


# PyTorch's operators.


def _torch_type(operator: Operator, name: str, optional: bool, fixed) -> str:
    for argument in tensors(operator.call):
        if name in _names(argument):
            sometimes = argument.when and fixed.get(_wanted(argument.when)) is not True or name.endswith("zeros")
            return "Tensor?" if sometimes else "Tensor"
    for argument in operator.call.arguments:
        if argument.name == name and argument.kind == "float":
            return "float?" if optional else "float"
    given = next((given for given in operator.fields if field_name(given.name) == name), None)
    if given is None:
        operator.refuse(f"{name} of a torch_call is no tensor, number or field")
    kind = {"int64": "int", "flag": "bool"}.get(given.kind, "str")
    return f"{kind}?" if optional else kind


def schema(operator: Operator, torch_call: TorchCall) -> str:
    parameters, marks = [], iter("abcdefgh")
    for text, optional in [(text, False)
                           for text in torch_call.arguments] + [(text, True) for text in torch_call.optional]:
        theirs, _, ours = text.rstrip("!").partition("=")
        kind = _torch_type(operator, ours or theirs, optional, torch_call.fixed)
        kind = f"Tensor({next(marks)}!)" if text.endswith("!") else kind
        parameters.append(f"{kind} {theirs}" + ("=None" if optional else ""))
    written = {text.rstrip("!") for text in torch_call.arguments if text.endswith("!")}
    given = {text.rstrip("!").partition("=")[0] for text in torch_call.arguments}
    count = sum(1 for argument in tensors(operator.call) if argument.role == "output"
                and argument.name not in written
                and (not argument.when or torch_call.fixed.get(_wanted(argument.when)) is True
                     or (argument.when.startswith("p.") and "output" in given)))
    result = "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"
    return f"{torch_call.name}({', '.join(parameters)}) -> {result}"


def torch_source(operators: typing.List[Operator]) -> str:
    lines = origin("PyTorch's operators: their schemas, and of which descriptions they are.")
    lines += ["from typing import Any, Dict, List, NamedTuple, Tuple", "", "from .. import descriptions", "", "",
              "class Declared(NamedTuple):", '    """An operator of torch.ops.hone."""', "",
              "    schema: str",
              "    description: Any",
              "    names: Tuple[str, ...]  # of its arguments, as prepared operators call them",
              "    fixed: Dict[str, Any]  # fields of the description",
              "    instead: str  # what has a gradient; empty: it has one",
              '    says: str = ""  # what is PyTorch\'s affair alone', "", "    @property",
              "    def name(self) -> str:", '        return self.schema.partition("(")[0]', "",
              "    @property",
              "    def arguments(self) -> Tuple[Tuple[str, str], ...]:",
              '        """Their types and names."""',
              '        pieces = (piece.split(" ") for piece in self._pieces())',
              '        return tuple((kind, name.partition("=")[0]) for kind, name in pieces)', "",
              "    @property",
              "    def parameters(self) -> str:",
              '        """Names and defaults, as those of a function in Python."""',
              '        return ", ".join(piece.rpartition(" ")[2] for piece in self._pieces())', "",
              "    def _pieces(self) -> List[str]:",
              '        return self.schema.partition("(")[2].partition(") ->")[0].split(", ")', "", "",
              "DECLARED = ("]
    for operator in operators:
        for torch_call in operator.torch:
            names = [text.rstrip("!").rpartition("=")[2]
                     for text in [*torch_call.arguments, *torch_call.optional]]
            lines += ["    Declared("]
            lines += _quoted(schema(operator, torch_call))
            lines.append(f"        descriptions.{operator.title},")
            lines += filled("(", [f'"{name}"' for name in names], ("," if len(names) == 1 else "") + "),", 8)
            lines += [f"        {torch_call.fixed!r},".replace("'", '"'), f'        "{torch_call.instead}",']
            lines += _quoted(torch_call.says) + ["    ),"]
    return "\n".join([*lines, ")", ""])


def _quoted(text: str) -> typing.List[str]:
    """Strings that Python joins to one argument; none for an empty one."""
    pieces = textwrap.wrap(text, 95, break_on_hyphens=False)
    return [f'        "{piece} "' for piece in pieces[:-1]] + [f'        "{piece}",' for piece in pieces[-1:]]


def _torch_names(operators: typing.List[Operator]) -> typing.List[str]:
    return [torch_call.name for operator in operators for torch_call in operator.torch]


def torch_block(operators: typing.List[Operator]) -> typing.List[str]:
    """PyTorch's operators, as hone._torch.registered makes them."""
    return [f'{name} = _declared("{name}")' for name in _torch_names(operators)]


def names_block(operators: typing.List[Operator]) -> typing.List[str]:
    """Names of the functions of hone.ops."""
    return filled("__all__ += [", [f'"{name}"' for name in _torch_names(operators)], "]", 0)


def functions_block(operators: typing.List[Operator]) -> typing.List[str]:
    """The functions of hone.ops, which have signatures and documentation, and call PyTorch's operators."""
    lines: typing.List[str] = []
    for operator in operators:
        for torch_call in operator.torch:
            lines += ["", "", *_function(operator, torch_call)]
    return [*lines, "", ""]


def _function(operator: Operator, torch_call: TorchCall) -> typing.List[str]:
    text = schema(operator, torch_call)
    pieces = text.partition("(")[2].partition(") ->")[0].split(", ")
    names = [piece.rpartition(" ")[2].partition("=")[0] for piece in pieces]
    result = text.rpartition("-> ")[2].replace("(", "Tuple[").replace(")", "]")
    says = [in_python(operator.says), torch_call.says,
            f"It is hone.{operator.title} as a function: help(hone.{class_name(operator.call)}.__call__) has the shapes "
            f"and dtypes of its tensors."]
    lines = filled(f"def {torch_call.name}(", [_function_parameter(piece) for piece in pieces], f") -> {result}:", 0)
    lines += wrapped('"""' + "\n\n".join(filter(None, says)), 4) + ['    """']
    return lines + filled(f"return _calls.{torch_call.name}(", names, ")", 4)


def _function_parameter(piece: str) -> str:
    """Of "Tensor? bias=None", say."""
    kind, _, name = piece.rpartition(" ")
    name, equals, default = name.partition("=")
    known = re.sub(r"\(.*\)", "", kind.rstrip("?"))
    known = f"Optional[{known}]" if kind.endswith("?") else known
    return f"{name}: {known}" + (f" = {default}" if equals else "")


def prepare_block(operators: typing.List[Operator]) -> typing.List[str]:
    """What hone.prepare() returns for each description."""
    lines: typing.List[str] = []
    for operator in operators:
        if operator.is_function:
            continue
        found = class_name(operator.call)
        found = found if operator.call.keywords else f"calls.{found}"
        lines += ["@overload", *filled("def prepare(", [f"description: descriptions.{operator.title}",
                                                       "device: Any = None"], f") -> {found}: ...", 0)]
    return lines
