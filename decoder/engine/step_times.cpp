#include "decoder/engine/step_times.h"

#include <algorithm>

namespace hone::decoder {
namespace {

constexpr int repetitions = 3;
/// Keys a sequence of the steps with many.
constexpr std::int64_t many_keys = 1024;
/// Rows of products, in steps of the tiles that their kernels have.
constexpr std::int64_t fine_rows = 64, fine_until = 512, coarse_rows = 256;

/// One, and then a few for each power of two: graphs are made for these.
std::vector<std::int64_t> sequences_up_to(std::int64_t most) {
    std::vector<std::int64_t> sizes;
    for (const std::int64_t size : {1, 8, 32, 64, 96, 128, 192, 256, 384, 512, 768})
        if (size < most) sizes.push_back(size);
    sizes.push_back(most);
    return sizes;
}

class Measuring {
  public:
    explicit Measuring(RunningModel& model) : model_(model), capacity_(model.capacity()) {}

    /// Of a step of this load, which is among the results from now on.
    double seconds(const StepLoad& load) {
        const double s = 1e-6 * model_.forward().step_us(load, repetitions);
        times.push_back({load, s});
        return s;
    }

    /// The longest of steps without prompts.
    double measure_texts() {
        const std::int64_t many = std::min(many_keys, capacity_.context);
        double longest = 0;
        for (const std::int64_t sequences : sequences_up_to(capacity_.sequences)) {
            for (const std::int64_t keys : {std::int64_t{1}, many})
                longest = std::max(longest, seconds({.sequences = sequences, .keys = sequences * keys}));
        }
        return longest;
    }

    void measure_prompts(double limit_s) {
        const std::int64_t most = std::min(capacity_.step_tokens, capacity_.context - 1);
        double s = 0;
        for (std::int64_t rows = 0; rows < most && s <= limit_s;) {
            rows = std::min(most, rows + (rows < fine_until ? fine_rows : coarse_rows));
            s = seconds({.prompt_tokens = rows});
        }
    }

    /// Behind many tokens of its text, and beside sequences.
    void measure_prompt_elsewhere() {
        const std::int64_t tokens = std::min({fine_rows, capacity_.context / 2, capacity_.step_tokens / 2});
        if (tokens == 0) return;
        const std::int64_t begin = std::min(8 * many_keys, capacity_.context - tokens);
        seconds({.prompt_tokens = tokens, .prompt_begin = begin});
        const std::int64_t beside =
            std::min<std::int64_t>(capacity_.sequences - 1, capacity_.step_tokens - tokens);
        if (beside < 1) return;
        const std::int64_t sequences = std::min<std::int64_t>(beside, 32);
        seconds({.sequences = sequences, .keys = sequences, .prompt_tokens = tokens});
    }

    std::vector<StepTime> times;

  private:
    RunningModel& model_;
    const Capacity& capacity_;
};

}  // namespace

std::vector<StepTime> measured_steps(RunningModel& model, double stretch) {
    Measuring measuring(model);
    measuring.measure_prompts(stretch * measuring.measure_texts());
    measuring.measure_prompt_elsewhere();
    return std::move(measuring.times);
}

}  // namespace hone::decoder
