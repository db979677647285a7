#include "tests/fuzz/made_trials.h"

#include "kernel_templates/catalog.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/drawn_problem.h"

namespace hone::fuzz {

Problem made_problem(const Family& family) {
    const std::vector<Problem> problems = test::drawn_problems(family, 1);
    require(!problems.empty(), "a family without problems");
    return problems.front();
}

Candidate made_candidate(const Problem& problem) {
    const auto candidate = fallback(problem, *representative_device({9, 0, true}));
    require(candidate.has_value(), "a problem without a fallback");
    return *candidate;
}

cache::Trial made_winner(const Family& family) {
    const Problem problem = made_problem(family);
    const Candidate candidate = made_candidate(problem);
    cache::Trial trial;
    trial.key = {.gpu = {.name = "NVIDIA H100 80GB HBM3",
                         .compute_major = 9,
                         .compute_minor = 0,
                         .sm_count = 132,
                         .memory_clock_mhz = 2619,
                         .mig_profile = ""},
                 .family = std::string(family.name),
                 .static_fields = static_text(problem),
                 .dynamic_fields = dynamic_text(problem)};
    trial.toolchain = {.driver = "580.95.05", .nvrtc = "13.0"};
    trial.candidate = to_string(candidate);
    trial.template_hash = std::string(template_hash(*candidate.variant));
    trial.stage = cache::Stage::final_round;
    trial.winner = true;
    trial.timing = {.median_us = 1015.5, .p10_us = 1002.25, .p90_us = 1070, .samples = 30};
    trial.resources = {.registers = 40, .shared_bytes = 1024, .spill_bytes = 0};
    trial.energy_mj = 12.5;
    trial.created_at = 1'790'000'000'000;
    trial.tool_version = "0.1.0";
    return trial;
}

std::vector<cache::Trial> made_winners() {
    std::vector<cache::Trial> winners;
    for (const Family* family : families()) winners.push_back(made_winner(*family));
    return winners;
}

}  // namespace hone::fuzz
