from generate.declare import *

norm = family(
    "norm",
    says={
        "rmsnorm": "y = x / sqrt(mean(x^2) + epsilon) * weight, over rows",
        "layernorm": "y = (x - mean) / sqrt(variance + epsilon) * weight + bias, over rows",
    },
    problem="NormProblem",
    fields=[
        dtype("fp32 fp16 bf16", "element type of x, residual, weight, bias and sum"),
        choice("output", "same int8 fp8", "same: out has dtype; int8, fp8 (E4M3): codes with one fp32 scale a row",
               default="same", enum="NormOutput"),
        flag("residual", "adds residual to x first and writes the sum"),
        flag("bias", "adds a bias after the weight", default=True, only="layernorm"),
        extent("hidden", 1, 262144, "elements a row"),
        dynamic("rows", 1, 2**30, "rows (tokens) of a call"),
    ],
    pointers=[
        read("x", "rows, hidden", strided=True),
        read("residual", "rows, hidden", strided=True, when="residual"),
        weight("weight", "hidden", fill=normal(0.25, 1.0)),
        weight("bias", "hidden", when="bias"),
        write("out", "rows, hidden", "p.out_dtype()", strided=True),
        write("sum", "rows, hidden", strided=True, when="residual"),
        write("scale", "rows, 1", "fp32", when="p.quantized()"),
    ],
    scalars=[size("rows"), strides(), epsilon()],
)
