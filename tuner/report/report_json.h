// The JSON forms of what the tuner knows: one form a thing, used by every command (docs/json-output.md lists
// them).
#pragma once

#include <nlohmann/json.hpp>

#include "cache/layers.h"
#include "cache/ties.h"
#include "tuner/measure/measurer.h"
#include "tuner/search/tuner.h"

namespace hone::tuner {

/// Keys keep the order in which they are written here.
using Json = nlohmann::ordered_json;

[[nodiscard]] Json as_json(const cache::GpuKey& gpu);
[[nodiscard]] Json as_json(const cache::Toolchain& toolchain);
[[nodiscard]] Json as_json(const cache::Trial& trial);
/// "tied_with": candidates, "tied_within": a share; beside the winner's own.
void add_ties(const cache::Ties& ties, Json& object);
[[nodiscard]] Json as_json(const ModelOperator& op);
[[nodiscard]] Json as_json(const TunedOperator& op);
[[nodiscard]] Json as_json(const CoverResult& cover);
/// Values that have a form above, as a list.
template <class Value>
[[nodiscard]] Json list_json(const std::vector<Value>& values) {
    Json list = Json::array();
    for (const Value& value : values) list.push_back(as_json(value));
    return list;
}
[[nodiscard]] Json as_json(const DeviceTraits& traits);
/// One object a problem; null where there is no winner, default or runner-up.
[[nodiscard]] Json as_json(const TuneResult& result, const DeviceTraits& traits);

[[nodiscard]] std::string_view name(StopReason reason);

}  // namespace hone::tuner
