// A model made ready for the commands that run one, with a bar while its weights are read.
#pragma once

#include <memory>
#include <string>

#include "cli/arguments.h"
#include "cli/console.h"
#include "decoder/engine/running_model.h"

namespace hone::cli {

/// The argument FOLDER, which says what a command runs.
void declare_folder(const Arguments& app, std::string& folder);
/// The option --gpu, which says where.
void declare_gpu(const Arguments& app, int& device);

/// Throws as RunningModel does.
[[nodiscard]] std::unique_ptr<decoder::RunningModel> loaded_model(decoder::ModelOptions options,
                                                                  const Console& console);

/// The context of a model whose steps are timed at so many keys a sequence: as long as the decoder's graphs
/// for them are, which decides about attention's kernel; no longer than the model knows, unless it is asked
/// for.
[[nodiscard]] std::int64_t timed_context(const models::Model& model, std::int64_t kv_len);

}  // namespace hone::cli
