from generate.declare import *

quantize_weights = family(
    "quantize_weights",
    says="codes of 4 or 8 bits of a weight of 16 or 32 bits, packed, with their scales and zero points",
    problem="WeightProblem",
    fields=[
        dtype("fp32 fp16 bf16", "element type of the weight"),
        choice("format", "w4a16 w8a16 w8a8 fp8", "of the codes: docs/formats.md", enum="QuantFormat"),
        extent("group", 0, 128, "columns that share a scale; 0: all", default=0),
        flag("zeros", "codes of w4a16 have zero points, one a group"),
        flag("one_scale", "one scale for the whole weight, not one a row"),
        flag("search", "w4a16: the scale of least squared error, not the one that clips nothing", default=True),
        dtype("fp16 bf16", "of the scales of w4a16; the others' are fp32, and this is bf16", name="scale_dtype",
              default="bf16"),
        extent("in", 1, 262144, "columns of the weight"),
        dynamic("out", 1, 1048576, "rows of the weight"),
    ],
    pointers=[
        read("weight", "out, in"),
        write("codes", "p.code_rows(), p.row_bytes()", "p.code_dtype()"),
        write("scales", "p.scale_count()", "p.stored_scale_dtype()"),
        write("zeros", "p.scale_count()", "int8", when="zeros"),
        workspace(),
    ],
    scalars=[size("out"), stride("weight_stride", "in", of="weight")],
)
