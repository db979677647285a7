// A fake GPU (tests/support/fake_machine.h) as the tuner sees it: a session on it, its candidates, and the
// script's words for one of them. The workers that a test starts inherit the fakes through the environment.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tests/support/fake_machine.h"
#include "tests/support/scratch.h"
#include "tests/tuner/made_up_measurer.h"
#include "tuner/gpu/device_context.h"
#include "tuner/measure/gpu_session.h"

namespace hone::test {

/// Short limits, so that hangs cost little; two compile workers.
[[nodiscard]] inline GpuMeasurerOptions quick_limits() {
    using std::chrono::milliseconds;
    return {.load_limit = milliseconds(1500),
            .verify_limit = milliseconds(1500),
            .time_limit = milliseconds(1500),
            .shortest_limit = milliseconds(600),
            .grace = milliseconds(1000)};
}

/// GPU 0 of the machine, fake or real.
[[nodiscard]] inline DeviceInfo first_gpu() { return device_info(*runtime::Driver::load(), 0); }

/// A fake GPU with one problem begun, and the images of its first candidates.
struct Bench {
    FakeMachine fakes;
    Scratch scratch;
    cache::Cache cache = scratch.cache();
    GpuSession session;
    Problem problem = norm_problem(64);
    std::vector<Candidate> candidates;

    explicit Bench(const std::string& script = "", const GpuMeasurerOptions& measuring = quick_limits())
        : fakes(script),
          session(open_gpu(cache, first_gpu(), measuring, {.arch = {}, .nvrtc = {}, .workers = 2})) {
        for (const RankedCandidate& ranked : ranked_space(problem, session.measurer->device().traits)) {
            if (candidates.size() < 8) candidates.push_back(ranked.candidate);
        }
    }
    [[nodiscard]] Verdict verify(std::size_t index) {
        const ImageSource::Result image = session.images->get(problem, candidates[index]);
        if (image.status != cache::TrialStatus::ok) return {.status = image.status, .detail = image.detail};
        return session.measurer->verify({candidates[index], &image.image});
    }
};

/// A rule's `match` for exactly this candidate: "group_rows,threads=128,...".
[[nodiscard]] inline std::string words_of(const Candidate& candidate) {
    std::string words = "source=" + std::string(candidate.variant->source);
    for (std::size_t i = 0; i < candidate.variant->tunables.size(); ++i) {
        words += ',' + std::string(candidate.variant->tunables[i].name) + '=' +
                 std::to_string(candidate.config[i]);
    }
    return words;
}

/// The candidate at this place of the space of norm_problem(64) on the fake GPU.
[[nodiscard]] inline Candidate ranked_candidate(std::size_t index) {
    return ranked_space(norm_problem(64), *representative_device({9, 0, true}))[index].candidate;
}

}  // namespace hone::test
