"""runtime/hone/<call>.h: the public types of one call and of the operators that take it."""
import typing

from generate import abi, cpp
from generate.enums import ENUMS
from generate.operators import Call, CallArgument, Given, Operator
from generate.state import kept
from generate.words import in_cpp


def origin(folder: str, says: str) -> typing.List[str]:
    return cpp.comment(f"{says} Generated from kernel_templates/{folder}/operators.py by `./hone generate`.",
                       mark="//")


def _allowed(given: Given, operator: Operator) -> str:
    if given.kind != "dtype" or operator.family is None:
        return given.allowed
    field = operator.family.field(given.field)
    choices = field.choices[field.least:]
    return f"{', '.join(choices[:-1])} or {choices[-1]}"


def _member(given: Given) -> str:
    if given.kind == "int64":
        return f"    std::int64_t {given.name} = {given.default};"
    if given.kind == "flag":
        return f"    bool {given.name} = {'true' if given.default else 'false'};"
    if given.kind == "dtype":
        return f"    Dtype {given.name} = Dtype::{given.default};"
    value = next(value for value in ENUMS[given.enum].values if value.word == given.default)
    return f"    {given.enum} {given.name} = {given.enum}::{value.name};"


def _description(operator: Operator) -> typing.List[str]:
    words = []
    for given in operator.fields:
        allowed = _allowed(given, operator)
        between = "; " if given.kind == "dtype" else ", "
        words.append(in_cpp(between.join(filter(None, [given.words, allowed]))))
    return [*cpp.comment(in_cpp(operator.says)), f"struct {operator.title} {{",
            *cpp.trailing([_member(given) for given in operator.fields], words), "};", ""]


def _argument(argument: CallArgument) -> str:
    if argument.kind == "tensor":
        return f"    {argument.type} {argument.name} = nullptr;"
    if argument.kind == "weight":
        return f"    {argument.type} {argument.name};"
    if argument.kind == "strides":
        return f"    {argument.type} {argument.name}{{}};"
    if argument.kind == "float":
        return f"    float {argument.name} = {cpp.real(argument.default, 'F')};"
    return f"    std::int64_t {argument.name} = {argument.default};"


def _arguments(group: typing.List[Operator]) -> typing.List[str]:
    call = group[0].call
    lines = [*cpp.comment(in_cpp(call.says)), f"struct {call.title}Args {{",
             *cpp.trailing([_argument(argument) for argument in call.arguments],
                           [in_cpp(abi.argument_words(argument)) for argument in call.arguments]), "};"]
    lines += [f"using {operator.title}Args = {call.title}Args;" for operator in group
              if operator.title != call.title]
    return lines + [""]


def _sizes(call: Call) -> typing.List[str]:
    if len(call.sizes) == 1:
        return []
    return ["/// How much one call is of.", f"struct {call.title}Sizes {{",
            *(f"    std::int64_t {size} = 0;" for size in call.sizes), "};", ""]


def size_parameter(call: Call) -> str:
    return f"std::int64_t {call.sizes[0]}" if len(call.sizes) == 1 else f"{call.title}Sizes sizes"


def type_of(given: Given) -> str:
    if given.name == "description":
        return f"const {given.kind}&"
    return {"int64": "std::int64_t", "flag": "bool", "dtype": "Dtype"}.get(given.kind, given.enum)


def _constructor(call: Call, state: typing.List[Given], has_indices: bool) -> typing.List[str]:
    parameters = ["std::shared_ptr<const runtime::Prepared> prepared"]
    parameters += [f"{type_of(given)} {given.name}" for given in state]
    if has_indices:
        parameters.append("bool checks_indices")
        state = [*state, Given("checks_indices", "flag", False, "")]
    head = f"    explicit {call.title}Kernel(" if len(parameters) == 1 else f"    {call.title}Kernel("
    values = ["PreparedKernel(std::move(prepared))"] + [f"{given.name}_({given.name})" for given in state]
    return [*cpp.filled(head.strip(), parameters, ")", 4), f"        : {', '.join(values)} {{}}"]


def _kept_member(given: Given) -> str:
    if given.name == "description":
        return f"    {given.kind} description_;"
    return f"    {type_of(given)} {given.name}_ = {'false' if given.kind == 'flag' else '0'};"


def _kernel(group: typing.List[Operator]) -> typing.List[str]:
    call, state = group[0].call, kept(group[0])
    size = size_parameter(call)
    lines = [f"/// A prepared {' or '.join(operator.title for operator in group)}.",
             f"class {call.title}Kernel : public PreparedKernel {{", "  public:",
             f"    {call.title}Kernel() = default;",
             "",
             *cpp.comment(f"Enqueues the operator for `{'`, `'.join(call.sizes)}` (0: does nothing). Checks fail "
                              f"before anything is enqueued. {in_cpp(call.run)}".strip(), 4),
             *cpp.filled("[[nodiscard]] Status run(",
                         ["CUstream_st* stream", f"const {call.title}Args& args", size],
                         ") const noexcept;", 4),
             "    /// Why run() refuses such a call: the argument's name, its value and what is allowed. Empty: it "
             "does not.",
             *cpp.filled("[[nodiscard]] std::string refusal(", [f"const {call.title}Args& args", size],
                         ") const;", 4)]
    if len(call.sizes) > 1:
        lines += ["    /// Bytes of device memory, aligned to 256, that any call of up to these sizes needs; 0: none. Throws",
                  "    /// Error for sizes below 0 or above the prepared maximum, and when the object is empty.",
                  f"    [[nodiscard]] std::int64_t workspace_bytes({size}) const;"]
    has_indices = group[0].has_indices
    lines += ["", "    /// For Runtime::prepare().", *_constructor(call, state, has_indices)]
    if state:
        lines += ["", "  private:"] + [_kept_member(given) for given in state]
    if has_indices:
        lines.append("    bool checks_indices_ = false;  ///< RuntimeOptions::check_indices")
    return [*lines, "};", *(f"using {operator.title}Kernel = {call.title}Kernel;" for operator in group
                            if operator.title != call.title), ""]


def _includes(group: typing.List[Operator]) -> typing.List[str]:
    kinds = {argument.kind for argument in group[0].call.arguments}
    own = ['#include "hone/error.h"', '#include "hone/prepared_kernel.h"',
           '#include "kernel_templates/dtype.h"']
    if any(given.kind == "enum" for operator in group for given in operator.fields):
        own.append('#include "kernel_templates/enums.h"')
    if "strides" in kinds:
        own.append('#include "hone/attention_strides.h"')
    if "weight" in kinds:
        own.append('#include "hone/quantized_weight_pointers.h"')
    standard = ["#include <cstdint>", *(["#include <memory>", "#include <string>", "#include <utility>"]
                                        if not group[0].is_function else [])]
    if group[0].is_function:
        own.remove('#include "hone/error.h"')
        own.remove('#include "hone/prepared_kernel.h"')
    return [*standard, "", *sorted(own), ""]


def header(group: typing.List[Operator]) -> str:
    titles = " and ".join(operator.title for operator in group)
    rest = "" if group[0].is_function else (
        " Describe the operator, let Runtime::prepare() make a kernel object of it, call run() as often as you like: it "
        "is safe from many threads at once and under stream capture, takes no lock, allocates nothing and makes no system "
        "call of its own. The calling thread needs the device's primary context current, as after any call of the CUDA "
        "runtime; a thread without a context gets it at its first run().")
    lines = [*origin(group[0].folder, f"{titles}.{rest}"), "#pragma once", "", *_includes(group),
             "namespace hone {", ""]
    for operator in group:
        lines += _description(operator)
    lines += _sizes(group[0].call) + _arguments(group)
    if not group[0].is_function:
        lines += _kernel(group)
    return "\n".join([*lines, "}  // namespace hone", ""])
