// A model's step as a race of its kernels asks for it (tuner/search/chain_race.h): computed with launches for
// norms, or with norms that its products share. For hone tune MODEL --chain. Used by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "decoder/forward/forward.h"
#include "tuner/search/chain_race.h"

namespace hone::cli {

/// How a step has the norms in front of its products, but for those that these have within them.
enum class Norms : std::uint8_t { launched, shared };
/// "launched" or "shared".
[[nodiscard]] std::string_view name(Norms norms);

/// The ways to compute the step of so many sequences.
[[nodiscard]] std::vector<Norms> ways_of(const decoder::Forward& forward, std::int64_t sequences);

/// A candidate that the GPU did not survive.
struct StepFault {
    const decoder::StepKernel& kernel;
    Candidate candidate;
    bool hangs = false;
    std::string why;
};

/// One Forward may have several, each with kernels of its own: a chain puts these in place before it does
/// anything.
class StepChain final : public tuner::Chain {
  public:
    /// Begins with what was chosen. `on_fault` must not return.
    StepChain(decoder::Forward& forward, const decoder::StepSizes& sizes, Norms norms,
              std::function<void(const StepFault&)> on_fault);

    [[nodiscard]] std::vector<std::vector<double>> times(std::size_t place,
                                                         const std::vector<Candidate>& candidates,
                                                         int rounds) override;
    void take(std::size_t place, const Candidate& candidate) override;
    [[nodiscard]] std::pair<std::vector<double>, std::vector<double>> beside(
        const std::vector<Candidate>& others, int rounds) override;
    void enter() override;
    /// A round is a replay with equal lengths and one with mixed ones.
    [[nodiscard]] std::pair<std::vector<double>, std::vector<double>> against(tuner::Chain& other,
                                                                              int rounds) override;

    [[nodiscard]] const std::vector<decoder::StepKernel>& kernels() const { return kernels_; }
    [[nodiscard]] const decoder::StepSizes& sizes() const { return sizes_; }
    [[nodiscard]] Norms norms() const { return norms_; }

  private:
    void share_norms();
    [[nodiscard]] std::pair<std::vector<double>, std::vector<double>> times_since_mark(
        decoder::Lengths lengths, int rounds);

    decoder::Forward& forward_;
    decoder::StepSizes sizes_;
    Norms norms_;
    std::vector<decoder::StepKernel> kernels_;
    std::function<void(const StepFault&)> on_fault_;
};

}  // namespace hone::cli
