from generate.declare import *

sample = family(
    "sample",
    says="a token for each row of logits: the likeliest, or drawn at a temperature, with or without filters",
    fields=[
        dtype("fp32 fp16 bf16", "element type of the logits"),
        flag("filters", "top-k, top-p and min-p choose what is drawn from"),
        flag("log_probability", "writes the log-probability of the token at temperature 1, unfiltered"),
        extent("softcap", 0, 65536, "logits x count as softcap * tanh(x / softcap); 0: as they are", default=0,
               quiet_default=True),
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

sample_operator = operator(
    "Sample",
    family=sample,
    says="A token for each row of logits: the likeliest where the row's temperature is 0, else one drawn from the softmax of "
         "logits / temperature. With filters, of the top_k likeliest tokens first, then of the likeliest until their part of "
         "the probability reaches top_p, then of those at least min_p times as likely as the likeliest; tokens that are as "
         "likely as the last one that stays stay, too. A seed and a counter give the same token whatever the batch, the row's "
         "place or the GPU. NaN is never chosen; a row without a number gives token 0.",
    fields=[
        taken("vocabulary"),
        largest("rows", 256, "most rows of one call", sequences=True),
        taken("dtype", "element type of the logits"),
        taken("filters"),
        taken("log_probability"),
        taken("softcap", "logits x count as softcap * tanh(x / softcap) in what is drawn; 0: as they are"),
    ],
    call=call(
        "Sample",
        family=sample,
        says="One call. Everything that a row asks for is on the device, so that a captured call may be replayed with other "
             "wishes. `logits_stride` is the distance between two rows in elements, 0 meaning `vocabulary`.",
        sizes="rows",
        arguments="logits temperature top_k top_p min_p seed counter out log_probability logits_stride",
        words={
            "temperature": "below 1e-5: the likeliest token",
            "top_k": "needed when the operator has filters; below 1: all",
            "top_p": "needed when the operator has filters; from 1 on: all",
            "min_p": "needed when the operator has filters; 0: all",
            "counter": "another one for each draw with the same seed",
            "out": "the tokens",
            "log_probability": "needed when the operator has a log_probability; natural, at temperature 1, of all tokens",
        },
    ),
    torch=[
        torch_call("sample", "logits temperature seed counter | top_k top_p min_p",
                   says="PyTorch's generators have no part in it: a captured CUDA graph draws anew where a counter has "
                        "changed in place.",
                   instead="train with torch.nn.functional.log_softmax"),
        torch_call("sample_log_probability", "logits temperature seed counter | top_k top_p min_p",
                   log_probability=True,
                   says="As sample, with the log-probabilities of its tokens: those of log_softmax(logits).",
                   instead="train with torch.nn.functional.log_softmax"),
    ],
)
