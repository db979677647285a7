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
