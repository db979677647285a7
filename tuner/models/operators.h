// Which operators a transformer runs, at which sizes and how often: what a model file does not say and every
// engine does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoints/pack/weight_format.h"
#include "kernel_templates/problem.h"
#include "models/model.h"

namespace hone::tuner {

// The words of a model, which its operators are made of.
using models::HeadNorm;
using models::LatentSizes;
using models::layer_groups;
using models::LayerGroup;
using models::LayerKind;
using models::layers_that;
using models::max_model_size;
using models::Model;
using models::NormPlaces;

struct WorkloadOptions {
    std::vector<std::int64_t> tokens;  ///< in a forward pass; empty: bucket_edges(8192)
    std::optional<Dtype> dtype;        ///< empty: the model's
    int tensor_parallel = 1;
    std::optional<checkpoints::WeightFormat>
        weights{};  ///< how linear layers are stored; empty: as the model's file says
};

/// Whose forward pass calls an operator of the list.
enum class Use : std::uint8_t {
    all,              ///< every engine's
    alternative,      ///< those that have a cache in pages, or filters: it does what others of the list do
    steps,            ///< the decoder's alone, in place of others of the list
    chosen_in_steps,  ///< as steps; with a norm or a sum in it, so that which kernel is best shows in a whole
                      ///< step alone (`hone tune --chain`)
};

/// An operator of the model: the static problem, the sizes of its calls, and how many calls there are.
struct ModelOperator {
    std::string role;                  ///< "input norm + residual", "attention over a prompt", ...
    std::string family;                ///< "rmsnorm"; may be one that this build does not have
    std::string fields;                ///< static ones, for parse_problem; empty: not tuned with a model yet
    std::vector<std::string> sizes{};  ///< run-time fields of a problem each: "batch=8 kv_len=4096"
    std::int64_t count = 1;            ///< calls a forward pass
    std::string shape;                 ///< for people: "4096 -> 6144", "32 heads of 128"
    Use use = Use::all;
};

/// Sequences that decode together at most: each has one token in a forward pass.
inline constexpr std::int64_t most_sequences = 512;

/// Throws ConfigError for options that do not fit the model, and for weights that are stored as no kernel
/// takes them.
[[nodiscard]] std::vector<ModelOperator> operators(const Model& model, const WorkloadOptions& options);

/// Token counts that are asked for, ascending, each once, or the usual ones. Throws ConfigError for counts
/// out of range.
[[nodiscard]] std::vector<std::int64_t> token_counts(const WorkloadOptions& options);
/// "rows=1", "rows=8", ...: one field at these values, ascending; values out of its range are at its end.
[[nodiscard]] std::vector<std::string> sizes_at(const Field& field, const std::vector<std::int64_t>& values);
/// The same for the first dynamic field of a family; nothing when this build does not have the family.
[[nodiscard]] std::vector<std::string> sizes_at(std::string_view family,
                                                const std::vector<std::int64_t>& values);

}  // namespace hone::tuner
