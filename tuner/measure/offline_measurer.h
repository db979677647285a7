// No GPU: candidates are compiled with the real NVRTC and "timed" by the cost model, corrected by what the
// image needs. Its results say `predicted`. Used by one thread.
#pragma once

#include "tuner/measure/measurer.h"

namespace hone::tuner {

class OfflineMeasurer final : public Measurer {
  public:
    /// Plans against the representative device of the architecture. Throws ConfigError for one that Hone does
    /// not know.
    OfflineMeasurer(Arch arch, std::string nvrtc_version);

    [[nodiscard]] const DeviceInfo& device() const override { return info_; }
    [[nodiscard]] cache::Provenance provenance() const override { return cache::Provenance::predicted; }
    [[nodiscard]] bool needs_images() const override { return true; }
    /// What the model predicts: the image can only add to it.
    [[nodiscard]] std::optional<double> least_us(const Problem& problem,
                                                 const Candidate& candidate) const override;
    [[nodiscard]] Verdict begin_problem(const Problem& problem) override;
    [[nodiscard]] Verdict verify(const CandidateImage& candidate) override;
    [[nodiscard]] Samples time(const CandidateImage& candidate, int replays) override;
    [[nodiscard]] std::vector<Samples> interleave(const std::vector<CandidateImage>& candidates,
                                                  int rounds) override;
    void end_problem() override;

  private:
    [[nodiscard]] double predicted_us(const CandidateImage& candidate) const;

    DeviceInfo info_;
    Problem problem_;
};

}  // namespace hone::tuner
