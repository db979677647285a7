#include "tuner/models/captured.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/dispatch/capture_file.h"
#include "runtime/system/short_text.h"
#include "tuner/errors.h"
#include "tuner/models/call_time.h"

namespace hone::tuner {
namespace {

using Calls = std::vector<std::pair<Problem, std::uint64_t>>;  // by the text of problems

Calls calls_of(const std::vector<runtime::CapturedProblem>& captured, std::vector<std::string>& warnings) {
    std::map<std::string, std::pair<Problem, std::uint64_t>> by_text;
    for (const runtime::CapturedProblem& one : captured) {
        if (one.calls == 0) continue;
        std::string error;
        const std::optional<Problem> problem = parse_problem(one.problem, &error);
        if (!problem) {
            warnings.push_back(
                runtime::escape_controls(fmt::format("left out: {} ({})", one.problem, error)));
            continue;
        }
        auto& [known, calls] = by_text[to_string(*problem)];
        known = *problem;
        calls += one.calls;
    }
    Calls calls;
    for (auto& [text, counted] : by_text) calls.push_back(counted);
    return calls;
}

}  // namespace

Workload captured_workload(const std::filesystem::path& file) {
    Workload workload{.name = file.filename().string(), .problems = {}, .tuned = {}, .without_family = {}};
    double total = 0;
    for (const auto& [problem, calls] : calls_of(runtime::read_capture(file), workload.warnings)) {
        const double time = static_cast<double>(calls) * static_cast<double>(call_time(problem).count());
        workload.captured.push_back({.problem = problem, .calls = calls, .share = time});
        total += time;
    }
    if (workload.captured.empty()) {
        const std::string first = workload.warnings.empty() ? "" : "; " + workload.warnings.front();
        throw ConfigError(
            fmt::format("{}: no call that this build has kernels for; a process that ran with "
                        "HONE_CAPTURE={} adds its calls{}",
                        file.string(), file.string(), first));
    }
    std::ranges::stable_sort(workload.captured, std::ranges::greater{}, &CapturedUse::share);
    for (CapturedUse& use : workload.captured) {
        use.share /= total;
        workload.problems.push_back(use.problem);
    }
    return workload;
}

}  // namespace hone::tuner
