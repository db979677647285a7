from generate.declare import *
from kernel_templates.linear.operators import linear

quantized_linear = family(
    "quantized_linear",
    says="activation(x * weight^T + bias) + residual, or gated: activation(x * weight^T) * (x * up^T), with "
         "weights of 4 or 8 bits; x of 16 bits, or of 8 as the weight",
    problem="QuantizedProblem",
    fields=[
        dtype("fp32 fp16 bf16", "element type of results, bias and residual, and of x that is not codes",
              least="fp16"),
        choice("format", "w4a16 w8a16 w8a8 fp8", "format of the weight's codes: docs/formats.md",
               enum="QuantFormat"),
        extent("group", 0, 128, "columns of the weight that share a scale; 0: all", default=0),
        flag("zeros", "codes have zero points, one a group"),
        flag("quantized_x", "x comes as codes with scales, as the weight's"),
        shared(linear, "norm activation gated bias residual in out tokens"),
    ],
    pointers=[
        read("x", "tokens, in", "p.x_dtype()", fill=drawn("p.x_fill()", "p.x_fill_scale()")),
        read("x_scales", "tokens, p.groups()", "fp32", when="quantized_x",
             fill=uniform("0.5 * p.x_scale()", "p.x_scale()")),
        weight("norm_weight", "in", fill=normal(0.25, 1.0), when="norm"),
        weight("weight", "p.code_rows(), p.row_bytes()", "p.code_dtype()",
               fill=drawn("p.code_fill()", "p.code_fill_scale()")),
        weight("scales", "p.scale_rows(), p.scale_columns()", "p.scale_dtype()",
               fill=uniform("0.5 * p.weight_scale()", "p.weight_scale()")),
        weight("zeros", "p.scale_rows(), p.scale_columns()", "int8", fill=uniform(7.5, 7.5), when="zeros"),
        weight("up", "p.code_rows(), p.row_bytes()", "p.code_dtype()",
               fill=drawn("p.code_fill()", "p.code_fill_scale()"), when="gated"),
        weight("up_scales", "p.scale_rows(), p.scale_columns()", "p.scale_dtype()",
               fill=uniform("0.5 * p.weight_scale()", "p.weight_scale()"), when="gated"),
        weight("up_zeros", "p.scale_rows(), p.scale_columns()", "int8", fill=uniform(7.5, 7.5),
               when="gated && zeros"),
        weight("bias", "out", when="bias"),
        read("residual", "tokens, out", when="residual"),
        write("out", "tokens, out"),
        workspace(),
    ],
    scalars=[
        size("tokens"),
        stride("x_stride", "in", of="x"),
        stride("x_scale_stride", "p.groups()", of="x_scales", words="0: one scale for all tokens"),
        stride("weight_stride", "in", of="weight", words="w8a8 and fp8; packed formats have none"),
        stride("up_stride", "in", of="up"),
        number("scale_stride", 1, "w8a8 and fp8 without groups: 1, or 0 for one scale of the whole weight"),
        stride("residual_stride", "out", of="residual"),
        stride("out_stride", "out", of="out"),
        epsilon("the norm's"),
    ],
)

quantized_linear_operator = operator(
    "QuantizedLinear",
    says="out = activation(x * weight^T + bias) + residual, accumulated in fp32 (w8a8: in 32-bit integers), "
         "where an element of weight is (code - zero point) * scale. Rows of x are tokens.\n\n"
         "w4a16 and w8a16 multiply x as it is; weights may be rounded to dtype before that. w8a8 and fp8 "
         "multiply codes with codes: either the caller gives those of x (quantized_x), as an {RmsNorm} "
         "writes them, or they are made of x first, with a scale for each token (fp8 with a group: for each "
         "128 columns of it), the largest magnitude at 127 or 448. With a norm x * rsqrt(mean(x^2) + "
         "epsilon) * norm_weight takes the place of x, as in {Linear}.",
    family=quantized_linear,
    problems=["gated=no"],
    checked=True,
    fields=[
        taken("in", "elements of a row of x"),
        taken("out", "elements of a row of out"),
        largest("tokens", 8192, "most tokens of one call"),
        taken("dtype", "element type of x that is no codes, bias, residual, norm_weight and out"),
        taken("format", default="w4a16"),
        taken("group", "columns of the weight that share a scale; 0: all of a row. w4a16: 32, 64 or 128, "
                       "dividing `in`. fp8: 128, dividing `in`, for a scale each 128 x 128 of the weight and "
                       "each 128 columns of x. Others: 0"),
        taken("zeros", "w4a16: codes have zero points, one a group"),
        flag_field("one_scale", "w8a8, fp8 with group 0: one scale for the whole weight, not one a row"),
        taken("quantized_x", "w8a8, fp8: x comes as codes with scales; not with norm"),
        flag_field("one_x_scale", "quantized_x, group 0: one scale for all of x, not one a token"),
        taken("activation"),
        taken("bias"),
        taken("residual"),
        taken("norm", "x is normalized first"),
    ],
    call=call(
        "QuantizedLinear",
        family=quantized_linear,
        says="Rows are contiguous; a stride is the distance between two rows in elements, 0 meaning the "
             "row's length. 16 bytes always suffice as alignment of pointers and strides. What {Linear.args} "
             "says of overlaps and of weights holds here, too. The weight's codes are bytes: w4a16, w8a16: "
             "[ceil(out / 64)][ceil(in / 64)] blocks of 2048 or 4096 without gaps; w8a8 (two's complement), "
             "fp8: [out, in], whose rows may lie weight_stride apart. Its scales are, of w4a16, of dtype, "
             "[ceil(out / 64)][groups][64] with groups = ceil(ceil(in / 64) * 64 / group), or 1, in the "
             "order of docs/formats.md, and its zeros one byte each at the same places; of the others fp32, "
             "[out], or one, or, in groups, [ceil(out / 128), in / 128].",
        sizes="tokens",
        arguments=[
            tensor("x", "[tokens, in]", "dtype; quantized_x: int8 or E4M3", computed="x_dtype"),
            tensor("x_scales", "", "quantized_x: [tokens], [tokens, in / 128] in groups, or one",
                   element="fp32",
                   when="quantized_x"),
            weight_argument("weight", "[out, in]"),
            "bias residual out workspace x_stride x_scale_stride weight_stride residual_stride out_stride "
            "norm_weight epsilon",
        ],
        words={
            "x_scale_stride": "between the scales of two tokens; one_x_scale: has no meaning",
            "weight_stride": "w8a8 and fp8; packed codes have no rows",
            "epsilon": "the norm's, from 0",
        },
        given={
            "x_scale_stride": "d.one_x_scale ? 0 : stride(args.x_scale_stride, "
                              "quantized_linear::groups_of(d.in, d.group))",
            "weight_stride": "is_packed(d.format) ? 0 : stride(args.weight_stride, d.in)",
            "up_stride": "is_packed(d.format) ? 0 : d.in",
            "scale_stride": "d.one_scale ? 0 : 1",
        },
        python="x weight scales zeros bias residual",
    ),
    python="in out format group",
    torch=[torch_call("quantized_linear", "x codes=weight scales format group out_features activation | "
                                          "zeros bias residual x_scales norm_weight epsilon out_dtype=dtype",
                      instead="train with torch.nn.functional.linear")],
)

quantized_ffn = operator(
    "QuantizedFfn",
    says="{FusedFfn} with quantized weights, all of one format. The product of the first half [tokens, "
         "intermediate], rounded to dtype, lies in the workspace; where codes are multiplied with codes, the "
         "second half makes its own of that.",
    halves=True,
    problems=["gated=yes", "activation!=none"],
    prepared="runtime/operators/feed_forward.h",
    fields=[
        integer("hidden", 0, "elements of a row of x and out"),
        integer("intermediate", 0, "elements of a row between the halves"),
        integer("max_tokens", 8192, "most tokens of one call"),
        dtype_field("as in {QuantizedLinear}"),
        choice_field("format", "QuantFormat", "w4a16"),
        integer("group", 0, "as in {QuantizedLinear}; divides hidden and intermediate"),
        flag_field("zeros", "zero points of all weights"),
        flag_field("one_scale", "one for each weight"),
        flag_field("quantized_x", "x, and only x, comes as codes with scales; not with norm"),
        flag_field("one_x_scale"),
        choice_field("activation", "Activation", "silu", of=quantized_linear),
        flag_field("gated", default=True),
        flag_field("bias", "biases of both halves; not with `gated`"),
        flag_field("residual", "added to out"),
        flag_field("norm", "x is normalized first"),
    ],
    call=call(
        "QuantizedFfn",
        says="As {QuantizedLinear.args}; weights have no gaps. `out` may be the residual itself also where "
             "that is x.",
        sizes="tokens",
        arguments=[
            tensor("x", "[tokens, hidden]", "dtype; quantized_x: int8 or E4M3", computed="x_dtype"),
            tensor("x_scales", "", "as in {QuantizedLinear.args}", element="fp32", when="quantized_x"),
            weight_argument("gate", "[intermediate, hidden]", "needed when the operator is gated",
                            when="gated"),
            weight_argument("up", "[intermediate, hidden]"),
            weight_argument("down", "[hidden, intermediate]"),
            tensor("up_bias", "[intermediate]", "needed when the operator has biases", when="bias",
                   role="weight"),
            tensor("down_bias", "[hidden]", "needed when the operator has biases", when="bias",
                   role="weight"),
            tensor("residual", "[tokens, hidden]", "needed when the operator has a residual",
                   when="residual"),
            tensor("out", "[tokens, hidden]", out=True),
            workspace_argument(),
            number_argument("x_stride"),
            number_argument("x_scale_stride"),
            number_argument("residual_stride"),
            number_argument("out_stride"),
            tensor("norm_weight", "[hidden]", "needed when the operator has a norm", when="norm",
                   role="weight"),
            real_argument("epsilon", 1e-5, "the norm's, from 0"),
        ],
    ),
    python="hidden intermediate format group",
    torch=[torch_call("quantized_ffn", "x gate gate_scales up up_scales down down_scales format group "
                                       "intermediate activation | gate_zeros up_zeros down_zeros up_bias "
                                       "down_bias residual x_scales norm_weight epsilon out_dtype=dtype",
                      instead="train with torch.nn.functional.linear")],
)
