#include "decoder/forward/step_graphs.h"

#include <algorithm>

#include "decoder/forward/drawn_tokens.h"

namespace hone::decoder {
namespace {

/// Sequences that a graph is made for: a step takes the next one that has room.
constexpr std::int64_t graph_sizes[] = {1,   2,   4,   8,   16,  24,  32,  48,  64,  96,  128, 160,
                                        192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024};
/// Lengths that a graph's attention is chosen for: this one, and each as many times as long as the one
/// before. It reads what is there, whatever its graph's length is.
constexpr std::int64_t least_graph_length = 1024;
constexpr std::int64_t graph_length_step = 4;

}  // namespace

std::int64_t graph_length(std::int64_t kv_len) {
    std::int64_t length = least_graph_length;
    while (length < kv_len) length *= graph_length_step;
    return length;
}

std::int64_t StepGraphs::padded(std::int64_t sequences) const {
    for (const std::int64_t size : graph_sizes) {
        if (size >= sequences) return std::min(size, capacity_.sequences);
    }
    return capacity_.sequences;
}

std::int64_t StepGraphs::length_bucket(std::int64_t kv_len) const {
    return std::min(graph_length(kv_len), capacity_.context);
}

ForwardStep StepGraphs::step_of(std::int64_t sequences, std::int64_t kv_len) const {
    return step_of_one_each(inputs_, padded(sequences), length_bucket(kv_len));
}

void StepGraphs::capture_all() {
    for (std::int64_t sequences = 1; sequences <= capacity_.sequences; ++sequences) {
        if (padded(sequences) != sequences) continue;
        for (std::int64_t length = 1; length <= capacity_.context; length = length_bucket(length) + 1) {
            for (const bool filters : {false, true}) {
                for (std::size_t turn = 0; turn < turns; ++turn)
                    static_cast<void>(graph_of(sequences, length, filters, turn));
            }
        }
    }
    gpu_.wait_for_load();
}

const StepGraphs::StepGraph& StepGraphs::graph_of(std::int64_t sequences, std::int64_t kv_len, bool filters,
                                                  std::size_t turn) {
    const Kind kind{padded(sequences), length_bucket(kv_len), filters, turn};
    StepGraph& step = graphs_[kind];
    if (step.graph) return step;
    step.calls = runtime_.record_graph([&] {
        ForwardStep one_each = step_of_one_each(inputs_, kind.sequences, kind.kv_len, kind.turn);
        one_each.filters = filters;
        step.graph = runtime::instantiate(gpu_.driver(), capture(one_each));
    });
    // Else its first launch takes half a millisecond, also where the next step is to be launched in time.
    runtime::check(gpu_.driver(), gpu_.driver().cuGraphUpload(step.graph.get(), gpu_.stream()),
                   "bringing a step's graph to the GPU");
    return step;
}

void StepGraphs::launch(const ForwardStep& step) {
    const StepGraph& graph = graph_of(step.sequences, step.kv_len, step.filters, step.turn);
    runtime::check(gpu_.driver(), gpu_.driver().cuGraphLaunch(graph.graph.get(), gpu_.stream()),
                   "launching a step's graph");
    graph.calls.launched();
}

CUgraphExec StepGraphs::of(std::int64_t sequences, std::int64_t kv_len) {
    return graph_of(sequences, kv_len, false, 0).graph.get();
}

runtime::Graph StepGraphs::capture(const ForwardStep& step) const {
    return runtime::capture(gpu_.driver(), gpu_.stream(), [&] { calls_.enqueue_whole(step); });
}

}  // namespace hone::decoder
