#include "cli/decoder/step_chain.h"

#include <algorithm>

namespace hone::cli {

using decoder::Lengths;
using decoder::StepKernel;

std::string_view name(Norms norms) { return norms == Norms::shared ? "shared" : "launched"; }

std::vector<Norms> ways_of(const decoder::Forward& forward, std::int64_t sequences) {
    if (forward.can_share_norms(sequences)) return {Norms::launched, Norms::shared};
    return {Norms::launched};
}

StepChain::StepChain(decoder::Forward& forward, const decoder::StepSizes& sizes, Norms norms,
                     std::function<void(const StepFault&)> on_fault)
    : forward_(forward), sizes_(sizes), norms_(norms), on_fault_(std::move(on_fault)) {
    share_norms();
    kernels_ = forward.step_kernels(sizes);
}

void StepChain::share_norms() { forward_.share_norms(sizes_.sequences, norms_ == Norms::shared); }

/// Both ways to compute a step have some kernels in common, which the other one may have exchanged.
void StepChain::enter() {
    share_norms();
    const std::vector<StepKernel> now = forward_.step_kernels(sizes_);
    for (std::size_t place = 0; place < kernels_.size(); ++place) {
        if (now[place].candidate != kernels_[place].candidate)
            forward_.take(kernels_[place], kernels_[place].candidate);
    }
}

std::vector<std::vector<double>> StepChain::times(std::size_t place, const std::vector<Candidate>& candidates,
                                                  int rounds) {
    enter();
    const StepKernel& kernel = kernels_[place];
    return forward_.times_with(
        kernel, candidates, sizes_, rounds, [&](std::size_t step, bool hangs, const std::string& why) {
            on_fault_({kernel, step == 0 ? kernel.candidate : candidates[step - 1], hangs, why});
        });
}

void StepChain::take(std::size_t place, const Candidate& candidate) {
    kernels_[place].candidate = candidate;
    enter();
}

std::pair<std::vector<double>, std::vector<double>> StepChain::beside(const std::vector<Candidate>& others,
                                                                      int rounds) {
    const std::vector<StepKernel> now = kernels_;
    for (std::size_t place = 0; place < others.size(); ++place) kernels_[place].candidate = others[place];
    enter();
    forward_.mark(sizes_);
    kernels_ = now;
    enter();
    return times_since_mark(Lengths::equal, rounds);
}

std::pair<std::vector<double>, std::vector<double>> StepChain::against(tuner::Chain& other, int rounds) {
    enter();  // so that there is memory for both before the mark, which ends where more is needed
    other.enter();
    forward_.mark(sizes_);
    enter();
    auto [us, others] = times_since_mark(Lengths::equal, rounds);
    const auto [mixed_us, mixed_others] = times_since_mark(Lengths::mixed, rounds);
    const auto mean = [](double a, double b) { return (a + b) / 2; };
    std::ranges::transform(us, mixed_us, us.begin(), mean);
    std::ranges::transform(others, mixed_others, others.begin(), mean);
    return {std::move(us), std::move(others)};
}

std::pair<std::vector<double>, std::vector<double>> StepChain::times_since_mark(Lengths lengths, int rounds) {
    std::vector<std::vector<double>> us = forward_.times_since_mark(
        sizes_, lengths, rounds, [&](std::size_t, bool hangs, const std::string& why) {
            on_fault_({kernels_.front(), kernels_.front().candidate, hangs, why});
        });
    return {std::move(us[0]), std::move(us[1])};
}

}  // namespace hone::cli
