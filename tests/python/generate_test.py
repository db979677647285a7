"""What follows from the declarations: that the tree has it, that a spoiled byte is found, and what the dialect
refuses; the emitters on a tiny family of their own."""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import pathlib
import shutil
import sys
import tempfile
import unittest

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE))
sys.dont_write_bytecode = True

from generate import __main__ as generator  # noqa: E402
from generate import abi, cpp, emit_c, emit_cpp, emit_family, emit_parts, emit_python  # noqa: E402
from generate import emit_python_calls, emit_run  # noqa: E402
from generate.families import DeclarationError  # noqa: E402

HEAD = "from generate.declare import *\n"
TINY = HEAD + '''
tiny = family(
    "tiny",
    says="out = x, scaled",
    problem="TinyProblem",
    fields=[
        dtype("fp16 bf16", "of x"),
        choice("mode", "up down", "how", default="down", enum="Mode"),
        flag("mask_rows", "rows that are 0 in the mask are left out"),
        extent("width", 1, 8, "elements a row"),
        dynamic("rows", 1, 2**30, "rows of a call"),
    ],
    pointers=[
        read("x", "rows, width", strided=True),
        read("mask", "rows", "int32", when="mask_rows", fill=constant("width")),
        write("out", "rows, width", strided=True),
    ],
    scalars=[size("rows", narrow=True), strides(), real("factor", 0.5)],
)
tiny_operator = operator(
    "Tiny",
    family=tiny,
    says="As {Tiny.args} says.",
    fields=[taken("width"), largest("rows", 64, "most rows"), taken("dtype"), taken("mask_rows")],
    call=call("Tiny", family=tiny, says="Of {Tiny}.", sizes="rows", arguments="x mask out x_stride out_stride factor"),
)
'''
PARTED = HEAD + '''
tiny = family(
    "tiny",
    says="out = x, scaled",
    problem="TinyProblem",
    fields=[
        dtype("fp16 bf16", "of x"),
        choice("mode", "up down", "how", default="down", enum="Mode"),
        extent("width", 1, 8, "elements a row"),
        dynamic("rows", 1, 2**30, "rows of a call"),
    ],
    pointers=[read("x", "rows, 2, width", strided="head"), write("out", "rows, width")],
    scalars=[size("rows"), strides(), real("factor", 0.5)],
)
tiny_operator = operator(
    "Tiny",
    says="As {Tiny.args} says.",
    fields=[integer("max_rows", 64), dtype_field("of x"), flag_field("rising")],
    call=call(
        "Tiny",
        says="Of {Tiny}.",
        sizes="rows",
        arguments=[tensor("x", ""), tensor("y", "", out=True), strides_argument("x", "head"), real_argument("factor", 1.0)],
    ),
    helpers="tiny/helpers.h",
    prepared="tiny/prepared.h",
    parts=[
        part("half", tiny, takes="width",
             fields={"width": "width", "mode": 'd.rising ? "up" : "down"'},
             let={"x": "strides_of(args.x_strides, d)"},
             given={"out": "args.y"}),
    ],
)
'''


class Fixture(unittest.TestCase):
    """A tree with a declaration of its own."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def declare(self, text: str):
        """What kernel_templates/tiny/operators.py declares."""
        path = self.root / "kernel_templates" / "tiny" / "operators.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        importlib.invalidate_caches()
        for name in [name for name in sys.modules if name.split(".")[0] == "kernel_templates"]:
            del sys.modules[name]
        sys.path.insert(0, str(self.root))
        try:
            return generator.declared(self.root)
        finally:
            sys.path.remove(str(self.root))
            for name in [name for name in sys.modules if name.split(".")[0] == "kernel_templates"]:
                del sys.modules[name]

    def refused(self, text: str, words: str) -> None:
        with self.assertRaises(DeclarationError) as caught:
            self.declare(text)
        self.assertRegex(str(caught.exception), rf"^kernel_templates/tiny/operators\.py:\d+: .*{words}")


class Tree(unittest.TestCase):
    def run_generator(self, *arguments: str) -> tuple:
        said = io.StringIO()
        given, path = sys.argv, list(sys.path)
        sys.argv = ["generate", *arguments]
        try:
            with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
                return generator.main(), said.getvalue()
        finally:
            sys.argv, sys.path[:] = given, path

    def test_the_tree_has_what_follows_from_its_declarations(self) -> None:
        self.assertEqual(self.run_generator("--check"), (0, ""))

    def test_a_spoiled_byte_of_any_file_is_found(self) -> None:
        texts = generator.outputs(TREE)
        self.assertGreater(len(texts), 40)
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            kept = [*texts, *(str(path.relative_to(TREE)) for path in TREE.glob("kernel_templates/*/operators.py"))]
            for path in kept:
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(TREE / path, root / path)
            self.assertEqual(generator.differing(root, texts), [])
            for path in texts:
                whole = (root / path).read_bytes()
                place = len(whole) // 2
                (root / path).write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
                self.assertEqual(generator.differing(root, texts), [path])
                (root / path).write_bytes(whole)
            (root / "runtime/hone.h").unlink()
            self.assertEqual(generator.differing(root, texts), ["runtime/hone.h"])

    def test_declarations_are_data(self) -> None:
        """Calls, literals, names and 2**24: no loops, no conditions, no functions."""
        allowed = (
            ast.Module, ast.ImportFrom, ast.alias, ast.Assign, ast.Name, ast.Store, ast.Load, ast.Call, ast.keyword,
            ast.List, ast.Dict, ast.Constant, ast.UnaryOp, ast.USub, ast.BinOp, ast.Pow,
        )  # fmt: skip
        paths = list(TREE.glob("kernel_templates/*/operators.py"))
        self.assertGreater(len(paths), 7)
        for path in paths:
            for node in ast.walk(ast.parse(path.read_text())):
                self.assertIsInstance(node, allowed, f"{path}:{getattr(node, 'lineno', 0)}")

    def test_no_generated_line_is_too_long(self) -> None:
        for path, text in generator.outputs(TREE).items():
            if path.endswith((".h", ".cpp")):
                for number, line in enumerate(text.splitlines(), 1):
                    self.assertLessEqual(len(line), cpp.WIDTH, f"{path}:{number}")


class Families(Fixture):
    def test_a_header_has_fields_by_their_names(self) -> None:
        (family,), _ = self.declare(TINY)
        header = emit_family.header(family)
        for line in (
            "enum Pointer : int { x, mask, out, pointer_count };",
            "enum CallScalar : int { rows, x_stride, out_stride, factor, scalar_count };",
            "enum class Mode : std::int64_t { up, down };",
            "    Mode mode = Mode::down;",
            "    return {.dtype = static_cast<Dtype>(problem[0] + 1),",
            '    narrow_arg(rows, "rows"),',
            '    float_arg(factor, "factor"),',
            "    {x_stride, x},",
        ):
            self.assertIn(line, header)

    def test_expressions_name_the_problem_s_fields(self) -> None:
        (family,), _ = self.declare(TINY)
        source = emit_family.source(family)
        self.assertIn(".shape = {1, 1, p.rows, p.width}", source)
        self.assertIn(".fill_offset = static_cast<double>(p.width)", source)
        self.assertIn('{.name = "factor", .tuning_value = Scalar::of(0.5f)}', source)
        self.assertEqual(family.cpp("p.rows + width * rows(width)"), "p.rows + p.width * rows(p.width)")

    def test_mistakes_are_refused_with_their_line(self) -> None:
        self.refused(TINY.replace('strided=True),\n        read("mask"', 'strided="a b"),\n        read("mask"'), "strides")
        self.refused(TINY.replace('taken("width")', 'taken("widht")'), "has no field widht")
        self.refused(TINY.replace('"x mask out', '"x masc out'), "has no pointer and no scalar masc")
        self.refused(TINY.replace('default="down"', 'default="dwon"'), "'dwon' is none of up, down")
        self.refused(TINY.replace('"fp16 bf16"', '"fp16 int8"'), "is no run of")
        self.refused(TINY.replace('real("factor", 0.5)', 'real("x", 0.5)'), "is a pointer's name, too")
        self.refused(TINY.replace('"tiny",', '"teeny",', 1), "declares no family tiny")
        self.refused(TINY.replace('"rows, width"', '"rows, widht"', 1), "x: widht of its shape is no field")
        self.refused(TINY.replace('when="mask_rows"', 'when="mask_row"'), "mask: mask_row of its when is no field")
        self.refused(TINY.replace('"rows", "int32"', '"rows", "int23"'), "mask: int23 is no dtype: .* fp32, fp16,")
        self.refused(TINY.replace('size("rows", narrow', 'size("row", narrow'), "row: is a size, and no field")
        more = 'dynamic("a", 1, 2, ""), dynamic("b", 1, 2, ""), dynamic("rows"'
        self.refused(TINY.replace('dynamic("rows"', more), "tiny: has more than 2 dynamic fields")

    def test_an_unknown_option_is_an_error(self) -> None:
        with self.assertRaises(TypeError):
            self.declare(TINY.replace("strided=True", "stirded=True", 1))


class Operators(Fixture):
    def test_an_operator_takes_from_its_family_by_name(self) -> None:
        _, operators = self.declare(TINY)
        header = emit_cpp.header(operators)
        self.assertIn("    std::int64_t width = 0;      ///< 1 to 8", header)
        self.assertIn("    const std::int32_t* mask = nullptr;  ///< [rows]; needed when the operator has mask_rows", header)
        self.assertIn("    float factor = 0.5F;", header)
        call = emit_run.header(operators)
        self.assertIn("call.scalars[tiny::x_stride] = Scalar::of(stride(args.x_stride, description.width));", call)
        self.assertIn("call.pointers[tiny::mask] = pointer(args.mask);", call)

    def test_a_call_has_everything_that_its_family_takes(self) -> None:
        self.refused(TINY.replace('"x mask out', '"x mask'), "out of tiny is none of its arguments or sizes")
        self.refused(TINY.replace("out_stride factor", "out_stride"), "factor of tiny is none of its arguments")
        self.refused(TINY.replace('sizes="rows"', 'sizes="row"'), "tiny: row of its sizes is no field of tiny")
        self.refused(TINY.replace('"Tiny",\n    family', '"tinyOne",\n    family'), "tinyOne is no name of an operator")
        self.declare(TINY.replace('"x mask out', '"x out'))  # no operator of this family has masks

    def test_what_is_found_late_has_its_place_too(self) -> None:
        torch = 'torch=[torch_call("tiny", "x nothing", instead="")],\n    family=tiny,\n    says="As'
        _, operators = self.declare(TINY.replace('family=tiny,\n    says="As', torch))
        with self.assertRaisesRegex(DeclarationError, r"^kernel_templates/tiny/operators\.py:\d+: .*nothing of a torch"):
            emit_python_calls.torch_source(operators)

    def test_a_part_says_only_what_its_family_calls_otherwise(self) -> None:
        _, (operator,) = self.declare(PARTED)
        header, source = emit_parts.header(operator), emit_parts.source(operator)
        for line in (
            "    const auto x = strides_of(args.x_strides, description);",
            "    call.pointers[tiny::x] = pointer(args.x);",
            "    call.pointers[tiny::out] = pointer(args.y);",
            "    call.scalars[tiny::rows] = Scalar::of(rows);",
            "    call.scalars[tiny::x_head_stride] = Scalar::of(x.head);",
            "    call.scalars[tiny::factor] = Scalar::of(args.factor);",
            'inline constexpr CallName half_names[] = {{"out", "y"}};',
        ):
            self.assertIn(line, header)
        for line in (
            "Problem half_problem(const Tiny& description, std::int64_t width) {",
            '{{"dtype", dtype_name(description.dtype)},',
            '{"mode", description.rising ? "up" : "down"},',
            '{"width", width}},',
            '{{"max_rows", description.max_rows}});',
            "    return TinyKernel(std::make_shared<const PreparedTiny>(maker, description));",
        ):
            self.assertIn(line, source)

    def test_what_a_part_does_not_say_is_refused(self) -> None:
        self.refused(PARTED.replace('given={"out"', 'given={"aut"'), "gives aut, which is no pointer and no scalar")
        self.refused(PARTED.replace('{"width": "width"', '{"widht": "width"'), "has no field widht")
        for text, words in (('{"width": "width", ', "does not say width"), ('"out": "args.y"', "does not give out")):
            _, (operator,) = self.declare(PARTED.replace(text, "{" if text.startswith("{") else ""))
            with self.assertRaisesRegex(DeclarationError, words):
                emit_parts.header(operator), emit_parts.source(operator)

    def test_prose_names_operators_as_each_language_does(self) -> None:
        _, operators = self.declare(TINY)
        self.assertIn("/// As TinyArgs says.", emit_cpp.header(operators))
        self.assertIn("/* As hone_tiny_args says. */", emit_c.operators_block(operators, {}))

    def test_a_description_in_python_says_of_which_family_it_is_and_what_that_lacks(self) -> None:
        own = TINY.replace('taken("mask_rows")]', 'taken("mask_rows"), flag_field("rising")]')
        for text, there, missing in (
            (TINY, ('FAMILY = "tiny"',), ("NOT_IN_FAMILY", "ROWS_ARE_SEQUENCES")),
            (own, ('FAMILY = "tiny"', 'NOT_IN_FAMILY = ("rising",)'), ("ROWS_ARE_SEQUENCES",)),
            (TINY.replace('"most rows")', '"most rows", sequences=True)'), ("ROWS_ARE_SEQUENCES = True",), ()),
            (PARTED, ('C_NAME = "tiny"',), ("FAMILY",)),
        ):
            source = emit_python.descriptions_source(self.declare(text)[1])
            for line in there:
                self.assertIn(f"\n    {line}\n", source)
            for line in missing:
                self.assertNotIn(line, source)

    def test_operators_of_pytorch_are_attributes_with_their_own_words(self) -> None:
        calls = """torch=[torch_call("tiny", "x | mask", instead="", says="Tiny's."), torch_call("tinier", "x", instead="")],"""
        _, operators = self.declare(TINY.replace("    family=tiny,\n    says=\"As", f"    {calls}\n    family=tiny,\n    says=\"As"))
        lines = ['tiny = _declared("tiny")', 'tinier = _declared("tinier")']
        self.assertEqual(emit_python_calls.torch_block(operators), lines)
        source = emit_python_calls.torch_source(operators)
        self.assertIn('        "",\n        "Tiny\'s.",\n    ),\n', source)
        self.assertIn('"tinier(Tensor x) -> Tensor",', source)

    def test_new_structs_have_no_gaps(self) -> None:
        _, operators = self.declare(TINY)
        description = abi.description(operators[0], {})
        self.assertEqual(
            [(member.name, member.offset) for member in description.members],
            [("struct_size", 0), ("dtype", 4), ("width", 8), ("max_rows", 16), ("mask_rows", 24), ("reserved", 28)],
        )

    def test_nothing_that_is_locked_moves_and_new_members_go_last(self) -> None:
        _, operators = self.declare(TINY)
        lock = {"tiny": [(0, "struct_size", "uint32_t"), (4, "dtype", "int32_t"), (8, "max_rows", "int64_t")]}
        members = [member.name for member in abi.description(operators[0], lock).members]
        self.assertEqual(members[:4], ["struct_size", "dtype", "max_rows", "width"])
        lock["tiny"].append((16, "gone", "int64_t"))
        with self.assertRaisesRegex(DeclarationError, r"^generate/abi\.lock: .* gone, which nothing .* may be deleted there"):
            abi.description(operators[0], lock)


if __name__ == "__main__":
    unittest.main()
