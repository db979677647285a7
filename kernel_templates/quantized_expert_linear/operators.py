from generate.declare import *
from kernel_templates.expert_linear.operators import expert_linear
from kernel_templates.quantized_linear.operators import quantized_linear

quantized_expert_linear = family(
    "quantized_expert_linear",
    says="expert_linear with weights of 4 or 8 bits: activation(x * weight^T + bias) with each row's expert's weight, or gated "
         "with a second one; x of 16 bits",
    problem="QuantizedExpertProblem",
    fields=[
        dtype("fp32 fp16 bf16", "element type of x, biases and results", least="fp16"),
        shared(quantized_linear, "format group zeros"),
        shared(expert_linear, "activation gated bias gather combine experts top_k in out tokens"),
    ],
    pointers=[
        read("x", "p.x_rows(), in", strided=True),
        read("starts", "experts + 1, 1", "int32", fill=uneven_ramp("p.rows_an_expert()", "top_k"),
             words="the first place of each expert, and the end"),
        read("rows", "p.places(), 1", "int32", when="p.maps_rows()", fill=permutation(),
             words="token * top_k + slot at each place"),
        read("routing_weights", "tokens, top_k", "fp32", when="combine", fill=uniform(0.5, 0.5)),
        weight("weight", "experts, p.code_rows(), p.row_bytes()", "p.code_dtype()",
               fill=drawn("p.code_fill()", "p.code_fill_scale()")),
        weight("scales", "experts, p.scale_rows(), p.scale_columns()", "p.scale_dtype()",
               fill=uniform("0.5 * p.weight_scale()", "p.weight_scale()")),
        weight("zeros", "experts, p.scale_rows(), p.scale_columns()", "int8", fill=uniform(7.5, 7.5), when="zeros"),
        weight("up", "experts, p.code_rows(), p.row_bytes()", "p.code_dtype()",
               fill=drawn("p.code_fill()", "p.code_fill_scale()"), when="gated"),
        weight("up_scales", "experts, p.scale_rows(), p.scale_columns()", "p.scale_dtype()",
               fill=uniform("0.5 * p.weight_scale()", "p.weight_scale()"), when="gated"),
        weight("up_zeros", "experts, p.scale_rows(), p.scale_columns()", "int8", fill=uniform(7.5, 7.5),
               when="gated && zeros"),
        weight("bias", "experts, out", when="bias"),
        weight("up_bias", "experts, out", when="p.gated_bias()"),
        write("out", "p.out_rows(), out", strided=True),
        workspace(),
    ],
    scalars=[size("tokens"), strides()],
)

quantized_expert_linear_operator = operator(
    "QuantizedExpertLinear",
    family=quantized_expert_linear,
    says="{ExpertLinear} with quantized weights, all of one format: row p of x, sorted by expert as {ExpertRouting} says, times "
         "the weight of expert e with starts[e] <= p < starts[e + 1], whose elements are (code - zero point) * scale. gather, "
         "combine, biases and gates are as there.\n\n"
         "w4a16 and w8a16 multiply x as it is; weights may be rounded to dtype before that. w8a8 and fp8 multiply codes with "
         "codes, which are made of x first, with a scale for each row (fp8 with a group: for each 128 columns of it), the "
         "largest magnitude at 127 or 448.",
    fields=[
        taken("in", "elements of a row of x"),
        taken("out", "elements of a row of out"),
        taken("experts"),
        taken("top_k", "experts of a token"),
        largest("tokens", 8192, "most tokens of one call"),
        taken("dtype", "element type of x, biases and out"),
        taken("format", default="w4a16"),
        taken("group", "columns of a weight that share a scale; 0: all of a row. As in {QuantizedLinear}: w4a16: 32, 64 or 128, "
                       "dividing `in`; fp8: 128, dividing `in`, for a scale each 128 x 128; others: 0"),
        taken("zeros", "w4a16: codes have zero points, one a group"),
        taken("activation"),
        taken("gated", "there is a second weight, up"),
        taken("bias"),
        taken("gather", "x has a row for each token"),
        taken("combine", "out has a row for each token"),
    ],
    indices=True,
    call=call(
        "QuantizedExpertLinear",
        family=quantized_expert_linear,
        says="One call. A stride is the distance between two rows in elements, 0 meaning the row's length; weights have no "
             "gaps. 16 bytes always suffice as alignment of pointers and strides. out overlaps nothing else. Codes, scales and "
             "zero points of a weight are those of {QuantizedLinear.args}, expert after expert. What {ExpertLinear.args} says "
             "of `starts` and `rows` holds here, too.",
        sizes="tokens",
        arguments=[
            tensor("x", "", "[tokens, in] with gather, else [tokens, top_k, in]: tokens * top_k rows by place; dtype"),
            tensor("starts", "", "[experts + 1]: the first place of each expert, and tokens * top_k", element="int32"),
            tensor("rows", "[tokens, top_k]", "needed with gather or combine: the pairs by place, token * top_k + slot",
                   element="int32", when="p.maps_rows()"),
            tensor("routing_weights", "[tokens, top_k]", "needed with combine", element="fp32", when="combine"),
            weight_argument("weight", "[experts, out, in]"),
            weight_argument("up", "[experts, out, in]", "needed when the operator is gated", when="gated"),
            "bias up_bias",
            tensor("out", "", "[tokens, out] with combine, else [tokens, top_k, out]: tokens * top_k rows by place; dtype", out=True),
            "workspace x_stride out_stride",
        ],
        words={
            "up_bias": "needed when the operator is gated and has biases",
        },
        python="x starts weight scales",
    ),
    python="in out experts top_k format group",
    torch=[torch_call("quantized_expert_linear", "x starts codes=weight scales rows format group out_features top_k "
                                                 "activation gather | zeros up up_scales up_zeros bias up_bias "
                                                 "routing_weights",
                      says="The operator combines where there are routing_weights, and is gated where there is an up.",
                      instead="train with PyTorch's own functions")],
)
