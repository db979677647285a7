// Under which names the tensors of a model stand in its checkpoint, and what of them no config.json says: one
// entry a model_type. A model whose type has none is not run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hone::decoder {

/// Names within a layer are without their endings: ".weight" and ".bias" follow.
struct TensorNames {
    std::string_view model_type;
    std::string_view embedding = "model.embed_tokens";
    std::string_view positions = {};  ///< a table of learned positions
    std::int64_t first_position = 0;  ///< row of that table which a text's first token takes
    std::string_view layer = "model.layers.";
    std::string_view attention_norm = "input_layernorm";
    /// Rows of all of these, one after the other, are those of q, k and v.
    std::vector<std::string_view> qkv{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"};
    /// One tensor whose rows stand by heads of keys: the queries that share it, its key, its value.
    bool qkv_by_groups = false;
    std::string_view q_norm = "self_attn.q_norm";
    std::string_view k_norm = "self_attn.k_norm";
    std::string_view sinks = {};  ///< without an ending
    std::string_view output = "self_attn.o_proj";
    std::string_view network_norm = "post_attention_layernorm";
    /// The same two of parallel blocks that have both, where they are called otherwise then.
    std::string_view first_of_two_norms = {};
    std::string_view second_of_two_norms = {};
    /// Of models whose norms stand around or behind: behind attention, and behind the network.
    std::string_view behind_attention = {};
    std::string_view behind_network = {};
    /// Rows of the gate first, where there is one.
    std::vector<std::string_view> up{"mlp.gate_proj", "mlp.up_proj"};
    std::string_view down = "mlp.down_proj";
    /// Of models with experts: what chooses them; then what stands in front of an expert's number, and
    /// behind it the gate first.
    std::string_view router = {};
    std::string_view experts = {};
    std::vector<std::string_view> expert_up{"gate_proj", "up_proj"};
    std::string_view expert_down = "down_proj";
    /// Where the experts of a layer stand in one tensor each, without an ending: what chooses them then, gate
    /// and up [experts, 2 * width, hidden], the gate's rows first, and down [experts, hidden, width].
    std::string_view stacked_router = "mlp.gate";
    std::string_view stacked_up = "mlp.experts.gate_up_proj";
    std::string_view stacked_down = "mlp.experts.down_proj";
    bool stacked_in_turns = false;       ///< a row of the gate, one of up, and so on
    bool stacked_columns_first = false;  ///< numbers are [experts, in, out]
    std::string_view final_norm = "model.norm";
    std::string_view head = "lm_head";
    std::string_view optional_prefix = {};  ///< that some checkpoints have in front of all names
    bool columns_first = false;             ///< weights of linear layers are [in, out]
    bool root_scale = false;                ///< tokens' rows are multiplied by the root of their size
};

/// nullptr: none.
[[nodiscard]] const TensorNames* tensor_names(std::string_view model_type);
/// "gpt2, llama, ...", for messages.
[[nodiscard]] std::string runnable_model_types();

}  // namespace hone::decoder
