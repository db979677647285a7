from generate.declare import *

quantize_weights_function = operator(
    "QuantizeWeights",
    says="Codes and scales of weights of 16 or 32 bits, for {QuantizedLinear}: [max_out, in] or fewer rows.",
    function=True,
    fields=[
        integer("in", 0, "columns", allowed="1 to 262144"),
        integer("max_out", 32768, "most rows of one call; `in` x max_out is at most 2^36", allowed="1 to 1048576"),
        dtype_field("of the weight: fp32, fp16 or bf16"),
        choice_field("format", "QuantFormat", "w4a16"),
        integer("group", 0, "as in {QuantizedLinear}"),
        flag_field("zeros", "w4a16: codes have zero points, one a group"),
        flag_field("one_scale", "w8a8, fp8 with group 0: one scale for the whole weight, not one a row"),
        dtype_field("of w4a16's scales: fp16 or bf16; the other formats' are fp32 always", name="scale_dtype"),
        flag_field("search", "w4a16: takes the scale of each group that leaves the least squared error; else the one that "
                             "clips nothing", default=True),
    ],
    call=call(
        "QuantizeWeights",
        says="codes, scales and zeros as {QuantizedLinear.args} says, without gaps; no part may overlap another.",
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
)
