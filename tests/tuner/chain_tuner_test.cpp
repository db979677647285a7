// Kernels of a step chosen as they run there, with a measurer and a step whose truths are known and differ.
#include "tuner/search/chain_tuner.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "cache/layers.h"
#include "tests/support/scratch.h"
#include "tests/tuner/made_up_measurer.h"
#include "tuner/search/knowledge.h"

using namespace hone;
using namespace hone::tuner;
using hone::test::Scratch;

namespace {

using test::never;

/// A step of norms, one a problem, whose kernels take their `cost` in it.
class MadeUpChain final : public Chain {
  public:
    explicit MadeUpChain(std::vector<Problem> problems) : problems_(std::move(problems)) {
        for (const Problem& problem : problems_)
            kernels_.push_back(*fallback(problem, test::made_up_device().traits));
    }

    std::function<double(const Candidate&)> cost = [](const Candidate&) { return 10.0; };
    /// What they take together beyond that.
    std::function<double(const std::vector<Candidate>&)> together = [](const std::vector<Candidate>&) {
        return 0.0;
    };
    /// Whether the step does without such a kernel there.
    std::function<bool(std::size_t, const Candidate&)> refuses = [](std::size_t, const Candidate&) {
        return false;
    };
    std::vector<std::vector<std::string>> asked{std::vector<std::string>{}, std::vector<std::string>{}};
    int calls = 0;

    /// Hears of each times().
    std::function<void(int rounds)> on_times = [](int) {};

    std::vector<std::vector<double>> times(std::size_t place, const std::vector<Candidate>& candidates,
                                           int rounds) override {
        ++calls;
        on_times(rounds);
        std::vector<std::vector<double>> us{replays(kernels_, rounds)};
        for (const Candidate& candidate : candidates) {
            asked[place].push_back(to_string(candidate));
            std::vector<Candidate> other = kernels_;
            other[place] = candidate;
            us.push_back(replays(other, refuses(place, candidate) ? 0 : rounds));
        }
        return us;
    }
    void take(std::size_t place, const Candidate& candidate) override {
        CHECK_FALSE(refuses(place, candidate));
        kernels_[place] = candidate;
    }
    std::pair<std::vector<double>, std::vector<double>> beside(const std::vector<Candidate>& others,
                                                               int rounds) override {
        for (std::size_t place = 0; place < others.size(); ++place)
            CHECK_FALSE(refuses(place, others[place]));
        return {replays(kernels_, rounds), replays(others, rounds)};
    }
    void enter() override {}
    std::pair<std::vector<double>, std::vector<double>> against(Chain& other, int rounds) override {
        auto& way = dynamic_cast<MadeUpChain&>(other);
        return {replays(kernels_, rounds), way.replays(way.kernels_, rounds)};
    }
    [[nodiscard]] ChainStep step(const std::string& name) {
        ChainStep step{.name = name, .chain = this};
        for (std::size_t i = 0; i < problems_.size(); ++i)
            step.kernels.push_back({problems_[i], kernels_[i]});
        return step;
    }

  private:
    /// The same disturbance for all of a round would cancel; this one is each replay's own, 0.05 % at most.
    std::vector<double> replays(const std::vector<Candidate>& kernels, int rounds) {
        double sum = 1000;
        for (const Candidate& kernel : kernels) sum += cost(kernel);
        sum += together(kernels);
        std::vector<double> us;
        std::uniform_real_distribution<double> noise(1, 1.0005);
        for (int i = 0; i < rounds; ++i) us.push_back(sum * noise(random_));
        return us;
    }

    std::vector<Problem> problems_;
    std::vector<Candidate> kernels_;
    std::mt19937_64 random_{7};
};

struct Bench {
    Scratch scratch;
    cache::Cache cache = scratch.cache();
    test::MadeUpMeasurer measurer;
    test::NoImages images;
    MadeUpChain chain{{test::norm_problem(1), test::norm_problem(64)}};

    ChainTuneResult run(TuneOptions options = {}, const std::atomic<bool>& stop = never) {
        return tune_chains({chain.step("made-up tokens=1 kv=1")}, options, measurer, images, cache, {}, stop);
    }
    [[nodiscard]] TuneResult tune_alone(bool retune) {
        return tune(test::norm_workload({1, 64}), {.retune = retune}, measurer, images, cache, {}, never);
    }
    /// Who came close to winning alone at 1 row, as a tuning of its own finds it.
    [[nodiscard]] std::vector<std::string> tried_alone() {
        Scratch other;
        cache::Cache elsewhere = other.cache();
        static_cast<void>(tune(test::norm_workload({1}), {}, measurer, images, elsewhere, {}, never));
        std::vector<std::string> names;
        for (const cache::Trial& trial : elsewhere.trials())
            if (trial.stage != cache::Stage::screened) names.push_back(trial.candidate);
        return names;
    }
};

/// What kernels take in a step, by their names; all others 100.
std::function<double(const Candidate&)> cost_of(std::map<std::string, double> costs) {
    return [costs = std::move(costs)](const Candidate& candidate) {
        const auto found = costs.find(to_string(candidate));
        return found == costs.end() ? 100.0 : found->second;
    };
}

/// Whom a run with these costs tries in the first place, the winner alone last; one of them may be slower
/// alone.
std::vector<std::string> asked_with(const std::map<std::string, double>& costs,
                                    const std::string& slower = "") {
    Bench bench;
    bench.measurer.true_us = [&](const std::string& name) { return name == slower ? 10.5 : 10.0; };
    bench.chain.cost = cost_of(costs);
    const ChainStepResult step = bench.run().steps.front();
    std::vector<std::string> names = bench.chain.asked[0];
    names.push_back(to_string(step.alone[0]));  // whom the race may begin without
    return names;
}

}  // namespace

TEST_CASE("a kernel that is slower alone takes the place in which it makes the step shorter, and holds it") {
    std::string better;  // a neighbour of the winner, not one that came close to it
    for (const std::string& name : asked_with({})) {
        const std::vector<std::string> asked = asked_with({}, name);
        if (std::ranges::find(asked, name) != asked.end()) better = name;
    }
    REQUIRE_FALSE(better.empty());
    Bench bench;
    bench.measurer.true_us = [&](const std::string& name) { return name == better ? 10.5 : 10.0; };
    bench.chain.cost = cost_of({{better, 50}});
    const ChainTuneResult result = bench.run();
    REQUIRE(result.steps.size() == 1);
    const ChainStepResult& step = result.steps.front();
    CHECK(step.is_complete);
    CHECK(to_string(step.kernels[0]) == better);
    CHECK(to_string(step.alone[0]) != better);
    CHECK(step.after_us < step.before_us);

    const auto winner = [&] {
        for (const cache::Trial& trial : bench.cache.winners())
            if (trial.key == tuning_key(test::norm_problem(1), bench.measurer.device().gpu)) return trial;
        return cache::Trial{};
    };
    CHECK(winner().candidate == better);
    CHECK(winner().chain == "made-up tokens=1 kv=1");
    CHECK(winner().timing.median_us == doctest::Approx(10.5).epsilon(0.01));  // its time alone
    const TuneResult again = bench.tune_alone(true);
    CHECK(again.problems.front().winner->candidate != better);
    CHECK(winner().candidate == better);
    CHECK(bench.cache.verify().ok);
}

TEST_CASE("who gains less than a fifth of a percent of the step leaves the place to the winner alone") {
    Bench bench;
    const std::vector<std::string> names = bench.tried_alone();
    bench.chain.cost = cost_of({{names[1], 99}});
    const ChainStepResult step = bench.run().steps.front();
    CHECK(step.is_complete);
    CHECK(step.kernels == step.alone);
    CHECK(bench.cache.winners().front().chain == "made-up tokens=1 kv=1");  // chosen, as the best there
}

TEST_CASE("what was chosen in a step is known the next time, until it is asked for anew") {
    Bench bench;
    const ChainStepResult first = bench.run().steps.front();
    const int calls = bench.chain.calls;
    const ChainStepResult second = bench.run().steps.front();
    CHECK(second.reused);
    CHECK(second.kernels == first.kernels);
    CHECK(bench.chain.calls == calls);
    CHECK_FALSE(bench.run({.retune = true}).steps.front().reused);
    CHECK(bench.chain.calls > calls);
}

TEST_CASE("a step holds nothing that is wrong, or did not survive one before") {
    Bench bench;
    const std::vector<std::string> names = bench.tried_alone();
    const std::string wrong = names[1];
    bench.measurer.failures[wrong] = {.status = cache::TrialStatus::wrong_result, .detail = "planted"};
    static_cast<void>(bench.run());
    for (const std::vector<std::string>& place : bench.chain.asked)
        CHECK(std::ranges::find(place, wrong) == place.end());

    REQUIRE_FALSE(bench.chain.asked[0].empty());
    const std::string deadly = bench.chain.asked[0].front();
    const Problem problem = test::norm_problem(1);
    store_fault(problem, *parse_candidate(*problem.family, deadly), cache::TrialStatus::crashed,
                "in a step: planted", bench.measurer.device(), bench.cache);
    bench.chain.asked[0].clear();
    static_cast<void>(bench.run({.retune = true}));
    CHECK_FALSE(bench.chain.asked[0].empty());
    CHECK(std::ranges::find(bench.chain.asked[0], deadly) == bench.chain.asked[0].end());
}

TEST_CASE("a second pass tries what is like the first pass' winner and was not tried before") {
    const std::vector<std::string> first = asked_with({});
    std::string better;
    std::vector<std::string> second;  // its neighbours that are none of the winner alone
    for (std::size_t i = 0; i < first.size() && second.empty(); ++i) {
        better = first[i];
        second = asked_with({{better, 50}});
        std::erase_if(second,
                      [&](const std::string& name) { return std::ranges::find(first, name) != first.end(); });
    }
    REQUIRE_FALSE(second.empty());
    Bench bench;
    bench.chain.cost = cost_of({{better, 50}, {second.front(), 20}});
    const ChainStepResult step = bench.run().steps.front();
    CHECK(to_string(step.kernels[0]) == second.front());
    const auto is_the_second = [&](const ChainTrial& trial) {
        return trial.taken && trial.place == 0 && to_string(trial.candidate) == second.front();
    };
    CHECK(std::ranges::count_if(step.trials, is_the_second) == 1);
}

TEST_CASE("kernels of one variant win together where each of them alone makes the step longer") {
    std::string_view variant;  // one that both places have, and neither winner alone
    {
        Bench bench;
        const ChainStepResult step = bench.run().steps.front();
        const auto has = [&](std::size_t place, std::string_view name) {
            return std::ranges::any_of(bench.chain.asked[place], [&](const std::string& asked) {
                return asked.starts_with(std::string(name) + ' ');
            });
        };
        for (const Variant* one : test::norm_problem(1).family->variants) {
            if (one == step.alone[0].variant || one == step.alone[1].variant) continue;
            if (has(0, one->name) && has(1, one->name)) variant = one->name;
        }
    }
    REQUIRE_FALSE(variant.empty());
    Bench bench;
    bench.chain.together = [&](const std::vector<Candidate>& kernels) {
        const auto is_one = [&](const Candidate& kernel) { return kernel.variant->name == variant; };
        const auto count = std::ranges::count_if(kernels, is_one);
        return count == 0 ? 50.0 : count == 1 ? 100.0 : 0.0;
    };
    const ChainStepResult step = bench.run().steps.front();
    CHECK(step.is_complete);
    CHECK(step.kernels[0].variant->name == variant);
    CHECK(step.kernels[1].variant->name == variant);
    CHECK(step.after_us < step.before_us);
}

TEST_CASE("a race begins with what the step had where that is shorter, though no exchange of one kernel is") {
    std::vector<Candidate> had;  // proven, of two variants, neither the winner alone
    {
        Bench bench;
        const ChainStepResult step = bench.run().steps.front();
        for (std::size_t place = 0; place < 2; ++place) {
            for (const std::string& asked : bench.chain.asked[place]) {
                const Candidate candidate = *parse_candidate(*test::norm_problem(1).family, asked);
                const bool is_other = had.empty() || candidate.variant != had[0].variant;
                if (candidate == step.alone[place] || had.size() > place || !is_other) continue;
                had.push_back(candidate);
            }
        }
    }
    REQUIRE(had.size() == 2);
    Bench bench;
    for (std::size_t place = 0; place < 2; ++place) bench.chain.take(place, had[place]);
    bench.chain.together = [&](const std::vector<Candidate>& kernels) {
        const auto count = (kernels[0] == had[0] ? 1 : 0) + (kernels[1] == had[1] ? 1 : 0);
        return count == 0 ? 50.0 : count == 1 ? 100.0 : 0.0;
    };
    const ChainStepResult step = bench.run().steps.front();
    CHECK(step.is_complete);
    CHECK(step.kernels == had);
    CHECK(step.after_us < step.before_us);
}

TEST_CASE("what the step had is tried, though neither races alone nor neighbours would have brought it") {
    const std::vector<std::string> tried = asked_with({});
    std::optional<Candidate> had;
    for (const RankedCandidate& ranked :
         ranked_space(test::norm_problem(1), *representative_device({9, 0, true}))) {
        if (std::ranges::find(tried, to_string(ranked.candidate)) == tried.end()) had = ranked.candidate;
    }
    REQUIRE(had);
    Bench bench;
    bench.measurer.true_us = [](const std::string&) { return 10.0; };
    bench.chain.take(0, *had);
    bench.chain.cost = cost_of({{to_string(*had), 50}});
    CHECK(bench.run().steps.front().kernels[0] == *had);
}

TEST_CASE("kernels that were fast for the product alone are tried where it shares a norm") {
    const Problem product = *parse_problem("linear dtype=bf16 in=1024 out=2048 tokens=64");
    const Problem sharing =
        *parse_problem("shared_norm_linear dtype=bf16 norm=yes in=1024 out=2048 tokens=64");
    const auto tried_with = [&](const std::optional<Candidate>& had) {
        Bench bench;
        bench.measurer.true_us = [&](const std::string& name) {
            return had && name == to_string(*had) ? 9.0 : 10.0;
        };
        bench.chain = MadeUpChain({product, sharing});
        if (had) bench.chain.take(0, *had);
        const ChainStepResult step = bench.run().steps.front();
        std::vector<std::string> tried = bench.chain.asked[1];
        tried.push_back(to_string(step.alone[1]));
        return tried;
    };
    const std::vector<std::string> usual = tried_with({});
    std::optional<Candidate> other;  // of the product, which the sharing one has too, and nobody else brings
    for (const RankedCandidate& ranked : ranked_space(sharing, test::made_up_device().traits)) {
        const std::string name = to_string(ranked.candidate);
        if (name.starts_with("wgmma ") && std::ranges::find(usual, name) == usual.end())
            other = parse_candidate(*product.family, name);
    }
    REQUIRE(other);
    const std::vector<std::string> tried = tried_with(other);
    CHECK(std::ranges::find(tried, to_string(*other)) != tried.end());
}

TEST_CASE("a step never has a kernel that it does not do with, and what it has instead is what is stored") {
    std::string fastest;  // alone, and not what the step has
    {
        Bench bench;
        std::vector<std::string> raced;
        bench.measurer.true_us = [&](const std::string& name) {
            raced.push_back(name);
            return 10.0;
        };
        const ChainStepResult step = bench.run().steps.front();
        const auto is_asked = [&](const std::string& name) {
            return name != to_string(step.alone[0]) &&
                   std::ranges::find(bench.chain.asked[0], name) != bench.chain.asked[0].end();
        };
        if (const auto first = std::ranges::find_if(raced, is_asked); first != raced.end()) fastest = *first;
    }
    REQUIRE_FALSE(fastest.empty());
    for (const bool refused : {false, true}) {
        CAPTURE(refused);
        Bench bench;
        bench.measurer.true_us = [&](const std::string& name) { return name == fastest ? 9.0 : 10.0; };
        bench.chain.cost = cost_of({{fastest, 50}});
        bench.chain.refuses = [&](std::size_t place, const Candidate& candidate) {
            return refused && place == 0 && to_string(candidate) == fastest;
        };
        const ChainStepResult step = bench.run().steps.front();
        CHECK(step.is_complete);
        CHECK((to_string(step.alone[0]) == fastest) == !refused);
        CHECK((to_string(step.kernels[0]) == fastest) == !refused);
        for (const cache::Trial& winner : bench.cache.winners()) {
            if (winner.key != tuning_key(test::norm_problem(1), bench.measurer.device().gpu)) continue;
            CHECK(winner.candidate == to_string(step.kernels[0]));
            CHECK_FALSE(winner.chain.empty());
        }
    }
}

TEST_CASE("a run that is stopped stores no choice") {
    Bench bench;
    const std::atomic<bool> at_once{true};
    const ChainTuneResult result = bench.run({}, at_once);
    CHECK_FALSE(result.steps.front().is_complete);
    CHECK(std::ranges::all_of(bench.cache.winners(),
                              [](const cache::Trial& winner) { return winner.chain.empty(); }));
}

namespace {

/// A step that is computed in two ways: both have the norm of one row.
struct TwoWays {
    Scratch scratch;
    cache::Cache cache = scratch.cache();
    test::MadeUpMeasurer measurer;
    test::NoImages images;
    MadeUpChain usual{{test::norm_problem(1), test::norm_problem(64)}};
    MadeUpChain other{{test::norm_problem(1), test::norm_problem(8)}};

    /// The other way is so much longer, of some 1,200 us.
    ChainTuneResult run(double longer_us, TuneOptions options = {}, const std::atomic<bool>& stop = never) {
        other.together = [longer_us](const std::vector<Candidate>&) { return longer_us; };
        ChainStep step = other.step("made-up tokens=1 kv=1");
        step.instead_of = 0;
        return tune_chains({usual.step(step.name), step}, options, measurer, images, cache, {}, stop);
    }
    [[nodiscard]] cache::Trial winner(std::int64_t rows) const {
        for (const cache::Trial& trial : cache.winners())
            if (trial.key == tuning_key(test::norm_problem(rows), measurer.device().gpu)) return trial;
        return {};
    }
    void check_that_other_is_kept(bool kept, const ChainTuneResult& result) const {
        CHECK(result.steps[0].is_complete);
        CHECK(result.steps[1].is_complete);
        CHECK(result.steps[0].is_kept == !kept);
        CHECK(result.steps[1].is_kept == kept);
        CHECK(winner(1).chain == "made-up tokens=1 kv=1");
        CHECK(winner(64).chain == (kept ? "made-up tokens=1 kv=1 kept=no" : "made-up tokens=1 kv=1"));
        CHECK(winner(8).chain == (kept ? "made-up tokens=1 kv=1" : "made-up tokens=1 kv=1 kept=no"));
        CHECK(winner(1).candidate == to_string(result.steps[kept ? 1 : 0].kernels[0]));
    }
};

}  // namespace

TEST_CASE("of two ways to compute a step the shorter one is kept, and what both have is as that has it") {
    const std::vector<std::string> names = Bench().tried_alone();
    for (const double longer_us : {-30.0, -0.5, 0.0, 30.0}) {
        CAPTURE(longer_us);
        TwoWays ways;
        ways.usual.cost = cost_of({{names[1], 50}});
        ways.other.cost = cost_of({{names[2], 50}});
        const ChainTuneResult result = ways.run(longer_us);
        CHECK(to_string(result.steps[0].kernels[0]) == names[1]);
        CHECK(to_string(result.steps[1].kernels[0]) == names[2]);
        ways.check_that_other_is_kept(longer_us < -20, result);
        CHECK(result.steps[1].ratio == doctest::Approx(1 + longer_us / 1100).epsilon(0.001));
    }
}

TEST_CASE("a way that is known not to be kept is known the next time, without a measurement") {
    for (const double longer_us : {-30.0, 30.0}) {
        CAPTURE(longer_us);
        TwoWays ways;
        static_cast<void>(ways.run(longer_us));
        const int calls = ways.usual.calls + ways.other.calls;
        const int problems = ways.measurer.problems;
        const ChainTuneResult again = ways.run(-longer_us);
        CHECK(again.steps[0].reused);
        CHECK(again.steps[1].reused);
        CHECK(ways.usual.calls + ways.other.calls == calls);
        CHECK(ways.measurer.problems == problems);
        ways.check_that_other_is_kept(longer_us < 0, again);
    }
}

TEST_CASE("a way that won before and is longer now is not kept any more, nor the other way round") {
    TwoWays ways;
    for (const double longer_us : {-30.0, 30.0, -30.0}) {
        CAPTURE(longer_us);
        ways.check_that_other_is_kept(longer_us < 0, ways.run(longer_us, {.retune = true}));
    }
    CHECK(ways.cache.verify().ok);
}

TEST_CASE("of two ways one of which was not raced to its end nothing is stored") {
    TwoWays ways;
    std::atomic<bool> stop{false};
    ways.other.on_times = [&](int rounds) { stop = stop || rounds > 1; };  // in its first heat
    const ChainTuneResult result = ways.run(-30, {}, stop);
    CHECK(stop);
    for (const ChainStepResult& step : result.steps) {
        CHECK_FALSE(step.is_complete);
        CHECK_FALSE(step.is_kept);
    }
    for (const std::int64_t rows : {1, 8, 64}) CHECK(ways.winner(rows).chain.empty());
}
