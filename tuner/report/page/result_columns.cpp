#include "tuner/report/page/result_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "kernel_templates/catalog.h"
#include "kernel_templates/text.h"

namespace hone::tuner {
namespace {

/// Longer causes are cut, and rare ones of so many share a line: a compiler's log can say anything.
constexpr std::size_t most_detail_bytes = 240;
constexpr std::size_t most_details = 4000;

Json columns(std::initializer_list<const char*> names) {
    Json json = Json::object();
    for (const char* name : names) json[name] = Json::array();
    return json;
}

/// Enough for a picture, and half the bytes.
double rounded(double value) {
    if (!std::isfinite(value)) return 0;
    const std::string text = fmt::format("{:.5g}", value);
    double short_value = 0;
    std::from_chars(text.data(), text.data() + text.size(), short_value);
    return short_value;
}

std::string shortened(const std::string& text) {
    if (text.size() <= most_detail_bytes) return text;
    std::size_t end = most_detail_bytes;
    while (end > 0 && is_utf8_continuation(text[end])) --end;
    return text.substr(0, end) + "…";
}

/// Operations that the tensor cores of one multiprocessor do in a cycle with operands of 16 bits, sums of 32
/// and no sparsity: the data sheets' rates over multiprocessors and boost clocks.
double tensor_operations_per_cycle(const DeviceTraits& traits) {
    switch (traits.compute_major * 10 + traits.compute_minor) {
        case 75: return 1024;
        case 80: return 2048;
        case 86: return 1024;
        case 89: return 1024;
        case 90: return 4096;
        case 100: return 8192;
        case 120: return 512;
        default: return 0;
    }
}

/// Null where a figure is not known.
Json positive(double value) { return value > 0 ? Json(value) : Json(nullptr); }

Json gpu_json(const cache::GpuKey& key, const std::optional<DeviceTraits>& traits) {
    Json json = as_json(key);
    const DeviceTraits known = traits.value_or(DeviceTraits());
    const double cycles_per_s = known.sm_clock_khz * 1e3 * known.sm_count;
    json["bytes_per_s"] = positive(known.memory_bytes_per_s);
    json["operations_per_s"] = positive(cycles_per_s * tensor_operations_per_cycle(known));
    return json;
}

template <class Enum>
Json names_up_to(Enum last) {
    Json names = Json::array();
    for (int i = 0; i <= static_cast<int>(last); ++i) names.push_back(name(static_cast<Enum>(i)));
    return names;
}

Json families_json(const Json& names) {
    Json list = Json::array();
    for (const Json& name : names) {
        const Family* family = find_family(name.get<std::string>());
        list.push_back({{"name", name}, {"summary", family != nullptr ? family->summary : ""}});
    }
    return list;
}

}  // namespace

std::size_t TextList::index_of(const std::string& text) {
    const auto [place, added] = places_.try_emplace(text, places_.size());
    if (added) texts_.push_back(&place->first);
    return place->second;
}

std::optional<std::size_t> TextList::find(const std::string& text) const {
    const auto place = places_.find(text);
    return place == places_.end() ? std::nullopt : std::optional(place->second);
}

Json TextList::json() const {
    Json list = Json::array();
    for (const std::string* text : texts_) list.push_back(*text);
    return list;
}

ResultColumns::ResultColumns(TraitsOf traits_of)
    : traits_of_(std::move(traits_of)),
      problems_(columns({"family", "static", "dynamic", "bytes", "flops"})),
      winners_(columns({"problem", "gpu", "toolchain", "candidate", "layer", "trust", "provenance",
                        "is_default", "median_us", "p10_us", "p90_us", "samples", "registers", "shared_bytes",
                        "energy_mj", "created_at_ms"})),
      trials_(
          columns({"problem", "gpu", "toolchain", "candidate", "layer", "status", "stage", "provenance",
                   "winner", "is_default", "median_us", "registers", "energy_mj", "detail", "after_ms"})) {}

std::size_t ResultColumns::gpu(const cache::GpuKey& key) {
    const auto found = std::ranges::find(gpus_, key);
    if (found != gpus_.end()) return static_cast<std::size_t>(found - gpus_.begin());
    gpus_.push_back(key);
    gpu_list_.push_back(gpu_json(key, traits_of_(key)));
    return gpus_.size() - 1;
}

std::size_t ResultColumns::problem(const std::string& family, const std::string& static_fields,
                                   const std::string& dynamic_fields) {
    const std::array<std::size_t, 3> key{families_.index_of(family), statics_.index_of(static_fields),
                                         dynamics_.index_of(dynamic_fields)};
    const auto [place, added] = problem_places_.try_emplace(key, problem_places_.size());
    if (!added) return place->second;
    const std::optional<Problem> parsed =
        parse_problem(fmt::format("{} {} {}", family, static_fields, dynamic_fields));
    const Work work = parsed ? parsed->family->work(*parsed) : Work();
    problems_["family"].push_back(key[0]);
    problems_["static"].push_back(key[1]);
    problems_["dynamic"].push_back(key[2]);
    problems_["bytes"].push_back(positive(work.bytes));
    problems_["flops"].push_back(positive(work.flops));
    return place->second;
}

/// Those of winners come first: the page shows them before it has read the trials.
std::size_t ResultColumns::candidate(const std::string& text) {
    if (const std::optional<std::size_t> place = candidates_.find(text)) return *place;
    return candidates_.size() + trial_candidates_.index_of(text);
}

std::size_t ResultColumns::detail(const std::string& text) {
    const std::string known = shortened(text);
    const bool is_full = details_.size() >= most_details && !details_.find(known);
    return details_.index_of(is_full ? "(one of many other causes)" : known);
}

/// The columns that winners and trials share.
void ResultColumns::add_key(Json& columns, const StoredTrial& stored) {
    const cache::Trial& trial = stored.trial;
    columns["problem"].push_back(
        problem(trial.key.family, trial.key.static_fields, trial.key.dynamic_fields));
    columns["gpu"].push_back(gpu(trial.key.gpu));
    columns["toolchain"].push_back(toolchains_.index_of(
        fmt::format("driver {}, NVRTC {}", trial.toolchain.driver, trial.toolchain.nvrtc)));
    columns["layer"].push_back(layers_.index_of(stored.layer));
    columns["provenance"].push_back(static_cast<int>(trial.provenance));
    columns["is_default"].push_back(trial.is_default ? 1 : 0);
    columns["registers"].push_back(trial.resources.registers);
}

void ResultColumns::add_winner(const StoredTrial& stored, const std::string& trust) {
    const cache::Trial& trial = stored.trial;
    add_key(winners_, stored);
    winners_["candidate"].push_back(candidates_.index_of(trial.candidate));
    winners_["trust"].push_back(trusts_.index_of(trust));
    winners_["median_us"].push_back(trial.timing.median_us);
    winners_["p10_us"].push_back(trial.timing.p10_us);
    winners_["p90_us"].push_back(trial.timing.p90_us);
    winners_["samples"].push_back(trial.timing.samples);
    winners_["shared_bytes"].push_back(trial.resources.shared_bytes);
    winners_["energy_mj"].push_back(trial.energy_mj);
    winners_["created_at_ms"].push_back(trial.created_at);
}

void ResultColumns::add_trial(const StoredTrial& stored) {
    const cache::Trial& trial = stored.trial;
    add_key(trials_, stored);
    trials_["candidate"].push_back(candidate(trial.candidate));
    trials_["status"].push_back(static_cast<int>(trial.status));
    trials_["stage"].push_back(static_cast<int>(trial.stage));
    trials_["winner"].push_back(trial.winner ? 1 : 0);
    trials_["median_us"].push_back(rounded(trial.timing.median_us));
    trials_["energy_mj"].push_back(rounded(trial.energy_mj));
    trials_["detail"].push_back(detail(trial.detail));
    trials_["after_ms"].push_back(trial.created_at - last_created_at_);
    last_created_at_ = trial.created_at;
}

Json ResultColumns::results() const {
    return {{"gpus", gpu_list_},
            {"families", families_json(families_.json())},
            {"static_fields", statics_.json()},
            {"dynamic_fields", dynamics_.json()},
            {"problems", problems_},
            {"toolchains", toolchains_.json()},
            {"layers", layers_.json()},
            {"trusts", trusts_.json()},
            {"provenances", names_up_to(cache::Provenance::predicted)},
            {"statuses", names_up_to(cache::TrialStatus::crashed)},
            {"stages", names_up_to(cache::Stage::final_round)},
            {"candidates", candidates_.json()},
            {"winners", winners_}};
}

Json ResultColumns::trials() const {
    return {{"candidates", trial_candidates_.json()}, {"details", details_.json()}, {"columns", trials_}};
}

}  // namespace hone::tuner
