// hone explain PROBLEM: which candidate dispatch takes and why, with the dispatcher's own rules
// (runtime/dispatch/explain.h).
#include <fmt/format.h>

#include <algorithm>

#include "cli/command_list.h"
#include "cli/devices.h"
#include "cli/stored.h"
#include "cli/targets.h"
#include "cli/value_types.h"
#include "kernel_templates/catalog.h"
#include "runtime/compile/compiler.h"
#include "runtime/dispatch/explain.h"
#include "runtime/dispatch/report_json.h"
#include "runtime/system/short_text.h"
#include "tuner/measure/offline_measurer.h"
#include "tuner/report/report.h"
#include "tuner/report/report_text.h"

namespace hone::cli {
namespace {

struct Options {
    std::vector<std::string> words;
    std::string gpu;
    std::string arch;
    std::int64_t max = 0;
};

/// The GPU asked about: one of this machine, else the datasheet's of an architecture.
tuner::DeviceInfo device_asked_about(const Options& options, const Console& console) {
    const Gpus gpus = find_gpus();
    if (!options.arch.empty())
        return tuner::OfflineMeasurer(arch_named(options.arch), find_compiler().version).device();
    if (!gpus.devices.empty() || !options.gpu.empty()) return chosen_gpus(gpus, options.gpu).front();
    console.note("no usable GPU here: explaining for sm_90a (--arch names another)");
    return tuner::OfflineMeasurer(Arch{9, 0, true}, find_compiler().version).device();
}

std::optional<cache::Cache> readable_user_cache() {
    try {
        return open_user_cache(cache::OpenMode::read_only);
    } catch (const cache::CacheError&) {
        return std::nullopt;  // cache::Winners has warned
    }
}

/// "not compiled yet", or what ptxas said of it.
Json image_facts(const Problem& problem, const std::string& candidate_text, const tuner::DeviceInfo& device,
                 std::optional<cache::Cache>& cache) {
    const std::optional<Candidate> candidate = parse_candidate(*problem.family, candidate_text);
    if (!candidate || !cache) return nullptr;
    const auto image = cache->image(
        runtime::candidate_image_key(problem, *candidate, device.traits.arch(), device.toolchain.nvrtc));
    if (!image) return nullptr;
    return {{"registers", image->resources.registers},
            {"shared_bytes", image->resources.shared_bytes},
            {"spill_bytes", image->resources.spill_bytes},
            {"cubin_bytes", image->cubin.size()}};
}

/// Candidates that were tried here and did not end well, by cause.
Json failures_of(const Problem& problem, const cache::GpuKey& gpu, std::optional<cache::Cache>& cache) {
    Json failures = Json::array();
    if (!cache) return failures;
    cache::Filter filter = filter_of(problem);
    filter.gpu = gpu;
    for (const cache::Trial& trial : cache->trials(filter)) {
        if (trial.status == cache::TrialStatus::ok) continue;
        failures.push_back({{"candidate", trial.candidate},
                            {"status", cache::name(trial.status)},
                            {"detail", trial.detail}});
    }
    return failures;
}

Json template_facts(const Problem& problem, const std::string& candidate_text) {
    const std::optional<Candidate> candidate = parse_candidate(*problem.family, candidate_text);
    if (!candidate) return nullptr;
    return {{"variant", candidate->variant->name},
            {"source", candidate->variant->source},
            {"hash", template_hash(*candidate->variant)}};
}

std::string facts_text(const Json& data) {
    std::string text;
    if (const Json& kernel = data["template"]; kernel.is_object()) {
        text += fmt::format("template: {} ({})\n", kernel["source"].get<std::string>(),
                            kernel["hash"].get<std::string>());
    }
    if (const Json& image = data["image"]; image.is_object()) {
        text += fmt::format("image: {} registers, {} bytes shared, {} bytes spilled\n",
                            image["registers"].get<int>(), image["shared_bytes"].get<int>(),
                            image["spill_bytes"].get<int>());
    } else {
        text += "image: not compiled yet\n";
    }
    for (const Json& failure : data["failures"]) {
        text += fmt::format("failed: {}: {} {}\n", failure["candidate"].get<std::string>(),
                            failure["status"].get<std::string>(), failure["detail"].get<std::string>());
    }
    return text;
}

/// What a caller prepares who asks for no more than usual.
Problem largest_prepared(Problem problem, std::int64_t max) {
    constexpr std::int64_t usual_max = 8192;
    for (const std::uint8_t field : dynamic_fields(*problem.family)) {
        const std::int64_t most = problem.family->fields[field].max;
        problem.values[field] = std::min(std::max({max, problem[field], usual_max}), most);
    }
    return problem;
}

/// What makes `hone tune` answer for the GPU asked about.
std::string tune_words(const Options& options) {
    if (options.arch.empty()) return option_words("--gpu", options.gpu);
    return " --offline" + option_words("--arch", options.arch);
}

/// The answer with what one user cache knows, or without any.
Outcome answer(const Problem& problem, const Options& options, const tuner::DeviceInfo& device,
               const runtime::WinnerTable& winners, std::optional<cache::Cache> cache) {
    Explanation explained = runtime::explain(
        problem, largest_prepared(problem, options.max),
        {.winners = &winners, .traits = &device.traits, .trials = cache ? &*cache : nullptr});
    if (!explained.bucket.tune_command.empty()) explained.bucket.tune_command += tune_words(options);

    Outcome outcome{.data = runtime::as_json(explained)};
    outcome.data["gpu"] = tuner::as_json(device.gpu);
    outcome.data["template"] = template_facts(problem, explained.bucket.candidate);
    outcome.data["image"] = image_facts(problem, explained.bucket.candidate, device, cache);
    outcome.data["failures"] = failures_of(problem, device.gpu, cache);
    outcome.text = runtime::escape_controls(to_string(explained) + facts_text(outcome.data), true);
    return outcome;
}

/// A damaged cache costs what it held and one warning, as it does for dispatch.
Outcome explain(const Options& options, const Console& console) {
    const Problem problem = problem_from_words(options.words);
    const tuner::DeviceInfo device = device_asked_about(options, console);
    bool warned = false;
    const auto warn = [&](const std::string& warning) {
        warned = true;
        console.warn(warning);
    };
    const runtime::WinnerTable winners(cache::Winners(device.gpu, device.toolchain, warn));
    try {
        return answer(problem, options, device, winners, readable_user_cache());
    } catch (const cache::CacheError& error) {
        if (!warned) warn(fmt::format("trials and images of the user cache are left out: {}", error.what()));
    }
    return answer(problem, options, device, winners, std::nullopt);
}

}  // namespace

Runner declare_explain(const Arguments& app) {
    const auto options = std::make_shared<Options>();
    app.add_option("PROBLEM", options->words, "An operator and its fields")
        .required()
        .type_name(operator_type);
    const Argument gpu = app.add_option("--gpu", options->gpu, "Explain for this GPU (default: 0)");
    app.add_option("--arch", options->arch, "Explain for an architecture instead of a GPU of this machine")
        .type_name(arch_type())
        .excludes(gpu);
    app.add_option("--max", options->max, "Largest dynamic value that the caller prepares for (default 8192)")
        .range(1, 1 << 30);
    return [options](const Console& console) { return explain(*options, console); };
}

}  // namespace hone::cli
