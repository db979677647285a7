"""The rest of C++: blocks of runtime/hone/{hone.h,error.h,runtime.h}, runtime/operators/entry.h and
runtime/operators/runtime_operators.cpp."""
import typing

from generate import cpp, emit_c
from generate.emit_c_api import NOTE
from generate.emit_cpp import size_parameter
from generate.enums import CPP_SAYS, CPP_SENTENCES, CPP_STATUSES, STATUSES
from generate.operators import Operator
from generate.words import in_cpp


def _prepared(operators: typing.List[Operator]) -> typing.List[Operator]:
    return [operator for operator in operators if not operator.is_function]


def _told(operator: Operator) -> str:
    return "std::array<Explanation, 2>" if operator.halves else "Explanation"


def _size(operator: Operator) -> str:
    return operator.call.sizes[0] if len(operator.call.sizes) == 1 else "sizes"


def includes(operators: typing.List[Operator]) -> typing.List[str]:
    names = sorted(f'#include "hone/{group[0].call.name}.h"' for group in emit_c.groups(operators))
    width = max(map(len, names))
    return [f"{name:<{width}}  // IWYU pragma: export" for name in names]


def runtime_includes(operators: typing.List[Operator]) -> typing.List[str]:
    return sorted({f'#include "hone/{operator.call.name}.h"' for operator in _prepared(operators)})


def methods(operators: typing.List[Operator]) -> typing.List[str]:
    lines = cpp.comment("Loads, or compiles, every kernel that a call up to the description's maxima can reach. Throws "
                        "Error: bad_argument naming field, value and what is allowed; frozen; compile_failed; failed (out "
                        "of memory, a dead device).", 4)
    for operator in _prepared(operators):
        lines.append(f"[[nodiscard]] {operator.title}Kernel prepare(const {operator.title}& description);")
    lines += ["", *cpp.comment("Which kernel a call of these sizes takes, and why; where two halves run one after the other, "
                               "for each. Loads nothing, needs no prepare(). Throws like prepare().", 4)]
    for operator in _prepared(operators):
        lines += cpp.filled(f"[[nodiscard]] {_told(operator)} explain(",
                            [f"const {operator.title}& description", size_parameter(operator.call)],
                            ") const;", 4)
        lines[-1] = lines[-1][4:] if lines[-1].startswith("    [[") else lines[-1]
    return ["    " + line if line and not line.startswith("    ") else line for line in lines]


def entry(operators: typing.List[Operator]) -> str:
    """What Runtime calls."""
    lines = [*cpp.comment(f"How each operator is prepared and explained: what Runtime calls. {NOTE}", mark="//"), "#pragma once",
                          "",
             '#include "hone/runtime.h"', '#include "runtime/operators/maker.h"', "",
             "namespace hone::runtime {", ""]
    for operator in _prepared(operators):
        lines += cpp.filled(f"[[nodiscard]] {operator.title}Kernel prepare_with(",
                            ["const Maker& maker", f"const {operator.title}& description"], ");")
        lines += cpp.filled(f"[[nodiscard]] {_told(operator)} explain_with(",
                            ["const Dispatcher& dispatcher", f"const {operator.title}& description",
                             size_parameter(operator.call)], ");")
    return "\n".join([*lines, "", "}  // namespace hone::runtime", ""])


def definitions(operators: typing.List[Operator]) -> str:
    lines = [*cpp.comment(f"Runtime::prepare() and explain(). {NOTE}", mark="//"),
             '#include "runtime/dispatch/public_error.h"', '#include "runtime/operators/entry.h"',
             '#include "runtime/operators/runtime_state.h"', "", "namespace hone {", ""]
    for operator in _prepared(operators):
        title = operator.title
        lines += [f"{title}Kernel Runtime::prepare(const {title}& description) {{",
                  f'    return runtime::guarded("prepare({title})",',
                  f"                            [&] {{ return runtime::prepare_with(state_->maker(), description); }});",
                  "}", ""]
    for operator in _prepared(operators):
        title = operator.title
        lines += cpp.filled(f"{_told(operator)} Runtime::explain(", [f"const {title}& description",
                                                                      size_parameter(operator.call)],
                                                                      ") const {")
        body = f"[&] {{ return runtime::explain_with(state_->dispatcher, description, {_size(operator)}); }});"
        lines += [f'    return runtime::guarded("explain({title})",', " " * 28 + body, "}", ""]
    return "\n".join([*lines, "}  // namespace hone", ""])


def _by_cpp() -> typing.Dict[str, typing.Any]:
    return {status.cpp: status for status in STATUSES if status.cpp}


def status_enum() -> typing.List[str]:
    table = _by_cpp()
    says = [in_cpp(CPP_SAYS.get(name, table[name].says)) for name in CPP_STATUSES]
    return ["enum class Status : int {",
            *cpp.one_a_line([name + (" = 0" if name == "ok" else "") for name in CPP_STATUSES], 4, says,
                            last_comma=True),
            "};"]


def status_source() -> str:
    table = _by_cpp()
    lines = [*cpp.comment("What each Status means, in a sentence. Generated from generate/enums.py by `./hone generate`.",
                          mark="//"), '#include "hone/error.h"', "", "namespace hone {", "",
             "std::string_view describe(Status status) {", "    switch (status) {"]
    for name in CPP_STATUSES:
        lines += cpp.case(f"Status::{name}", CPP_SENTENCES.get(name, table[name].sentence))
    return "\n".join([*lines, "    }", '    return "unknown status";', "}", "", "}  // namespace hone", ""])
