// A layer of experts: the router's product, each token's experts, and both halves of their networks. Their
// rows are sorted by expert on the device; nothing of it is known to the host.
#include "decoder/forward/forward_memory.h"
#include "decoder/forward/step_calls.h"

namespace hone::decoder {

void StepCalls::enqueue_routing(const LayerWeights& layer, const ForwardStep& step) const {
    const LinearArgs router{.x = product_input(step),
                            .bias = layer.router_bias,
                            .out = memory_.routed->logits.data(),
                            .workspace = memory_.workspace.data()};
    require(operators_.experts.router.run(gpu_.stream(), layer.router, router, step.tokens), "router");
    const ExpertRoutingArgs routing{.logits = memory_.routed->logits.data(),
                                    .routing_weights = memory_.routed->weights.data(),
                                    .starts = memory_.routed->starts.data(),
                                    .rows = memory_.routed->rows.data(),
                                    .workspace = memory_.workspace.data()};
    require(operators_.experts.routing.run(gpu_.stream(), routing, step.tokens), "routing to experts");
}

void StepCalls::enqueue_experts(const LayerWeights& layer, const ForwardStep& step) const {
    const ExpertLinearArgs up{.x = product_input(step),
                              .starts = memory_.routed->starts.data(),
                              .rows = memory_.routed->rows.data(),
                              .bias = layer.gate_bias,
                              .up_bias = layer.up_bias,
                              .out = memory_.routed->between.data(),
                              .workspace = memory_.workspace.data()};
    require(operators_.experts.up.run(gpu_.stream(), layer.gate, layer.up, up, step.tokens),
            "gate and up of experts");
    const ExpertLinearArgs down{.x = memory_.routed->between.data(),
                                .starts = memory_.routed->starts.data(),
                                .rows = memory_.routed->rows.data(),
                                .routing_weights = memory_.routed->weights.data(),
                                .bias = layer.down_bias,
                                .out = memory_.delta.data(),
                                .workspace = memory_.workspace.data()};
    require(operators_.experts.down.run(gpu_.stream(), layer.down, layer.down, down, step.tokens),
            "down of experts");
}

}  // namespace hone::decoder
