#include <fmt/format.h>

#include "cache/validator.h"
#include "tuner/measure/recorded.h"

namespace hone::tuner {

ReplayMeasurer::ReplayMeasurer(Recording recording) : recording_(std::move(recording)) {}

Verdict ReplayMeasurer::begin_problem(const Problem& problem) {
    const auto found = recording_.problems.find(to_string(problem));
    current_ = found == recording_.problems.end() ? nullptr : &found->second;
    next_.clear();
    problem_ = problem;
    if (current_ != nullptr) return current_->begin;
    return {.status = cache::TrialStatus::launch_failed,
            .detail = "the recording has no sweep of this problem"};
}

const RecordedCandidate* ReplayMeasurer::find(const Candidate& candidate) const {
    if (current_ == nullptr) return nullptr;
    const auto found = current_->candidates.find(to_string(candidate));
    return found == current_->candidates.end() ? nullptr : &found->second;
}

bool ReplayMeasurer::can_measure(const Problem& problem, const Candidate& candidate) const {
    const auto found = recording_.problems.find(to_string(problem));
    return found != recording_.problems.end() && found->second.candidates.contains(to_string(candidate));
}

std::optional<cache::Resources> ReplayMeasurer::resources_of(const Candidate& candidate) const {
    const RecordedCandidate* recorded = find(candidate);
    return recorded == nullptr ? std::nullopt : std::optional(recorded->resources);
}

int ReplayMeasurer::calls_per_replay() const { return current_ == nullptr ? 1 : current_->calls_per_replay; }

Verdict ReplayMeasurer::verify(const CandidateImage& candidate) {
    const RecordedCandidate* recorded = find(candidate.candidate);
    if (recorded != nullptr) return recorded->verdict;
    return {.status = cache::TrialStatus::launch_failed,
            .detail = "the recording does not have this candidate"};
}

Samples ReplayMeasurer::time(const CandidateImage& candidate, int replays) {
    Samples samples{.verdict = verify(candidate), .us = {}};
    const RecordedCandidate* recorded = find(candidate.candidate);
    if (recorded == nullptr || recorded->us.empty()) return samples;
    std::size_t& next = next_[to_string(candidate.candidate)];
    for (int i = 0; i < replays; ++i) samples.us.push_back(recorded->us[next++ % recorded->us.size()]);
    refuse_impossible(samples);
    return samples;
}

/// A recording is a file from outside: what no device can do is a failure of the candidate, not its victory.
void ReplayMeasurer::refuse_impossible(Samples& samples) const {
    if (samples.verdict.status != cache::TrialStatus::ok) return;
    for (const double us : samples.us) {
        const std::optional<cache::Fault> fault = cache::fault_of_time(us, problem_);
        if (!fault) continue;
        samples = {.verdict = {.status = cache::TrialStatus::launch_failed,
                               .detail = fmt::format("the recording is faulty: a time {}", fault->why)},
                   .us = {}};
        return;
    }
}

std::vector<Samples> ReplayMeasurer::interleave(const std::vector<CandidateImage>& candidates, int rounds) {
    std::vector<Samples> samples;
    for (const CandidateImage& candidate : candidates) samples.push_back(time(candidate, rounds));
    return samples;
}

void ReplayMeasurer::end_problem() { current_ = nullptr; }

}  // namespace hone::tuner
