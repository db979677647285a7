from generate.declare import *
from kernel_templates.linear.operators import linear

shared_norm_linear = family(
    "shared_norm_linear",
    says="a linear layer in front of an RMSNorm, behind one, or both: the one in front writes its results times the "
         "norm's weight, and their squares; the one behind multiplies its own results with what follows from these",
    problem="SharedNormProblem",
    fields=[
        dtype("fp32 fp16 bf16", "element type of all tensors but squares", least="bf16"),
        flag("norm", "behind a norm: x comes times its weight, results are multiplied with 1 / sqrt(squares / in + "
                     "epsilon)"),
        flag("next_norm", "in front of a norm: also writes results times its weight, and their squares"),
        shared(linear, "activation gated bias residual in out tokens"),
    ],
    pointers=[
        read("x", "tokens, in", strided=True),
        weight("norm_weight", "out", fill=normal(0.25, 1.0), when="next_norm", words="of the norm behind"),
        weight("weight", "out, in", strided=True, fill=normal("p.product().weight_deviation()")),
        weight("up", "out, in", strided=True, fill=normal("p.product().weight_deviation()"), when="gated"),
        weight("bias", "out", when="bias"),
        read("residual", "tokens, out", strided=True, when="residual"),
        write("out", "tokens, out", strided=True),
        workspace(),
        read("norm_squares", "tokens, p.x_slots()", "fp32", when="norm", fill=uniform("0.5 * p.square_columns()",
                                                                                      "p.square_columns()"),
             words="what the product in front of the norm has written"),
        write("scaled", "tokens, out", when="next_norm"),
        write("squares", "tokens, p.slots()", "fp32", when="next_norm"),
    ],
    scalars=[size("tokens"), strides(), epsilon("the norm's")],
)
