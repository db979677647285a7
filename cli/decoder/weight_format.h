// Options of the commands that run a model: in which format the weights of its linear layers are, and its
// cache.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "checkpoints/pack/request.h"
#include "cli/arguments.h"
#include "kernel_templates/enums.h"

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

  private:
    void check(QuantFormat wanted) const;
};

/// --kv-cache of the commands that run a model.
struct KvCacheOption {
    std::string kind{};

    /// Has to live until the command has run.
    Argument declare(const Arguments& app);
    /// Throws Failure for another word.
    [[nodiscard]] KvDtype chosen() const;
};

}  // namespace hone::cli
