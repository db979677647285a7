"""bindings/rust: hone-sys, the C interface as Rust declares it, and the operators of the safe crate hone."""
import textwrap
import typing

from generate import abi, emit_c
from generate.enums import ENUMS, STATUSES, Enum, Value
from generate.operators import Call, Given, Operator
from generate.words import in_rust

WIDTH = 100
NOTE = "Generated from kernel_templates/*/operators.py and generate/enums.py by `./hone generate`."
DTYPE = Enum("Dtype", "dtype", "The element type of tensors.",
             [Value(word, f"HONE_{word.upper()}") for word in ("fp32", "fp16", "bf16")])
TYPES = {"uint32_t": "u32", "int32_t": "i32", "int64_t": "i64", "uint64_t": "u64", "float": "f32", "void": "c_void"}
KEYWORDS = {"in": "in_features"}  # `in` is no name in Rust; the struct's member of C is in_
OTHERS = {"out": "out_features"}  # beside in_features


def comment(text: str, indent: int = 0, mark: str = "///") -> typing.List[str]:
    lead = " " * indent + mark
    lines: typing.List[str] = []
    for paragraph in text.split("\n"):
        lines += textwrap.wrap(paragraph, WIDTH, initial_indent=lead + " ", subsequent_indent=lead + " ",
                               break_long_words=False, break_on_hyphens=False) or [lead]
    return lines


def rust_type(c: str) -> str:
    """`const float*` -> *const f32"""
    if not c.endswith("*"):
        return TYPES[c]
    constant, _, kind = c[:-1].strip().rpartition(" ")
    return f"*{'const' if constant else 'mut'} {TYPES[kind]}"


def member_name(name: str) -> str:
    return "in_" if name == "in" else name


def field_name(fields: typing.Sequence[str], name: str) -> str:
    if name in KEYWORDS:
        return KEYWORDS[name]
    return OTHERS[name] if name in OTHERS and "in" in fields else name


def _wrapped(head: str, items: typing.Sequence[str], tail: str, indent: int = 0) -> typing.List[str]:
    """In one line, or with a line for each item, as rustfmt has it."""
    one = " " * indent + head + ", ".join(items) + tail
    if len(one) <= WIDTH:
        return [one]
    return [" " * indent + head, *(" " * (indent + 4) + item + "," for item in items), " " * indent + tail]


# hone-sys


def _struct(made: abi.Struct) -> typing.List[str]:
    name = f"hone_{made.name}"
    return [f"/// `{name}` of hone.h.", "#[repr(C)]", "#[derive(Clone, Copy, Debug)]", f"pub struct {name} {{",
            *(f"    pub {member_name(member.name)}: {rust_type(member.type)}," for member in made.members), "}", "",
            f"impl Default for {name} {{", "    /// What the library has for what is not set.",
            "    fn default() -> Self {", f"        initialized({name}_init)", "    }", "}", ""]


def _parameter(text: str) -> str:
    """const hone_linear* description -> description: *const hone_linear"""
    kind, _, name = text.rpartition(" ")
    if not kind.endswith("*"):
        return f"{name}: {'usize' if kind == 'size_t' else kind if kind.startswith('hone_') else TYPES[kind]}"
    pointed, stars = kind.rstrip("*").strip(), len(kind) - len(kind.rstrip("*"))
    constant = pointed.startswith("const ")
    inner = pointed.replace("const ", "")
    inner = {"void": "c_void", "char": "c_char", "size_t": "usize", **TYPES}.get(inner, inner)
    pointer = f"*{'const' if constant else 'mut'} {inner}"
    return f"{name}: {'*mut ' * (stars - 1)}{pointer}"


def _function(name: str, parameters: typing.Sequence[str]) -> typing.List[str]:
    return _wrapped(f"pub fn {name}(", [_parameter(text) for text in parameters], ") -> hone_status;", 4)


def _functions(group: typing.Sequence[Operator]) -> typing.List[str]:
    call = group[0].call
    lines: typing.List[str] = []
    for operator in group:
        lines += _function(f"hone_{operator.name}_prepare", emit_c.prepare_parameters(operator))
        lines += _function(f"hone_{operator.name}_explain", emit_c.explain_parameters(operator))
    lines += _function(f"hone_{call.name}_run", emit_c.run_parameters(call))
    if len(call.sizes) > 1:
        lines += _function(f"hone_{call.name}_workspace",
                           ["const hone_operator* op", *emit_c.sizes(call), "size_t* bytes"])
    return lines


def sys_source(operators: typing.List[Operator], lock: abi.Lock) -> str:
    structs = abi.structs(operators, lock)
    lines = [*comment(f"Numbers, structs and functions of the operators. {NOTE}", mark="//!"), "",
             "use crate::{hone_operator, hone_runtime, hone_status, hone_text_format, initialized};",
             "use std::os::raw::{c_char, c_void};", ""]
    lines += [f"pub const HONE_{status.c}: hone_status = {status.number};" for status in STATUSES]
    for enum in [DTYPE, *ENUMS.values()]:
        lines += ["", *(f"pub const {value.c}: i32 = {i};" for i, value in enumerate(enum.values))]
    lines.append("")
    for made in structs:
        lines += _struct(made)
    lines.append('extern "C" {')
    for made in structs:
        lines += _function(f"hone_{made.name}_init", emit_c.init_parameters(made))
    for group in emit_c.groups([operator for operator in operators if not operator.is_function]):
        lines += _functions(group)
    return "\n".join([*lines, "}", ""])


def layout_source(structs: typing.List[abi.Struct]) -> str:
    lines = [*comment(f"Every member stands where C has it. {NOTE}", mark="//!"), "", "use hone_sys::*;",
             "use std::mem::{size_of, MaybeUninit};", "use std::ptr::addr_of;", "", "macro_rules! at {",
             "    ($type:ty, $member:ident, $offset:expr) => {{",
             "        let made = MaybeUninit::<$type>::uninit();",
             "        let address = unsafe { addr_of!((*made.as_ptr()).$member) } as usize;",
             "        assert_eq!(address - made.as_ptr() as usize, $offset, stringify!($type, $member));",
             "    }};", "}", ""]
    for made in structs:
        name = f"hone_{made.name}"
        lines += ["#[test]", f"fn {made.name}() {{", f"    assert_eq!(size_of::<{name}>(), {made.size});",
                  *(f"    at!({name}, {member_name(member.name)}, {member.offset});" for member in made.members),
                  f"    let made = {name}::default();",
                  f"    assert_eq!(made.struct_size as usize, size_of::<{name}>());", "}", ""]
    return "\n".join(lines[:-1] + [""])


# hone


def _variant(value: Value) -> str:
    return "".join(part.title() for part in value.word.split("_"))


def _enum(enum: Enum) -> typing.List[str]:
    lines = [*comment(enum.says), "#[derive(Clone, Copy, Debug, PartialEq, Eq)]", f"pub enum {enum.name} {{"]
    for i, value in enumerate(enum.values):
        lines += [*(comment(value.says, 4) if value.says else []), f"    {_variant(value)} = {i},"]
    lines += ["}", "", f"impl {enum.name} {{", "    fn from_c(number: i32) -> Self {", "        match number {"]
    lines += [f"            {i} => {enum.name}::{_variant(value)}," for i, value in enumerate(enum.values[1:], 1)]
    return [*lines, f"            _ => {enum.name}::{_variant(enum.values[0])},", "        }", "    }", "}", ""]


def _kind(given: Given) -> str:
    return {"int64": "i64", "flag": "bool", "dtype": "Dtype"}.get(given.kind) or given.enum


def _to_c(value: str, given: Given) -> str:
    return value if given.kind == "int64" else f"{value} as i32"


def _from_c(value: str, given: Given) -> str:
    if given.kind == "int64":
        return value
    return f"{value} != 0" if given.kind == "flag" else f"{_kind(given)}::from_c({value})"


def _description(operator: Operator) -> typing.List[str]:
    title, sys = operator.title, f"sys::hone_{operator.name}"
    names = [given.name for given in operator.fields]
    fields = [(field_name(names, given.name), given) for given in operator.fields]
    lines = [*comment(in_rust(operator.says)), "#[derive(Clone, Copy, Debug, PartialEq, Eq)]", f"pub struct {title} {{"]
    for name, given in fields:
        words = ", ".join(filter(None, [in_rust(given.words), given.allowed]))
        lines += [*(comment(words, 4) if words else []), f"    pub {name}: {_kind(given)},"]
    lines += ["}", "", f"impl Default for {title} {{", "    fn default() -> Self {",
              f"        let made = {sys}::default();", f"        {title} {{",
              *(f"            {name}: {_from_c('made.' + member_name(given.name), given)}," for name, given in fields),
              "        }", "    }", "}", "", f"impl {title} {{", f"    pub(crate) fn to_c(self) -> {sys} {{", f"        {sys} {{",
              *(f"            {member_name(given.name)}: {_to_c('self.' + name, given)}," for name, given in fields),
              f"            ..{sys}::default()", "        }", "    }"]
    return lines


def _prepare(operator: Operator) -> typing.List[str]:
    name, call = operator.name, operator.call
    sizes = [f"{size}: i64" for size in call.sizes]
    return ["", *comment("Loads, or compiles, every kernel that a call up to the maxima can reach.", 4),
            f"    pub fn prepare(&self, runtime: &Runtime) -> Result<Prepared{call.title}> {{",
            "        let description = self.to_c();",
            f"        Ok(Prepared{call.title}(runtime.prepare(|runtime, op| unsafe {{",
            f"            sys::hone_{name}_prepare(runtime, &description, op)", "        })?))", "    }", "",
            *comment("Which kernel a call of these sizes takes, and why; loads nothing.", 4),
            *_wrapped("pub fn explain(", ["&self", "runtime: &Runtime", *sizes, "format: TextFormat"],
                      ") -> Result<String> {", 4),
            "        let description = self.to_c();",
            "        runtime.explain(|runtime, text, capacity, length| unsafe {",
            *_wrapped(f"sys::hone_{name}_explain(",
                      ["runtime", "&description", *call.sizes, "format as i32", "text", "capacity", "length"], ")", 12),
            "        })", "    }", "}", ""]


def _kernel(call: Call) -> typing.List[str]:
    prepared, sizes = f"Prepared{call.title}", [f"{size}: i64" for size in call.sizes]
    run = f" {in_rust(call.run)}" if call.run else ""
    workspace = (f"sys::hone_{call.name}_workspace(op, {', '.join(call.sizes)}, bytes)" if len(call.sizes) > 1
                 else f"sys::hone_operator_workspace(op, {call.sizes[0]}, bytes)")
    return [*comment(in_rust(call.says)), f"pub type {call.title}Args = sys::hone_{call.name}_args;", "",
            *comment(f"A prepared operator whose calls take [`{call.title}Args`]."), "#[derive(Debug)]",
            f"pub struct {prepared}(Prepared);", "", f"impl {prepared} {{",
            *comment(f"Enqueues a call.{run}", 4), "    ///", "    /// # Safety",
            *comment("Pointers are to memory of the device that is as large as the description and the sizes say, "
                     "and stays until the stream has run the call; the stream is of the runtime's device.", 4),
            *_wrapped("pub unsafe fn run(", ["&self", "stream: Stream", f"args: &{call.title}Args", *sizes],
                      ") -> Result<()> {", 4),
            *_wrapped(f"check(sys::hone_{call.name}_run(", ["self.0.op()", "stream.0", "args", *call.sizes], "))", 8),
            "    }", "",
            *comment("Bytes of device memory, aligned to 256, that a call of up to these sizes needs as its workspace.",
                     4),
            *_wrapped("pub fn workspace_bytes(", ["&self", *sizes], ") -> Result<usize> {", 4),
            f"        self.0.workspace(|op, bytes| unsafe {{ {workspace} }})", "    }", "",
            *comment("What was prepared, bucket by bucket.", 4),
            "    pub fn report(&self, format: TextFormat) -> Result<String> {", "        self.0.report(format)",
            "    }", "}", ""]


def operators_source(operators: typing.List[Operator]) -> str:
    lines = [*comment(f"Every operator: its description, its arguments, and what it becomes. {NOTE}", mark="//!"),
             "", "use crate::{check, Prepared, Result, Runtime, Stream, TextFormat};", "use hone_sys as sys;", ""]
    for enum in [DTYPE, *ENUMS.values()]:
        lines += _enum(enum)
    for group in emit_c.groups(operators):
        for operator in group:
            lines += _description(operator)
            lines += ["}", ""] if operator.is_function else _prepare(operator)
        call = group[0].call
        lines += ([*comment(in_rust(call.says)), f"pub type {call.title}Args = sys::hone_{call.name}_args;", ""]
                  if group[0].is_function else _kernel(call))
    return "\n".join(lines[:-1] + [""])
