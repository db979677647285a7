from generate.declare import *

expert_routing = family(
    "expert_routing",
    says="the top_k experts of each token with their weights, and the order of (token, slot) pairs by expert",
    problem="RoutingProblem",
    header="expert_routing/routing.h",
    fields=[
        dtype("fp32 fp16 bf16", "element type of the logits"),
        flag("renormalize", "the weights of a token's experts add up to 1; else the softmax over all experts stays"),
        extent("experts", 1, 512, "logits a token"),
        extent("top_k", 1, 32, "experts that a token goes to, at most all"),
        dynamic("tokens", 1, 2**20, "tokens of a call"),
    ],
    pointers=[
        read("logits", "tokens, experts", strided=True, fill=normal(2.0)),
        write("routing_weights", "tokens, top_k", "fp32"),
        write("starts", "experts + 1, 1", "int32"),
        write("rows", "p.places(), 1", "int32"),
        workspace("int32"),
    ],
    scalars=[size("tokens"), strides()],
)

expert_routing_operator = operator(
    "ExpertRouting",
    family=expert_routing,
    says="Routing of a mixture of experts: of each token's softmax over all experts the top_k largest, in this order, of equal "
         "ones the first, with `renormalize` divided by their sum; and all pairs of a token and a slot, number token * top_k + "
         "slot, sorted by expert, those of one expert in their own order. The result is the same in every call. NaN counts as "
         "minus infinity.",
    fields=[
        taken("experts", "logits a token"),
        taken("top_k", "experts that a token goes to"),
        largest("tokens", 8192, "most tokens of one call"),
        taken("dtype", "element type of the logits"),
        taken("renormalize"),
    ],
    call=call(
        "ExpertRouting",
        family=expert_routing,
        says="One call. `logits_stride` is the distance between two rows in elements, 0 meaning `experts`.",
        sizes="tokens",
        arguments=[
            "logits",
            tensor("routing_weights", "[tokens, top_k]", "those of slot 0 first, the largest", element="fp32", out=True),
            tensor("starts", "", "[experts + 1]: the first place of each expert's pairs, and tokens * top_k", element="int32",
                   out=True),
            tensor("rows", "[tokens, top_k]", "the pairs by place: tokens * top_k numbers, token * top_k + slot",
                   element="int32", out=True),
            "workspace logits_stride",
        ],
    ),
)
