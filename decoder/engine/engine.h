// Texts in the making on one GPU: requests come from any thread, a thread of its own computes their steps
// (scheduling/) and hands out tokens as they are drawn.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "decoder/engine/running_model.h"
#include "decoder/forward/token_chances.h"
#include "decoder/scheduling/scheduler.h"

namespace hone::decoder {

struct TextRequest {
    std::vector<int> prompt;
    int max_new_tokens = 128;
    Wishes wishes{};
    std::vector<int> end_ids{};
    /// Not none: NewToken::chances are asked for, with so many of the likeliest, up to most_likeliest. Steps
    /// with such texts are followed by none that is launched ahead.
    std::optional<int> likeliest{};
    /// And those of the prompt's tokens, with as many: Listener::on_prompt. All of it is computed for this
    /// text.
    bool scores_prompt = false;
};

/// Called by the engine's thread, which waits for it: short, and not calling the engine but for cancel().
struct Listener {
    std::function<void(const NewToken&)> on_token;
    /// The GPU or the driver failed: no token follows. In words.
    std::function<void(const std::string&)> on_failure;
    /// Chances of each token of the prompt but the first, before the first new token: where they are asked
    /// for.
    std::function<void(std::vector<TokenChances>)> on_prompt{};
};

/// `failure` says why, also where memory has run out: nobody is to wait for what does not come.
inline void note_failure(std::string& failure, std::string_view why) noexcept {
    try {
        failure = why;
    } catch (const std::bad_alloc&) {
        failure = "out of memory";  // short enough to need none
    }
}

/// Seconds of steps, from when the GPU is told of them until the host has the tokens.
struct StepTimes {
    double steps_s = 0;
    double mixed_steps_s = 0;          ///< of those with prompts beside texts that grow
    double expected_mixed_s = 0;       ///< what these were expected to take
    double between_steps_s = 0;        ///< from a step to the next, where there was one to compute
    std::uint64_t prepared_steps = 0;  ///< that were ready when the one before ended
    std::uint64_t ahead_steps = 0;     ///< of these, launched by then
};

struct EngineState {
    int running = 0;  ///< requests that take part in steps
    int waiting = 0;
    int pages = 0;
    int pages_used = 0;
    SchedulerCounters counters{};
    std::uint64_t new_tokens = 0;
    StepTimes times{};
    std::string failure{};  ///< why no request is taken any more
};

/// What serves requests; tests have one without a GPU.
class TokenEngine {
  public:
    TokenEngine() = default;
    TokenEngine(const TokenEngine&) = delete;
    TokenEngine& operator=(const TokenEngine&) = delete;
    virtual ~TokenEngine() = default;

    /// Throws DecoderError for what no cache or context of this size takes, and EngineFailure after one.
    virtual RequestId submit(TextRequest request, Listener listener) = 0;
    /// No token of it comes afterwards, but one that is being handed out.
    virtual void cancel(RequestId id) = 0;
    [[nodiscard]] virtual EngineState state() const = 0;
    /// Tokens of a prompt and what follows it, at most.
    [[nodiscard]] virtual int max_context() const = 0;
};

/// What prompts may do to texts that grow and wait for the step.
struct EngineOptions {
    std::int64_t step_prompt_tokens = 0;  ///< SchedulerOptions' of that name, as the next two
    double step_stretch = 0;
    double max_step_stretch = 0;
    std::vector<StepTime> step_times{};  ///< of the model: measured_steps()
};

class Engine final : public TokenEngine {
  public:
    /// `model` must outlive it, and belongs to its thread until then. Its thread waits for requests when it
    /// returns.
    explicit Engine(RunningModel& model, EngineOptions options = {});
    /// Ends after the step under way; requests that are left get nothing more.
    ~Engine() override;

    RequestId submit(TextRequest request, Listener listener) override;
    void cancel(RequestId id) override;
    [[nodiscard]] EngineState state() const override;
    [[nodiscard]] int max_context() const override;

  private:
    using Clock = std::chrono::steady_clock;
    struct Running {
        Wishes wishes;
        std::shared_ptr<const Listener> listener;
        std::optional<int> likeliest{};  ///< TextRequest's
        std::vector<int> scored{};       ///< the prompt, where it is
        std::vector<TokenChances> of_prompt{};
    };
    /// What listeners are told.
    struct News {
        std::shared_ptr<const Listener> listener;
        NewToken token;
        bool asks = false;                                     ///< for chances
        std::optional<std::vector<TokenChances>> of_prompt{};  ///< told before
    };
    /// A step's texts that ask for chances.
    struct Asked {
        struct Row {
            std::int64_t row = 0;  ///< NewToken::row
            int likeliest = 0;
        };
        /// A part of a prompt.
        struct Scored {
            RequestId request = 0;
            int likeliest = 0;
            std::int64_t first = 0;  ///< of its rows, that tells something new
            std::vector<int> next;   ///< the token behind that row's, and so on
            std::vector<TokenChances> chances{};
        };
        std::vector<Row> rows;
        std::vector<Scored> scored;
        [[nodiscard]] bool nothing() const { return rows.empty() && scored.empty(); }
    };

    void run(const std::stop_token& stop);
    void say_started();
    void compute_steps(std::unique_lock<std::mutex>& lock, const std::stop_token& stop);
    [[nodiscard]] bool finish_step(std::unique_lock<std::mutex>& lock, const std::stop_token& stop);
    void prepare(const std::vector<StepPart>& parts, std::unique_lock<std::mutex>& lock);
    [[nodiscard]] bool prepare_ahead(std::unique_lock<std::mutex>& lock);
    [[nodiscard]] bool launch_ahead();
    [[nodiscard]] double expected_s() const;
    [[nodiscard]] Clock::time_point time_to_prepare() const;
    void launch(std::span<const int> drawn);
    void ask_for(const StepPart& part, const Running& request, std::size_t row);
    void read_asked(std::span<const int> drawn);
    void score(std::size_t number);
    void note_scored();
    void find_chances();
    void await_step();
    void note_times(Clock::time_point begun, Clock::time_point ended);
    void note_drawn();
    void note(const NewToken& token);
    void hand_out_first(std::unique_lock<std::mutex>& lock);
    void hand_out(std::unique_lock<std::mutex>& lock);
    void tell(News& one);
    void fail(const char* why, std::unique_lock<std::mutex>& lock) noexcept;

    RunningModel& model_;
    mutable std::mutex mutex_;
    std::condition_variable_any work_;
    Scheduler scheduler_;
    std::unordered_map<RequestId, Running> requests_;
    /// Tokens of the last step, which their listeners hear of while the GPU computes the next one: until that
    /// has begun they are as the scheduler gave them.
    std::vector<NewToken> drawn_;
    std::vector<News> news_;
    // Of the engine's thread alone.
    Asked asked_;        ///< of the step under way
    Asked asked_ahead_;  ///< of the one that is prepared
    /// Logits of the last step's rows that are asked about, until its tokens are handed out: what of them is
    /// read, and what was made of it.
    std::vector<AskedRow> read_;
    std::vector<std::int64_t> read_rows_;
    std::unordered_map<std::int64_t, TokenChances> chances_;  ///< by NewToken::row
    std::uint64_t new_tokens_ = 0;
    StepTimes times_;
    Clock::time_point begun_;                    ///< the step under way
    std::optional<Clock::time_point> last_end_;  ///< of the step before, where another one follows at once
    double plain_step_s_ = 0;                    ///< what the last step without prompts took
    double other_step_s_ = 0;                    ///< and the last one with them
    double least_share_ = 1;    ///< what the quickest of the last steps took of what was expected of it
    double prepared_in_s_ = 0;  ///< what it took to prepare the last step, and to launch it ahead
    double preparing_s_ = 0;    ///< what that lately took at most
    /// A request has come that the step prepared ahead would have room for.
    std::atomic<bool> is_outdated_{false};
    std::string failure_;
    std::atomic<bool> started_{false};
    std::jthread thread_;  ///< the last: ends before what it uses
};

}  // namespace hone::decoder
