from generate.declare import *

linear = family(
    "linear",
    says="activation(x * weight^T + bias) + residual, or gated: activation(x * weight^T) * (x * up^T); x as it is or "
         "behind an RMSNorm",
    problem="LinearProblem",
    fields=[
        dtype("fp32 fp16 bf16", "element type of every tensor"),
        flag("norm", "takes x / sqrt(mean(x^2) + epsilon) * norm_weight for x"),
        choice("activation", "none gelu_tanh gelu_erf silu relu", "of x * weight^T + bias", default="none",
               enum="Activation"),
        flag("gated", "multiplies the activation with x * up^T"),
        flag("bias", "adds bias[out] before the activation"),
        flag("residual", "adds residual[tokens, out] after the activation"),
        extent("in", 1, 262144, "columns of x and of the weight"),
        extent("out", 1, 1048576, "rows of the weight, columns of the result"),
        dynamic("tokens", 1, 2**24, "rows of x and of the result"),
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
    scalars=[size("tokens"), strides(), epsilon("of the norm")],
)
