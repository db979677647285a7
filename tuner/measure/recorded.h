// Recorded sweeps: everything that was measured of a set of problems on one GPU, as a text file (JSON lines)
// that replays without that GPU. docs/how-we-measure.md specifies the format. RecordingMeasurer writes one
// while another measurer works; ReplayMeasurer answers from one, always alike. Used by one thread.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "runtime/system/appended_file.h"
#include "tuner/measure/measurer.h"

namespace hone::tuner {

inline constexpr std::string_view recording_schema = "hone.recorded/1";

struct RecordedCandidate {
    Verdict verdict;
    cache::Resources resources;
    std::vector<double> us;  ///< a call, in the order measured
};

struct RecordedProblem {
    Verdict begin;
    int calls_per_replay = 1;
    std::map<std::string, RecordedCandidate> candidates;  ///< by candidate text
};

struct Recording {
    DeviceInfo device;
    std::map<std::string, RecordedProblem> problems;  ///< by problem text
};

/// Throws ConfigError naming file, line and member. The last line of a recording that was cut off is left
/// out.
[[nodiscard]] Recording read_recording(const std::filesystem::path& file);
/// The first line, and one line a problem.
[[nodiscard]] std::string header_line(const DeviceInfo& device);
[[nodiscard]] std::string problem_line(const std::string& problem, const RecordedProblem& recorded);

/// Passes everything on to another measurer and writes each problem to the file as it ends.
class RecordingMeasurer final : public Measurer {
  public:
    /// Appends to a recording of the same device, else begins a new file. Throws ConfigError when it holds
    /// another device's sweep, and InputError or WriteError, as end_problem() does, when it cannot be
    /// written.
    RecordingMeasurer(Measurer& measurer, const std::filesystem::path& file);
    ~RecordingMeasurer() override;

    [[nodiscard]] const DeviceInfo& device() const override { return measurer_.device(); }
    [[nodiscard]] cache::Provenance provenance() const override { return measurer_.provenance(); }
    [[nodiscard]] bool needs_images() const override { return measurer_.needs_images(); }
    void get_ready() override { measurer_.get_ready(); }
    void expect_problem(const Problem& problem) override { measurer_.expect_problem(problem); }
    [[nodiscard]] Verdict begin_problem(const Problem& problem) override;
    [[nodiscard]] Verdict verify(const CandidateImage& candidate) override;
    [[nodiscard]] Samples time(const CandidateImage& candidate, int replays) override;
    [[nodiscard]] std::vector<Samples> interleave(const std::vector<CandidateImage>& candidates,
                                                  int rounds) override;
    void end_problem() override;
    [[nodiscard]] std::chrono::nanoseconds busy() const override { return measurer_.busy(); }
    [[nodiscard]] int calls_per_replay() const override { return measurer_.calls_per_replay(); }
    [[nodiscard]] bool can_measure(const Problem& problem, const Candidate& candidate) const override {
        return measurer_.can_measure(problem, candidate);
    }
    [[nodiscard]] std::optional<cache::Resources> resources_of(const Candidate& candidate) const override {
        return measurer_.resources_of(candidate);
    }
    void note_rejected(const Candidate& candidate, const Verdict& verdict,
                       const cache::Resources& resources) override;

  private:
    RecordedCandidate& record(const CandidateImage& candidate);
    void add(const CandidateImage& candidate, const Samples& samples);

    Measurer& measurer_;
    runtime::AppendedFile file_;
    std::string problem_;
    RecordedProblem current_;
    std::map<std::string, RecordedProblem> recorded_;  ///< by problem: a second look adds to the first one
};

/// Answers from a recording: samples in the order in which they were taken, from the start again when they
/// run out.
class ReplayMeasurer final : public Measurer {
  public:
    explicit ReplayMeasurer(Recording recording);

    [[nodiscard]] const DeviceInfo& device() const override { return recording_.device; }
    [[nodiscard]] cache::Provenance provenance() const override { return cache::Provenance::replayed; }
    [[nodiscard]] bool needs_images() const override { return false; }
    [[nodiscard]] Verdict begin_problem(const Problem& problem) override;
    [[nodiscard]] Verdict verify(const CandidateImage& candidate) override;
    [[nodiscard]] Samples time(const CandidateImage& candidate, int replays) override;
    [[nodiscard]] std::vector<Samples> interleave(const std::vector<CandidateImage>& candidates,
                                                  int rounds) override;
    void end_problem() override;
    [[nodiscard]] int calls_per_replay() const override;
    [[nodiscard]] bool can_measure(const Problem& problem, const Candidate& candidate) const override;
    [[nodiscard]] std::optional<cache::Resources> resources_of(const Candidate& candidate) const override;

    [[nodiscard]] const Recording& recording() const { return recording_; }

  private:
    [[nodiscard]] const RecordedCandidate* find(const Candidate& candidate) const;
    void refuse_impossible(Samples& samples) const;

    Recording recording_;
    const RecordedProblem* current_ = nullptr;
    std::optional<Problem> problem_;
    std::map<std::string, std::size_t> next_;  ///< index of the next sample, by candidate text
};

}  // namespace hone::tuner
