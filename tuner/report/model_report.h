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

/// Another layout of the cache, or sampling with filters: an engine calls this or the operator before it.
[[nodiscard]] bool is_alternative(const ModelOperator& op);

/// No line is wider than the page: what does not fit is cut with "…". Operators that differ from the one
/// before them only in how the cache is laid out, or in filters, are left out; the JSON has them.
[[nodiscard]] std::string model_text(const Model& model, const std::vector<ModelOperator>& operators,
                                     const Page& page);

}  // namespace hone::tuner
