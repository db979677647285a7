"""bindings/go/operators.go: every operator as a struct of Go, over cgo."""
import textwrap
import typing

from generate import emit_c
from generate.abi import argument_words
from generate.enums import ENUMS, STATUSES, Enum, Value
from generate.operators import Call, CallArgument, Given, Operator
from generate.words import in_go

WIDTH = 100
NOTE = "Code generated from kernel_templates/*/operators.py and generate/enums.py by `./hone generate`. DO NOT EDIT."
DTYPE = Enum("Dtype", "dtype", "The element type of tensors.",
             [Value(word, f"HONE_{word.upper()}") for word in ("fp32", "fp16", "bf16")])
KINDS = {"int64_t": "int64", "float": "float32"}


def exported(name: str) -> str:
    """max_q_len -> MaxQLen"""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def local(name: str) -> str:
    whole = exported(name)
    return whole[:1].lower() + whole[1:]


def comment(text: str, indent: str = "") -> typing.List[str]:
    """As gofmt has it: formulas are code, and no line begins with the star of a product, which would be a list."""
    lines: typing.List[str] = []
    for paragraph in text.split("\n"):
        if paragraph.startswith("  "):
            lines += [indent + "//", f"{indent}//\t{paragraph.strip()}", indent + "//"]
            continue
        wrapped = textwrap.wrap(paragraph.replace(" * ", "\0* "), WIDTH, initial_indent=indent + "// ",
                                subsequent_indent=indent + "// ", break_long_words=False, break_on_hyphens=False)
        lines += [line.replace("\0", " ") for line in wrapped] or [indent + "//"]
    return lines


def _fields(fields: typing.Sequence[typing.Tuple[str, str, str]]) -> typing.List[str]:
    """Members with comments above them; as gofmt has it, types of neighbours without a comment between stand in one
    column."""
    lines: typing.List[str] = []
    run: typing.List[typing.Tuple[str, str]] = []

    def flush():
        width = max((len(name) for name, _ in run), default=0)
        lines.extend(f"\t{name:<{width}} {kind}" for name, kind in run)
        run.clear()

    for name, kind, words in fields:
        if words:
            flush()
            lines.extend(comment(words, "\t"))
        run.append((name, kind))
    flush()
    return lines


def _struct(name: str, says: str, fields: typing.Sequence[typing.Tuple[str, str, str]]) -> typing.List[str]:
    return [*comment(says), f"type {name} struct {{", *_fields(fields), "}", ""]


def _enum(enum: Enum) -> typing.List[str]:
    names = [enum.name + exported(value.word) for value in enum.values]
    lines = [*comment(f"{enum.name}: {enum.says[0].lower() + enum.says[1:]}"), f"type {enum.name} int32", "", "const ("]
    width = max(len(name) for name in names)
    for i, (name, value) in enumerate(zip(names, enum.values)):
        lines += comment(value.says, "\t") if value.says else []
        aligned = not any(other.says for other in enum.values)
        lines.append(f"\t{name:<{width if aligned else len(name)}} {enum.name} = {i}")
    return [*lines, ")", ""]


def _statuses() -> typing.List[str]:
    lines = ["// What a call may answer.", "const ("]
    for status in STATUSES:
        name = "Status" + "".join(part.title() for part in status.c.split("_"))
        lines += [*comment(status.says, "\t"), f"\t{name} Status = {status.number}"] if status.says else \
            [f"\t{name} Status = {status.number}"]
    return [*lines, ")", ""]


# descriptions


def _kind(given: Given) -> str:
    return {"int64": "int64", "flag": "bool", "dtype": "Dtype"}.get(given.kind) or given.enum


def _to_c(given: Given) -> str:
    value = f"d.{exported(given.name)}"
    return f"C.int64_t({value})" if given.kind == "int64" else f"flag({value})" if given.kind == "flag" else \
        f"C.int32_t({value})"


def _from_c(given: Given) -> str:
    value = f"c.{given.name}"
    return f"int64({value})" if given.kind == "int64" else f"{value} != 0" if given.kind == "flag" else \
        f"{_kind(given)}({value})"


def _description(operator: Operator) -> typing.List[str]:
    title, c = operator.title, f"C.hone_{operator.name}"
    fields = [(exported(given.name), _kind(given), ", ".join(filter(None, [in_go(given.words), given.allowed])))
              for given in operator.fields]
    width = max(len(name) for name, _, _ in fields) + 1
    return [*_struct(title, f"{title}: {in_go(operator.says)}", fields),
            f"// New{title} has the library's defaults.", f"func New{title}() {title} {{", f"\tvar c {c}",
            f"\tmustInit(C.hone_{operator.name}_init(&c, C.size_t(unsafe.Sizeof(c))))", f"\treturn {title}{{",
            *(f"\t\t{exported(given.name) + ':':<{width}} {_from_c(given)}," for given in operator.fields), "\t}", "}", "",
            f"func (d {title}) c() {c} {{", f"\tvar c {c}",
            f"\tmustInit(C.hone_{operator.name}_init(&c, C.size_t(unsafe.Sizeof(c))))",
            *(f"\tc.{given.name} = {_to_c(given)}" for given in operator.fields), "\treturn c", "}", ""]


def _go_sizes(call: Call) -> str:
    return ", ".join(local(size) for size in call.sizes) + " int64"


def _c_sizes(call: Call) -> str:
    return ", ".join(f"C.int64_t({local(size)})" for size in call.sizes)


def _prepare(operator: Operator) -> typing.List[str]:
    title, call, c = operator.title, operator.call, f"C.hone_{operator.name}"
    return [f"// Prepare{title} loads, or compiles, every kernel that a call up to the maxima can reach.",
            f"func (r *Runtime) Prepare{title}(d {title}) (*Prepared{call.title}, error) {{", "\tgiven := d.c()",
            "\top, err := r.prepare(func(runtime *C.hone_runtime, op **C.hone_operator) status {",
            f"\t\treturn {c}_prepare(runtime, &given, op)", "\t})", "\tif err != nil {", "\t\treturn nil, err", "\t}",
            f"\treturn &Prepared{call.title}{{op}}, nil", "}", "",
            "// Explain says which kernel a call of these sizes takes, and why; it loads nothing.",
            f"func (d {title}) Explain(r *Runtime, {_go_sizes(call)}, format TextFormat) (string, error) {{",
            "\tgiven := d.c()", "\treturn wholeText(r.use, func(text *C.char, capacity C.size_t, length *C.size_t) status {",
            f"\t\treturn {c}_explain(r.c, &given, {_c_sizes(call)},",
            "\t\t\tC.hone_text_format(format), text, capacity, length)", "\t})", "}", ""]


# arguments


def _arguments(call: Call) -> typing.List[typing.Tuple[str, str, str, CallArgument]]:
    """Members of C: name, type in Go, words, and the argument that it belongs to."""
    found = []
    for argument in call.arguments:
        kind = {"float": "float32", "int64": "int64", "strides": "int64"}.get(argument.kind, "DevicePointer")
        for i, name in enumerate(argument.c_members()):
            words = in_go(argument_words(argument)) if i == 0 else ""
            found.append((name, kind, words, argument))
    return found


def _args(call: Call) -> typing.List[str]:
    members, c = _arguments(call), f"C.hone_{call.name}_args"
    sets = []
    for name, kind, _, _ in members:
        value = f"args.{exported(name)}"
        if kind == "DevicePointer":
            sets.append(f"\tsetPointer(unsafe.Pointer(&c.{name}), {value})")
        else:
            sets.append(f"\tc.{name} = C.{'float' if kind == 'float32' else 'int64_t'}({value})")
    numbers = [(name, kind) for name, kind, _, _ in members if kind != "DevicePointer"]
    width = max((len(exported(name)) for name, _ in numbers), default=0) + 1
    return [*_struct(f"{call.title}Args", f"{call.title}Args: {in_go(call.says)}",
                     [(exported(name), kind, words) for name, kind, words, _ in members]),
            f"// New{call.title}Args has the library's defaults: no pointers, and the strides of rows without gaps.",
            f"func New{call.title}Args() {call.title}Args {{", f"\tvar c {c}",
            f"\tmustInit(C.hone_{call.name}_args_init(&c, C.size_t(unsafe.Sizeof(c))))", f"\treturn {call.title}Args{{",
            *(f"\t\t{exported(name) + ':':<{width}} {kind}(c.{name})," for name, kind in numbers), "\t}", "}", "",
            f"func (args *{call.title}Args) write(c *{c}) {{",
            f"\tmustInit(C.hone_{call.name}_args_init(c, C.size_t(unsafe.Sizeof(*c))))", *sets, "}", ""]


def _kernel(call: Call) -> typing.List[str]:
    prepared = f"Prepared{call.title}"
    run = f" {in_go(call.run)}" if call.run else ""
    workspace = (f"C.hone_{call.name}_workspace(p.c, {_c_sizes(call)}, bytes)" if len(call.sizes) > 1
                 else f"C.hone_operator_workspace(p.c, {_c_sizes(call)}, bytes)")
    return [f"// {prepared} is a prepared operator whose calls take {call.title}Args.", f"type {prepared} struct {{",
            "\t*prepared", "}", "", *comment(f"Run enqueues a call.{run}"),
            f"func (p *{prepared}) Run(stream Stream, args *{call.title}Args, {_go_sizes(call)}) error {{",
            f"\tvar c C.hone_{call.name}_args", "\targs.write(&c)",
            "\treturn p.use(func() status {",
            f"\t\treturn C.hone_{call.name}_run(p.c, stream.c(), &c, {_c_sizes(call)})", "\t})", "}", "",
            *comment("WorkspaceBytes is the device memory, aligned to 256, that a call of up to these sizes needs as its "
                     "workspace."),
            f"func (p *{prepared}) WorkspaceBytes({_go_sizes(call)}) (uint64, error) {{",
            "\treturn p.workspace(func(bytes *C.size_t) status {", f"\t\treturn {workspace}", "\t})", "}", ""]


def operators_source(operators: typing.List[Operator]) -> str:
    lines = [f"// {NOTE}", "", "package hone", "", "// #include <hone.h>", 'import "C"', "", 'import "unsafe"', ""]
    lines += _statuses()
    for enum in [DTYPE, *ENUMS.values()]:
        lines += _enum(enum)
    for group in emit_c.groups(operators):
        for operator in group:
            lines += _description(operator)
            if not operator.is_function:
                lines += _prepare(operator)
        lines += _args(group[0].call)
        if not group[0].is_function:
            lines += _kernel(group[0].call)
    return "\n".join(lines[:-1] + [""])
