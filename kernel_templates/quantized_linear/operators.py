from generate.declare import *
from kernel_templates.linear.operators import linear

quantized_linear = family(
    "quantized_linear",
    says="activation(x * weight^T + bias) + residual, or gated: activation(x * weight^T) * (x * up^T), with weights of 4 or "
         "8 bits; x of 16 bits, or of 8 as the weight",
    problem="QuantizedProblem",
    fields=[
        dtype("fp32 fp16 bf16", "element type of results, bias and residual, and of x that is not codes", least="fp16"),
        choice("format", "w4a16 w8a16 w8a8 fp8", "of the weight's codes: docs/formats.md", enum="QuantFormat"),
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
        weight("up_zeros", "p.scale_rows(), p.scale_columns()", "int8", fill=uniform(7.5, 7.5), when="gated && zeros"),
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
        epsilon("of the norm"),
    ],
)
