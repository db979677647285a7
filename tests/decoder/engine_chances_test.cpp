// What texts that ask for log probabilities are told, beside others, over steps that follow each other.
// Starts threads: the thread sanitizer runs this file, too.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <future>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "decoder/engine/engine.h"
#include "tests/decoder/heard.h"
#include "tests/decoder/small_model.h"
#include "tests/support/fake_machine.h"

using namespace hone;
using namespace hone::decoder;
using hone::test::Heard;
using hone::test::small_options;

namespace {

constexpr int vocabulary = 1000;

/// The fake GPU's tokens are those of seed and counter, and its logits, too, but for those of prompts, which
/// are those of their rows' positions.
const std::string drawing =
    "launch:match=sample_row:seeded;launch:match=sample_row:logits=1000;launch:match=linear:logits=1000";

double logit(std::int64_t seed, int counter, int token) {
    return static_cast<double>((seed + 3 * counter + token) % 8);
}

double log_of_sum(std::int64_t seed, int counter) {
    double sum = 0;  // each of the eight logits stands there as often as the others
    for (int token = 0; token < 8; ++token) sum += std::exp(logit(seed, counter, token));
    return std::log(sum * vocabulary / 8);
}

/// Those of a kind begin alike.
std::vector<int> prompt(int tokens, int kind) {
    std::vector<int> ids;
    for (int i = 0; i < tokens; ++i) ids.push_back((31 * kind + (7 + kind) * i) % 997);
    return ids;
}

/// What one text was told.
class Told {
  public:
    Listener listener() {
        Listener of_heard = heard_.listener();
        return {.on_token =
                    [this, hears = std::move(of_heard.on_token)](const NewToken& token) {
                        chances_.push_back(token.chances == nullptr ? std::nullopt
                                                                    : std::optional(*token.chances));
                        hears(token);  // behind it, who waits reads what is here
                    },
                .on_failure = std::move(of_heard.on_failure),
                .on_prompt =
                    [this](std::vector<TokenChances> chances) {
                        CHECK(chances_.empty());
                        CHECK_FALSE(of_prompt);
                        of_prompt = std::move(chances);
                    }};
    }
    /// Waits for the end. With so many of the likeliest, by the rule of tokens and logits.
    void check(std::int64_t seed, int tokens, std::optional<int> likeliest) {
        const std::vector<NewToken> told = heard_.tokens();
        CHECK(heard_.failure().empty());
        REQUIRE(std::ssize(told) == tokens);
        for (int i = 0; i < tokens; ++i) {
            const auto at = static_cast<std::size_t>(i);
            CAPTURE(i);
            CHECK(told[at].token == test::seeded_token(seed, i));
            REQUIRE(chances_[at].has_value() == likeliest.has_value());
            if (!likeliest) continue;
            const double sum = log_of_sum(seed, i);
            CHECK(chances_[at]->log_probability ==
                  doctest::Approx(logit(seed, i, told[at].token) - sum).epsilon(1e-12));
            REQUIRE(std::ssize(chances_[at]->likeliest) == *likeliest);
            int next = 0;
            for (const TokenChance& one : chances_[at]->likeliest) {
                while (logit(seed, i, next) != 7) ++next;
                CHECK(one.token == next++);
                CHECK(one.log_probability == doctest::Approx(7 - sum).epsilon(1e-12));
            }
        }
    }

    /// Of the prompt, by the rule of positions.
    void check_prompt(const TextRequest& request) {
        static_cast<void>(heard_.tokens());
        REQUIRE(of_prompt.has_value() == request.scores_prompt);
        if (!of_prompt) return;
        REQUIRE(of_prompt->size() == request.prompt.size() - 1);
        for (std::size_t i = 1; i < request.prompt.size(); ++i) {
            CAPTURE(i);
            const TokenChances& chances = (*of_prompt)[i - 1];
            const int position = static_cast<int>(i) - 1;
            CHECK(chances.log_probability ==
                  doctest::Approx(logit(0, position, request.prompt[i]) - log_of_sum(0, position)));
            CHECK(std::ssize(chances.likeliest) == request.likeliest.value_or(0));
        }
    }

    std::optional<std::vector<TokenChances>> of_prompt;

  private:
    Heard heard_;
    std::vector<std::optional<TokenChances>> chances_;
};

}  // namespace

TEST_CASE("a text that asks is told of each token how likely it was, and costs the GPU no memory") {
    const test::FakeMachine machine(drawing);
    RunningModel model(small_options());
    const int memory = machine.live("memory");
    Engine engine(model);
    for (const int likeliest : {0, 1, 5, 20}) {
        Told told;
        engine.submit({.prompt = {1, 2, 3},
                       .max_new_tokens = 40,
                       .wishes = {.seed = likeliest},
                       .likeliest = likeliest},
                      told.listener());
        told.check(likeliest, 40, likeliest);
        CHECK_FALSE(told.of_prompt);
    }
    CHECK(engine.state().times.ahead_steps == 0);
    CHECK(machine.live("memory") == memory);
    CHECK(model.runtime().counters().failed_launches == 0);
}

TEST_CASE("steps follow each other ahead of the host again when those that asked have ended") {
    const test::FakeMachine machine("launch:match=sample_row:late_us=1000;" + drawing);
    RunningModel model(small_options());
    Engine engine(model);
    Told plain;
    Told asks;
    engine.submit({.prompt = {1}, .max_new_tokens = 100, .wishes = {.seed = 1}}, plain.listener());
    engine.submit({.prompt = {2}, .max_new_tokens = 10, .wishes = {.seed = 2}, .likeliest = 3},
                  asks.listener());
    asks.check(2, 10, 3);
    plain.check(1, 100, std::nullopt);
    CHECK(engine.state().times.ahead_steps > 10);
}

TEST_CASE(
    "who asks is told what is true of its own row, whoever comes, ends, leaves and gives way beside it") {
    std::uint64_t preemptions = 0;
    std::uint64_t ahead = 0;
    for (unsigned round = 0; round < 6; ++round) {
        std::minstd_rand random(round + 1);
        const auto between = [&](int least, int most) {
            return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
        };
        const test::FakeMachine machine("launch:match=sample_row:late_us=400;" + drawing);
        ModelOptions options = small_options();
        options.max_sequences = 16;
        if (round % 2 == 0) options.memory_share = 1e-5;  // pages run out
        RunningModel model(options);
        Engine engine(model);
        std::vector<Told> told(40);
        std::vector<TextRequest> asked;
        for (int i = 0; i < 40; ++i) {
            TextRequest request{.prompt = prompt(between(1, 100), i % 3),
                                .max_new_tokens = between(1, 60),
                                .wishes = {.seed = i}};
            if (between(0, 3) == 0) request.likeliest = between(0, 4);
            if (between(0, 5) == 0) request.scores_prompt = true;
            asked.push_back(request);
            engine.submit(request, told[static_cast<std::size_t>(i)].listener());
            const RequestId leaves = engine.submit(
                {.prompt = {i, 1, 2}, .max_new_tokens = 100, .likeliest = 2, .scores_prompt = i % 2 == 0},
                {[](auto&) {}, [](auto&) {}});
            std::this_thread::sleep_for(std::chrono::microseconds(between(0, 3) * 300));
            engine.cancel(leaves);
        }
        for (int i = 0; i < 40; ++i) {
            CAPTURE(i);
            const TextRequest& request = asked[static_cast<std::size_t>(i)];
            Told& one = told[static_cast<std::size_t>(i)];
            one.check(i, request.max_new_tokens, request.likeliest);
            one.check_prompt(request);
        }
        preemptions += engine.state().counters.preemptions;
        ahead += engine.state().times.ahead_steps;
        CHECK(engine.state().pages_used == 0);
        CHECK(model.runtime().counters().failed_launches == 0);
    }
    CHECK(preemptions > 0);
    CHECK(ahead > 0);
}

TEST_CASE("who asks is not told of the row of one that left while its step was computed") {
    const test::FakeMachine machine(drawing);
    RunningModel model(small_options());
    Engine engine(model);
    Told comes;
    Told plain;
    Listener listener = plain.listener();
    bool is_told = false;  // the one that leaves; those who do not ask hear first
    bool has_left = false;
    std::promise<RequestId> leaves;
    listener.on_token = [&, id = leaves.get_future().share(),
                         tell = listener.on_token](const NewToken& token) {
        id.wait();                                        // it comes behind the first token of this one
        if (is_told && !std::exchange(has_left, true)) {  // its next row is computed
            engine.cancel(id.get());
            engine.submit({.prompt = {3}, .max_new_tokens = 10, .wishes = {.seed = 3}, .likeliest = 3},
                          comes.listener());
        }
        tell(token);
    };
    engine.submit({.prompt = {1}, .max_new_tokens = 200, .wishes = {.seed = 1}}, std::move(listener));
    leaves.set_value(
        engine.submit({.prompt = {2}, .max_new_tokens = 200, .wishes = {.seed = 2}, .likeliest = 2},
                      {[&](auto&) { is_told = true; }, [](auto&) {}}));
    plain.check(1, 200, std::nullopt);
    comes.check(3, 10, 3);
}

TEST_CASE(
    "all tokens of a prompt are scored, over steps and parts of them, also those that others have computed") {
    const test::FakeMachine machine(drawing);
    RunningModel model(small_options());  // 64 tokens a step, and 4 rows of logits at once
    REQUIRE(model.forward().logit_rows() == 4);
    Engine engine(model);
    for (const int tokens : {1, 2, 5, 16, 64, 65, 66, 130, 200}) {
        CAPTURE(tokens);
        for (const std::optional<int> likeliest :
             {std::optional<int>(), std::optional(0), std::optional(3)}) {
            const TextRequest request{.prompt = prompt(tokens, 1),
                                      .max_new_tokens = 2,
                                      .wishes = {.seed = tokens},
                                      .likeliest = likeliest,
                                      .scores_prompt = true};
            Told told;
            engine.submit(request, told.listener());
            told.check(tokens, 2, likeliest);
            told.check_prompt(request);
        }
    }
    CHECK(engine.state().counters.shared_tokens == 0);
    Told other;
    engine.submit({.prompt = prompt(200, 1), .max_new_tokens = 2, .wishes = {.seed = 1}}, other.listener());
    other.check(1, 2, std::nullopt);
    CHECK(engine.state().counters.shared_tokens > 100);  // what was scored serves others
    CHECK(engine.state().pages_used == 0);
}

TEST_CASE("more texts that ask than rows of logits are read at a time are told all the same") {
    const test::FakeMachine machine("launch:match=sample_row:seeded");
    ModelOptions options = small_options();
    options.made_up->vocab_size = 1 << 20;  // 32 rows are 64 MiB, which is too much for the fake GPU: zeros
    options.max_sequences = 40;
    RunningModel model(options);
    REQUIRE(model.forward().logit_rows() == 32);
    Engine engine(model);
    std::vector<Told> told(40);
    std::vector<int> heard(told.size());
    std::mutex mutex;
    std::condition_variable news;
    std::size_t ended = 0;
    for (std::size_t i = 0; i < told.size(); ++i) {
        engine.submit({.prompt = {1}, .max_new_tokens = 3, .likeliest = 1},
                      {.on_token =
                           [&, i](const NewToken& token) {
                               const std::lock_guard lock(mutex);
                               REQUIRE(token.chances != nullptr);
                               CHECK(token.chances->log_probability == doctest::Approx(-std::log(1 << 20)));
                               CHECK(token.chances->likeliest.front().token == 0);
                               ++heard[i];
                               ended += token.end == NewToken::End::none ? 0 : 1;
                               news.notify_all();
                           },
                       .on_failure = [](const std::string&) {}});
    }
    std::unique_lock lock(mutex);
    news.wait(lock, [&] { return ended == told.size(); });
    CHECK(std::ranges::count(heard, 3) == std::ssize(told));
}
