from generate.declare import *

sample = family(
    "sample",
    says="a token for each row of logits: the likeliest, or drawn at a temperature, with or without filters",
    problem="SampleProblem",
    fields=[
        dtype("fp32 fp16 bf16", "element type of the logits"),
        flag("filters", "top-k, top-p and min-p choose what is drawn from"),
        flag("log_probability", "writes the log-probability of the token at temperature 1, unfiltered"),
        extent("vocabulary", 1, 2**20, "logits a row"),
        dynamic("rows", 1, 2**20, "rows of a call"),
    ],
    pointers=[
        read("logits", "rows, vocabulary", strided=True, fill=normal(2.0)),
        read("temperature", "rows, 1", "fp32", fill=constant(1.0), words="0: the likeliest token"),
        read("top_k", "rows, 1", "int32", when="filters", fill=constant(1000), words="0: all"),
        read("top_p", "rows, 1", "fp32", when="filters", fill=constant(0.9), words="1: all"),
        read("min_p", "rows, 1", "fp32", when="filters", fill=constant(0.0), words="0: all"),
        read("seed", "rows, 1", "int64", fill=ramp()),
        read("counter", "rows, 1", "int64", fill=constant(1)),
        write("out", "rows, 1", "int32"),
        write("log_probability", "rows, 1", "fp32", when="log_probability"),
    ],
    scalars=[size("rows"), strides()],
)
