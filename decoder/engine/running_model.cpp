#include "decoder/engine/running_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "decoder/require.h"
#include "models/first_names.h"
#include "runtime/dispatch/snapshot.h"

namespace hone::decoder {
namespace {

constexpr std::int64_t usual_context = 8192;
constexpr std::int64_t page_size = 16;

RuntimeOptions runtime_options(const ModelOptions& options) {
    RuntimeOptions made = options.runtime;
    made.device = options.device;
    return made;
}

checkpoints::WeightFormat made_format(const ModelOptions& options) {
    if (!options.quantize) {
        const bool has_codes = options.made_up && options.made_up->quantization;
        return has_codes ? checkpoints::weight_format(*options.made_up->quantization)
                         : checkpoints::WeightFormat{};
    }
    const checkpoints::QuantizeRequest& request = *options.quantize;
    return {.format = request.format,
            .group = request.group.value_or(checkpoints::usual_group(request.format)),
            .zeros = request.zeros,
            .lm_head = request.lm_head};
}

/// What needs no GPU, before weights are read for minutes. `known`: the model's positions; 0: not said.
void check(const ModelOptions& options, std::int64_t known) {
    require(options.max_sequences >= 1 && options.max_sequences <= 1024, "sequences", options.max_sequences,
            "1 to 1024");
    require(options.max_step_tokens >= options.max_sequences && options.max_step_tokens <= 65536,
            "tokens of a step", options.max_step_tokens,
            fmt::format("{} (sequences) to 65536", options.max_sequences));
    require(options.max_context >= 0, "context", options.max_context, "from 0, as much as is usual");
    require(known == 0 || options.max_context <= known, "context", options.max_context,
            fmt::format("1 to {}, as many positions as the model knows", known));
    require(options.memory_share > 0 && options.memory_share <= 1, "share of the memory",
            options.memory_share, "above 0, to 1");
}

/// What lies between the operators of a step, about.
std::int64_t step_bytes(const Description& model, const Capacity& capacity) {
    const models::Model& m = model.model;
    const std::int64_t of_experts =
        model.has_experts() ? m.experts + m.experts_per_token * (model.expert_width() + m.hidden_size + 2)
                            : 0;
    const std::int64_t row =
        3 * m.hidden_size + model.qkv_width() + model.q_width() + 3 * m.intermediate_size + of_experts;
    return model.element_bytes() * (capacity.step_tokens * row + capacity.sequences * m.vocab_size);
}

/// What of a folder is passed over and may make its texts wrong.
std::vector<std::string> doubts(const ModelOptions& options, const models::Model& model,
                                const ModelWeights& weights) {
    if (options.made_up) return {};
    std::vector<std::string> all = model.warnings;
    if (weights.unread.empty()) return all;
    constexpr std::size_t most_named = 3;
    all.push_back(fmt::format(
        "{}: not read: {}; the model that config.json describes has no such weights, and if the one that was "
        "trained has, texts are wrong",
        options.folder.string(), models::first_names(weights.unread, most_named)));
    return all;
}

}  // namespace

/// What can be known of a model before there is a GPU.
struct RunningModel::Read {
    explicit Read(const ModelOptions& options) {
        if (options.made_up) {
            description = describe(*options.made_up, {});
            check(options, description.model.max_position_embeddings);
            source = made_up_weights();
            return;
        }
        description = options.description ? *options.description : describe_folder(options.folder);
        check(options, description.model.max_position_embeddings);
        source = checkpoint_weights(options.folder, description.model.quantization, options.quantize);
        if (const std::optional<StoredCodes> codes = source->codes()) description.model.dtype = codes->dtype;
        if (options.kv_dtype == KvDtype::fp8) kv_scales = read_kv_scales(*source, description);
    }

    Description description;
    std::unique_ptr<WeightSource> source;
    KvScales kv_scales;
};

RunningModel::Parts::Parts(const ModelOptions& options, const Read& read)
    : gpu(options.device, options.longest_step),
      runtime(runtime_options(options)),
      description(read.description) {}

void RunningModel::Parts::load(const ModelOptions& options, const Read& read) {
    weights = std::make_unique<ModelWeights>(gpu, runtime, description, *read.source, made_format(options),
                                             options.on_weights);
    const Clock::time_point has_weights = Clock::now();
    capacity = capacity_for(options);
    weights->kv_scales = read.kv_scales;
    const runtime::WarningSink warn = runtime::warning_sink(options.runtime);
    for (const std::string& doubt : doubts(options, description.model, *weights)) warn(doubt);
    forward = std::make_unique<Forward>(gpu, runtime, description, *weights, capacity);
    if (!options.may_compile_later) runtime.freeze();
    const auto seconds = [](Clock::duration duration) {
        return std::chrono::duration<double>(duration).count();
    };
    start_times = {.weights_s = seconds(has_weights - begun),
                   .kernels_s = seconds(Clock::now() - has_weights)};
}

RunningModel::RunningModel(const ModelOptions& options) {
    const Read read(options);
    parts_ = std::make_unique<Parts>(options, read);
    try {
        parts_->load(options, read);
    } catch (...) {
        leave_where_it_hangs();
        throw;
    }
}

RunningModel::~RunningModel() { leave_where_it_hangs(); }

void RunningModel::leave_where_it_hangs() noexcept {
    if (!parts_->gpu.hangs()) return;
    // For as long as the process lives, in its reach: nothing was lost, it is still in use. Without memory
    // that there may not be.
    static std::mutex mutex;
    static Parts* left = nullptr;
    const std::lock_guard lock(mutex);
    parts_->left_before.reset(left);
    left = parts_.release();
}

Capacity RunningModel::Parts::capacity_for(const ModelOptions& options) const {
    const std::int64_t known = description.model.max_position_embeddings;
    Capacity found{.step_tokens = options.max_step_tokens,
                   .sequences = options.max_sequences,
                   .page_size = page_size,
                   .kv_dtype = options.kv_dtype,
                   .told_sequences = options.told_sequences};
    found.context = options.max_context > 0 ? options.max_context
                    : known > 0             ? std::min(known, usual_context)
                                            : usual_context;
    const std::int64_t page_bytes = description.cache_bytes_a_token(found.kv_dtype) * page_size;
    const std::int64_t wanted = found.sequences * found.pages_a_sequence();
    const std::int64_t free_bytes = runtime::free_memory_bytes(gpu.driver()) - step_bytes(description, found);
    const auto room = static_cast<std::int64_t>(static_cast<double>(free_bytes) * options.memory_share);
    found.pages = std::min(wanted, room / page_bytes);
    if (found.pages < found.pages_a_sequence()) {
        throw DecoderError(fmt::format(
            "the GPU has {:.1f} MB left for keys and values; a text of {} tokens needs {:.1f} MB: a context "
            "of up to {} fits; so do longer ones with codes of weights (--format) or of keys and values "
            "(--kv-cache fp8), or with a larger share of the memory than {}",
            static_cast<double>(std::max<std::int64_t>(room, 0)) * 1e-6, found.context,
            static_cast<double>(found.pages_a_sequence() * page_bytes) * 1e-6,
            std::max<std::int64_t>(room, 0) / page_bytes * page_size, options.memory_share));
    }
    return found;
}

std::int64_t RunningModel::floor_bytes(std::int64_t sequences, std::int64_t kv_len) const {
    return weights().bytes_a_step(description().share_of_experts(sequences)) +
           sequences * kv_len * description().cache_bytes_a_token(capacity().kv_dtype);
}

}  // namespace hone::decoder
