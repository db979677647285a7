// Where the time of a step's graph goes: each part is what the graph is shorter without it.
#include <algorithm>
#include <array>

#include "decoder/forward/forward.h"
#include "decoder/forward/forward_memory.h"

namespace hone::decoder {
namespace {

constexpr std::array<std::string_view, 15> part_names{"embedding",
                                                      "norm of attention",
                                                      "queries, keys, values",
                                                      "norms of all heads",
                                                      "rotation and append",
                                                      "attention",
                                                      "output of attention",
                                                      "norm behind attention",
                                                      "norm of network",
                                                      "routing to experts",
                                                      "network",
                                                      "norm behind network",
                                                      "last norm",
                                                      "head",
                                                      "sampling"};

/// Parts of a step for its time alone: first tokens of the vocabulary, in pages that are dealt out in turn.
class MadeUpStep {
  public:
    MadeUpStep(const StepLoad& load, const Capacity& capacity)
        : tokens_(elements(std::max<std::int64_t>(load.prompt_tokens, 1))) {
        const std::int64_t keys = load.sequences > 0 ? load.keys / load.sequences : 0;
        pages_.reserve(elements(load.sequences + 1));
        for (std::int64_t i = 0; i < load.sequences; ++i)
            add(std::max<std::int64_t>(keys - 1, 0), 1, capacity);
        if (load.prompt_tokens > 0) add(load.prompt_begin, load.prompt_tokens, capacity);
        draws.resize(parts.size());
    }

    std::vector<StepPart> parts;
    std::vector<Draw> draws;

  private:
    void add(std::int64_t begin, std::int64_t tokens, const Capacity& capacity) {
        std::vector<int>& pages = pages_.emplace_back();
        for (std::int64_t at = 0; at < begin + tokens; at += capacity.page_size)
            pages.push_back(static_cast<int>(next_page_++ % capacity.pages));
        parts.push_back({.request = 0,
                         .begin = static_cast<int>(begin),
                         .tokens = std::span(tokens_).first(elements(tokens)),
                         .pages = pages,
                         .samples = true});
    }

    std::vector<int> tokens_;
    std::vector<std::vector<int>> pages_;
    std::int64_t next_page_ = 0;
};

double median(std::vector<double> times) {
    const auto middle = times.begin() + std::ssize(times) / 2;
    std::ranges::nth_element(times, middle);
    return *middle;
}

/// Of weights that such a step reads; of experts what its tokens choose where all are as likely.
std::int64_t bytes_of_network(const Description& model, const LayerWeights& layer, std::int64_t sequences) {
    const std::int64_t all = layer.gate.bytes + layer.up.bytes + layer.down.bytes;
    if (!layer.has_experts()) return all;
    return static_cast<std::int64_t>(model.share_of_experts(sequences) * static_cast<double>(all));
}

/// Of a part of all layers but attention, which reads no weights.
std::int64_t weight_bytes_of(Part part, const Description& model, const ModelWeights& weights,
                             std::int64_t sequences) {
    if (part == Part::head) return weights.head.bytes;
    std::int64_t bytes = 0;
    for (const LayerWeights& layer : weights.layers) {
        if (part == Part::qkv) bytes += layer.qkv.bytes;
        if (part == Part::output) bytes += layer.output.bytes;
        if (part == Part::routing) bytes += layer.router.bytes;
        if (part == Part::network) bytes += bytes_of_network(model, layer, sequences);
    }
    return bytes;
}

}  // namespace

std::string_view name(Part part) { return part_names[static_cast<std::size_t>(part)]; }

void Forward::fill_for_timing(std::int64_t sequences, std::int64_t kv_len) {
    fill_for_timing(sequences, [kv_len](std::int64_t) { return kv_len; });
}

/// Pages are dealt out in turn; a cache that is too small for so many tokens is read again and again.
void Forward::fill_for_timing(std::int64_t sequences,
                              const std::function<std::int64_t(std::int64_t row)>& kv_len) {
    const StepInputs::Arrays& in = small_.host();
    const std::span<std::int32_t> ids = memory_->drawn.of(turn_before(0));
    for (std::int64_t row = 0; row < sequences; ++row) {
        const std::int64_t keys = kv_len(row);
        ids[elements(row)] = in.ids[row] = static_cast<std::int32_t>(row % model_.model.vocab_size);
        in.positions[row] = static_cast<std::int32_t>(std::max<std::int64_t>(keys - 1, 0));
        in.kv_lengths[row] = static_cast<std::int32_t>(keys);
        in.temperature[row] = 0;
        for (std::int64_t page = 0; page < small_.pages_a_sequence(); ++page)
            in.pages[row * small_.pages_a_sequence() + page] =
                static_cast<std::int32_t>((row * small_.pages_a_sequence() + page) % capacity_.pages);
    }
    small_.send(sequences);
}

double Forward::graph_us(std::int64_t sequences, std::int64_t kv_len, int repetitions) {
    const std::int64_t room = graphs_.padded(sequences);
    fill_for_timing(room, kv_len);
    const CUgraphExec graph = graphs_.of(room, kv_len);
    std::vector<double> times;
    for (int i = 0; i < repetitions; ++i) times.push_back(timer_.replay_us(graph));
    return median(std::move(times));
}

double Forward::step_us(const StepLoad& load, int repetitions) {
    const MadeUpStep step(load, capacity_);
    std::vector<double> times;
    for (int i = 0; i < repetitions; ++i) times.push_back(start_us(step.parts, step.draws, {}));
    return median(std::move(times));
}

std::vector<std::pair<Part, double>> Forward::step_parts_us(const StepLoad& load, int repetitions) {
    const MadeUpStep step(load, capacity_);
    const ForwardStep filled = step_of_any(step.parts);
    std::vector<std::optional<Part>> left_out{std::nullopt};
    for (std::size_t i = 0; i < part_names.size(); ++i) {
        if (calls_.has(static_cast<Part>(i), filled)) left_out.emplace_back(static_cast<Part>(i));
    }
    std::vector<std::vector<double>> times(left_out.size());
    for (int round = 0; round < repetitions; ++round) {
        for (std::size_t i = 0; i < left_out.size(); ++i)
            times[i].push_back(start_us(step.parts, step.draws, left_out[i]));
    }
    const double whole = median(std::move(times[0]));
    std::vector<std::pair<Part, double>> found;
    for (std::size_t i = 1; i < left_out.size(); ++i)
        found.emplace_back(*left_out[i], whole - median(std::move(times[i])));
    return found;
}

double Forward::start_us(std::span<const StepPart> parts, std::span<const Draw> draws,
                         std::optional<Part> without) {
    timer_.begin();
    start(parts, draws, without);
    timer_.end();
    gpu_.wait();
    return timer_.us();
}

ChainTimes Forward::chain_times(std::int64_t sequences, std::int64_t kv_len, int repetitions) {
    const runtime::Driver& driver = gpu_.driver();
    const std::int64_t room = graphs_.padded(sequences);
    ForwardStep step = graphs_.step_of(sequences, kv_len);
    ChainTimes found{.launches = runtime::node_count(driver, graphs_.capture(step)), .parts = {}};
    std::vector<runtime::GraphExec> graphs;
    graphs.push_back(runtime::instantiate(driver, graphs_.capture(step)));
    for (std::size_t i = 0; i < part_names.size(); ++i) {
        const auto part = static_cast<Part>(i);
        if (!calls_.has(part, step)) continue;
        step.without = part;
        graphs.push_back(runtime::instantiate(driver, graphs_.capture(step)));
        const std::int64_t bytes = part == Part::attention
                                       ? room * kv_len * model_.cache_bytes_a_token(capacity_.kv_dtype)
                                       : weight_bytes_of(part, model_, weights_, room);
        found.parts.push_back({.part = part, .bytes = bytes});
    }
    fill_for_timing(room, kv_len);
    std::vector<std::vector<double>> times(graphs.size());
    for (int round = 0; round < repetitions; ++round) {
        for (std::size_t i = 0; i < graphs.size(); ++i) {
            const std::size_t turn = (i + static_cast<std::size_t>(round)) % graphs.size();
            times[turn].push_back(timer_.replay_us(graphs[turn].get()));
        }
    }
    found.step_us = median(std::move(times[0]));
    for (std::size_t i = 0; i < found.parts.size(); ++i)
        found.parts[i].us = found.step_us - median(std::move(times[i + 1]));
    found.idle_us = idle_us(found.launches, room, repetitions);
    return found;
}

/// Rotations of sequences without a token.
double Forward::idle_us(std::int64_t launches, std::int64_t sequences, int repetitions) {
    fill_for_timing(sequences, 0);
    const ForwardStep step = step_of_one_each(small_, sequences, 1);
    const runtime::GraphExec graph = runtime::capture_graph(gpu_.driver(), gpu_.stream(), [&] {
        for (std::int64_t i = 0; i < launches; ++i) calls_.enqueue_append(0, step);
    });
    std::vector<double> times;
    for (int i = 0; i < repetitions; ++i) times.push_back(timer_.replay_us(graph.get()));
    return median(std::move(times));
}

}  // namespace hone::decoder
