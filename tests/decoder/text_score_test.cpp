// Starts threads: the thread sanitizer runs this file, too.
#include "decoder/engine/text_score.h"

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>

#include "decoder/error.h"
#include "decoder/forward/log_softmax.h"
#include "tests/decoder/small_model.h"
#include "tests/support/fake_machine.h"

using namespace hone;
using namespace hone::decoder;

namespace {

std::vector<int> ids(int count) {
    std::vector<int> made(static_cast<std::size_t>(count));
    std::iota(made.begin(), made.end(), 5);
    return made;
}

/// The fake GPU computes nothing: all logits are 0, and all tokens as likely as each other.
void check_even(const TextScore& score, std::size_t tokens) {
    CHECK(score.log_probabilities.size() == tokens);
    for (const double p : score.log_probabilities) CHECK(p == doctest::Approx(-std::log(1000.0)));
    CHECK(score.perplexity() == doctest::Approx(1000));
}

}  // namespace

TEST_CASE("a softmax's logarithms are those of its shares, also where exp() of a logit is infinite") {
    const std::array<double, 3> x{1, 2, 4};
    const double sum = std::exp(1) + std::exp(2) + std::exp(4);
    for (std::size_t i = 0; i < x.size(); ++i)
        CHECK(log_softmax(x, i) == doctest::Approx(std::log(std::exp(x[i]) / sum)));
    const std::array<double, 2> large{1e4, 1e4 - 2};
    CHECK(log_softmax(large, 1) == doctest::Approx(-2 - std::log1p(std::exp(-2))));
    CHECK(std::isnan(log_softmax(std::array{0.0, std::numeric_limits<double>::infinity()}, 0)));
    CHECK(std::isnan(log_softmax(std::array{0.0, std::nan("")}, 0)));
}

TEST_CASE("each token that has another one before it in its window is scored, over steps and windows") {
    const test::FakeMachine fakes;
    RunningModel model(
        test::small_options());  // 64 tokens a step, 4 rows of logits at once, a context of 256
    check_even(score(model, ids(2), {}, 256), 1);
    check_even(score(model, ids(200), {}, 256), 199);
    check_even(score(model, ids(200), 1, 256), 200);
    check_even(score(model, ids(200), {}, 50), 4 * 49);
    check_even(score(model, ids(200), 1, 51), 200);
    check_even(score(model, ids(51), {}, 50), 49);  // nothing stands before the last one
    check_even(score(model, ids(1), 1, 256), 1);
}

TEST_CASE("a GPU that hangs while a text is scored is waited for no longer") {
    const test::FakeMachine fakes("launch:match=embedding_rows:hang:after=2");
    ModelOptions options = test::small_options();
    options.longest_step = std::chrono::milliseconds(300);
    RunningModel model(options);
    CHECK_THROWS_WITH_AS((void)score(model, ids(200), {}, 256),
                         doctest::Contains("has not ended a step within 0.3 s: it hangs"), EngineFailure);
}

TEST_CASE("a text without a token to score and a window that does not fit are refused") {
    const test::FakeMachine fakes;
    RunningModel model(test::small_options());
    CHECK_THROWS_WITH_AS((void)score(model, ids(1), {}, 256), doctest::Contains("give a longer text"),
                         DecoderError);
    CHECK_THROWS_WITH_AS((void)score(model, {}, 1, 256), doctest::Contains("give a longer text"),
                         DecoderError);
    CHECK_THROWS_WITH_AS((void)score(model, ids(9), 1, 257), doctest::Contains("allowed are 2 to 256"),
                         DecoderError);
    CHECK_THROWS_WITH_AS((void)score(model, ids(9), 1, 1), doctest::Contains("allowed are 2 to 256"),
                         DecoderError);
    CHECK_THROWS_AS((void)model.forward().log_probabilities(ids(1)), DecoderError);
}
