from generate.declare import *

rmsnorm_backward = family(
    "rmsnorm_backward",
    says="dx and dweight of rmsnorm, from dy and x",
    problem="BackwardProblem",
    header="rmsnorm_backward/backward.h",
    fields=[
        dtype("fp32 fp16 bf16", "element type of every tensor"),
        flag("residual", "adds dsum, the gradient of the forward pass's sum, to dx"),
        extent("hidden", 1, 262144, "elements a row"),
        dynamic("rows", 1, 2**30, "rows (tokens) of a call"),
    ],
    pointers=[
        read("dy", "rows, hidden", strided=True),
        read("x", "rows, hidden", strided=True),
        weight("weight", "hidden", fill=normal(0.25, 1.0)),
        read("dsum", "rows, hidden", strided=True, when="residual"),
        write("dx", "rows, hidden", strided=True),
        write("dweight", "hidden"),
        workspace(),
    ],
    scalars=[size("rows"), strides(), epsilon()],
)

rms_norm_backward = operator(
    "RmsNormBackward",
    family=rmsnorm_backward,
    says="Gradients of an RMSNorm: with r = rsqrt(mean(x^2) + epsilon) of a row and g = dy * weight,\n"
         "  dx = r * (g - x * r^2 * mean(g * x)) (+ dsum),     dweight = sum over rows of dy * x * r,\n"
         "accumulated in fp32 in a fixed order: the same bits at every call. x is what was normalized: for a "
         "norm with a residual its `sum`, whose own gradient dsum then joins dx, which is the gradient of "
         "both x and residual.",
    fields=[
        taken("hidden", "elements of a row"),
        largest("rows", 8192, "most rows of one call"),
        taken("dtype", "element type of every tensor"),
        taken("residual", "dsum is added"),
    ],
    call=call(
        "RmsNormBackward",
        family=rmsnorm_backward,
        says="Rows are contiguous, strides as in {Norm.args}. dx may be dy or dsum itself; other overlaps "
             "are not allowed.",
        sizes="rows",
        arguments="dy x weight dsum dx dweight workspace dy_stride x_stride dsum_stride dx_stride epsilon",
        words={"epsilon": "from 0"},
        run="With 0 rows dweight is not written.",
    ),
    torch=[torch_call("rms_norm_backward", "dy x weight dsum epsilon",
                      instead="second derivatives need torch.nn.functional.rms_norm")],
)
