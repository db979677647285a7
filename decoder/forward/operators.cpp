#include "decoder/forward/operators.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "kernel_templates/catalog.h"
#include "models/appending.h"
#include "models/step_operators.h"
#include "runtime/operators/runtime_state.h"
#include "runtime/system/parallel.h"

namespace hone::decoder {
namespace {

using enum models::NormsAndSums;

NormKernel prepared(Runtime& runtime, const std::variant<RmsNorm, LayerNorm>& norm) {
    return std::visit([&](const auto& one) { return NormKernel(runtime.prepare(one)); }, norm);
}

/// Attention of one query a sequence that rotates and appends, too. Empty where that takes two launches, also
/// because the kernel that is faster than both does not exist.
AttentionAppendKernel prepared_appending(Runtime& runtime, const models::Model& model,
                                         const Capacity& capacity, std::int64_t window) {
    const std::optional<AttentionAppend> append = models::appending_attention(model, capacity.room(), window);
    if (!append) return {};
    const Explanation of_one = runtime.explain(*append, {1, capacity.context});
    const std::optional<Problem> problem = parse_problem(of_one.problem);
    const DeviceTraits& traits = runtime::dispatcher_of(runtime).session().traits();
    return problem && models::appends_in_one_kernel(*problem, traits) ? runtime.prepare(*append)
                                                                      : AttentionAppendKernel();
}

/// Layers without such a weight do not count.
WeightKinds kinds_of(const ModelWeights& weights, MatrixWeight LayerWeights::*weight) {
    WeightKinds kinds{.format = weights.code_format};
    for (const LayerWeights& layer : weights.layers) {
        if ((layer.*weight).rows == 0) continue;
        kinds.numbers |= !(layer.*weight).is_coded;
        kinds.codes |= (layer.*weight).is_coded;
    }
    return kinds;
}

/// Of the networks of layers without experts, or with them.
WeightKinds kinds_of_networks(const ModelWeights& weights, bool with_experts = false) {
    WeightKinds kinds{.format = weights.code_format};
    for (const LayerWeights& layer : weights.layers) {
        if (layer.has_experts() != with_experts) continue;
        kinds.numbers |= !layer.up.is_coded;
        kinds.codes |= layer.up.is_coded;
    }
    return kinds;
}

/// What norms in front of products write.
NormOutput output_of_norms(const Description& model, const ModelWeights& weights) {
    const auto has_codes = [](const LayerWeights& layer) { return layer.qkv.is_coded && layer.up.is_coded; };
    return std::ranges::all_of(weights.layers, has_codes)
               ? models::norm_output(model.model, weights.code_format)
               : NormOutput::same;
}

/// Numbers of sequences whose steps have norms and sums within their products: where both products behind a
/// norm have kernels for which that is no more than a launch less.
std::vector<std::int64_t> find_whole_steps(Runtime& runtime, const Description& description,
                                           const ModelWeights& weights, const Capacity& capacity) {
    const models::Model& model = description.model;
    const WeightKinds qkv = kinds_of(weights, &LayerWeights::qkv);
    const WeightKinds network = kinds_of_networks(weights);
    std::int64_t most = capacity.sequences;
    if (qkv.numbers || network.numbers) most = std::min(most, models::most_whole_sequences(model, {}));
    if (qkv.codes || network.codes)
        most = std::min(most, models::most_whole_sequences(model, weights.code_format));
    std::vector<std::int64_t> found;
    for (std::int64_t sequences = 1; sequences <= most; ++sequences) {
        if (Product::normalizes(runtime, models::qkv_projection(model, sequences, within), qkv) &&
            Network::normalizes(runtime, models::feed_forward(model, sequences, within), network))
            found.push_back(sequences);
    }
    return found;
}

/// The format of the weights of all layers' products, empty for numbers; nothing where they differ.
std::optional<checkpoints::WeightFormat> format_of_all(const ModelWeights& weights) {
    const WeightKinds all[] = {kinds_of(weights, &LayerWeights::qkv),
                               kinds_of(weights, &LayerWeights::output), kinds_of_networks(weights)};
    const bool numbers = std::ranges::any_of(all, &WeightKinds::numbers);
    const bool codes = std::ranges::any_of(all, &WeightKinds::codes);
    if (numbers == codes) return std::nullopt;
    return codes ? weights.code_format : checkpoints::WeightFormat{};
}

/// As find_whole_steps(): where products share norms instead.
std::vector<std::int64_t> find_sharing_steps(Runtime& runtime, const Description& description,
                                             const ModelWeights& weights, const Capacity& capacity,
                                             const std::vector<std::int64_t>& whole_steps) {
    const std::optional<checkpoints::WeightFormat> format = format_of_all(weights);
    if (!format) return {};
    return find_shared_norm_steps(runtime, description.model, *format, capacity.sequences, whole_steps);
}

/// Tokens of steps, at most, that may be told to share norms.
std::int64_t most_told(const Description& description, const ModelWeights& weights,
                       const Capacity& capacity) {
    const std::optional<checkpoints::WeightFormat> format = format_of_all(weights);
    if (!format) return 0;
    return std::min({capacity.told_sequences, capacity.sequences,
                     models::most_sharing_sequences(description.model, *format)});
}

}  // namespace

std::int64_t LayerProducts::workspace_bytes(std::int64_t tokens) const {
    return std::max(
        {qkv.workspace_bytes(tokens), output.workspace_bytes(tokens), network.workspace_bytes(tokens)});
}

std::int64_t ExpertOperators::workspace_bytes(std::int64_t tokens) const {
    if (!up) return 0;
    return std::max({router.workspace_bytes(tokens), routing.workspace_bytes(tokens),
                     up.workspace_bytes(tokens), down.workspace_bytes(tokens)});
}

/// What there is to prepare, to be called from a thread each. Must outlive the calls.
class Operators::Preparations {
  public:
    struct One {
        std::optional<Part> part;  ///< of steps of one token a sequence; nothing: of other steps
        std::function<void()> prepare;
    };

    Preparations(Operators& to, Runtime& runtime, const Description& description, const ModelWeights& weights,
                 const Capacity& capacity)
        : to_(to),
          runtime_(runtime),
          model_(description.model),
          weights_(weights),
          capacity_(capacity),
          tokens_(capacity.step_tokens),
          norm_output_(output_of_norms(description, weights)) {
        add_attention();
        add_products();
        if (!to.whole_steps.empty()) add_whole_products(to.whole_steps.back());
        if (to.most_sharing > 0) add_sharing_products(to.most_sharing);
        if (description.has_experts()) add_experts();
        add_norms();
        add_ends();
    }

    [[nodiscard]] const std::vector<One>& all() const { return all_; }

  private:
    template <class Kernel, class Prepare>
    void add(std::optional<Part> part, Kernel& kernel, Prepare prepare) {
        all_.push_back({part, [&kernel, prepare] { kernel = prepare(); }});
    }
    template <class Kernel, class Operator>
    void add_operator(std::optional<Part> part, Kernel& kernel, const Operator& description) {
        add(part, kernel, [this, description] { return runtime_.prepare(description); });
    }
    template <class Kernel, class Operator>
    void add_product(std::optional<Part> part, Kernel& kernel, const Operator& description,
                     const WeightKinds& weights, bool takes_codes = false) {
        add(part, kernel, [this, description, weights, takes_codes] {
            return Kernel(runtime_, description, weights, takes_codes);
        });
    }

    void add_ends() {
        const std::int64_t rows = capacity_.sequences;
        add_operator({}, to_.embedding, models::token_look_up(model_, tokens_));
        add_operator({}, to_.rows, models::row_look_up(model_, model_.hidden_size, rows));
        add_operator({}, to_.attended_rows, models::row_look_up(model_, models::q_width(model_), rows));
        add_operator({}, to_.drawn_tokens, models::drawn_look_up(rows));
        add_product(Part::head, to_.head, models::language_head(model_, rows),
                    {.numbers = !weights_.head.is_coded,
                     .codes = weights_.head.is_coded,
                     .format = weights_.code_format});
        add_operator({}, to_.sample, models::drawing(model_, rows, false));
        add_operator({}, to_.filtered_sample, models::drawing(model_, rows, true));
    }

    // A norm of a sum is the network's and the next layer's: one kernel, called by the name of the first.
    void add_norms() {
        add_norm({}, to_.first_norm, false, NormOutput::same);
        add_norm(to_.norms_write_codes ? std::nullopt : std::optional(Part::network_norm), to_.norm, true,
                 NormOutput::same);
        if (to_.norms_write_codes) {
            add_norm({}, to_.first_coded_norm, false, norm_output_);
            add_norm(Part::network_norm, to_.coded_norm, true, norm_output_);
        }
        if (!models::has_wide_head_norms(model_)) return;
        add_operator({}, to_.query_norm, models::wide_head_norm(model_, models::q_width(model_), tokens_));
        add_operator({}, to_.key_norm, models::wide_head_norm(model_, models::kv_width(model_), tokens_));
    }

    void add_norm(std::optional<Part> part, NormKernel& kernel, bool residual, NormOutput output) {
        add(part, kernel, [this, residual, output] {
            return prepared(runtime_, models::stream_norm(model_, tokens_, residual, output));
        });
    }

    void add_attention() {
        const models::StepRoom room = capacity_.room();
        const std::vector<std::int64_t> windows = models::windows_of(model_);
        for (std::size_t i = 0; i < windows.size(); ++i) {
            const std::int64_t window = windows[i];
            add(Part::attention, to_.appending[i],
                [this, window] { return prepared_appending(runtime_, model_, capacity_, window); });
            add_operator({}, to_.any_queries[i], models::packed_attention(model_, room, window));
            add_operator(Part::attention, to_.one_query[i], models::single_attention(model_, room, window));
        }
        add_operator(Part::append, to_.append,
                     models::cache_append(model_, room, capacity_.sequences, false));
        add_operator({}, to_.append_anyhow, models::cache_append(model_, room, tokens_, true));
    }

    void add_products() {
        const bool takes_codes = to_.norms_write_codes;
        add_product(Part::qkv, to_.plain.qkv, models::qkv_projection(model_, tokens_),
                    kinds_of(weights_, &LayerWeights::qkv), takes_codes);
        add_product(Part::output, to_.plain.output, models::attention_output(model_, tokens_),
                    kinds_of(weights_, &LayerWeights::output));
        add_product(Part::network, to_.plain.network, models::feed_forward(model_, tokens_),
                    kinds_of_networks(weights_), takes_codes);
    }

    void add_whole_products(std::int64_t few) {
        add_product(Part::qkv, to_.whole.qkv, models::qkv_projection(model_, few, within),
                    kinds_of(weights_, &LayerWeights::qkv));
        add_product(Part::output, to_.whole.output, models::attention_output(model_, few, within),
                    kinds_of(weights_, &LayerWeights::output));
        add_product(Part::network, to_.whole.network, models::feed_forward(model_, few, within),
                    kinds_of_networks(weights_));
    }

    void add_sharing_products(std::int64_t few) {
        const models::SharedNormProblems problems(model_, format_of_all(weights_).value(), few);
        const auto add_one = [this](Part part, SharedNormProduct& product, const Problem& problem) {
            add(part, product, [this, problem] { return SharedNormProduct(runtime_, problem); });
        };
        add_one(Part::qkv, to_.sharing.qkv, problems.qkv);
        add_one(Part::output, to_.sharing.output, problems.output);
        add_one(Part::network, to_.sharing.up, problems.up);
        add_one(Part::network, to_.sharing.down, problems.down);
    }

    void add_experts() {
        add_product({}, to_.experts.router, models::router(model_, tokens_),
                    kinds_of(weights_, &LayerWeights::router));
        add_operator({}, to_.experts.routing, models::expert_routing(model_, tokens_));
        const WeightKinds weights = kinds_of_networks(weights_, true);
        add(Part::network, to_.experts.up, [this, weights] {
            return ExpertProduct(runtime_, models::experts_up(model_, tokens_), weights);
        });
        add(Part::network, to_.experts.down, [this, weights] {
            return ExpertProduct(runtime_, models::experts_down(model_, tokens_), weights);
        });
    }

    Operators& to_;
    Runtime& runtime_;
    const models::Model& model_;
    const ModelWeights& weights_;
    const Capacity& capacity_;
    std::int64_t tokens_;
    NormOutput norm_output_;
    std::vector<One> all_;
};

Operators::Operators(Runtime& runtime, const Description& model, const ModelWeights& weights,
                     const Capacity& capacity) {
    norms_write_codes = output_of_norms(model, weights) != NormOutput::same;
    whole_steps = find_whole_steps(runtime, model, weights, capacity);
    sharing_steps = find_sharing_steps(runtime, model, weights, capacity, whole_steps);
    most_sharing =
        std::max(most_told(model, weights, capacity), sharing_steps.empty() ? 0 : sharing_steps.back());
    const std::size_t windows = model.windows().size();
    one_query.resize(windows);
    any_queries.resize(windows);
    appending.resize(windows);
    const Preparations preparations(*this, runtime, model, weights, capacity);
    // Each on a thread of its own, most of which wait for compilers: so the images of all are compiled at
    // once.
    const std::int64_t count = std::ssize(preparations.all());
    runtime::for_each_piece(count, static_cast<int>(count), [&](std::int64_t piece) {
        preparations.all()[static_cast<std::size_t>(piece)].prepare();
    });
}

void Operators::prepare_again(Part part, Runtime& runtime, const Description& model,
                              const ModelWeights& weights, const Capacity& capacity) {
    const Preparations preparations(*this, runtime, model, weights, capacity);
    for (const Preparations::One& one : preparations.all()) {
        if (one.part == part) one.prepare();
    }
}

std::int64_t Operators::workspace_bytes(const Description& model, const Capacity& capacity) const {
    const std::int64_t tokens = capacity.step_tokens;
    const std::int64_t sequences = capacity.sequences;
    const std::int64_t queries = std::min(tokens, capacity.context);
    std::int64_t workspace = std::max(
        {plain.workspace_bytes(tokens), experts.workspace_bytes(tokens), head.workspace_bytes(sequences)});
    if (!whole_steps.empty()) workspace = std::max(workspace, whole.workspace_bytes(whole_steps.back()));
    if (most_sharing > 0) workspace = std::max(workspace, sharing.workspace_bytes(model.model, most_sharing));
    for (const AttentionKernel& kernel : one_query)
        workspace = std::max(workspace, kernel.workspace_bytes({sequences, 1, capacity.context}));
    for (const AttentionAppendKernel& kernel : appending) {
        if (kernel) workspace = std::max(workspace, kernel.workspace_bytes({sequences, capacity.context}));
    }
    for (const AttentionKernel& kernel : any_queries)
        workspace = std::max(workspace, kernel.workspace_bytes({sequences, queries, capacity.context}));
    return workspace;
}

std::vector<PrepareReport> Operators::reports(Part part, std::int64_t tokens) const {
    std::vector<PrepareReport> reports;
    const auto add = [&](const PreparedKernel& kernel) { add_reports_of(kernel, reports); };
    const LayerProducts& products = are_whole(tokens) ? whole : plain;
    const bool shares = share_norms(tokens);
    switch (part) {
        case Part::network_norm:
            if (!are_whole(tokens) && !shares) add(norms_write_codes ? coded_norm : norm);
            break;
        case Part::qkv: shares ? sharing.qkv.add_reports(reports) : products.qkv.add_reports(reports); break;
        case Part::append:
            if (!appends_in_attention()) add(append);
            break;
        case Part::attention:
            if (appends_in_attention()) {
                for (const AttentionAppendKernel& kernel : appending) add(kernel);
            } else {
                for (const AttentionKernel& kernel : one_query) add(kernel);
            }
            break;
        case Part::output:
            shares ? sharing.output.add_reports(reports) : products.output.add_reports(reports);
            break;
        case Part::network:
            if (shares) {
                sharing.up.add_reports(reports);
                sharing.down.add_reports(reports);
                break;
            }
            products.network.add_reports(reports);
            experts.up.add_reports(reports);
            experts.down.add_reports(reports);
            break;
        case Part::head: head.add_reports(reports); break;
        default: break;
    }
    return reports;
}

}  // namespace hone::decoder
