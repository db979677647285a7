#include "tuner/models/step_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>
#include <variant>

#include "kernel_templates/space.h"
#include "models/appending.h"
#include "models/shared_norms.h"
#include "models/step_operators.h"
#include "runtime/operators/attention_append.h"
#include "runtime/operators/attention_problem.h"
#include "runtime/operators/embedding.h"
#include "runtime/operators/feed_forward.h"
#include "runtime/operators/linear.h"
#include "runtime/operators/norm.h"
#include "runtime/operators/quantized_linear.h"
#include "runtime/operators/rope_kv_append.h"

namespace hone::tuner {
namespace {

namespace steps = hone::models;
using steps::NormsAndSums;

/// Attention that appends has its fast kernel on this architecture, if anywhere.
constexpr Arch appending_arch{9, 0, true};

/// Of a feed-forward network.
enum class Half : std::uint8_t { first, second };

class StepOperators {
  public:
    StepOperators(const ModelPart& part, const std::vector<CacheSize>& sizes)
        : part_(part), model_(part.model), sizes_(sizes) {
        model_.dtype = part.dtype;
        room_ = {.tokens = part.tokens.back(), .sequences = most_sequences, .context = part.tokens.back()};
        for (const CacheSize& size : sizes) room_.context = std::max(room_.context, size.kv_len);
    }

    std::vector<ModelOperator> list() {
        add_look_ups();
        add_norms();
        add_attention();
        add_products();
        return std::move(list_);
    }

  private:
    /// What `describe` makes, of any sizes; nothing where the operator does not take it.
    template <class Describe>
    static std::optional<Problem> problem_of(Describe describe) {
        try {
            return describe();
        } catch (const std::invalid_argument&) {  // the operators in its place say so
            return std::nullopt;
        }
    }

    void add(std::string role, std::int64_t count, std::vector<std::string> sizes, std::string shape,
             const std::optional<Problem>& problem) {
        if (!problem) return;
        list_.push_back({.role = std::move(role),
                         .family = std::string(problem->family->name),
                         .fields = static_text(*problem),
                         .sizes = std::move(sizes),
                         .count = count,
                         .shape = std::move(shape),
                         .use = Use::steps});
    }

    void add_look_ups() {
        const auto add_rows = [&](std::string role, std::int64_t width) {
            add(std::move(role), 1, sizes_at("embedding", drawn_rows_of(part_)),
                fmt::format("hidden {}", width), problem_of([&] {
                    return runtime::problem_of(steps::row_look_up(model_, width, most_sequences));
                }));
        };
        add_rows("rows that tokens are drawn from", model_.hidden_size);
        add_rows("attention's rows that tokens are drawn from", steps::q_width(model_));
        add("tokens that the step before has drawn", 1, sizes_at("embedding", drawn_rows_of(part_)),
            "hidden 1", problem_of([] { return runtime::problem_of(steps::drawn_look_up(most_sequences)); }));
    }

    void add_norms() {
        const NormOutput output = steps::norm_output(model_, part_.weights);
        if (output == NormOutput::same) return;
        const auto add_norm = [&](std::string role, std::int64_t count, bool residual) {
            add(std::move(role), count, sizes_at(model_.norm, part_.tokens),
                fmt::format("hidden {}", model_.hidden_size), problem_of([&] {
                    return std::visit([](const auto& norm) { return runtime::problem_of(norm); },
                                      steps::stream_norm(model_, room_.tokens, residual, output));
                }));
        };
        add_norm("first norm, to codes", 1, false);
        add_norm("norm after residual, to codes", 2 * model_.num_hidden_layers - 1, true);
    }

    void add_attention() {
        const std::vector<std::int64_t> windows = steps::windows_of(model_);
        for (const std::int64_t window : windows) {
            const std::string words =
                windows.size() > 1 && window > 0 ? fmt::format(", window {}", window) : "";
            const std::int64_t layers =
                layers_that(model_, [&](const LayerKind& kind) { return kind.window == window; });
            if (const std::optional<Problem> append = appending(window);
                append && steps::appends_in_one_kernel(*append, *representative_device(appending_arch)))
                add("attention over one token with its append" + words, layers, cache_sizes(""), heads(),
                    append);
            add("attention over one token beside prompts" + words, layers, cache_sizes(" q_len=1"), heads(),
                problem_of([&] {
                    return *runtime::attention_problems(steps::packed_attention(model_, room_, window))
                                .decode.front();
                }));
        }
        add_append(" behind sequences", drawn_rows_of(part_), false);
        add_append(" by slots", look_ups_of(part_), true);
    }

    void add_append(std::string_view where, const std::vector<std::int64_t>& tokens, bool slots) {
        const std::string_view what =
            model_.rotary_dim == 0 ? "cache append" : "rotary embedding and cache append";
        add(fmt::format("{}{}", what, where), model_.num_hidden_layers, sizes_at("rope_kv_append", tokens),
            heads(), problem_of([&] {
                return runtime::append_problem(steps::cache_append(model_, room_, room_.tokens, slots));
            }));
    }

    std::optional<Problem> appending(std::int64_t window) const {
        const std::optional<AttentionAppend> append = steps::appending_attention(model_, room_, window);
        if (!append) return std::nullopt;
        return problem_of([&] { return runtime::attention_append_problem(*append); });
    }

    void add_products() {
        if (steps::norm_output(model_, part_.weights) != NormOutput::same) {
            add_product("query, key, value projection of codes", part_.tokens,
                        steps::qkv_projection(model_, room_.tokens), true);
            add_half("feed-forward, first half of codes", part_.tokens, NormsAndSums::apart, Half::first);
        }
        const std::int64_t most = steps::most_whole_sequences(model_, part_.weights);
        const auto first = std::ssize(list_);
        add_whole_products(most);
        add_sharing_products(steps::most_sharing_sequences(model_, part_.weights));
        for (auto op = list_.begin() + first; op != list_.end(); ++op) op->use = Use::chosen_in_steps;
    }

    std::vector<std::int64_t> tokens_up_to(std::int64_t most) const {
        std::vector<std::int64_t> some = part_.tokens;
        std::erase_if(some, [&](std::int64_t tokens) { return tokens > most; });
        return some;
    }

    void add_whole_products(std::int64_t most) {
        const std::vector<std::int64_t> few = tokens_up_to(most);
        if (few.empty()) return;
        add_product("query, key, value projection with its norm", few,
                    steps::qkv_projection(model_, most, NormsAndSums::within), false);
        add_product("output projection with its sum", few,
                    steps::attention_output(model_, most, NormsAndSums::within), false);
        add_half("feed-forward, first half with its norm", few, NormsAndSums::within, Half::first);
        add_half("feed-forward, second half with its sum", few, NormsAndSums::within, Half::second);
    }

    void add_sharing_products(std::int64_t most) {
        const std::vector<std::int64_t> few = tokens_up_to(most);
        if (few.empty()) return;
        const steps::SharedNormProblems problems(model_, part_.weights, most);
        const auto add_one = [&](std::string role, std::int64_t in, std::int64_t out,
                                 const Problem& problem) {
            add_at(std::move(role), few, fmt::format("{} -> {}", in, out), problem);
        };
        const std::int64_t hidden = model_.hidden_size;
        const std::int64_t between = model_.intermediate_size;
        add_one("query, key, value projection that shares its norm", hidden, steps::qkv_width(model_),
                problems.qkv);
        add_one("output projection that shares a norm", steps::q_width(model_), hidden, problems.output);
        add_one("feed-forward, first half that shares its norm", hidden, between, problems.up);
        add_one("feed-forward, second half that shares a norm", between, hidden, problems.down);
    }

    void add_product(std::string role, const std::vector<std::int64_t>& tokens, const Linear& linear,
                     bool quantized_x) {
        const std::optional<Problem> problem = problem_of([&] {
            return part_.weights.format
                       ? runtime::problem_of(steps::with_codes(linear, part_.weights, quantized_x))
                       : runtime::problem_of(linear);
        });
        add_at(std::move(role), tokens, fmt::format("{} -> {}", linear.in, linear.out), problem);
    }

    /// With the norm in front or the sum behind; without them x comes as codes.
    void add_half(std::string role, const std::vector<std::int64_t>& tokens, NormsAndSums both, Half half) {
        const auto of = [&](const auto& network) {
            return half == Half::first ? runtime::first_half(network) : runtime::second_half(network);
        };
        const std::optional<Problem> problem = problem_of([&] {
            const FusedFfn network = steps::feed_forward(model_, room_.tokens, both);
            const bool quantized_x = both == NormsAndSums::apart;
            return part_.weights.format ? of(steps::with_codes(network, part_.weights, quantized_x))
                                        : of(network);
        });
        const std::int64_t in = half == Half::first ? model_.hidden_size : model_.intermediate_size;
        const std::int64_t out = half == Half::first ? model_.intermediate_size : model_.hidden_size;
        add_at(std::move(role), tokens, fmt::format("{} -> {}", in, out), problem);
    }

    void add_at(std::string role, const std::vector<std::int64_t>& tokens, std::string shape,
                const std::optional<Problem>& problem) {
        if (!problem) return;
        add(std::move(role), model_.num_hidden_layers, sizes_at(problem->family->name, tokens),
            std::move(shape), problem);
    }

    std::vector<std::string> cache_sizes(std::string_view more) const {
        std::vector<std::string> texts;
        for (const auto& [batch, kv_len] : sizes_)
            texts.push_back(fmt::format("batch={} kv_len={}{}", batch, kv_len, more));
        return texts;
    }

    std::string heads() const {
        return fmt::format("{}/{} heads of {}", model_.num_attention_heads, model_.num_key_value_heads,
                           model_.head_dim);
    }

    const ModelPart& part_;
    Model model_;
    const std::vector<CacheSize>& sizes_;
    steps::StepRoom room_;
    std::vector<ModelOperator> list_;
};

}  // namespace

bool is_called_in_steps(const Problem& problem, const DeviceTraits& device) {
    return problem.family->name != "attention_append" || steps::appends_in_one_kernel(problem, device);
}

std::vector<ModelOperator> step_operators(const ModelPart& part, const std::vector<CacheSize>& sizes) {
    const bool runs = part.parts == 1 && steps::lacking_in_steps(part.model).empty() &&
                      steps::lacking_of_experts(part.model).empty();
    return runs ? StepOperators(part, sizes).list() : std::vector<ModelOperator>();
}

}  // namespace hone::tuner
