// What a checkpoint is to become: the options of `hone quantize`, before anything is known of the checkpoint.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hone/quantize.h"

namespace hone::checkpoints {

struct QuantizeRequest {
    QuantFormat format = QuantFormat::w4a16;
    /// Columns that share a scale; 0: all of a row. Default: usual_group().
    std::optional<std::int64_t> group;
    bool zeros = false;    ///< w4a16: zero points
    bool search = true;    ///< w4a16: the scale of least squared error, not the one that clips nothing
    bool lm_head = false;  ///< the language head too
    std::vector<std::string> skip;  ///< layers to leave as they are: is_part() of linear_layers.h
    std::optional<Dtype>
        dtype;  ///< fp16 or bf16, of the operator and of w4a16's scales; default: the checkpoint's
};

/// Columns that share a scale where nothing is said; 0: all of a row.
[[nodiscard]] constexpr std::int64_t usual_group(QuantFormat format) {
    return format == QuantFormat::w4a16 ? 128 : 0;
}

}  // namespace hone::checkpoints
