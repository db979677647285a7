// Options of the commands that run a model: in which format the weights of its linear layers are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "checkpoints/pack/request.h"
#include "cli/arguments.h"

namespace hone::cli {

struct WeightFormatOptions {
    std::string format{};
    std::optional<std::int64_t> group{};
    bool zeros = false;
    bool lm_head = false;

    /// Has to live until the command has run.
    void declare(const Arguments& app);
    /// Throws Failure for options that do not go together.
    [[nodiscard]] std::optional<checkpoints::QuantizeRequest> chosen() const;
};

}  // namespace hone::cli
