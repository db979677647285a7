// A layer of experts: the router's product, each token's experts, and both halves of their networks. Their
// rows are sorted by expert on the device; nothing of it is known to the host.
#include "decoder/forward/forward.h"
#include "decoder/forward/forward_memory.h"

namespace hone::decoder {

void Forward::enqueue_routing(const LayerWeights& layer, const Step& step) {
    Memory& memory = *memory_;
    const LinearArgs router{
        .x = product_input(step), .out = memory.routed->logits.data(), .workspace = memory.workspace.data()};
    require(operators_.experts.router.run(gpu_.stream(), layer.router, router, step.tokens), "router");
    const ExpertRoutingArgs routing{.logits = memory.routed->logits.data(),
                                    .routing_weights = memory.routed->weights.data(),
                                    .starts = memory.routed->starts.data(),
                                    .rows = memory.routed->rows.data(),
                                    .workspace = memory.workspace.data()};
    require(operators_.experts.routing.run(gpu_.stream(), routing, step.tokens), "routing to experts");
}

void Forward::enqueue_experts(const LayerWeights& layer, const Step& step) {
    Memory& memory = *memory_;
    const ExpertLinearArgs up{.x = product_input(step),
                              .starts = memory.routed->starts.data(),
                              .rows = memory.routed->rows.data(),
                              .out = memory.routed->between.data(),
                              .workspace = memory.workspace.data()};
    require(operators_.experts.up.run(gpu_.stream(), layer.gate, layer.up, up, step.tokens),
            "gate and up of experts");
    const ExpertLinearArgs down{.x = memory.routed->between.data(),
                                .starts = memory.routed->starts.data(),
                                .rows = memory.routed->rows.data(),
                                .routing_weights = memory.routed->weights.data(),
                                .out = memory.delta.data(),
                                .workspace = memory.workspace.data()};
    require(operators_.experts.down.run(gpu_.stream(), layer.down, layer.down, down, step.tokens),
            "down of experts");
}

}  // namespace hone::decoder
