#include "cache/bundle_row.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cache/bundle.h"
#include "cache/error.h"
#include "cache/ties.h"
#include "cache/validator.h"
#include "kernel_templates/catalog.h"
#include "kernel_templates/text.h"

namespace hone::cache {
namespace {

[[noreturn]] void refuse(std::string_view place, std::string_view field, std::string_view why) {
    throw BundleError(fmt::format("{}, field '{}': {}", place, field, why));
}

/// Takes members out of a row one by one, so that what is left at the end is what does not belong there.
class Members {
  public:
    Members(const nlohmann::json& row, std::string_view place) : row_(row), place_(place) {
        if (!row.is_object()) throw BundleError(fmt::format("{}: is not an object", place));
    }

    std::string text(std::string_view field) {
        const nlohmann::json& value = take(field);
        if (!value.is_string()) refuse(place_, field, "is not a string");
        return value.get<std::string>();
    }

    /// The range is looked at here, where a number that no integer holds can still be shown.
    std::int64_t integer(std::string_view field, const limits::Range& range) {
        const nlohmann::json& value = take(field);
        if (!value.is_number_integer()) refuse(place_, field, "is not an integer");
        const bool too_large =
            value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{INT64_MAX};
        const std::int64_t number = too_large ? INT64_MAX : value.get<std::int64_t>();
        if (number < range.low || number > range.high) {
            refuse(place_, field,
                   fmt::format("is {}, allowed: {} to {}", value.dump(), range.low, range.high));
        }
        return number;
    }

    int small(std::string_view field, const limits::Range& range) {
        return static_cast<int>(integer(field, range));
    }

    double real(std::string_view field) {
        const nlohmann::json& value = take(field);
        if (!value.is_number()) refuse(place_, field, "is not a number");
        return value.get<double>();
    }

    bool flag(std::string_view field) {
        const nlohmann::json& value = take(field);
        if (!value.is_boolean()) refuse(place_, field, "is neither true nor false");
        return value.get<bool>();
    }

    template <class Enum>
    Enum named(std::string_view field, std::optional<Enum> (*from_name)(std::string_view)) {
        const std::string text = this->text(field);
        const std::optional<Enum> value = from_name(text);
        if (!value) refuse(place_, field, fmt::format("has the unknown value '{}'", printable(text)));
        return *value;
    }

    void require_none_left() const {
        if (found_ == row_.size()) return;
        for (const auto& [member, value] : row_.items()) {
            if (std::ranges::find(taken_, member) != taken_.end()) continue;
            const std::string near = nearest_name(member, taken_);
            const std::string hint = near.empty() ? std::string() : fmt::format("; did you mean '{}'?", near);
            throw BundleError(
                fmt::format("{}: has the unknown member '{}'{}", place_, printable(member), hint));
        }
    }

    /// Whether there is such a member, which is then to be taken.
    bool has(std::string_view field) {
        if (row_.contains(field)) return true;
        taken_.push_back(field);
        return false;
    }

    /// The member, or null where there is none.
    const nlohmann::json* take_if(std::string_view field) {
        taken_.push_back(field);
        const auto found = row_.find(field);
        if (found == row_.end()) return nullptr;
        ++found_;
        return &*found;
    }

  private:
    const nlohmann::json& take(std::string_view field) {
        const nlohmann::json* found = take_if(field);
        if (found == nullptr) refuse(place_, field, "is missing");
        return *found;
    }

    const nlohmann::json& row_;
    std::string_view place_;
    std::vector<std::string_view> taken_;
    std::size_t found_ = 0;  ///< of them, so many are there
};

GpuKey read_gpu(Members& members) {
    return {.name = members.text("gpu_name"),
            .compute_major = members.small("compute_major", limits::compute_major),
            .compute_minor = members.small("compute_minor", limits::compute_minor),
            .sm_count = members.small("sm_count", limits::sm_count),
            .memory_clock_mhz = members.small("memory_clock_mhz", limits::memory_clock_mhz),
            .mig_profile = members.text("mig_profile")};
}

/// The members that are there only where something is known.
void write_clock(const Timing& timing, nlohmann::ordered_json& json) {
    if (timing.sm_clock_mhz != 0) json["sm_clock_mhz"] = timing.sm_clock_mhz;
    if (timing.incumbent_ratio != 0) json["incumbent_ratio"] = timing.incumbent_ratio;
}

void read_clock(Members& members, Timing& timing) {
    if (members.has("sm_clock_mhz"))
        timing.sm_clock_mhz = members.small("sm_clock_mhz", limits::sm_clock_mhz);
    if (members.has("incumbent_ratio")) timing.incumbent_ratio = members.real("incumbent_ratio");
}

/// A variant's hash stands in the winner's row where both are of one variant. Most came no further than the
/// heat.
nlohmann::ordered_json contender_json(const Trial& contender, const Trial& winner) {
    nlohmann::ordered_json json{{"candidate", contender.candidate},
                                {"median_us", contender.timing.median_us + 0.0}};
    if (contender.template_hash != winner.template_hash) json["template_hash"] = contender.template_hash;
    if (of_one_final(contender, winner)) json["stage"] = name(contender.stage);
    write_clock(contender.timing, json);
    return json;
}

Trial read_contender(const nlohmann::json& json, std::string_view place, const Trial& winner) {
    Members members(json, place);
    Trial contender = contender_of(winner);
    contender.candidate = members.text("candidate");
    contender.timing.median_us = members.real("median_us");
    contender.timing.p10_us = contender.timing.p90_us = contender.timing.median_us;
    if (members.has("template_hash")) contender.template_hash = members.text("template_hash");
    if (members.has("stage")) {
        contender.stage = members.named("stage", stage_from_name);
        if (!of_one_final(contender, winner))
            refuse(place, "stage", "is there, but contender and winner were not both in the final_round");
    }
    read_clock(members, contender.timing);
    members.require_none_left();
    return contender;
}

void append_contenders(const nlohmann::json& rows, std::string_view place, std::optional<std::int64_t> now_ms,
                       std::vector<Trial>& trials) {
    if (!rows.is_array() || rows.empty() || rows.size() > most_contenders)
        refuse(place, "contenders", fmt::format("is not an array of 1 to {}", most_contenders));
    const Trial winner = trials.front();
    for (const nlohmann::json& json : rows) {
        const std::string where = fmt::format("{}, contender {}", place, trials.size());
        Trial contender = read_contender(json, where, winner);
        if (const std::optional<Fault> fault = fault_of(contender, now_ms))
            refuse(where, fault->field, fault->why);
        const auto is_same = [&](const Trial& other) { return other.candidate == contender.candidate; };
        if (std::ranges::any_of(trials, is_same)) refuse(where, "candidate", "stands in its row already");
        trials.push_back(std::move(contender));
    }
}

}  // namespace

Trial contender_of(const Trial& winner) {
    Trial contender = winner;
    contender.winner = false;
    contender.stage = Stage::raced;
    contender.is_default = false;
    contender.resources = {};
    contender.timing.sm_clock_mhz = 0;
    contender.timing.incumbent_ratio = 0;
    contender.energy_mj = 0;
    contender.chain.clear();
    return contender;
}

std::string write_row(const Trial& winner, std::span<const Trial> contenders) {
    const GpuKey& gpu = winner.key.gpu;
    nlohmann::ordered_json row{{"family", winner.key.family},
                               {"static_fields", winner.key.static_fields},
                               {"dynamic_fields", winner.key.dynamic_fields},
                               {"candidate", winner.candidate},
                               {"median_us", winner.timing.median_us + 0.0},
                               {"p10_us", winner.timing.p10_us + 0.0},
                               {"p90_us", winner.timing.p90_us + 0.0},
                               {"samples", winner.timing.samples},
                               {"stage", name(winner.stage)},
                               {"provenance", name(winner.provenance)},
                               {"is_default", winner.is_default},
                               {"registers", winner.resources.registers},
                               {"shared_bytes", winner.resources.shared_bytes},
                               {"spill_bytes", winner.resources.spill_bytes},
                               {"energy_mj", winner.energy_mj + 0.0},
                               {"gpu_name", gpu.name},
                               {"compute_major", gpu.compute_major},
                               {"compute_minor", gpu.compute_minor},
                               {"sm_count", gpu.sm_count},
                               {"memory_clock_mhz", gpu.memory_clock_mhz},
                               {"mig_profile", gpu.mig_profile},
                               {"driver", winner.toolchain.driver},
                               {"nvrtc", winner.toolchain.nvrtc},
                               {"template_hash", winner.template_hash},
                               {"created_at", winner.created_at},
                               {"tool_version", winner.tool_version}};
    write_clock(winner.timing, row);
    if (!winner.chain.empty()) row["chain"] = winner.chain;
    for (const Trial& contender : contenders) row["contenders"].push_back(contender_json(contender, winner));
    // Bytes that are no UTF-8 become another character, which reading the row refuses by its field.
    return row.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<Trial> read_row(const nlohmann::json& row, std::string_view place,
                            std::optional<std::int64_t> now_ms) {
    Members members(row, place);
    Trial trial;
    trial.key.family = members.text("family");
    trial.key.static_fields = members.text("static_fields");
    trial.key.dynamic_fields = members.text("dynamic_fields");
    trial.key.gpu = read_gpu(members);
    trial.candidate = members.text("candidate");
    trial.timing.median_us = members.real("median_us");
    trial.timing.p10_us = members.real("p10_us");
    trial.timing.p90_us = members.real("p90_us");
    trial.timing.samples = members.small("samples", limits::samples);
    trial.stage = members.named("stage", stage_from_name);
    trial.provenance = members.named("provenance", provenance_from_name);
    trial.is_default = members.flag("is_default");
    trial.resources.registers = members.small("registers", limits::registers);
    trial.resources.shared_bytes = members.small("shared_bytes", limits::shared_bytes);
    trial.resources.spill_bytes = members.small("spill_bytes", limits::spill_bytes);
    trial.energy_mj = members.real("energy_mj");
    trial.toolchain.driver = members.text("driver");
    trial.toolchain.nvrtc = members.text("nvrtc");
    trial.template_hash = members.text("template_hash");
    trial.created_at = members.integer("created_at", limits::created_at);
    trial.tool_version = members.text("tool_version");
    read_clock(members, trial.timing);
    if (members.has("chain")) trial.chain = members.text("chain");
    const nlohmann::json* contenders = members.take_if("contenders");
    members.require_none_left();
    trial.winner = true;
    if (const std::optional<Fault> fault = fault_of(trial, now_ms)) refuse(place, fault->field, fault->why);
    std::vector<Trial> trials{std::move(trial)};
    if (contenders != nullptr) append_contenders(*contenders, place, now_ms, trials);
    return trials;
}

void require_in_design_space(const Trial& trial, std::string_view place) {
    const TuningKey& key = trial.key;
    std::string error;
    const auto problem =
        parse_problem(key.family + ' ' + key.static_fields + ' ' + key.dynamic_fields, &error);
    if (!problem) {
        refuse(place, find_family(key.family) == nullptr ? "family" : "static_fields or dynamic_fields",
               error);
    }
    if (problem->family->name != key.family) refuse(place, "family", "is not the name of a family alone");
    if (static_text(*problem) != key.static_fields) {
        refuse(place, "static_fields", fmt::format("must be written '{}'", static_text(*problem)));
    }
    if (dynamic_text(*problem) != key.dynamic_fields) {
        refuse(place, "dynamic_fields", fmt::format("must be written '{}'", dynamic_text(*problem)));
    }
    const auto candidate = parse_candidate(*problem->family, trial.candidate, &error);
    if (!candidate) refuse(place, "candidate", error);
    if (to_string(*candidate) != trial.candidate) {
        refuse(place, "candidate", fmt::format("must be written '{}'", to_string(*candidate)));
    }
}

}  // namespace hone::cache
