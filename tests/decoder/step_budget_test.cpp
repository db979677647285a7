// How many tokens of prompts a step has, beside texts that grow and alone.
#include <doctest/doctest.h>

#include "decoder/scheduling/scheduler.h"
#include "tests/decoder/scheduler_support.h"

using namespace hone::decoder;
using hone::test::scheduling::request_of;
using hone::test::scheduling::usual;

namespace {

/// Steps of one text and of eight take so long, prompts a millisecond a row.
StepCost cost_of_a_millisecond_a_row(double one_s, double eight_s) {
    std::vector<StepTime> times{{{.sequences = 1, .keys = 1}, one_s}, {{.sequences = 8, .keys = 8}, eight_s}};
    for (int rows = 1; rows <= 108; ++rows) times.push_back({{.prompt_tokens = rows}, 1e-3 * rows});
    return StepCost(times);
}

/// What a step computes of prompts of 60 tokens, of which so many wait, beside texts that decode.
std::int64_t prompt_tokens_beside(const SchedulerOptions& options, int decoding, int waiting) {
    Scheduler scheduler(options);
    for (int i = 0; i < decoding; ++i) static_cast<void>(scheduler.add(request_of(1, 50, 10 * i)));
    static_cast<void>(scheduler.next());
    static_cast<void>(scheduler.complete(std::vector<int>(static_cast<std::size_t>(decoding), 1)));
    for (int i = 0; i < waiting; ++i) static_cast<void>(scheduler.add(request_of(60, 1, 1000 * i)));
    static_cast<void>(scheduler.next());
    CHECK(scheduler.load().sequences == decoding);
    return scheduler.load().prompt_tokens;
}

}  // namespace

TEST_CASE("decoding goes on beside a long prompt, which takes what the step has left") {
    Scheduler scheduler(usual);
    const RequestId first = scheduler.add(request_of(3, 5));
    CHECK(scheduler.next().size() == 1);
    static_cast<void>(scheduler.complete(std::vector{1}));
    const RequestId second = scheduler.add(request_of(40, 1, 100));
    int computed = 0;
    for (int step = 0; step < 2; ++step) {
        const std::vector<StepPart>& parts = scheduler.next();
        REQUIRE(parts.size() == 2);
        CHECK((parts[0].request == first && parts[0].tokens.size() == 1 && parts[0].samples));
        CHECK((parts[1].request == second && parts[1].tokens.size() == 15 && parts[1].begin == computed));
        CHECK_FALSE(parts[1].samples);
        computed += 15;
        CHECK(scheduler.complete(std::vector{2}).size() == 1);
    }
    CHECK(scheduler.next()[1].samples);
    CHECK(scheduler.counters().prompt_tokens == 3 + 2 * 15);
    CHECK(scheduler.counters().computed_tokens == 3 + 2 * 16);
}

TEST_CASE("beside a sequence that decodes, prompts take no more than they may; alone, all there is") {
    SchedulerOptions options = usual;
    options.step_prompt_tokens = 6;
    Scheduler scheduler(options);
    static_cast<void>(scheduler.add(request_of(16, 5)));
    CHECK(scheduler.next().at(0).tokens.size() == 16);
    static_cast<void>(scheduler.complete(std::vector{1}));
    static_cast<void>(scheduler.add(request_of(9, 1, 100)));
    static_cast<void>(scheduler.add(request_of(9, 1, 200)));
    const std::vector<StepPart>& parts = scheduler.next();
    REQUIRE(parts.size() == 3);
    CHECK(parts[0].tokens.size() == 1);
    CHECK(parts[1].tokens.size() == 3);
    CHECK(parts[2].tokens.size() == 3);
}

TEST_CASE(
    "beside a sequence that decodes, prompts take no longer than they may; alone, as long as it takes") {
    SchedulerOptions options = usual;
    options.step_stretch = 1.5;
    options.max_step_stretch = 1.5;
    options.least_prompt_tokens = 2;
    options.cost = StepCost({{{.sequences = 1, .keys = 1}, 10e-3},
                             {{.sequences = 8, .keys = 8}, 10e-3},
                             {{.prompt_tokens = 1}, 10e-3},
                             {{.prompt_tokens = 5}, 14e-3},
                             {{.prompt_tokens = 16}, 30e-3}});
    Scheduler scheduler(options);
    static_cast<void>(scheduler.add(request_of(16, 9)));
    CHECK(scheduler.next().at(0).tokens.size() == 16);
    static_cast<void>(scheduler.complete(std::vector{1}));
    static_cast<void>(scheduler.add(request_of(9, 1, 100)));
    CHECK(scheduler.next().at(1).tokens.size() == 4);
    CHECK(scheduler.load() == StepLoad{.sequences = 1, .keys = 17, .prompt_tokens = 4});
    CHECK(scheduler.expected_s() == doctest::Approx(14e-3));
    for (int step = 0; step < 100; ++step)
        scheduler.note_time(28e-3);  // the prompt takes longer than was measured
    static_cast<void>(scheduler.complete(std::vector{2}));
    CHECK(scheduler.counters().mixed_steps == 1);
    CHECK(scheduler.next().at(1).tokens.size() == 2);
    CHECK(scheduler.load() == StepLoad{.sequences = 1, .keys = 18, .prompt_tokens = 2, .prompt_begin = 4});
}

TEST_CASE("the more of the texts wait for their prompts, the longer a step may take") {
    SchedulerOptions options = usual;
    options.max_step_tokens = 100;
    options.step_stretch = 1;
    options.max_step_stretch = 5;
    options.least_prompt_tokens = 1;
    options.cost = cost_of_a_millisecond_a_row(10e-3, 10e-3);
    const auto prompt_tokens = [&](int decoding, int waiting) {
        return prompt_tokens_beside(options, decoding, waiting);
    };
    CHECK(prompt_tokens(2, 4) == 40);  // half of the texts that there is room for: all of the stretch
    CHECK(prompt_tokens(6, 2) == 40);  // a quarter of them
    CHECK(prompt_tokens(7, 1) == 20);  // an eighth
    CHECK(prompt_tokens(1, 1) == 20);  // the same
    CHECK(prompt_tokens(7, 5) == 20);  // there is room for one
    options.max_step_stretch = 0;
    options.step_stretch = 1.5;
    CHECK(prompt_tokens(6, 2) == 5);
}

TEST_CASE(
    "where all places are taken, prompts come in the parts that cost the least, and wait until they make "
    "one") {
    SchedulerOptions options = usual;
    options.pages = 256;
    options.max_step_tokens = 100;
    options.step_stretch = 1.2;
    options.max_step_stretch = 3;
    options.least_prompt_tokens = 1;
    options.most_waiting_share = 0.25;
    options.most_saving_steps = 3;
    std::vector<StepTime> times{{{.sequences = 1, .keys = 1}, 10e-3}, {{.sequences = 8, .keys = 8}, 10e-3}};
    // 12 tokens take as long as 1: the tiles of products have so many rows.
    for (const auto& [rows, ms] : {std::pair{7, 10.0}, {19, 15.0}, {31, 19.9}, {43, 35.0}})
        times.push_back({{.prompt_tokens = rows}, 1e-3 * ms});
    options.cost = StepCost(times);
    const auto grown = [&](int texts) {
        Scheduler scheduler(options);
        for (int i = 0; i < texts; ++i) static_cast<void>(scheduler.add(request_of(1, 50, 10 * i)));
        static_cast<void>(scheduler.next());
        static_cast<void>(scheduler.complete(std::vector<int>(static_cast<std::size_t>(texts), 1)));
        return scheduler;
    };
    const auto step = [](Scheduler& scheduler) {
        std::vector<int> drawn;
        for (const StepPart& part : scheduler.next()) {
            if (part.samples) drawn.push_back(1);
        }
        const std::int64_t tokens = scheduler.load().prompt_tokens;
        static_cast<void>(scheduler.complete(drawn));
        return tokens;
    };
    Scheduler full = grown(7);
    static_cast<void>(full.add(request_of(30, 9, 1000)));
    CHECK(step(full) == 24);  // as many as wait for the largest of the cheapest
    CHECK(step(full) == 0);   // 6 are left
    CHECK(step(full) == 0);
    CHECK(step(full) == 0);
    CHECK(step(full) == 6);
    Scheduler saving = grown(7);
    static_cast<void>(saving.add(request_of(9, 9, 1000)));
    CHECK(step(saving) == 0);
    CHECK(saving.waiting() == 1);
    Scheduler free = grown(4);
    static_cast<void>(free.add(request_of(9, 9, 1000)));
    CHECK(step(free) > 0);
    options.most_waiting_share = 0.1;  // a place that is empty counts for more
    Scheduler few = grown(7);
    static_cast<void>(few.add(request_of(9, 9, 1000)));
    CHECK(step(few) == 9);
    options.most_waiting_share = 0.25;
    options.max_step_stretch = 1.5;
    Scheduler even = grown(7);
    static_cast<void>(even.add(request_of(30, 9, 1000)));
    CHECK(step(even) == 12);
    options.most_saving_steps = 0;
    Scheduler at_once = grown(7);
    static_cast<void>(at_once.add(request_of(9, 9, 1000)));
    CHECK(step(at_once) == 9);
}

TEST_CASE("the oldest text's prompt goes on though few of its tokens wait") {
    SchedulerOptions options = usual;
    options.pages = 256;
    options.max_step_tokens = 40;
    options.step_stretch = 1.2;
    options.max_step_stretch = 3;
    options.most_waiting_share = 1;
    std::vector<StepTime> times{{{.sequences = 1, .keys = 1}, 10e-3}, {{.sequences = 8, .keys = 8}, 10e-3}};
    for (const auto& [rows, ms] : {std::pair{8, 10.0}, {44, 15.0}})
        times.push_back({{.prompt_tokens = rows}, 1e-3 * ms});
    options.cost = StepCost(times);
    Scheduler scheduler(options);
    static_cast<void>(scheduler.add(request_of(50, 9, 1000)));
    for (int i = 0; i < 7; ++i) static_cast<void>(scheduler.add(request_of(1, 50, 10 * i)));
    static_cast<void>(scheduler.next());
    std::vector<int> drawn(7, 1);
    REQUIRE(scheduler.load().prompt_tokens > 7);
    static_cast<void>(scheduler.complete(drawn));
    static_cast<void>(scheduler.next());
    CHECK(scheduler.load().sequences == 7);
    CHECK(scheduler.load().prompt_tokens > 0);
}

TEST_CASE("where half of the places wait for prompts, a step may take as long as one of all will") {
    SchedulerOptions options = usual;
    options.pages = 256;
    options.max_step_tokens = 100;
    options.step_stretch = 1;
    options.max_step_stretch = 3;
    options.full_stretch = 2;
    options.least_prompt_tokens = 1;
    options.cost = cost_of_a_millisecond_a_row(2e-3, 16e-3);
    const auto prompt_tokens = [&](int decoding, int waiting) {
        return prompt_tokens_beside(options, decoding, waiting);
    };
    CHECK(prompt_tokens(2, 6) == 28);  // 4 ms without, 32 with: twice what eight take
    CHECK(prompt_tokens(2, 20) == 28);
    CHECK(prompt_tokens(5, 3) == 20);  // three times the 10 ms without: fewer wait
    options.max_step_stretch = 0;
    CHECK(prompt_tokens(2, 6) == 1);
}

TEST_CASE("texts for which the cache has no room leave a step to the prompt that has begun") {
    SchedulerOptions options = usual;
    const PagePool pool(1, options.page_size);
    options.max_step_tokens = 100;
    options.step_stretch = 1;
    options.max_step_stretch = 5;
    options.least_prompt_tokens = 1;
    options.pages = 3 * pool.pages_for(4) + pool.pages_for(20) + pool.pages_for(101) - 1;
    options.cost = cost_of_a_millisecond_a_row(10e-3, 10e-3);
    Scheduler scheduler(options);
    for (int i = 0; i < 3; ++i) static_cast<void>(scheduler.add(request_of(1, 6, 10 * i)));
    static_cast<void>(scheduler.next());
    static_cast<void>(scheduler.complete(std::vector{1, 1, 1}));
    for (int i = 0; i < 4; ++i) static_cast<void>(scheduler.add(request_of(100, 1, 1000 * i)));
    static_cast<void>(scheduler.next());
    CHECK(scheduler.load().prompt_tokens == 20);  // half of the stretch: others seemed to follow
    static_cast<void>(scheduler.complete(std::vector{1, 1, 1}));
    static_cast<void>(scheduler.next());
    CHECK(scheduler.waiting() == 3);
    CHECK(scheduler.load().prompt_tokens == 40);
}

TEST_CASE("prompts that wait together share a step") {
    Scheduler scheduler(usual);
    for (const int first : {0, 100, 200}) static_cast<void>(scheduler.add(request_of(40, 1, first)));
    const std::vector<StepPart>& parts = scheduler.next();
    REQUIRE(parts.size() == 3);
    CHECK(parts[0].tokens.size() == 8);
    CHECK(parts[1].tokens.size() == 4);
    CHECK(parts[2].tokens.size() == 4);
    SchedulerOptions options = usual;
    options.least_prompt_part = 10;
    Scheduler in_larger_parts(options);
    for (const int first : {0, 100}) static_cast<void>(in_larger_parts.add(request_of(40, 1, first)));
    REQUIRE(in_larger_parts.next().size() == 2);
    CHECK(in_larger_parts.next()[0].tokens.size() == 10);
    CHECK(in_larger_parts.next()[1].tokens.size() == 6);
}
