#include "tuner/search/time_left.h"

#include <doctest/doctest.h>

#include <functional>

#include "kernel_templates/family.h"

using namespace hone;
using namespace hone::tuner;
using Milliseconds = TimeLeft::Milliseconds;

namespace {

Problem parsed(const std::string& text) {
    std::string error;
    const auto problem = parse_problem(text, &error);
    REQUIRE_MESSAGE(problem, error);
    return *problem;
}

/// Three layers of 14 sizes each, as a model has them.
std::vector<Problem> model_problems() {
    std::vector<Problem> problems;
    for (const char* part :
         {"rmsnorm dtype=bf16 hidden=4096 rows=", "linear dtype=bf16 in=4096 out=6144 tokens=",
          "linear dtype=bf16 in=4096 out=4096 tokens="}) {
        for (int size = 1; size <= 8192; size *= 2) problems.push_back(parsed(part + std::to_string(size)));
    }
    return problems;
}

struct Said {
    double done = 0;  ///< of the run
    double left_ms = 0;
    double truth_ms = 0;
};

/// A run on a clock that moves by `cost_ms` a problem, ten candidates each; what was said after each
/// candidate.
std::vector<Said> simulate(const std::vector<Problem>& problems,
                           const std::function<double(const Problem&, int place)>& cost_ms) {
    std::vector<double> costs;
    double total = 0;
    int place = 0;
    for (std::size_t i = 0; i < problems.size(); ++i) {
        const bool is_new = i == 0 || static_part(problems[i]) != static_part(problems[i - 1]);
        place = is_new ? 0 : place + 1;
        costs.push_back(cost_ms(problems[i], place));
        total += costs.back();
    }
    TimeLeft time(problems);
    std::vector<Said> said;
    double now = 0;
    const auto clock = [&] { return Milliseconds(static_cast<std::int64_t>(now)); };
    constexpr std::size_t candidates = 10;
    for (const double cost : costs) {
        time.begin(clock());
        for (std::size_t done = 1; done <= candidates; ++done) {
            now += cost / candidates;
            time.advance(done, candidates);
            if (const auto left = time.left(clock()))
                said.push_back({now / total, static_cast<double>(left->count()), total - now});
        }
        time.end(clock());
    }
    CHECK(time.left(clock())->count() == 0);
    return said;
}

}  // namespace

TEST_CASE("problems that take equally long: what is said holds") {
    const auto said = simulate(model_problems(), [](const Problem&, int) { return 1000.0; });
    CHECK(said.front().done < 0.4);
    for (const Said& one : said)
        CHECK(one.left_ms == doctest::Approx(one.truth_ms).epsilon(0.02).scale(1000));
}

TEST_CASE("cheap problems first, images that are new, sizes that grow: what is said holds") {
    const auto said = simulate(model_problems(), [](const Problem& problem, int place) {
        const double each = problem.family->name == "linear" ? 3000 : 300;
        return (place == 0 ? 10 * each : each) * (1 + 0.1 * place);
    });
    CHECK(said.front().done < 0.4);
    for (const Said& one : said) {
        CAPTURE(one.done);
        if (one.done < 0.95) CHECK(one.left_ms == doctest::Approx(one.truth_ms).epsilon(0.35));
    }
}

TEST_CASE("nothing is said before anything is known") {
    const std::vector<Problem> problems = model_problems();
    TimeLeft time(problems);
    time.begin(Milliseconds(0));
    CHECK_FALSE(time.left(Milliseconds(500)));
    time.end(Milliseconds(1000));
    CHECK_FALSE(time.left(Milliseconds(1000)));
    TimeLeft alone({problems.data(), 1});
    alone.begin(Milliseconds(0));
    CHECK_FALSE(alone.left(Milliseconds(0)));
    alone.advance(1, 4);
    CHECK(alone.left(Milliseconds(1000)) == Milliseconds(3000));
    CHECK(TimeLeft({}).left(Milliseconds(0)) == Milliseconds(0));
}
