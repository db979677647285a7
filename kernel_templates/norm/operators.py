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
        choice("output", "same int8 fp8", "same: out has dtype; int8, fp8 (E4M3): codes with one fp32 scale "
                                          "a row",
               default="same", enum="NormOutput"),
        flag("residual", "adds residual to x first and writes the sum"),
        flag("bias", "adds a bias after the weight", default=True, only="layernorm"),
        flag("unit_offset", "adds 1 to the weight, in fp32", quiet_default=True),
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

norm_call = call(
    "Norm",
    family=norm,
    says="One call of either norm. Rows are contiguous; a stride is the distance between two rows in "
         "elements, 0 meaning `hidden`. 16 bytes always suffice as alignment of pointers and strides. `out` "
         "may be x itself when it has the same dtype, `sum` may be x or residual itself; other overlaps are "
         "not allowed.",
    sizes="rows",
    arguments="x residual weight bias out sum scale x_stride residual_stride out_stride sum_stride epsilon",
    words={
        "bias": "dtype; needed when a layer norm has a bias",
        "out": "dtype or codes of one byte",
        "scale": "needed when the output is quantized",
        "epsilon": "from 0",
    },
)

rms_norm = operator(
    "RmsNorm",
    family=norm,
    name="rmsnorm",
    says="y = x * rsqrt(mean(x^2) + epsilon) * weight over each row of `hidden` elements, accumulated in "
         "fp32. With a residual, x + residual (rounded to dtype) takes the place of x and is written to "
         "`sum`. With unit_offset, as in Gemma's models, the weight counts as 1 + weight, which is not rounded.",
    fields=[
        taken("hidden", "elements of a row"),
        largest("rows", 8192, "most rows of one call"),
        taken("dtype", "element type of x, residual, weight and sum"),
        taken("output"),
        taken("residual"),
        taken("unit_offset"),
    ],
    call=norm_call,
    torch=[
        torch_call("rms_norm", "x weight epsilon", instead=""),
        torch_call("rms_norm_residual", "x residual weight epsilon", instead="", residual=True),
        torch_call("rms_norm_offset", "x weight epsilon", unit_offset=True,
                   instead="train with torch.nn.functional.rms_norm and 1 + weight",
                   says="The operator has unit_offset."),
        torch_call("rms_norm_residual_offset", "x residual weight epsilon", residual=True, unit_offset=True,
                   instead="train with torch.nn.functional.rms_norm and 1 + weight",
                   says="The operator has unit_offset."),
        torch_call("rms_norm_quantized", "x weight epsilon output", instead="train with hone::rms_norm"),
        torch_call("rms_norm_residual_quantized", "x residual weight epsilon output", residual=True,
                   instead="train with hone::rms_norm_residual"),
    ],
)

layer_norm = operator(
    "LayerNorm",
    family=norm,
    name="layernorm",
    says="y = (x - mean(x)) * rsqrt(var(x) + epsilon) * weight + bias over each row; otherwise like "
         "{RmsNorm}.",
    fields=[
        taken("hidden", "elements of a row"),
        largest("rows", 8192, "most rows of one call"),
        taken("dtype", "element type of x, residual, weight, bias and sum"),
        taken("output"),
        taken("residual"),
        taken("bias"),
        taken("unit_offset"),
    ],
    call=norm_call,
    torch=[
        torch_call("layer_norm", "x weight bias epsilon", instead="train with "
                                                                  "torch.nn.functional.layer_norm"),
        torch_call("layer_norm_residual", "x residual weight bias epsilon", residual=True,
                   instead="train with torch.nn.functional.layer_norm"),
    ],
)
