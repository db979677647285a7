from generate.declare import *

linear = family(
    "linear",
    says="activation(x * weight^T + bias) + residual, or gated: activation(x * weight^T) * (x * up^T); x as "
         "it is or behind an RMSNorm",
    problem="LinearProblem",
    fields=[
        dtype("fp32 fp16 bf16", "element type of every tensor"),
        flag("norm", "takes x / sqrt(mean(x^2) + epsilon) * norm_weight for x"),
        choice("activation", "none gelu_tanh gelu_erf silu relu", "what x * weight^T + bias goes through", default="none",
               enum="Activation"),
        flag("gated", "multiplies the activation with x * up^T"),
        flag("bias", "adds bias[out] before the activation"),
        flag("residual", "adds residual[tokens, out] after the activation"),
        extent("in", 1, 262144, "columns of x and of the weight"),
        extent("out", 1, 1048576, "rows of the weight, columns of the result"),
        dynamic("tokens", 1, 2**24, "rows of x and of the result", finer=True),
    ],
    pointers=[
        read("x", "tokens, in", strided=True),
        weight("norm_weight", "in", fill=normal(0.25, 1.0), when="norm"),
        weight("weight", "out, in", strided=True, fill=normal("p.weight_deviation()")),
        weight("up", "out, in", strided=True, fill=normal("p.weight_deviation()"), when="gated"),
        weight("bias", "out", when="bias"),
        read("residual", "tokens, out", strided=True, when="residual"),
        write("out", "tokens, out", strided=True),
        workspace(),
    ],
    scalars=[size("tokens"), strides(), epsilon("the norm's")],
)

linear_operator = operator(
    "Linear",
    family=linear,
    problems=["gated=no"],
    says="out = activation(x * weight^T + bias) + residual, accumulated in fp32. Rows of x are tokens. With "
         "a norm x * rsqrt(mean(x^2) + epsilon) * norm_weight, an {RmsNorm}, takes the place of x; it may be "
         "rounded to dtype before it is multiplied, as that of an {RmsNorm} is.",
    fields=[
        taken("in", "elements of a row of x"),
        taken("out", "elements of a row of out"),
        largest("tokens", 8192, "most tokens of one call"),
        taken("dtype", "element type of every tensor"),
        taken("activation"),
        taken("bias"),
        taken("residual"),
        taken("norm", "x is normalized first"),
    ],
    call=call(
        "Linear",
        family=linear,
        says="Rows are contiguous; a stride is the distance between two rows in elements, 0 meaning the "
             "row's length. 16 bytes always suffice as alignment of pointers and strides. `out` may be the "
             "residual itself; other overlaps are not allowed. Weights are constants: a kernel may read them "
             "before the one enqueued right before it has ended, if that lets its successor begin early, as "
             "Hone's kernels do. Such a kernel must not write them.",
        sizes="tokens",
        arguments="x weight bias residual out workspace x_stride weight_stride residual_stride out_stride "
                  "norm_weight epsilon",
        words={"epsilon": "the norm's, from 0"},
    ),
    torch=[torch_call("linear", "x weight bias residual activation | norm_weight epsilon",
                      instead="train with torch.nn.functional.linear")],
)

fused_ffn = operator(
    "FusedFfn",
    says="The feed-forward network of a transformer layer. Gated (SwiGLU and its like):\n"
         "  out = (activation(x * gate^T) * (x * up^T)) * down^T + residual,\n"
         "else out = activation(x * up^T + up_bias) * down^T + down_bias + residual. The product of the "
         "first half [tokens, intermediate], rounded to dtype, lies in the workspace. With a norm an "
         "{RmsNorm} of x takes the place of x, as in {Linear}, but not of a residual that is x itself: out = "
         "x + ffn(norm(x)) is one call.",
    halves=True,
    problems=["gated=yes", "activation!=none"],
    prepared="runtime/operators/feed_forward.h",
    fields=[
        integer("hidden", 0, "elements of a row of x and out"),
        integer("intermediate", 0, "elements of a row between the halves"),
        integer("max_tokens", 8192, "most tokens of one call"),
        dtype_field("element type of every tensor"),
        choice_field("activation", "Activation", "silu", of=linear),
        flag_field("gated", default=True),
        flag_field("bias", "biases of both halves; not with `gated`"),
        flag_field("residual", "added to out"),
        flag_field("norm", "x is normalized first"),
    ],
    call=call(
        "FusedFfn",
        says="As {Linear.args}; weights are contiguous. `out` may be the residual itself also where that is "
             "x.",
        sizes="tokens",
        arguments=[
            tensor("x", "[tokens, hidden]"),
            tensor("gate", "[intermediate, hidden]", "needed when the operator is gated", when="gated",
                   role="weight"),
            tensor("up", "[intermediate, hidden]", role="weight"),
            tensor("up_bias", "[intermediate]", "needed when the operator has biases", when="bias",
                   role="weight"),
            tensor("down", "[hidden, intermediate]", role="weight"),
            tensor("down_bias", "[hidden]", "needed when the operator has biases", when="bias",
                   role="weight"),
            tensor("residual", "[tokens, hidden]", "needed when the operator has a residual",
                   when="residual"),
            tensor("out", "[tokens, hidden]", out=True),
            workspace_argument(),
            number_argument("x_stride"),
            number_argument("residual_stride"),
            number_argument("out_stride"),
            tensor("norm_weight", "[hidden]", "needed when the operator has a norm", when="norm",
                   role="weight"),
            real_argument("epsilon", 1e-5, "the norm's, from 0"),
        ],
        python="x gate up down",
    ),
    torch=[torch_call("fused_ffn", "x gate up down up_bias down_bias residual activation | norm_weight "
                                   "epsilon",
                      instead="train with torch.nn.functional.linear")],
)
