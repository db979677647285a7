from generate.declare import *
from kernel_templates.linear.operators import linear
from kernel_templates.quantized_linear.operators import quantized_linear

shared_norm_quantized_linear = family(
    "shared_norm_quantized_linear",
    says="what shared_norm_linear is, with packed weights of 4 or 8 bits",
    problem="SharedNormQuantizedProblem",
    fields=[
        dtype("fp32 fp16 bf16", "element type of x, results and what is added to them", least="bf16"),
        shared(quantized_linear, "format group zeros quantized_x"),
        flag("norm", "behind a norm: x comes times its weight, results are multiplied with 1 / sqrt(squares / in + "
                     "epsilon)"),
        flag("next_norm", "in front of a norm: also writes results times its weight, and their squares"),
        shared(linear, "activation gated bias residual in out tokens"),
    ],
    pointers=[
        read("x", "tokens, in"),
        read("x_scales", "tokens, 1", "fp32", when="quantized_x"),
        weight("norm_weight", "out", fill=normal(0.25, 1.0), when="next_norm", words="of the norm behind"),
        weight("weight", "p.product().code_rows(), p.product().row_bytes()", "p.product().code_dtype()",
               fill=drawn("p.product().code_fill()", "p.product().code_fill_scale()")),
        weight("scales", "p.product().scale_rows(), p.product().scale_columns()", "p.product().scale_dtype()",
               fill=uniform("0.5 * p.product().weight_scale()", "p.product().weight_scale()")),
        weight("zeros", "p.product().scale_rows(), p.product().scale_columns()", "int8", fill=uniform(7.5, 7.5),
               when="zeros"),
        weight("up", "p.product().code_rows(), p.product().row_bytes()", "p.product().code_dtype()",
               fill=drawn("p.product().code_fill()", "p.product().code_fill_scale()"), when="gated"),
        weight("up_scales", "p.product().scale_rows(), p.product().scale_columns()", "p.product().scale_dtype()",
               fill=uniform("0.5 * p.product().weight_scale()", "p.product().weight_scale()"), when="gated"),
        weight("up_zeros", "p.product().scale_rows(), p.product().scale_columns()", "int8", fill=uniform(7.5, 7.5),
               when="gated && zeros"),
        weight("bias", "out", when="bias"),
        read("residual", "tokens, out", when="residual"),
        write("out", "tokens, out"),
        workspace(),
        read("norm_squares", "tokens, p.x_slots()", "fp32", when="norm",
             fill=uniform("0.5 * p.square_columns()", "p.square_columns()"),
             words="what the product in front of the norm has written"),
        write("scaled", "tokens, out", when="next_norm"),
        write("squares", "tokens, p.slots()", "fp32", when="next_norm"),
    ],
    scalars=[
        size("tokens"),
        stride("x_stride", "in", of="x"),
        stride("x_scale_stride", "1", of="x_scales"),
        stride("weight_stride", "in", of="weight", words="packed formats have none"),
        stride("up_stride", "in", of="up"),
        number("scale_stride", 1),
        stride("residual_stride", "out", of="residual"),
        stride("out_stride", "out", of="out"),
        epsilon("the norm's"),
    ],
)
