// A model of two small layers with made-up weights.
#pragma once

#include "decoder/engine/running_model.h"

namespace hone::test {

inline models::Model small_llama() {
    models::Model model;
    model.name = "small";
    model.architecture = "llama";
    model.activation = "silu";
    model.norm = "rmsnorm";
    model.dtype = Dtype::bf16;
    model.hidden_size = 256;
    model.intermediate_size = 512;
    model.num_attention_heads = 4;
    model.num_key_value_heads = 2;
    model.head_dim = 64;
    model.num_hidden_layers = 2;
    model.vocab_size = 1000;
    model.max_position_embeddings = 512;
    model.rotary_dim = 64;
    return model;
}

inline decoder::ModelOptions small_options() {
    return {.made_up = small_llama(),
            .max_sequences = 4,
            .max_context = 256,
            .max_step_tokens = 64,
            .runtime = {.use_cache = false}};
}

}  // namespace hone::test
