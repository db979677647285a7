"""The generated blocks of runtime/hone.h."""
import typing

from generate import abi, cpp
from generate.enums import ENUMS, STATUSES
from generate.operators import Call, Operator
from generate.words import in_c


def block_comment(text: str, indent: int = 0) -> typing.List[str]:
    body = cpp.comment(text, indent, " *")
    body[0] = " " * indent + "/*" + body[0][indent + 2:]
    last = body[-1] + " */"
    return body[:-1] + ([last] if len(last) <= cpp.WIDTH else [body[-1], " " * indent + " */"])


def _trailing(texts: typing.List[str], comments: typing.List[str]) -> typing.List[str]:
    """Like cpp.trailing, with C's comments."""
    lines: typing.List[str] = []
    for line in cpp.trailing(texts, comments, "/*", "/*@", " */", " "):
        if line.lstrip().startswith("/*@"):
            indent = len(line) - len(line.lstrip())
            words = line.strip()[3:].strip()
            if lines and lines[-1].endswith("@"):
                lines[-1] = lines[-1][:-1] + " " + words + "@"
            else:
                lines.append(" " * indent + words + "@")
        else:
            if lines and lines[-1].endswith("@"):
                text = lines.pop()[:-1]
                lines += block_comment(text.strip(), len(text) - len(text.lstrip()))
            lines.append(line)
    return lines


def _initializer(name: str, values: typing.List[str]) -> typing.List[str]:
    one = "    { " + ", ".join(values) + " }"
    if len(one) <= cpp.WIDTH:
        return [f"#define {name} \\", one]
    body = ["    {", " " * 8 + values[0]]
    for value in values[1:]:
        if len(body[-1]) + len(value) + 3 > cpp.WIDTH - 2:
            body.append(" " * 12 + value)
            body[-2] += ","
        else:
            body[-1] += ", " + value
    body.append("    }")
    head = f"#define {name}"
    width = max(len(line) for line in [head, *body])
    return [f"{line:<{width}} \\" for line in [head, *body[:-1]]] + [body[-1]]


def struct(made: abi.Struct, says: str, workspace: str = "") -> typing.List[str]:
    texts = [f"    {member.type} {member.name};" for member in made.members]
    init = [f"sizeof(hone_{made.name})"] + [member.init for member in made.members[1:]]
    return [*block_comment(in_c(says)), f"typedef struct hone_{made.name} {{",
            *_trailing(texts, [in_c(member.words, workspace) for member in made.members]),
            f"}} hone_{made.name};",
            *_initializer(f"HONE_{made.name.upper()}_INIT", init),
            *prototype(f"hone_{made.name}_init", init_parameters(made)), ""]


def init_parameters(made: abi.Struct) -> typing.List[str]:
    return [f"hone_{made.name}* {'args' if made.name.endswith('_args') else 'description'}", "size_t struct_size"]


def prototype(name: str, parameters: typing.List[str]) -> typing.List[str]:
    return cpp.filled(f"HONE_API hone_status {name}(", parameters, ");")


def sizes(call: Call) -> typing.List[str]:
    return [f"int64_t {size}" for size in call.sizes]


def prepare_parameters(operator: Operator) -> typing.List[str]:
    return ["hone_runtime* runtime", f"const hone_{operator.name}* description", "hone_operator** op"]


def run_parameters(call: Call) -> typing.List[str]:
    return ["const hone_operator* op", "void* stream", f"const hone_{call.name}_args* args", *sizes(call)]


def explain_parameters(operator: Operator) -> typing.List[str]:
    return ["const hone_runtime* runtime", f"const hone_{operator.name}* description", *sizes(operator.call),
            "hone_text_format format", "char* text", "size_t capacity", "size_t* length"]


def _functions(group: typing.List[Operator]) -> typing.List[str]:
    call = group[0].call
    lines: typing.List[str] = []
    for operator in group:
        lines += prototype(f"hone_{operator.name}_prepare", prepare_parameters(operator))
    if call.run:
        lines += block_comment(in_c(call.run))
    lines += prototype(f"hone_{call.name}_run", run_parameters(call))
    for operator in group:
        if operator.halves:
            lines.append('/* The text tells of both halves. */')
        lines += prototype(f"hone_{operator.name}_explain", explain_parameters(operator))
    return [*lines, ""]


def groups(operators: typing.List[Operator]) -> typing.List[typing.List[Operator]]:
    """Operators with the same call, one after the other."""
    found: typing.Dict[str, typing.List[Operator]] = {}
    for operator in operators:
        found.setdefault(operator.call.name, []).append(operator)
    return list(found.values())


def operators_block(operators: typing.List[Operator], lock: abi.Lock) -> typing.List[str]:
    lines: typing.List[str] = []
    for group in groups(operators):
        for operator in group:
            lines += struct(abi.description(operator, lock), operator.says)
        lines += struct(abi.arguments(group[0].call, lock), group[0].call.says, group[0].c_workspace)
        if not group[0].is_function:
            lines += _functions(group)
    return lines


def statuses_block() -> typing.List[str]:
    texts = [f"    HONE_{status.c} = {status.number}" + ("," if status is not STATUSES[-1] else "")
             for status in STATUSES]
    return ["typedef enum hone_status {", *_trailing(texts, [in_c(status.says) for status in STATUSES]),
            "} hone_status;"]


def enums_block() -> typing.List[str]:
    lines: typing.List[str] = []
    for enum in ENUMS.values():
        texts = [f"    {value.c} = {i}" + ("," if i + 1 < len(enum.values) else "") for i, value in
                 enumerate(enum.values)]
        lines += [*block_comment(enum.says), f"typedef enum hone_{enum.c} {{",
                  *_trailing(texts, [value.says for value in enum.values]), f"}} hone_{enum.c};", ""]
    return lines[:-1]

