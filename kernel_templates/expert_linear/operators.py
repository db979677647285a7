from generate.declare import *
from kernel_templates.linear.operators import linear

expert_linear = family(
    "expert_linear",
    says="activation(x * weight^T + bias) with each row's expert's weight, or gated with a second one; rows sorted by expert, "
         "gathered before or weighted and added up after on request",
    problem="ExpertProblem",
    fields=[
        dtype("fp32 fp16 bf16", "element type of every tensor but the routing's"),
        choice("activation", "none gelu_tanh gelu_erf silu relu swiglu_oai", "what x * weight^T + bias goes through",
               default="none", enum="Activation"),
        shared(linear, "gated"),
        flag("bias", "adds bias[experts, out] before the activation, and up_bias to the second product"),
        flag("gather", "x has a row for each token, not for each place"),
        flag("combine", "out has a row for each token: the sum of its experts' results, each times its weight"),
        extent("experts", 1, 512, "weights"),
        extent("top_k", 1, 32, "experts of a token, at most all"),
        shared(linear, "in out"),
        dynamic("tokens", 1, 2**20, "tokens of a call, top_k places each"),
    ],
    pointers=[
        read("x", "p.x_rows(), in", strided=True),
        read("starts", "experts + 1, 1", "int32", fill=uneven_ramp("p.rows_an_expert()", "top_k"),
             words="the first place of each expert, and the end"),
        read("rows", "p.places(), 1", "int32", when="p.maps_rows()", fill=permutation(),
             words="token * top_k + slot at each place"),
        read("routing_weights", "tokens, top_k", "fp32", when="combine", fill=uniform(0.5, 0.5)),
        weight("weight", "experts, out, in", fill=normal("p.weight_deviation()")),
        weight("up", "experts, out, in", fill=normal("p.weight_deviation()"), when="gated"),
        weight("bias", "experts, out", when="bias"),
        weight("up_bias", "experts, out", when="p.gated_bias()"),
        write("out", "p.out_rows(), out", strided=True),
        workspace(),
    ],
    scalars=[size("tokens"), strides()],
)

expert_linear_operator = operator(
    "ExpertLinear",
    family=expert_linear,
    says="A linear layer of a mixture of experts: row p of x, sorted by expert as {ExpertRouting} says, times the weight of "
         "expert e with starts[e] <= p < starts[e + 1], accumulated in fp32. activation(x * weight^T + bias); gated: "
         "activation(x * weight^T + bias) * (x * up^T + up_bias), but with swiglu_oai what Activation says of both. With "
         "gather, x has a row for each token, and place p takes "
         "that of token rows[p] / top_k. With combine, out has a row for each token: the sum over slots, in their order and in "
         "fp32, of routing_weights[token, slot] times the result of that pair, which was rounded to dtype before.",
    fields=[
        taken("in", "elements of a row of x"),
        taken("out", "elements of a row of out"),
        taken("experts"),
        taken("top_k", "experts of a token"),
        largest("tokens", 8192, "most tokens of one call"),
        taken("dtype", "element type of x, weights and out"),
        taken("activation"),
        taken("gated", "there is a second weight, up"),
        taken("bias"),
        taken("gather", "x has a row for each token"),
        taken("combine", "out has a row for each token"),
    ],
    indices=True,
    call=call(
        "ExpertLinear",
        family=expert_linear,
        says="One call. A stride is the distance between two rows in elements, 0 meaning the row's length; weights are "
             "contiguous. 16 bytes always suffice as alignment of pointers and strides. out overlaps nothing else. `starts` and "
             "`rows` are on the device: what they say beyond the call's places is not read, and nothing is written there; rows "
             "of out that no place has then keep what they hold, and are nothing to rely on with combine.",
        sizes="tokens",
        arguments=[
            tensor("x", "", "[tokens, in] with gather, else [tokens, top_k, in]: tokens * top_k rows by place; dtype"),
            tensor("starts", "", "[experts + 1]: the first place of each expert, and tokens * top_k", element="int32"),
            tensor("rows", "[tokens, top_k]", "needed with gather or combine: the pairs by place, token * top_k + slot",
                   element="int32", when="p.maps_rows()"),
            tensor("routing_weights", "[tokens, top_k]", "needed with combine", element="fp32", when="combine"),
            "weight up bias up_bias",
            tensor("out", "", "[tokens, out] with combine, else [tokens, top_k, out]: tokens * top_k rows by place; dtype", out=True),
            "workspace x_stride out_stride",
        ],
        words={
            "up_bias": "needed when the operator is gated and has biases",
            "up": "needed when the operator is gated",
        },
        python="x starts weight",
    ),
    torch=[torch_call("expert_linear", "x starts weight rows top_k activation gather | up bias up_bias routing_weights",
                      says="The operator combines where there are routing_weights, and is gated where there is an up.",
                      instead="train with PyTorch's own functions")],
)
