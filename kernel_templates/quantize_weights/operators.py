from generate.declare import *

quantize_weights = family(
    "quantize_weights",
    says="codes of 4 or 8 bits of a weight of 16 or 32 bits, packed, with their scales and zero points",
    problem="WeightProblem",
    fields=[
        dtype("fp32 fp16 bf16", "element type of the weight"),
        choice("format", "w4a16 w8a16 w8a8 fp8", "format of the codes: docs/formats.md", enum="QuantFormat"),
        extent("group", 0, 128, "columns that share a scale; 0: all", default=0),
        flag("zeros", "codes of w4a16 have zero points, one a group"),
        flag("one_scale", "one scale for the whole weight, not one a row"),
        flag("search", "w4a16: the scale of least squared error, not the one that clips nothing",
             default=True),
        dtype("fp16 bf16", "element type of the scales of w4a16; the others' are fp32, and this is bf16",
              name="scale_dtype",
              default="bf16"),
        extent("in", 1, 262144, "columns of the weight"),
        dynamic("out", 1, 1048576, "rows of the weight"),
    ],
    pointers=[
        read("weight", "out, in"),
        write("codes", "p.code_rows(), p.row_bytes()", "p.code_dtype()"),
        write("scales", "p.scale_count()", "p.stored_scale_dtype()"),
        write("zeros", "p.scale_count()", "int8", when="zeros"),
        workspace("untyped"),
    ],
    scalars=[size("out"), stride("weight_stride", "in", of="weight")],
)

quantize_weights_function = operator(
    "QuantizeWeights",
    says="Codes and scales of weights of 16 or 32 bits, for {QuantizedLinear}: [max_out, in] or fewer rows.",
    function=True,
    fields=[
        integer("in", 0, "columns", allowed="1 to 262144"),
        integer("max_out", 32768, "most rows of one call; `in` x max_out is at most 2^36",
                allowed="1 to 1048576"),
        dtype_field("element type of the weight: fp32, fp16 or bf16"),
        choice_field("format", "QuantFormat", "w4a16"),
        integer("group", 0, "as in {QuantizedLinear}"),
        flag_field("zeros", "w4a16: codes have zero points, one a group"),
        flag_field("one_scale", "w8a8, fp8 with group 0: one scale for the whole weight, not one a row"),
        dtype_field("element type of w4a16's scales: fp16 or bf16; the other formats' are fp32 always",
                    name="scale_dtype"),
        flag_field("search", "w4a16: takes the scale of each group that leaves the least squared error; else "
                             "the one that clips nothing", default=True),
    ],
    call=call(
        "QuantizeWeights",
        says="codes, scales and zeros as {QuantizedLinear.args} says, without gaps; no part may overlap "
             "another.",
        sizes="out",
        arguments=[
            tensor("weight", "[out, in]", "dtype", role="weight"),
            tensor("codes", "", out=True),
            tensor("scales", "", out=True),
            tensor("zeros", "", "needed when codes have zero points", out=True, when="zeros"),
            workspace_argument(),
            number_argument("weight_stride", "between two rows of the weight, in elements; 0: `in`"),
        ],
    ),
    helpers="runtime/operators/scale_dtype.h",
    parts=[
        part("quantize", quantize_weights,
             fields={"scale_dtype": "scale_dtype_of(d)"},
             given={"weight_stride": "stride(args.weight_stride, d.in)"}),
    ],
)
