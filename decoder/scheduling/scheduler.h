// Continuous batching: which sequences compute which of their tokens in the next step, and in which pages of
// the KV cache. Decoding sequences take part in every step, prompts fill it up in parts, texts that begin
// alike share pages, and where pages run out the youngest gives way and is computed anew later. A step can be
// planned while the one before is computed, whose tokens it does not know yet. Pure bookkeeping: no GPU, no
// clock, no thread of its own. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "decoder/scheduling/page_pool.h"
#include "decoder/scheduling/step_cost.h"

namespace hone::decoder {

struct SchedulerOptions {
    int pages = 0;               ///< of the KV cache
    int page_size = 16;          ///< tokens of a page
    int max_sequences = 256;     ///< that take part in a step
    int max_step_tokens = 2048;  ///< of all of them together; at least max_sequences
    /// Of these, tokens of prompts beside a sequence that decodes and waits for the step; 0: as many as there
    /// is room for.
    int step_prompt_tokens = 0;
    /// And as many as leave such a step within so many times what it takes without prompts, as `cost` has it;
    /// 0: whatever it takes. Where texts wait for their prompts, proportionally more, up to max_step_stretch
    /// where they are a quarter of those that may be computed together: else prompts would come too slowly
    /// for the texts that end. Where they are half of those, as after a start, full_stretch times what a step
    /// of all will take: texts at work then wait no longer than they will anyway.
    double step_stretch = 0;
    double max_step_stretch = 0;
    /// Where nearly all places are taken, no text comes sooner for prompts in small parts, whose tokens take
    /// longer each: steps then may take so many times as long as without prompts for a part of the cheapest
    /// size, or max_step_stretch times, where that is less.
    double full_stretch = 2;
    /// And while fewer tokens wait than make such a part, so many steps at most go without prompts, as long
    /// as the texts that wait are no more than such a share of those that grow.
    int most_saving_steps = 6;
    double most_waiting_share = 1.0 / 16;
    /// But so many, where that are more: prompts go on also beside sequences that leave no time.
    int least_prompt_tokens = 64;
    /// Where prompts share a step, each has half of what is left, in multiples of so many tokens, and at
    /// least that many: attention's tiles are for as many of one prompt, and take as long with fewer.
    int least_prompt_part = 128;
    std::optional<StepCost> cost{};
    int max_context = 0;  ///< tokens of a prompt and what follows it
};

struct Request {
    std::vector<int> prompt;
    int max_new_tokens = 1;
    std::vector<int> end_ids{};  ///< the text ends with one of them
    bool scores_prompt = false;  ///< all of the prompt is computed for it, whatever others have computed
};

/// In the order in which requests came.
using RequestId = std::uint64_t;

/// What one sequence does in a step: its tokens from `begin` on are computed, and stand in its pages.
struct StepPart {
    RequestId request = 0;
    int begin = 0;                ///< how many stand in its pages already
    std::span<const int> tokens;  ///< from `begin` on
    std::span<const int> pages;   ///< for all of its tokens up to the last of these
    bool samples = false;         ///< the last one is the text's last: a new one is drawn behind it
    int drawn = 0;                ///< tokens that were drawn for the request before
    /// Which of the tokens that the step before draws the last one is, where that is not known yet; -1: all
    /// are known.
    int awaited = -1;
    bool scores = false;  ///< of a prompt that is scored, with a token that another one of it follows
};

/// What a model thinks of a token: forward/token_chances.h.
struct TokenChances;

/// A token that a sequence got.
struct NewToken {
    enum class End : std::uint8_t { none, end_id, length };
    RequestId request = 0;
    int token = 0;
    End end = End::none;  ///< why it is the last one
    bool is_first = false;
    int row = 0;  ///< which of those that the step drew it is
    /// Where they are asked for: from Engine, while the listener is told.
    const TokenChances* chances = nullptr;
};

struct SchedulerCounters {
    std::uint64_t steps = 0;
    std::uint64_t mixed_steps = 0;  ///< with a prompt's tokens beside a sequence that decodes
    std::uint64_t computed_tokens = 0;
    std::uint64_t prompt_tokens = 0;  ///< of these, of prompts; of one whose last token alone is left, none
    std::uint64_t shared_tokens = 0;  ///< of prompts, found in pages of others
    std::uint64_t preemptions = 0;
};

class Scheduler {
  public:
    /// Throws DecoderError naming the option, its value and what is allowed.
    explicit Scheduler(const SchedulerOptions& options);

    /// Throws DecoderError for an empty prompt, no new token, and what no cache or context of this size
    /// takes.
    RequestId add(Request request);
    /// Also while steps are under way or planned, whose parts of it then have no effect: its pages are free
    /// at once, as whoever gets them is computed later. False: there is no such request, or it has ended.
    bool cancel(RequestId id);
    /// Nobody has anything to compute, and no step is under way.
    [[nodiscard]] bool idle() const { return running_.empty() && waiting_.empty() && left_.empty(); }

    /// The next step, or the one under way; complete() has to follow. Without parts only when idle(). What it
    /// points to is valid until then.
    [[nodiscard]] const std::vector<StepPart>& next();
    /// It is being computed, and nothing later will be before it: its pages are published meanwhile, which
    /// complete() does where nobody said so.
    void note_begun();
    /// The step behind the one under way, which has to have begun: next() is this one after complete(), until
    /// when what it points to is valid. A text that ends with what the step under way draws has no part in it
    /// if that is its length, and one for nobody if it is an end id. Without parts: there is none.
    [[nodiscard]] const std::vector<StepPart>& next_ahead();
    /// What next_ahead() planned is not computed, so that next() may have others in it.
    void drop_ahead();
    /// Whether the request that has waited longest would have a part in a step that is planned now.
    [[nodiscard]] bool has_room_for_next() const;
    /// What the step under way computes.
    [[nodiscard]] const StepLoad& load() const { return step_.load; }
    /// Seconds that it, or a step of another load, will take, as far as is known.
    [[nodiscard]] double expected_s() const { return expected_s(load()); }
    [[nodiscard]] double expected_s(const StepLoad& load) const {
        return options_.cost ? options_.cost->of(load) : 0;
    }
    /// It took so long: what later steps will take is judged by it.
    void note_time(double seconds);
    /// The step under way is computed; `drawn` has a token for each part that samples, in their order.
    /// Returns the new tokens of requests that have neither been cancelled meanwhile nor ended before. Throws
    /// DecoderError, and leaves the step under way, for another number of tokens.
    std::vector<NewToken> complete(std::span<const int> drawn);

    [[nodiscard]] const SchedulerCounters& counters() const { return counters_; }
    [[nodiscard]] int running() const { return static_cast<int>(running_.size()); }
    [[nodiscard]] int waiting() const { return static_cast<int>(waiting_.size()); }
    /// Of the pages that somebody uses.
    [[nodiscard]] const PagePool& pool() const { return pool_; }

  private:
    struct Sequence {
        std::vector<int> tokens;  ///< the prompt and what followed
        std::vector<int> pages;
        std::vector<int> end_ids;
        PagePool::Published published{};
        int computed = 0;  ///< tokens that stand in the pages
        int new_tokens_left = 0;
        int drawn = 0;
        int scored_end = 0;      ///< the prompt's tokens, where it is scored
        int awaited = -1;        ///< the last token is that one of those the step under way draws
        int steps = 0;           ///< under way and planned, that have a part of it
        bool is_silent = false;  ///< nobody hears of its tokens any more: cancelled, or ended by an end id

        [[nodiscard]] int left() const { return static_cast<int>(tokens.size()) - computed; }
        [[nodiscard]] bool decodes() const { return left() == 1; }
    };
    using Sequences = std::map<RequestId, Sequence>;  // in the order in which they came
    struct Step {
        std::vector<StepPart> parts;
        std::vector<Sequence*> sequences;  ///< whose parts these are; none gives way until it has begun
        StepLoad load;
        bool is_planned = false;
        bool has_begun = false;   ///< note_begun() has been called for it
        bool is_awaited = false;  ///< its texts have places for the tokens that it draws
    };

    void check(const Request& request) const;
    void plan(Step& step);
    void plan_running(Step& step);
    [[nodiscard]] StepLoad load_of_decoding() const;
    [[nodiscard]] bool is_full(const StepLoad& decoding) const;
    [[nodiscard]] std::int64_t prompt_tokens_to_come() const;
    [[nodiscard]] int pages_of(const Sequence& sequence) const;
    [[nodiscard]] bool has_pages_for_next() const;
    [[nodiscard]] int budget_of_prompts(const StepLoad& decoding);
    [[nodiscard]] std::int64_t budget_of_full(const StepLoad& decoding, std::int64_t least,
                                              std::int64_t most);
    [[nodiscard]] double stretch(const StepLoad& decoding) const;
    [[nodiscard]] double stretch_of_burst(const StepLoad& decoding) const;
    [[nodiscard]] std::int64_t texts_at_once(std::int64_t present) const;
    void admit_waiting(Step& step);
    void add_part(Step& step, RequestId id, Sequence& sequence, int tokens);
    [[nodiscard]] int prompt_tokens(int left);
    [[nodiscard]] bool find_pages(Sequences::iterator sequence, int tokens);
    void preempt(Sequences::iterator victim);
    [[nodiscard]] bool start(Sequence& sequence);
    void advance(Sequence& sequence, int tokens);
    void await_tokens();
    [[nodiscard]] NewToken draw(RequestId id, Sequence& sequence, int token, int row);
    void leave(Sequences& texts, Sequences::iterator text);
    void leave(RequestId id);
    void forget(Step& step);

    SchedulerOptions options_;
    PagePool pool_;
    Sequences running_;
    Sequences waiting_;
    Sequences left_;         ///< of which steps have parts: cancelled, ended, or about to
    Step step_;              ///< under way
    Step ahead_;             ///< planned while that is computed
    int prompt_budget_ = 0;  ///< tokens that the step being planned has left for prompts
    /// Sequences that may still get some of it: also those that wait, as many as there is room for.
    std::int64_t prompts_to_come_ = 0;
    int saving_steps_ = 0;  ///< that went without prompts, so that a larger part comes together
    RequestId last_id_ = 0;
    SchedulerCounters counters_;
};

}  // namespace hone::decoder
