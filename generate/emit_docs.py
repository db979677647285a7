"""docs/operators/<operator>.md and README.md there: a reference page for each public operator."""
import typing

from generate import abi, emit_c
from generate.emit_cpp import size_parameter
from generate.enums import STATUSES
from generate.operators import CallArgument, Given, Operator
from generate.words import in_cpp


def _row(cells: typing.Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _table(head: typing.List[str], rows: typing.List[typing.List[str]]) -> typing.List[str]:
    return [_row(head), _row(["---"] * len(head)), *(_row(row) for row in rows), ""]


def _shown(given: Given) -> str:
    if given.kind == "flag":
        return "yes" if given.default else "no"
    return "required" if given.kind == "int64" and given.default == 0 and not given.words.count("0:") and \
        given.allowed else str(given.default)


def _kind(given: Given) -> str:
    if given.kind == "enum":
        return ", ".join(value.word for value in given.values)
    return {"int64": given.allowed or "integer", "flag": "yes or no", "dtype": "fp32, fp16, bf16"}[given.kind]


def _argument(argument: CallArgument) -> typing.List[str]:
    kind = {"tensor": argument.role, "weight": "quantized weight", "strides": "strides", "int64": "integer",
            "float": "number"}[argument.kind]
    default = "" if argument.kind in ("tensor", "weight", "strides") else f"{argument.default:g}"
    return [f"`{argument.name}`", kind, in_cpp(abi.argument_words(argument)), default]


def _cpp(operator: Operator) -> typing.List[str]:
    title, call = operator.title, operator.call
    if operator.is_function:
        return [f"void hone::quantize_on_device(Runtime&, const {title}&, const {call.title}Args&, std::int64_t out, "
                "CUstream_st*);  // hone/quantize_on_device.h"]
    return [f"{title}Kernel Runtime::prepare(const {title}& description);",
            f"Status {title}Kernel::run(CUstream_st* stream, const {title}Args& args, {size_parameter(call)});",
            f"Explanation Runtime::explain(const {title}& description, {size_parameter(call)});"]


def _c(operator: Operator) -> typing.List[str]:
    if operator.is_function:
        return [f"hone_status hone_{operator.name}_on_device(hone_runtime*, const hone_{operator.name}*, const "
                f"hone_{operator.call.name}_args*, int64_t out, void* stream);"]
    return [f"hone_status hone_{operator.name}_prepare({', '.join(emit_c.prepare_parameters(operator))});",
            f"hone_status hone_{operator.call.name}_run({', '.join(emit_c.run_parameters(operator.call))});"]


def _errors(operator: Operator) -> typing.List[str]:
    names = {argument.name for argument in operator.call.arguments}
    wanted = {"BAD_ROWS", "NULL_POINTER", "MISALIGNED", "LAUNCH_FAILED"}
    wanted |= {"BAD_STRIDE"} if any("stride" in name for name in names) else set()
    wanted |= {"BAD_EPSILON"} if "epsilon" in names else set()
    wanted |= {"BAD_SCALE"} if {"scale", "softcap"} & {a.name for a in operator.call.arguments
                                                       if a.kind == "float"} \
        else set()
    wanted |= {"BAD_LENGTHS", "BAD_PAGES", "CAPTURING"} if "page_table" in names else set()
    wanted |= {"BAD_INDICES", "CAPTURING"} if operator.has_indices else set()
    wanted |= {"BAD_LENGTHS"} if operator.checks_indices else set()
    wanted |= {"CAPTURING"} if operator.is_function else set()
    rows = [[f"`HONE_{status.c}`", f"`{status.cpp}`", status.sentence] for status in STATUSES
            if status.c in wanted]
    return ["## What a call refuses", "", "Before anything is enqueued, but for the driver's refusal; "
            "`hone_last_error()` and `refusal()` name the argument and what is allowed.", "",
            *_table(["C", "C++", ""], rows)]


def page(operator: Operator) -> str:
    lines = [f"# {operator.title}", "",
             f"<!-- Generated from kernel_templates/{operator.folder}/operators.py by `./hone generate`. -->",
             ""]
    for paragraph in in_cpp(operator.says).split("\n"):
        lines.append(f"    {paragraph.strip()}" if paragraph.startswith("  ") else paragraph)
    lines += ["", "```cpp", *_cpp(operator), "```", "```c", *_c(operator), "```", "", "## Description", "",
              *_table(["field", "", "allowed", "default"],
                      [[f"`{given.name}`", in_cpp(given.words), _kind(given), _shown(given)]
                       for given in operator.fields]),
              "## Arguments of a call", "", in_cpp(operator.call.says), "",
              f"Sizes of a call: {', '.join(f'`{size}`' for size in operator.call.sizes)}. {in_cpp(operator.call.run)}".strip(),
              "", *_table(["argument", "", "", "default"],
                          [_argument(argument) for argument in operator.call.arguments]),
              *_errors(operator)]
    return "\n".join(lines).rstrip() + "\n"


def index(operators: typing.List[Operator]) -> str:
    lines = ["# Which operators are there?", "",
             "<!-- Generated from kernel_templates/*/operators.py by `./hone generate`. -->", ""]
    for operator in sorted(operators, key=lambda operator: operator.title):
        first = in_cpp(operator.says).split(". ")[0].split("\n")[0].rstrip(".:")
        lines.append(f"- [{operator.title}]({operator.name}.md): {first}")
    return "\n".join(lines) + "\n"
