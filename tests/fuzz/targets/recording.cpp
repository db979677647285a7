// Recorded sweeps (JSON lines): read, written again, and replayed as `hone tune --replay` does.
#include <cmath>

#include "kernel_templates/catalog.h"
#include "runtime/system/input_error.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/made_trials.h"
#include "tuner/measure/recorded.h"

namespace {

using namespace hone;
using namespace hone::tuner;
using hone::fuzz::require;

Recording read(const std::string& name, std::string_view text) {
    const std::filesystem::path file = hone::fuzz::scratch_folder() / name;
    hone::fuzz::write_file(file, text);
    return read_recording(file);
}

std::string written(const Recording& recording) {
    std::string text = header_line(recording.device) + '\n';
    for (const auto& [name, problem] : recording.problems) text += problem_line(name, problem) + '\n';
    return text;
}

/// Times are rounded when they are written, so what is read again has the same outline and not the same
/// digits.
void check_rewritten(const Recording& recording) {
    const Recording again = read("again.jsonl", written(recording));
    require(again.device.gpu == recording.device.gpu, "the device is read again");
    require(again.problems.size() == recording.problems.size(), "all problems are read again");
    for (const auto& [name, problem] : recording.problems) {
        const RecordedProblem& reread = again.problems.at(name);
        require(reread.calls_per_replay == problem.calls_per_replay, "calls are read again");
        require(reread.candidates.size() == problem.candidates.size(), "all candidates are read again");
        for (const auto& [candidate, recorded] : problem.candidates) {
            const RecordedCandidate& found = reread.candidates.at(candidate);
            require(found.us.size() == recorded.us.size(), "all samples are read again");
            require(found.verdict.status == recorded.verdict.status, "the verdict is read again");
            require(found.resources == recorded.resources, "resources are read again");
        }
    }
}

/// Plans divide and multiply by what the file says of its GPU.
void check_plan(const Problem& problem, const Candidate& candidate, const DeviceTraits& traits) {
    if (!allowed(problem, candidate, traits)) return;
    static_cast<void>(candidate.variant->plan(problem, candidate.config, traits));
    static_cast<void>(candidate.variant->predict_us(problem, candidate.config, traits));
}

void check_replay(const Recording& recording) {
    ReplayMeasurer measurer(recording);
    for (const auto& [text, recorded] : recording.problems) {
        const std::optional<Problem> problem = parse_problem(text);
        if (!problem || measurer.begin_problem(*problem).status != cache::TrialStatus::ok) continue;
        require(measurer.calls_per_replay() >= 1, "a replay makes calls");
        for (const auto& [name, ignored] : recorded.candidates) {
            const std::optional<Candidate> candidate = parse_candidate(*problem->family, name);
            if (!candidate) continue;
            const Samples samples = measurer.time({*candidate, nullptr}, 3);
            for (const double us : samples.us) require(std::isfinite(us) && us >= 0, "a sample is a time");
            require(measurer.interleave({{*candidate, nullptr}}, 2).size() == 1, "one answer a candidate");
            check_plan(*problem, *candidate, measurer.device().traits);
        }
        static_cast<void>(fallback(*problem, measurer.device().traits));
        measurer.end_problem();
    }
}

DeviceInfo made_device() {
    const cache::Trial trial = hone::fuzz::made_winner(*families().front());
    return {
        .traits = *representative_device({9, 0, true}), .gpu = trial.key.gpu, .toolchain = trial.toolchain};
}

std::string line_of(const Family& family) {
    const Problem problem = hone::fuzz::made_problem(family);
    RecordedProblem recorded{.begin = {}, .calls_per_replay = 3, .candidates = {}};
    recorded.candidates[to_string(hone::fuzz::made_candidate(problem))] = {
        .verdict = {.status = cache::TrialStatus::ok, .detail = {}, .relative_l2 = 0.001},
        .resources = {.registers = 40, .shared_bytes = 1024, .spill_bytes = 0},
        .us = {10.5, 10.75, 11}};
    return problem_line(to_string(problem), recorded) + '\n';
}

}  // namespace

const int hone::fuzz::mutations = 3000;

std::vector<hone::fuzz::Seed> hone::fuzz::seeds() {
    const std::string header = header_line(made_device()) + '\n';
    std::string all = header;
    std::vector<Seed> made;
    for (const Family* family : families()) all += line_of(*family);
    for (const char* family : {"rmsnorm", "linear", "attention_decode"})
        made.push_back({std::string(family) + ".jsonl", header + line_of(*find_family(family))});
    made.push_back({"all_families.jsonl", all});
    made.push_back(
        {"cut_off.jsonl", all.substr(0, header.size() + line_of(*families().front()).size() + 200)});
    return made;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        const Recording recording = read("input.jsonl", hone::fuzz::text_of(data, size));
        hone::fuzz::count_read();
        check_rewritten(recording);
        check_replay(recording);
    } catch (const runtime::InputError& error) {
        require(std::string_view(error.what()).find("input.jsonl:") != std::string_view::npos,
                "a refusal names the file, and what was written is not refused");
    }
    return 0;
}
