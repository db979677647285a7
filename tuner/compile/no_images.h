// For measurers that need no images, as replays do.
#pragma once

#include "tuner/compile/image_source.h"

namespace hone::tuner {

class NoImages final : public ImageSource {
  public:
    void prefetch(const Problem&, const std::vector<Candidate>&, std::chrono::milliseconds) override {}
    [[nodiscard]] Result get(const Problem&, const Candidate&) override {
        return {
            .status = cache::TrialStatus::compile_failed, .detail = "a replay compiles nothing", .image = {}};
    }
    [[nodiscard]] std::int64_t compiled() const override { return 0; }
};

}  // namespace hone::tuner
