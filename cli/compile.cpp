// hone compile: fills the image cache for an architecture ahead of time. Needs NVRTC, no GPU.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>

#include "cache/checksum.h"
#include "cli/command_list.h"
#include "cli/devices.h"
#include "cli/dispatched.h"
#include "cli/few_kernels.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/stored.h"
#include "cli/targets.h"
#include "cli/value_types.h"
#include "kernel_templates/catalog.h"
#include "kernel_templates/space.h"
#include "tuner/compile/compile_pool.h"
#include "tuner/measure/wire.h"
#include "tuner/report/report.h"

namespace hone::cli {
namespace {

struct Options {
    Target target;
    std::string arch;
    int top = 0;
    int kernels = 0;  ///< of a static problem; 0: all winners
};

struct Tally {
    std::int64_t images = 0;
    std::int64_t from_cache = 0;
    Json kernels = Json::array();
    Json failed = Json::array();
    std::vector<Problem> without_any;  ///< problems of which nothing compiled
    std::vector<tuner::CoverResult> covers;
};

/// What is listed from.
struct Sources {
    DeviceTraits traits;
    const std::vector<StoredTrial>& winners;  ///< of all layers, read once: what ships is some megabytes
    Dispatched& dispatched;
    const Console& console;
    const std::atomic<bool>& stop;
};

/// Winners of the problem on any GPU of this architecture, also those that are stale: who compares programs
/// (bench/carry_winners.py) wants them. Then what dispatch chooses there, the default, and the best
/// predictions.
std::vector<Candidate> wanted(const Problem& problem, const Sources& from, int top) {
    std::vector<Candidate> list;
    const auto add = [&](const Candidate& candidate) {
        const bool known = std::ranges::find(list, candidate) != list.end();
        if (!known && allowed(problem, candidate, from.traits)) list.push_back(candidate);
    };
    const std::string static_fields = static_text(problem);
    const std::string dynamic_fields = dynamic_text(problem);
    for (const StoredTrial& stored : from.winners) {
        const cache::TuningKey& key = stored.trial.key;
        if (key.family != problem.family->name || key.static_fields != static_fields ||
            key.dynamic_fields != dynamic_fields || !is_of(key.gpu, from.traits))
            continue;
        if (const auto candidate = parse_candidate(*problem.family, stored.trial.candidate)) add(*candidate);
    }
    for (const Candidate& candidate : from.dispatched.choices(problem)) add(candidate);
    if (top <= 0) return list;
    int left = top;
    for (const RankedCandidate& ranked : ranked_space(problem, from.traits)) {
        if (left-- <= 0) break;
        add(ranked.candidate);
    }
    return list;
}

/// For each problem what is to be compiled: its image serves all sizes of the static problem.
using Lists = std::vector<std::vector<Candidate>>;

Lists few_kernels(const std::vector<Problem>& problems, const Options& options, const Sources& from,
                  Tally& tally) {
    std::map<std::string, std::vector<std::size_t>> shapes;
    for (std::size_t i = 0; i < problems.size(); ++i)
        shapes[to_string(static_part(problems[i]))].push_back(i);
    Lists lists(problems.size());
    for (const auto& [_, indices] : shapes) {
        if (from.stop) break;
        std::vector<Problem> sizes;
        for (const std::size_t i : indices) sizes.push_back(problems[i]);
        const tuner::CoverResult& cover = tally.covers.emplace_back(stored_cover(
            sizes, static_cast<std::size_t>(options.kernels), from.traits, from.winners, from.console));
        for (const std::string& text : cover.kernels) {
            const Candidate kernel = *parse_candidate(*sizes.front().family, text);
            const auto first = std::ranges::find_if(
                indices, [&](std::size_t i) { return allowed(problems[i], kernel, from.traits); });
            if (first != indices.end()) lists[*first].push_back(kernel);
        }
    }
    return lists;
}

/// Those that a stop comes before are empty.
Lists wanted_lists(const std::vector<Problem>& problems, const Options& options, const Sources& from,
                   Tally& tally) {
    if (options.kernels > 0) return few_kernels(problems, options, from, tally);
    Lists lists(problems.size());
    for (std::size_t i = 0; i < problems.size() && !from.stop; ++i)
        lists[i] = wanted(problems[i], from, options.top);
    return lists;
}

/// Two builds in which both digests are the same run the same code in the same launches for this problem.
Json kernel_json(const Problem& problem, const Candidate& candidate, const cache::Image& image,
                 const DeviceTraits& traits) {
    const Plan plan = candidate.variant->plan(problem, candidate.config, traits);
    const Json launches{{"plan", tuner::to_json(plan)}, {"runs_beside", plan.runs_beside}};
    return {{"problem", to_string(problem)},
            {"candidate", to_string(candidate)},
            {"template_hash", template_hash(*candidate.variant)},
            {"image", cache::Fingerprint("hone.compiled-image/1").bytes(image.cubin).hex()},
            {"plan", cache::Fingerprint("hone.plan/1").text(launches.dump()).hex()}};
}

void compile_problem(const Problem& problem, const std::vector<Candidate>& candidates, const Sources& from,
                     tuner::ImageSource& images, Tally& tally) {
    bool any = false;
    for (const Candidate& candidate : candidates) {
        const tuner::ImageSource::Result result = images.get(problem, candidate);
        if (result.status != cache::TrialStatus::ok && from.stop) return;  // given up, it may be
        if (result.status == cache::TrialStatus::ok) {
            any = true;
            ++tally.images;
            tally.from_cache += result.from_cache ? 1 : 0;
            tally.kernels.push_back(kernel_json(problem, candidate, result.image, from.traits));
            continue;
        }
        tally.failed.push_back({{"problem", to_string(problem)},
                                {"candidate", to_string(candidate)},
                                {"detail", result.detail}});
    }
    if (!any && !candidates.empty()) tally.without_any.push_back(problem);
}

Arch arch_to_compile_for(const std::string& name) {
    if (!name.empty()) return arch_named(name);
    const Gpus gpus = find_gpus();
    if (!gpus.devices.empty()) return gpus.devices.front().traits.arch();
    throw Failure::usage("no_arch",
                         fmt::format("no GPU here to compile for: name one with --arch ({})", gpus.why_none),
                         "--arch sm_90a");
}

/// Of the last candidate that failed.
std::string why_none(const Tally& tally, const Problem& problem) {
    std::string detail;
    for (const Json& failure : tally.failed) {
        if (failure["problem"] == to_string(problem)) detail = failure["detail"].get<std::string>();
    }
    return detail;
}

Outcome describe(const Tally& tally, std::int64_t compiled, Arch arch, const tuner::Workload& workload,
                 const tuner::Page& page) {
    Outcome outcome{.data = {{"arch", to_string(arch)},
                             {"images", tally.images},
                             {"from_cache", tally.from_cache},
                             {"compiled", compiled},
                             {"kernels", tally.kernels},
                             {"failed", tally.failed},
                             {"covers", tuner::list_json(tally.covers)},
                             {"without_family", tuner::list_json(workload.without_family)},
                             {"warnings", warnings_of(workload)}}};
    outcome.text =
        fmt::format("{} images for {}, {} of them compiled now\n", tally.images, to_string(arch), compiled);
    outcome.text += covers_text(tally.covers, page);
    for (const Json& failure : tally.failed) {
        outcome.text += fmt::format("failed: {}: {}\n", failure["candidate"].get<std::string>(),
                                    failure["detail"].get<std::string>());
    }
    set_not_covered(tally.covers, outcome);
    if (!tally.without_any.empty()) {
        const Problem& problem = tally.without_any.front();
        outcome.exit = ExitCode::nothing_valid;
        outcome.error = {
            "nothing_valid",
            fmt::format("nothing compiles for {}: {}", to_string(problem), why_none(tally, problem)),
            fmt::format("hone spaces {} --fields \"{} {}\" --arch {} says why", problem.family->name,
                        static_text(problem), dynamic_text(problem), to_string(arch))};
    }
    return outcome;
}

/// The compiler's version.
std::string version_of_compiler(Arch arch) {
    const CompilerInfo compiler = find_compiler();
    if (compiler.nvrtc == nullptr)
        throw Failure(ExitCode::no_gpu, {"no_nvrtc", compiler.why_none, compiler.hint});
    if (!compiler.nvrtc->supports(arch)) {
        throw Failure(ExitCode::failure,
                      {"unsupported_arch",
                       fmt::format("NVRTC {} does not compile for {}", compiler.version, to_string(arch)),
                       "use a newer CUDA toolkit"});
    }
    return compiler.version;
}

Tally compile_all(const std::vector<Problem>& problems, const Options& options, const Sources& from,
                  tuner::ImageSource& images) {
    Tally tally;
    const Lists candidates = wanted_lists(problems, options, from, tally);
    for (std::size_t i = 0; i < candidates.size() && !from.stop; ++i)
        images.prefetch(problems[i], candidates[i]);
    ProgressDisplay display(from.console);
    for (std::size_t i = 0; i < problems.size() && !from.stop; ++i) {
        compile_problem(problems[i], candidates[i], from, images, tally);
        display.update({.problems_done = i + 1,
                        .problems_total = problems.size(),
                        .candidates_done = static_cast<std::size_t>(tally.images),
                        .candidates_total = 0,
                        .current = to_string(problems[i])});
    }
    display.finish();
    return tally;
}

Outcome compile(const Options& options, const Console& console) {
    tuner::Workload workload = options.target.workload();
    warn_of(workload, console);
    const Arch arch = arch_to_compile_for(options.arch);
    const std::string nvrtc = version_of_compiler(arch);
    const std::atomic<bool>& stop =
        stop_on_interrupt("stopping; what was compiled is kept (again: stop at once)");
    cache::Cache cache = open_user_cache();
    tuner::CompilePool pool(cache, {.arch = arch, .nvrtc = nvrtc, .stop = &stop});
    tuner::CompilePool::Share images(pool);
    const DeviceTraits traits = *representative_device(arch);
    tuner::drop_not_called(workload, std::span(&traits, 1));
    const std::vector<StoredTrial> winners = stored_winners({}, console);
    Dispatched dispatched(traits, winners);
    const Sources from{
        .traits = traits, .winners = winners, .dispatched = dispatched, .console = console, .stop = stop};
    workload.problems = options.kernels > 0 ? dispatched.with_buckets_between(std::move(workload.problems))
                                            : dispatched.with_sizes_between(std::move(workload.problems));
    const Tally tally = compile_all(workload.problems, options, from, images);
    Outcome outcome = describe(tally, images.compiled(), arch, workload, console.page);
    if (stop) {
        outcome.exit = ExitCode::interrupted;
        outcome.error = {"interrupted", "stopped by Ctrl-C; what was compiled is kept",
                         console.command() + " goes on from here"};
    }
    return outcome;
}

}  // namespace

Runner declare_compile(const Arguments& app) {
    const auto options = std::make_shared<Options>();
    options->target.declare(app);
    app.add_option("--arch", options->arch, "Architecture (default: this machine's GPU)")
        .type_name(arch_type());
    const Argument top = app.add_option("--top", options->top, "Also the best N predictions for each problem")
                             .range(0, 1 << 20);
    app.add_option(
           "--kernels", options->kernels,
           "No more than N kernels of each static problem: its winners, as hone tune --kernels leaves "
           "them, else those that lose least")
        .type_name("N")
        .range(1, most_kernels)
        .excludes(top);
    return [options](const Console& console) { return compile(*options, console); };
}

}  // namespace hone::cli
