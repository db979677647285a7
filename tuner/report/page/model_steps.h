// The steps of a model: a prompt, or one token for each of some sequences, as lists of problems with the
// number of their calls. `hone report` shows from it what the time of a step is spent on.
#pragma once

#include "tuner/models/operators.h"
#include "tuner/report/page/result_columns.h"

namespace hone::tuner {

/// {name, steps: [{kind, tokens, kv_len, operators}]}. `kind` is "decode" (so many sequences, one token
/// each, that many keys in the cache), "prompt" (of one sequence) or, of an encoder, "text". An operator has
/// `role`, `family`, `count` (calls of a step) and `problem`, its place in `columns`, or null where Hone has
/// no kernel for it. Of caches, that in one piece is shown; of sampling, that without filters. Throws
/// ConfigError.
[[nodiscard]] Json model_steps(const Model& model, const WorkloadOptions& options, ResultColumns& columns);

}  // namespace hone::tuner
