// A model made ready for the commands that run one, with a bar while its weights are read.
#pragma once

#include <memory>

#include "cli/console.h"
#include "decoder/engine/running_model.h"

namespace hone::cli {

/// Throws as RunningModel does.
[[nodiscard]] std::unique_ptr<decoder::RunningModel> loaded_model(decoder::ModelOptions options,
                                                                  const Console& console);

}  // namespace hone::cli
