// hone tune MODEL --chain: the kernels of a model's step, chosen as they run there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "checkpoints/pack/request.h"
#include "cli/command.h"
#include "kernel_templates/enums.h"
#include "models/model.h"
#include "tuner/measure/measurer.h"
#include "tuner/search/tuner.h"

namespace hone::cli {

struct TuneChainOptions {
    models::Model model;  ///< its shapes: the weights are made up
    std::optional<checkpoints::QuantizeRequest> quantize{};
    KvDtype kv_dtype = KvDtype::same;
    std::vector<std::int64_t> sequences{1, 8, 64};
    std::int64_t kv_len = 1024;  ///< keys of each sequence
    tuner::DeviceInfo device;
    tuner::TuneOptions tune;
};

/// Throws as decoder::RunningModel and tuner::tune() do.
[[nodiscard]] Outcome tune_chain(const TuneChainOptions& options, const Console& console);

}  // namespace hone::cli
