// hone bench --chain: a model's step of one token a sequence, as the graph that the decoder replays.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoints/pack/request.h"
#include "cli/command.h"
#include "kernel_templates/enums.h"
#include "models/model.h"

namespace hone::cli {

struct ChainOptions {
    models::Model model;  ///< its shapes: the weights are made up
    std::optional<checkpoints::QuantizeRequest> quantize{};
    KvDtype kv_dtype = KvDtype::same;
    std::vector<std::int64_t> sequences{1};
    std::int64_t kv_len = 1024;  ///< keys of each sequence
    /// Beside these: steps with a prompt of so many tokens.
    std::vector<std::int64_t> prompt_tokens{};
    int device = 0;
    int rounds = 50;
};

/// Throws as decoder::RunningModel does.
[[nodiscard]] Outcome bench_chain(const ChainOptions& options, const Console& console);

}  // namespace hone::cli
