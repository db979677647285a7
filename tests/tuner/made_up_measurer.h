// A measurer whose truth is known: every candidate has a true time (or a failure), and samples are that time
// with noise from a seeded generator. Counts what it is asked for.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "kernel_templates/catalog.h"
#include "kernel_templates/space.h"
#include "tuner/search/tuner.h"

namespace hone::test {

using namespace tuner;

/// The first problems of the rmsnorm family: `rows` x 4096, bf16.
[[nodiscard]] inline Problem norm_problem(std::int64_t rows) {
    std::string error;
    const auto problem = parse_problem("rmsnorm dtype=bf16 hidden=4096 rows=" + std::to_string(rows), &error);
    if (!problem) throw std::runtime_error(error);
    return *problem;
}

/// Norms of these sizes.
[[nodiscard]] inline Workload norm_workload(const std::vector<std::int64_t>& rows) {
    Workload list{.name = "test", .problems = {}, .tuned = {}, .without_family = {}};
    for (const std::int64_t one : rows) list.problems.push_back(norm_problem(one));
    return list;
}

/// For runs that nobody stops.
inline const std::atomic<bool> never{false};

/// Microseconds for a candidate by its text, over [10, 30], the same for every run.
[[nodiscard]] inline double spread(const std::string& name) {
    return 10.0 + static_cast<double>(std::hash<std::string>{}(name) % 2000) / 100.0;
}

[[nodiscard]] inline DeviceInfo made_up_device() {
    const DeviceTraits traits = *representative_device({9, 0, true});
    return {.traits = traits,
            .gpu = {.name = traits.name,
                    .compute_major = 9,
                    .compute_minor = 0,
                    .sm_count = traits.sm_count,
                    .memory_clock_mhz = 2619,
                    .mig_profile = {}},
            .toolchain = {.driver = "580.1", .nvrtc = "13.0"}};
}

class MadeUpMeasurer final : public Measurer {
  public:
    double noise = 0;  ///< standard deviation, relative
    std::function<double(const std::string&)> true_us = [](const std::string&) { return 10.0; };
    std::map<std::string, Verdict> failures;  ///< by candidate text
    cache::Provenance kind = cache::Provenance::measured;
    bool with_images = false;  ///< asks for them, and looks at none
    std::mt19937_64 random{1};
    std::map<std::string, int> verified;  ///< how often
    int problems = 0;
    std::vector<Problem> begun;  ///< in order
    std::vector<Problem> expected;
    bool is_ready = false;
    std::function<void(const std::string&)> on_verify;

    [[nodiscard]] const DeviceInfo& device() const override { return device_; }
    [[nodiscard]] cache::Provenance provenance() const override { return kind; }
    [[nodiscard]] bool needs_images() const override { return with_images; }
    void get_ready() override { is_ready = true; }
    void expect_problem(const Problem& problem) override { expected.push_back(problem); }
    [[nodiscard]] Verdict begin_problem(const Problem& problem) override {
        begun.push_back(problem);
        return ++problems, Verdict{};
    }
    [[nodiscard]] Verdict verify(const CandidateImage& candidate) override {
        const std::string name = to_string(candidate.candidate);
        ++verified[name];
        if (on_verify) on_verify(name);
        const auto failure = failures.find(name);
        return failure == failures.end() ? Verdict{} : failure->second;
    }
    [[nodiscard]] Samples time(const CandidateImage& candidate, int replays) override {
        Samples samples{.verdict = {}, .us = {}};
        for (int i = 0; i < replays; ++i) samples.us.push_back(draw(candidate, 0));
        return samples;
    }
    /// A round's disturbance hits all candidates alike.
    [[nodiscard]] std::vector<Samples> interleave(const std::vector<CandidateImage>& candidates,
                                                  int rounds) override {
        std::vector<Samples> samples(candidates.size());
        for (int round = 0; round < rounds; ++round) {
            const double shared = noise * normal_(random);
            for (std::size_t i = 0; i < candidates.size(); ++i)
                samples[i].us.push_back(draw(candidates[i], shared));
        }
        return samples;
    }
    void end_problem() override {}
    [[nodiscard]] std::optional<cache::Resources> resources_of(const Candidate& candidate) const override {
        return cache::Resources{
            .registers = 16 + static_cast<int>(std::hash<std::string>{}(to_string(candidate)) % 64)};
    }

  private:
    double draw(const CandidateImage& candidate, double shared) {
        const double factor = 1 + shared + noise * normal_(random);
        return true_us(to_string(candidate.candidate)) * std::max(0.5, factor);
    }

    DeviceInfo device_ = made_up_device();
    std::normal_distribution<double> normal_;
};

/// Never asked, because made-up measurers need no images.
class NoImages final : public ImageSource {
  public:
    void prefetch(const Problem&, const std::vector<Candidate>&, std::chrono::milliseconds) override {}
    [[nodiscard]] Result get(const Problem&, const Candidate&) override {
        throw std::logic_error("no images here");
    }
    [[nodiscard]] std::int64_t compiled() const override { return 0; }
};

}  // namespace hone::test
