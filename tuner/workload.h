// What to tune: a model or a single operator, expanded to problems. A model file says nothing about kernels;
// this file says which operators a transformer layer runs and at which sizes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kernel_templates/family.h"

namespace hone::tuner {

/// The keys of a model that decide shapes, with Hugging Face's names.
struct Model {
    std::string name;
    std::string activation;  ///< "silu", "gelu_tanh", ...
    std::string norm;        ///< "rmsnorm" or "layernorm"
    Dtype dtype = Dtype::bf16;
    std::int64_t hidden_size = 0;
    std::int64_t intermediate_size = 0;
    std::int64_t num_attention_heads = 0;
    std::int64_t num_key_value_heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t num_hidden_layers = 0;
    std::int64_t vocab_size = 0;
    std::int64_t max_position_embeddings = 0;
    std::int64_t sliding_window = 0;  ///< 0: none
    double norm_epsilon = 1e-5;
    bool gated_ffn = true;
    bool norm_bias = false;
    bool qkv_bias = false;     ///< of the query, key and value projections
    bool output_bias = false;  ///< of the projection behind attention
    bool ffn_bias = false;     ///< of all linear layers of the feed-forward network
    bool qk_norm = false;
    std::int64_t experts = 0;       ///< mixture of experts; 0 or 1: one dense feed-forward
    bool latent_attention = false;  ///< compressed keys and values (MLA)
};

/// An operator of the model: the static problem and how often one token passes it.
struct ModelOperator {
    std::string role;    ///< "input norm + residual", "attention", ...
    std::string family;  ///< "rmsnorm"; may be one that this build does not have
    std::string
        fields;  ///< text for parse_problem without the dynamic field; empty: not tuned with a model yet
    std::int64_t count = 1;  ///< calls a forward pass
    std::int64_t rows_per_token =
        1;                       ///< the dynamic dimension is tokens times this: heads, for a norm over heads
    std::int64_t most_rows = 0;  ///< it never has more; 0: as many as tokens make
    std::string shape;           ///< for people: "4096 -> 6144", "32 heads of 128"
};

struct WorkloadOptions {
    std::vector<std::int64_t> tokens;  ///< empty: bucket_edges(8192)
    std::optional<Dtype> dtype;        ///< empty: the model's
    int tensor_parallel = 1;
};

/// An operator of the model that has problems in the workload.
struct TunedOperator {
    std::string role;
    Problem problem;  ///< at the fewest tokens
    std::int64_t count = 1;
};

struct Workload {
    std::string name;
    std::vector<Problem> problems;     ///< grouped by static part, dynamic value ascending; no duplicates
    std::vector<TunedOperator> tuned;  ///< whom the problems of a model are for
    std::vector<ModelOperator> without_family;  ///< listed to the user as "not tuned with a model yet"
};

/// Throws ConfigError (file, line, key) for an unreadable model and for sizes that make no sense.
[[nodiscard]] Model read_model(const std::string& name_or_path);
[[nodiscard]] std::vector<ModelOperator> operators(const Model& model, const WorkloadOptions& options);
[[nodiscard]] Workload model_workload(const Model& model, const WorkloadOptions& options);
/// One family: `fields` as parse_problem takes them, without the dynamic field.
[[nodiscard]] Workload operator_workload(const std::string& family, const std::string& fields,
                                         const WorkloadOptions& options);
/// Names of configs/models/*.yaml.
[[nodiscard]] std::vector<std::string> known_models();

}  // namespace hone::tuner
