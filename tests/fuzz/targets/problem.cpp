// Texts of problems and candidates, of all families: the first line is a problem, the second a candidate of
// its family.
#include <cmath>

#include "kernel_templates/catalog.h"
#include "kernel_templates/source.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/made_trials.h"

namespace {

using namespace hone;
using hone::fuzz::require;

void check_text(const Problem& problem) {
    require(parse_problem(to_string(problem)) == problem, "a problem's text is read as the problem");
    require(parse_problem(*problem.family, dynamic_text(problem) + ' ' + static_text(problem)) == problem,
            "the cache's two columns are read as the problem");
    require(with(problem, sizes_of(problem)) == problem, "a problem at its own sizes is itself");
}

/// Whatever the family accepts can be set up: no size overflows on the way.
void check_contract(const Problem& problem) {
    const Family& family = *problem.family;
    const std::vector<Argument> arguments = family.arguments(problem);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        require(arguments[i].elements() > 0 && arguments[i].bytes() >= 0, "arguments have elements");
        static_cast<void>(family.tolerance(problem, static_cast<int>(i)));
    }
    require(!family.scalars(problem).empty() || family.row_strides.empty(), "row strides are scalars");
    const Work work = family.work(problem);
    require(std::isfinite(work.bytes) && std::isfinite(work.flops) && work.bytes > 0, "work is a number");
    require(family.reference_plan(problem).launch_count > 0, "the reference is launched");
    require(!render_constants(problem).empty(), "the reference has constants");
}

void check_candidate(const Problem& problem, const Candidate& candidate) {
    require(parse_candidate(*problem.family, to_string(candidate)) == candidate,
            "a candidate's text is read as the candidate");
    const DeviceTraits traits = *representative_device({9, 0, true});
    if (!allowed(problem, candidate, traits)) return;
    const Plan plan = candidate.variant->plan(problem, candidate.config, traits);
    require(plan.launch_count > 0 && plan.workspace_bytes >= 0, "an allowed candidate is launched");
    require(std::isfinite(candidate.variant->predict_us(problem, candidate.config, traits)),
            "an allowed candidate has a predicted time");
    require(!render_constants(problem, candidate).empty(), "an allowed candidate has constants");
}

}  // namespace

const int hone::fuzz::mutations = 10'000;

std::vector<hone::fuzz::Seed> hone::fuzz::seeds() {
    std::vector<Seed> all;
    for (const Family* family : families()) {
        const Problem problem = made_problem(*family);
        all.push_back({std::string(family->name) + ".txt",
                       to_string(problem) + '\n' + to_string(made_candidate(problem)) + '\n'});
    }
    return all;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto [first, rest] = hone::fuzz::first_line(hone::fuzz::text_of(data, size));
    const std::string_view second = hone::fuzz::first_line(rest).line;
    std::string error;
    const std::optional<Problem> problem = parse_problem(first, &error);
    if (!problem) {
        require(!error.empty(), "a refusal says why");
        return 0;
    }
    check_text(*problem);
    check_contract(*problem);
    const std::optional<Candidate> candidate = parse_candidate(*problem->family, second, &error);
    require(candidate || !error.empty(), "a refusal says why");
    if (candidate) check_candidate(*problem, *candidate);
    hone::fuzz::count_read();
    return 0;
}
