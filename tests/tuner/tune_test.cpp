#include <doctest/doctest.h>

#include <signal.h>
#include <sys/wait.h>
#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "tests/support/scratch.h"
#include "tests/tuner/made_up_measurer.h"
#include "tuner/measure/offline_measurer.h"
#include "tuner/search/knowledge.h"

using namespace hone;
using namespace hone::tuner;
using hone::test::MadeUpMeasurer;
using hone::test::Scratch;

namespace {

using test::never;
using test::norm_workload;
using test::spread;

TuneResult tune_quickly(const Workload& list, MadeUpMeasurer& measurer, cache::Cache& cache,
                        TuneOptions options = {}, const std::atomic<bool>& stop = never) {
    test::NoImages images;
    if (options.effort == Effort::standard) options.effort = Effort::quick;
    return tune(list, options, measurer, images, cache, {}, stop);
}

/// Images that need more registers, or spill, as their candidates' names fall; counts what is asked for.
class CountedImages final : public ImageSource {
  public:
    int asked = 0;
    std::set<std::string> prefetched;
    std::map<std::string, int> released;  ///< how often, by problem
    bool is_short = false;                ///< of work
    std::size_t asked_first_after = 0;    ///< prefetched when the first one was waited for

    [[nodiscard]] bool is_short_of_work() const override { return is_short; }
    void prefetch(const Problem& problem, const std::vector<Candidate>& candidates,
                  std::chrono::milliseconds) override {
        for (const Candidate& candidate : candidates)
            prefetched.insert(to_string(problem) + ' ' + to_string(candidate));
    }
    void release(const Problem& problem) override { ++released[to_string(problem)]; }
    [[nodiscard]] Result get(const Problem&, const Candidate& candidate) override {
        if (asked == 0) asked_first_after = prefetched.size();
        ++asked;
        const std::size_t drawn = std::hash<std::string>{}(to_string(candidate));
        return {.detail = {},
                .image = {.cubin = {},
                          .resources = {.registers = static_cast<int>(24 + drawn % 100),
                                        .shared_bytes = 0,
                                        .spill_bytes = drawn % 5 == 0 ? 16 : 0}}};
    }
    [[nodiscard]] std::int64_t compiled() const override { return asked; }
};

/// The same predictions from one who does not know them before there is an image.
class WithoutForesight final : public Measurer {
  public:
    [[nodiscard]] const DeviceInfo& device() const override { return inner_.device(); }
    [[nodiscard]] cache::Provenance provenance() const override { return inner_.provenance(); }
    [[nodiscard]] bool needs_images() const override { return true; }
    [[nodiscard]] Verdict begin_problem(const Problem& problem) override {
        return inner_.begin_problem(problem);
    }
    [[nodiscard]] Verdict verify(const CandidateImage& candidate) override {
        return inner_.verify(candidate);
    }
    [[nodiscard]] Samples time(const CandidateImage& candidate, int replays) override {
        return inner_.time(candidate, replays);
    }
    [[nodiscard]] std::vector<Samples> interleave(const std::vector<CandidateImage>& candidates,
                                                  int rounds) override {
        return inner_.interleave(candidates, rounds);
    }
    void end_problem() override { inner_.end_problem(); }

  private:
    OfflineMeasurer inner_{{9, 0, true}, "13.0"};
};

/// Eight kernels that no prediction puts forward, a hundredth apart, the first of which has won.
std::vector<cache::Trial> race_of_another_gpu(const Problem& problem, const Measurer& measurer,
                                              const std::string& gpu = "another", std::size_t from_end = 0) {
    const auto space = ranked_space(problem, measurer.device().traits);
    std::vector<cache::Trial> raced;
    for (std::size_t i = 0; i < 8; ++i) {
        const Candidate& candidate = space[space.size() - 1 - from_end - i].candidate;
        cache::Trial trial;
        trial.key = tuning_key(problem, measurer.device().gpu);
        trial.key.gpu.name = gpu;
        trial.candidate = to_string(candidate);
        trial.template_hash = template_hash(*candidate.variant);
        trial.stage = cache::Stage::final_round;
        trial.winner = i == 0;
        const double us = 5 + 0.01 * static_cast<double>(i);
        trial.timing = {.median_us = us, .p10_us = us, .p90_us = us, .samples = 10};
        raced.push_back(trial);
    }
    return raced;
}

}  // namespace

TEST_CASE("a workload is tuned, and every problem has one winner that the cache remembers") {
    const Scratch scratch;
    auto cache = scratch.cache();
    MadeUpMeasurer measurer;
    measurer.true_us = spread;
    const TuneResult result = tune_quickly(norm_workload({1, 16, 1024}), measurer, cache);
    CHECK(result.stopped == StopReason::finished);
    CHECK(result.problems.size() == 3);
    CHECK(cache.winners().size() == 3);
    CHECK(cache.in_flight().empty());
    for (const ProblemResult& problem : result.problems) {
        REQUIRE(problem.winner);
        REQUIRE(problem.fallback);
        CHECK(problem.winner->stage == cache::Stage::final_round);
        CHECK(problem.winner->timing.median_us <= problem.fallback->timing.median_us * 1.001);
    }
}

TEST_CASE("a final is stored with one time, and says who ties with its winner, in this run and the next") {
    const Scratch scratch;
    auto cache = scratch.cache();
    MadeUpMeasurer measurer;
    std::map<std::string, double> us;  // two in a thousand between one and the next, in the order of entry
    measurer.true_us = [&](const std::string& name) {
        return us.try_emplace(name, 10 + 0.02 * static_cast<double>(us.size())).first->second;
    };
    const TuneResult result = tune_quickly(norm_workload({1024}), measurer, cache);
    const ProblemResult& problem = result.problems.at(0);
    REQUIRE(problem.winner);
    const cache::Ties again = cache::ties_of(*problem.winner, cache.trials());
    REQUIRE_FALSE(again.others.empty());
    // Three of them have run again in the second look since.
    CHECK(std::ranges::count(again.others, cache::Stage::final_round, &cache::Trial::stage) == 1);
    CHECK(problem.ties.others == again.others);
    CHECK(again.others.size() == 4);  // five finalists
    for (const cache::Trial& other : again.others) {
        const bool is_of_final =
            other.stage == cache::Stage::final_round;  // else of the heat of a second look
        CHECK((other.created_at == problem.winner->created_at) == is_of_final);
        CHECK(std::abs(us.at(other.candidate) / us.at(problem.winner->candidate) - 1) <= again.within + 1e-9);
    }
    CHECK(tune_quickly(norm_workload({1024}), measurer, cache).problems[0].ties.others == again.others);
    (void)tune_quickly(norm_workload({1024}), measurer, cache, {.budget = {}, .retune = true});
    CHECK(cache::ties_of(cache.winners().at(0), cache.trials()).others.size() >= 2);  // of other candidates
}

TEST_CASE(
    "all that ran in one heat are stored with one time, earlier than their final's and a later look's") {
    const Scratch scratch;
    auto cache = scratch.cache();
    MadeUpMeasurer measurer;
    (void)tune_quickly(norm_workload({64}), measurer, cache);
    std::vector<std::pair<cache::Stage, std::int64_t>> batches;  // in the order in which they were stored
    for (const cache::Trial& trial : cache.trials()) {
        if (trial.stage == cache::Stage::screened) continue;
        const std::pair batch(trial.stage, trial.created_at);
        if (std::ranges::find(batches, batch) == batches.end()) batches.push_back(batch);
    }
    REQUIRE(batches.size() == 3);
    CHECK(batches[0].first == cache::Stage::raced);
    CHECK(batches[1].first == cache::Stage::final_round);
    CHECK(batches[2].first == cache::Stage::raced);  // nobody beat the winner, so there was no second final
    CHECK(batches[0].second < batches[1].second);
    CHECK(batches[1].second < batches[2].second);
}

TEST_CASE("what other layers hold is asked for once where a problem is open, else not at all") {
    const Scratch scratch;
    auto cache = scratch.cache();
    MadeUpMeasurer measurer;
    int asked = 0;
    const TuneOptions options{.effort = Effort::quick, .budget = {}, .lower_trials = [&] {
                                  ++asked;
                                  return std::vector<cache::Trial>{};
                              }};
    (void)tune_quickly(norm_workload({64, 128}), measurer, cache, options);
    CHECK(asked == 1);
    (void)tune_quickly(norm_workload({64, 128}), measurer, cache, options);
    CHECK(asked == 1);
    (void)tune_quickly(norm_workload({64, 256}), measurer, cache, options);
    CHECK(asked == 2);
}

TEST_CASE("the same command again measures nothing and finds the same winners") {
    const Scratch scratch;
    auto cache = scratch.cache();
    MadeUpMeasurer measurer;
    measurer.true_us = spread;
    const TuneResult first = tune_quickly(norm_workload({1, 64}), measurer, cache);
    measurer.verified.clear();
    const TuneResult again = tune_quickly(norm_workload({1, 64}), measurer, cache);
    CHECK(measurer.verified.empty());
    CHECK(again.measurements == 0);
    for (std::size_t i = 0; i < again.problems.size(); ++i) {
        CHECK(again.problems[i].reused);
        CHECK(again.problems[i].winner->candidate == first.problems[i].winner->candidate);
        CHECK(again.problems[i].fallback);
    }
}

TEST_CASE("retune measures again although a winner is stored") {
    const Scratch scratch;
    auto cache = scratch.cache();
    MadeUpMeasurer measurer;
    (void)tune_quickly(norm_workload({1}), measurer, cache);
    measurer.verified.clear();
    const TuneResult again =
        tune_quickly(norm_workload({1}), measurer, cache, {.budget = {}, .retune = true});
    CHECK_FALSE(again.problems[0].reused);
    CHECK_FALSE(measurer.verified.empty());
}

TEST_CASE("a predicted winner does not stop a real measurement, and a measured one stops a replay") {
    const Scratch scratch;
    auto cache = scratch.cache();
    MadeUpMeasurer measurer;
    measurer.kind = cache::Provenance::predicted;
    (void)tune_quickly(norm_workload({1}), measurer, cache);
    measurer.kind = cache::Provenance::measured;
    CHECK_FALSE(tune_quickly(norm_workload({1}), measurer, cache).problems[0].reused);
    measurer.kind = cache::Provenance::replayed;
    CHECK(tune_quickly(norm_workload({1}), measurer, cache).problems[0].reused);
}

TEST_CASE("effort known measures a winner of a lower layer, which is not believed") {
    const Scratch scratch;
    auto cache = scratch.cache();
    MadeUpMeasurer measurer;
    const Problem problem = test::norm_problem(64);
    const Candidate last = ranked_space(problem, measurer.device().traits).back().candidate;
    (void)tune_quickly(norm_workload({64}), measurer, cache, {.effort = Effort::known, .budget = {}});
    CHECK_FALSE(measurer.verified.contains(to_string(last)));

    cache::Trial won;
    won.key = tuning_key(problem, measurer.device().gpu);
    won.toolchain = measurer.device().toolchain;
    won.candidate = to_string(last);
    won.template_hash = template_hash(*last.variant);
    won.stage = cache::Stage::final_round;
    won.winner = true;
    const Scratch other;
    auto empty = other.cache();
    const TuneResult result = tune_quickly(
        norm_workload({64}), measurer, empty,
        {.effort = Effort::known, .budget = {}, .lower_trials = [&] { return std::vector{won}; }});
    CHECK(measurer.verified.contains(to_string(last)));
    CHECK_FALSE(result.problems[0].reused);
    CHECK(result.problems[0].candidates == 2);
}

TEST_CASE("a problem with a shortlist races that and little else; a winner alone is no shortlist") {
    MadeUpMeasurer measurer;
    std::vector<cache::Trial> raced = race_of_another_gpu(test::norm_problem(64), measurer);
    const auto candidates = [&](std::vector<cache::Trial> lower) {
        const Scratch scratch;
        auto cache = scratch.cache();
        measurer.verified.clear();
        return tune_quickly(norm_workload({64}), measurer, cache,
                            {.effort = Effort::quick, .budget = {}, .lower_trials = [&] { return lower; }})
            .problems[0]
            .candidates;
    };
    constexpr int second_look = 1 + 2 + 2;             // the winner again, whom it has beaten, and neighbours
    CHECK(candidates(raced) <= 11 + 3 + second_look);  // the first of a variant comes on top
    for (const cache::Trial& trial : raced) CHECK(measurer.verified.contains(trial.candidate));
    CHECK(candidates({raced[0]}) > 8 + 1 + second_look);
    CHECK(measurer.verified.contains(raced[0].candidate));
    CHECK(candidates({}) >= 12 + second_look);
    // On this kind of GPU the front of the shortlist says enough, and nothing is looked at again.
    for (cache::Trial& trial : raced) trial.key.gpu = measurer.device().gpu;
    CHECK(candidates(raced) <= 5 + 3);  // the first of a variant comes on top
    CHECK(measurer.verified.contains(raced[0].candidate));
    CHECK(std::ranges::count_if(raced, [&](const cache::Trial& trial) {
              return measurer.verified.contains(trial.candidate);
          }) == 4);  // the default has the fifth place
}

TEST_CASE("a sweep tries the shortlists of all GPUs that have raced the very problem") {
    MadeUpMeasurer measurer;
    std::vector<cache::Trial> lower = race_of_another_gpu(test::norm_problem(64), measurer);
    std::ranges::copy(race_of_another_gpu(test::norm_problem(64), measurer, "a third", lower.size()),
                      std::back_inserter(lower));
    const Scratch scratch;
    auto cache = scratch.cache();
    test::NoImages images;
    (void)tune(norm_workload({64}), {.effort = Effort::standard, .lower_trials = [&] { return lower; }},
               measurer, images, cache, {}, never);
    for (const cache::Trial& trial : lower) CHECK(measurer.verified.contains(trial.candidate));
}

TEST_CASE("how many candidates wait is counted by what is known of each problem") {
    MadeUpMeasurer measurer;
    const auto expected = [&](const std::vector<cache::Trial>& lower) {
        const Scratch scratch;
        auto cache = scratch.cache();
        test::NoImages images;
        std::size_t first = 0;
        const auto note = [&](const Progress& progress) {
            if (first == 0) first = progress.candidates_total;
        };
        (void)tune(norm_workload({64, 8192}),
                   {.effort = Effort::quick, .lower_trials = [&] { return lower; }}, measurer, images, cache,
                   note, never);
        return first;  // the largest has its turn, the other one waits
    };
    std::vector<cache::Trial> raced = race_of_another_gpu(test::norm_problem(64), measurer);
    CHECK(expected({}) == 12);
    CHECK(expected(raced) == 11);
    for (cache::Trial& trial : raced) trial.key.gpu = measurer.device().gpu;
    CHECK(expected(raced) == 5);
}

TEST_CASE("where a problem's winner alone is known, kernels of the next size have its shortlist's places") {
    MadeUpMeasurer measurer;
    const auto space = ranked_space(test::norm_problem(64), measurer.device().traits);
    const auto raced = [&](int rows, std::size_t i, bool winner) {
        const Candidate& candidate = space[space.size() - 1 - i].candidate;
        cache::Trial trial;
        trial.key = tuning_key(test::norm_problem(rows), measurer.device().gpu);
        trial.key.gpu.name = "another";
        trial.candidate = to_string(candidate);
        trial.template_hash = template_hash(*candidate.variant);
        trial.stage = cache::Stage::final_round;
        trial.winner = winner;
        trial.timing = {.median_us = 5, .p10_us = 5, .p90_us = 5, .samples = 10};
        return trial;
    };
    std::vector<cache::Trial> lower{raced(64, 0, true)};
    for (std::size_t i = 1; i <= 4; ++i) lower.push_back(raced(128, i, i == 1));
    const Scratch scratch;
    auto cache = scratch.cache();
    (void)tune_quickly(norm_workload({64}), measurer, cache,
                       {.effort = Effort::quick, .budget = {}, .lower_trials = [&] { return lower; }});
    for (const cache::Trial& trial : lower) CHECK(measurer.verified.contains(trial.candidate));
}

TEST_CASE("a candidate that failed for good is not tried again, and never wins") {
    const Scratch scratch;
    auto cache = scratch.cache();
    MadeUpMeasurer measurer;
    const std::string bad =
        to_string(ranked_space(test::norm_problem(1), measurer.device().traits)[2].candidate);
    measurer.failures[bad] = {.status = cache::TrialStatus::crashed, .detail = "planted"};
    const TuneResult first = tune_quickly(norm_workload({1}), measurer, cache);
    CHECK(first.problems[0].winner->candidate != bad);
    CHECK(first.problems[0].failed == 1);
    CHECK(measurer.verified[bad] == 1);
    (void)tune_quickly(norm_workload({1}), measurer, cache, {.budget = {}, .retune = true});
    CHECK(measurer.verified[bad] == 1);
}

TEST_CASE("a stopped run keeps what it knows, and the next one continues instead of starting over") {
    const Scratch scratch;
    auto cache = scratch.cache();
    MadeUpMeasurer measurer;
    measurer.true_us = [](const std::string& name) {
        return 10.0 + static_cast<double>(std::hash<std::string>{}(name) % 90);
    };
    std::atomic<bool> stop{false};
    int verified = 0;
    measurer.on_verify = [&](const std::string&) { stop = ++verified >= 9; };
    const TuneResult first = tune_quickly(norm_workload({1, 64}), measurer, cache, {}, stop);
    CHECK(first.stopped == StopReason::interrupted);
    CHECK(cache.trials().size() >= 9);
    CHECK(cache.in_flight().empty());
    measurer.on_verify = {};
    const auto before = measurer.verified;
    const TuneResult second = tune_quickly(norm_workload({1, 64}), measurer, cache);
    CHECK(second.stopped == StopReason::finished);
    CHECK(second.problems[0].winner->stage == cache::Stage::final_round);
    int again = 0;
    for (const auto& [name, times] : before) again += measurer.verified[name] > times + 1;
    CHECK(again < 9);
}

TEST_CASE("a budget ends the run in time with the best so far") {
    const Scratch scratch;
    auto cache = scratch.cache();
    MadeUpMeasurer measurer;
    measurer.on_verify = [](const std::string&) { usleep(20000); };
    const TuneResult result =
        tune_quickly(norm_workload({1, 2, 4, 8, 16, 32}), measurer, cache,
                     {.effort = Effort::quick, .budget = std::chrono::milliseconds(700)});
    CHECK(result.stopped == StopReason::budget);
    CHECK(result.elapsed.count() < 1800);
    REQUIRE_FALSE(result.problems.empty());
    CHECK(result.problems[0].winner);
}

TEST_CASE("neighbours' winners are tried before anything but the default") {
    const Scratch scratch;
    auto cache = scratch.cache();
    MadeUpMeasurer measurer;
    const auto space = ranked_space(test::norm_problem(1024), measurer.device().traits);
    const std::string odd = to_string(space.back().candidate);
    measurer.true_us = [&](const std::string& name) { return name == odd ? 5.0 : 10.0; };
    cache.store(cache::Trial{.key = {.gpu = measurer.device().gpu,
                                     .family = "rmsnorm",
                                     .static_fields = static_text(test::norm_problem(1024)),
                                     .dynamic_fields = dynamic_text(test::norm_problem(1024))},
                             .toolchain = measurer.device().toolchain,
                             .candidate = odd,
                             .template_hash = std::string(template_hash(*space.back().candidate.variant)),
                             .stage = cache::Stage::final_round,
                             .winner = true,
                             .timing = {.median_us = 5, .p10_us = 5, .p90_us = 5, .samples = 10},
                             .resources = {},
                             .detail = {},
                             .created_at = 1,
                             .tool_version = "test"});
    std::vector<std::string> order;
    measurer.on_verify = [&](const std::string& name) { order.push_back(name); };
    const TuneResult result = tune_quickly(norm_workload({2048}), measurer, cache);
    REQUIRE(order.size() > 2);
    const bool early = order[0] == odd || order[1] == odd;
    CHECK(early);
    CHECK(result.problems[0].winner->candidate == odd);
}

TEST_CASE("what a dead run left on the GPU is measured once more, last; the third time it is given up") {
    const Scratch scratch;
    auto cache = scratch.cache();
    MadeUpMeasurer measurer;
    const Problem problem = test::norm_problem(1);
    const std::string culprit = to_string(ranked_space(problem, measurer.device().traits)[1].candidate);
    const pid_t dead = fork();
    if (dead == 0) _exit(0);
    waitpid(dead, nullptr, 0);
    cache::InFlight row{.key = {.gpu = measurer.device().gpu,
                                .family = "rmsnorm",
                                .static_fields = static_text(problem),
                                .dynamic_fields = dynamic_text(problem)},
                        .candidate = culprit,
                        .pid = dead};
    cache.begin(row);
    std::vector<std::string> order;
    measurer.on_verify = [&](const std::string& name) {
        if (measurer.problems == 1) order.push_back(name);  // the second look is another one
    };
    (void)tune_quickly(norm_workload({1}), measurer, cache);
    CHECK(order.back() == culprit);
    CHECK(cache.in_flight().empty());

    row.attempt = 3;
    cache.begin(row);
    order.clear();
    measurer.on_verify = [&](const std::string& name) { order.push_back(name); };
    const TuneResult result =
        tune_quickly(norm_workload({1}), measurer, cache, {.budget = {}, .retune = true});
    CHECK(std::ranges::find(order, culprit) == order.end());
    CHECK(result.problems[0].failed == 1);
    CHECK(cache.in_flight().empty());
}

TEST_CASE("who cannot win by what is known before compiling is not compiled, and the winners are the same") {
    Workload list{.name = "test", .problems = {}, .tuned = {}, .without_family = {}};
    for (const char* text :
         {"rmsnorm dtype=bf16 hidden=4096 rows=", "linear dtype=fp16 in=768 out=2304 bias=yes tokens=",
          "linear dtype=bf16 in=4096 out=1024 tokens="}) {
        for (const char* size : {"1", "16", "512"})
            list.problems.push_back(*parse_problem(text + std::string(size)));
    }
    const auto winners = [&](Measurer& measurer, CountedImages& images) {
        const Scratch scratch;
        auto cache = scratch.cache();
        const TuneResult result =
            tune(list, {.effort = Effort::quick, .budget = {}}, measurer, images, cache, {}, never);
        std::vector<std::string> names;
        for (const ProblemResult& problem : result.problems) {
            REQUIRE(problem.winner);
            names.push_back(problem.winner->candidate);
        }
        return names;
    };
    CountedImages many;
    WithoutForesight blind;
    CountedImages few;
    OfflineMeasurer offline({9, 0, true}, "13.0");
    CHECK(winners(offline, few) == winners(blind, many));
    CHECK(few.asked < many.asked / 2);
    CHECK(few.prefetched.size() <= static_cast<std::size_t>(few.asked));
    MESSAGE(few.asked, " compiles instead of ", many.asked);
}

TEST_CASE(
    "sizes of a shape are raced from both ends, in each round those first that have their images first") {
    Workload list{.name = "test", .problems = {}, .tuned = {}, .without_family = {}};
    const auto add = [&](const std::string& text, std::initializer_list<int> sizes) {
        for (const int size : sizes) list.problems.push_back(*parse_problem(text + std::to_string(size)));
    };
    add("rmsnorm dtype=bf16 hidden=4096 rows=", {1, 2, 4, 8, 16});
    add("embedding dtype=bf16 hidden=4096 vocabulary=32000 tokens=", {1, 64});
    const Scratch scratch;
    auto cache = scratch.cache();
    MadeUpMeasurer measurer;
    (void)tune_quickly(list, measurer, cache);
    CHECK(measurer.is_ready);
    std::vector<std::ptrdiff_t> order;
    for (const Problem& problem : measurer.begun) {
        const auto number = std::ranges::find(list.problems, problem) - list.problems.begin();
        if (std::ranges::find(order, number) == order.end()) order.push_back(number);
    }
    CHECK(order == std::vector<std::ptrdiff_t>{6, 4, 5, 0, 3, 1, 2});

    MadeUpMeasurer again;
    (void)tune_quickly(list, again, cache);
    CHECK_FALSE(again.is_ready);  // nothing is open
}

TEST_CASE("compilers without work get the images that lists are sure to need, and no list changes") {
    std::vector<std::int64_t> rows;
    for (std::int64_t i = 1; i <= 40; ++i) rows.push_back(i);
    const Scratch before;
    auto lower = before.cache();
    MadeUpMeasurer first;
    first.true_us = spread;
    (void)tune_quickly(norm_workload(rows), first, lower);
    const auto tuned = [&](CountedImages& images, MadeUpMeasurer& measurer) {
        const Scratch scratch;
        auto cache = scratch.cache();
        measurer.with_images = true;
        measurer.true_us = spread;
        const TuneOptions quick{.effort = Effort::quick, .lower_trials = [&] { return lower.trials(); }};
        std::vector<std::string> winners;
        for (const ProblemResult& problem :
             tune(norm_workload(rows), quick, measurer, images, cache, {}, never).problems) {
            REQUIRE(problem.winner);
            winners.push_back(problem.winner->candidate);
        }
        return winners;
    };
    CountedImages busy;
    MadeUpMeasurer beside_busy;
    const std::vector<std::string> winners = tuned(busy, beside_busy);
    CountedImages idle;
    idle.is_short = true;
    MadeUpMeasurer beside_idle;
    CHECK(tuned(idle, beside_idle) == winners);
    CHECK(beside_idle.verified == beside_busy.verified);
    CHECK(idle.prefetched == busy.prefetched);  // each was needed
    CHECK(idle.asked_first_after > 2 * busy.asked_first_after);
}

TEST_CASE("predictions are answers before anything is compiled, and stay when the run is stopped") {
    const Scratch scratch;
    auto cache = scratch.cache();
    OfflineMeasurer offline({9, 0, true}, "13.0");
    CountedImages images;
    std::atomic<bool> stop{false};
    std::size_t answered = 0;
    const auto stop_then = [&](const Progress& progress) {
        answered = std::max(answered, progress.answered);
        if (progress.answered > 0) stop = true;
    };
    const TuneResult result = tune(norm_workload({1, 16, 1024}), {.effort = Effort::quick, .budget = {}},
                                   offline, images, cache, stop_then, stop);
    CHECK(result.stopped == StopReason::interrupted);
    CHECK(images.asked == 0);
    CHECK(answered == 3);
    REQUIRE(result.problems.size() == 3);
    for (const ProblemResult& problem : result.problems) CHECK(problem.winner->detail == "not compiled");
    CHECK(cache.winners().size() == 3);
    CHECK(cache.verify().problems.empty());
    const TuneResult again = tune(norm_workload({1, 16, 1024}), {.effort = Effort::quick, .budget = {}},
                                  offline, images, cache, {}, never);
    CHECK(again.stopped == StopReason::finished);
    for (const ProblemResult& problem : again.problems) {
        CHECK_FALSE(problem.reused);
        CHECK(problem.winner->stage == cache::Stage::final_round);
    }
    CHECK(cache.winners().size() == 3);
}

TEST_CASE("images of a problem are released behind its race, and behind the look at its winner") {
    const Scratch scratch;
    auto cache = scratch.cache();
    MadeUpMeasurer measurer;
    CountedImages images;
    const Workload list = norm_workload({1, 64, 512});
    const TuneResult result = tune(list, {.effort = Effort::quick}, measurer, images, cache, {}, never);
    REQUIRE(result.stopped == StopReason::finished);
    for (const Problem& problem : list.problems) CHECK(images.released[to_string(problem)] == 2);
}
