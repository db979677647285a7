// What was understood of a model, for people and as JSON: its layers, its operators, and which of them have a
// kernel. Called by `hone model`.
#pragma once

#include <string>
#include <vector>

#include "tuner/models/operators.h"
#include "tuner/report/report_json.h"
#include "tuner/report/report_text.h"

namespace hone::tuner {

[[nodiscard]] Json model_json(const Model& model, const std::vector<ModelOperator>& operators);

/// No line is wider than the page: what does not fit is cut with "…". Alternatives to other operators are
/// left out; the JSON has them.
[[nodiscard]] std::string model_text(const Model& model, const std::vector<ModelOperator>& operators,
                                     const Page& page);

}  // namespace hone::tuner
