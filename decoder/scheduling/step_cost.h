// How long a step takes, as far as that is known before it is computed: times of steps that were measured,
// what lies between them, and what steps since then took. Bookkeeping alone: no GPU and no clock. One thread.
#pragma once

#include <cstdint>
#include <vector>

namespace hone::decoder {

/// What a step computes, as far as its time depends on it.
struct StepLoad {
    std::int64_t sequences = 0;      ///< of one token each
    std::int64_t keys = 0;           ///< that these see, all together
    std::int64_t prompt_tokens = 0;  ///< of all prompts
    std::int64_t prompt_begin = 0;   ///< tokens that stand in front of a prompt's, in the mean

    [[nodiscard]] bool is_mixed() const { return sequences > 0 && prompt_tokens > 0; }
    void add_text(std::int64_t keys_seen) {
        ++sequences;
        keys += keys_seen;
    }
    void add_prompt(std::int64_t tokens, std::int64_t begin) {
        const std::int64_t pairs = prompt_tokens * prompt_begin + tokens * begin;
        prompt_tokens += tokens;
        prompt_begin = pairs / prompt_tokens;
    }
    friend bool operator==(const StepLoad&, const StepLoad&) = default;
};

struct StepTime {
    StepLoad load;
    double s = 0;
};

/// The model: a step without prompts takes what its sequences do, and so much for each key more; a prompt
/// beside them what the step's rows take longer than the sequences' rows, and so much for each pair of a
/// token and a key in front of its prompt. Both are multiplied by what steps lately took beside that.
class StepCost {
  public:
    /// Of `measured` it wants steps without prompts, each number of sequences with few and with many keys;
    /// prompts alone, from the beginning; one with tokens in front; and one of a prompt beside sequences.
    /// What is missing counts as nothing.
    explicit StepCost(std::vector<StepTime> measured);

    /// Seconds.
    [[nodiscard]] double of(const StepLoad& load) const;
    /// As many tokens of prompts beside the load's sequences as leave a step within `stretch` times what it
    /// takes without; `least` where that are fewer, and `most` at most.
    [[nodiscard]] std::int64_t prompt_tokens_within(double stretch, StepLoad load, std::int64_t least,
                                                    std::int64_t most) const;
    /// How many tokens of prompts beside the load's sequences take the least time each, or hardly more, and
    /// leave a step within `stretch`: as many of these as `waiting`, or the fewest; `most` at most. 0: none
    /// that is known.
    [[nodiscard]] std::int64_t cheapest_prompt_tokens(double stretch, StepLoad load, std::int64_t waiting,
                                                      std::int64_t most) const;
    /// A step took so long.
    void note(const StepTime& step);

  private:
    struct Texts {
        std::int64_t sequences = 0;
        double without_keys_s = 0;
        double key_s = 0;
    };
    struct Rows {
        std::int64_t rows = 0;
        double s = 0;
    };
    [[nodiscard]] Texts texts_of(std::int64_t sequences) const;
    [[nodiscard]] double plain_s(const StepLoad& load) const;
    [[nodiscard]] double rows_s(std::int64_t rows) const;
    [[nodiscard]] double measured_s(const StepLoad& load) const;
    void read_plain(const std::vector<StepTime>& measured);
    void read_prompts(const std::vector<StepTime>& measured);

    std::vector<Texts> texts_;  ///< by sequences
    std::vector<Rows> rows_;    ///< of prompts alone, by rows; more take no less
    double pair_s_ = 0;         ///< a token of a prompt and a key in front of it
    double beside_s_ = 0;       ///< what a step with both takes longer than its parts say
    double plain_factor_ = 1;   ///< what steps took over what was measured
    double mixed_factor_ = 1;
};

}  // namespace hone::decoder
