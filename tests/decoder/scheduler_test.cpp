#include "decoder/scheduling/scheduler.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "decoder/error.h"
#include "tests/decoder/scheduler_support.h"

using namespace hone::decoder;
using hone::test::scheduling::request_of;
using hone::test::scheduling::usual;

TEST_CASE("a prompt that begins as another one is computed from where they part") {
    Scheduler scheduler(usual);
    static_cast<void>(scheduler.add(request_of(10, 1)));
    static_cast<void>(scheduler.next());
    static_cast<void>(scheduler.complete(std::vector{7}));
    CHECK(scheduler.idle());
    static_cast<void>(scheduler.add(request_of(12, 1)));
    const StepPart& part = scheduler.next().at(0);
    CHECK(part.begin == 8);
    CHECK(part.tokens.size() == 4);
    CHECK(part.samples);
    CHECK(scheduler.counters().shared_tokens == 8);
}

TEST_CASE("a prompt that is known to its end is computed for its last token alone") {
    Scheduler scheduler(usual);
    for (int round = 0; round < 2; ++round) {
        static_cast<void>(scheduler.add(request_of(9, 1)));
        CHECK(scheduler.next().at(0).begin == 8 * round);
        static_cast<void>(scheduler.complete(std::vector{7}));
    }
}

TEST_CASE("where pages run out the youngest gives way, and the oldest never does") {
    SchedulerOptions small = usual;
    small.pages = 4;
    Scheduler scheduler(small);
    const RequestId old = scheduler.add(request_of(6, 11));
    const RequestId young = scheduler.add(request_of(6, 11, 50));
    std::map<RequestId, int> made;
    while (!scheduler.idle()) {
        std::vector<int> drawn;
        for (const StepPart& part : scheduler.next()) {
            if (part.samples) drawn.push_back(static_cast<int>(part.request) * 1000 + made[part.request]);
        }
        for (const NewToken& token : scheduler.complete(drawn)) {
            ++made[token.request];
            if (token.request == young && token.end != NewToken::End::none) CHECK(made[old] == 11);
        }
    }
    CHECK(made[old] == 11);
    CHECK(made[young] == 11);
    CHECK(scheduler.counters().preemptions >= 1);
}

TEST_CASE("a text that does not fit beside the others waits for them, and those behind it wait, too") {
    SchedulerOptions small = usual;
    small.pages = 4;
    Scheduler scheduler(small);
    static_cast<void>(scheduler.add(request_of(6, 2)));
    static_cast<void>(scheduler.add(request_of(9, 1, 50)));
    static_cast<void>(scheduler.add(request_of(1, 1, 90)));
    for (int step = 0; step < 2; ++step) {
        CHECK(scheduler.next().size() == 1);
        static_cast<void>(scheduler.complete(std::vector{1}));
    }
    CHECK(scheduler.next().size() == 2);
    CHECK(scheduler.counters().preemptions == 0);
}

TEST_CASE("a text ends with one of its end ids, or with its length") {
    Scheduler scheduler(usual);
    Request request = request_of(2, 3);
    request.end_ids = {9};
    const RequestId id = scheduler.add(request);
    static_cast<void>(scheduler.next());
    CHECK(scheduler.complete(std::vector{4})[0].end == NewToken::End::none);
    static_cast<void>(scheduler.next());
    const NewToken last = scheduler.complete(std::vector{9})[0];
    CHECK((last.request == id && last.token == 9 && last.end == NewToken::End::end_id));
    CHECK(scheduler.idle());
    static_cast<void>(scheduler.add(request_of(2, 1)));
    static_cast<void>(scheduler.next());
    CHECK(scheduler.complete(std::vector{4})[0].end == NewToken::End::length);
}

TEST_CASE("who leaves frees pages, also while a step is under way") {
    Scheduler scheduler(usual);
    const RequestId waiting_one = scheduler.add(request_of(4, 4));
    CHECK(scheduler.cancel(waiting_one));
    CHECK_FALSE(scheduler.cancel(waiting_one));
    CHECK(scheduler.idle());
    CHECK(scheduler.next().empty());
    const RequestId id = scheduler.add(request_of(4, 4));
    CHECK(scheduler.next().size() == 1);
    CHECK(&scheduler.next() == &scheduler.next());
    CHECK(scheduler.cancel(id));
    CHECK_FALSE(scheduler.cancel(id));
    CHECK(scheduler.pool().available() == 64);
    CHECK_FALSE(scheduler.idle());
    CHECK(scheduler.complete(std::vector{1}).empty());
    CHECK(scheduler.idle());
}

TEST_CASE("a step planned ahead waits for tokens, and has nobody in it whose length ends with one of them") {
    Scheduler scheduler(usual);
    const RequestId first = scheduler.add(request_of(3, 2));
    const RequestId second = scheduler.add(request_of(2, 9, 50));
    const RequestId third = scheduler.add(request_of(20, 9, 100));
    CHECK(scheduler.next_ahead().empty());
    CHECK(scheduler.next().size() == 3);
    CHECK(scheduler.next_ahead().empty());  // it has not begun
    scheduler.note_begun();
    REQUIRE(scheduler.next_ahead().size() == 3);
    CHECK((scheduler.next_ahead()[0].awaited == 0 && scheduler.next_ahead()[1].awaited == 1));
    CHECK((scheduler.next_ahead()[2].awaited == -1 && scheduler.next_ahead()[2].begin == 11));
    CHECK(scheduler.next_ahead()[0].drawn == 1);
    CHECK(scheduler.complete(std::vector{7, 8}).size() == 2);
    CHECK(scheduler.next()[0].tokens.front() == 7);
    CHECK(scheduler.next()[1].tokens.front() == 8);
    scheduler.note_begun();
    const std::vector<StepPart>& ahead = scheduler.next_ahead();
    REQUIRE(ahead.size() == 2);
    CHECK((ahead[0].request == second && ahead[0].awaited == 1));
    CHECK((ahead[1].request == third && ahead[1].awaited == 2));
    CHECK(scheduler.running() == 2);
    const std::vector<NewToken> made = scheduler.complete(std::vector{1, 2, 3});
    REQUIRE(made.size() == 3);
    CHECK((made[0].request == first && made[0].end == NewToken::End::length));
    CHECK((made[2].is_first && made[2].token == 3));
}

TEST_CASE("a text that ends by its end id while its next step is planned is computed once more, for nobody") {
    Scheduler scheduler(usual);
    Request request = request_of(4, 9);
    request.end_ids = {7};
    const RequestId ends = scheduler.add(request);
    const RequestId stays = scheduler.add(request_of(2, 9, 50));
    static_cast<void>(scheduler.next());
    scheduler.note_begun();
    CHECK(scheduler.next_ahead().size() == 2);
    const std::vector<NewToken> made = scheduler.complete(std::vector{7, 1});
    REQUIRE(made.size() == 2);
    CHECK((made[0].request == ends && made[0].end == NewToken::End::end_id));
    CHECK(scheduler.pool().size() - scheduler.pool().available() == 1);
    CHECK_FALSE(scheduler.cancel(ends));
    CHECK(scheduler.next().size() == 2);
    scheduler.note_begun();
    CHECK(scheduler.next_ahead().size() == 1);
    const std::vector<NewToken> more = scheduler.complete(std::vector{7, 2});
    REQUIRE(more.size() == 1);
    CHECK((more[0].request == stays && more[0].token == 2));
}

TEST_CASE("who is cancelled when the next step is planned hears nothing of either, and his place is free") {
    SchedulerOptions options = usual;
    options.max_sequences = 2;
    Scheduler scheduler(options);
    const RequestId leaves = scheduler.add(request_of(4, 2));
    const RequestId stays = scheduler.add(request_of(2, 9, 50));
    const RequestId comes = scheduler.add(request_of(2, 9, 70));
    static_cast<void>(scheduler.next());
    scheduler.note_begun();
    CHECK(scheduler.next_ahead().size() == 2);
    CHECK(scheduler.cancel(leaves));
    CHECK_FALSE(scheduler.cancel(leaves));
    CHECK(scheduler.has_room_for_next());
    REQUIRE(scheduler.complete(std::vector{1, 2}).size() == 1);
    scheduler.note_begun();
    REQUIRE(scheduler.next_ahead().size() == 2);
    CHECK((scheduler.next_ahead()[0].request == stays && scheduler.next_ahead()[1].request == comes));
    const std::vector<NewToken> made = scheduler.complete(std::vector{3, 4});
    REQUIRE(made.size() == 1);
    CHECK((made[0].request == stays && made[0].token == 4));
}

TEST_CASE("a step that was planned ahead and is dropped is planned anew, with who came since") {
    Scheduler scheduler(usual);
    const RequestId first = scheduler.add(request_of(3, 9));
    static_cast<void>(scheduler.next());
    scheduler.note_begun();
    CHECK(scheduler.next_ahead().size() == 1);
    CHECK_FALSE(scheduler.has_room_for_next());
    const RequestId second = scheduler.add(request_of(2, 9, 50));
    CHECK(scheduler.has_room_for_next());
    scheduler.drop_ahead();
    CHECK(scheduler.complete(std::vector{5}).size() == 1);
    const std::vector<StepPart>& parts = scheduler.next();
    REQUIRE(parts.size() == 2);
    CHECK((parts[0].request == first && parts[0].tokens.front() == 5 && parts[0].awaited == -1));
    CHECK(parts[1].request == second);
}

TEST_CASE("what cannot be is refused by name and value") {
    SchedulerOptions options = usual;
    options.max_step_tokens = 7;
    CHECK_THROWS_WITH_AS(Scheduler{options}, "max_step_tokens is 7; allowed: from max_sequences, 8",
                         DecoderError);
    options = usual;
    options.max_context = 0;
    CHECK_THROWS_AS(Scheduler{options}, DecoderError);
    Scheduler scheduler(usual);
    CHECK_THROWS_WITH_AS(static_cast<void>(scheduler.add(request_of(0, 1))),
                         "the prompt's number of tokens is 0; allowed: from 1", DecoderError);
    CHECK_THROWS_AS(static_cast<void>(scheduler.add(request_of(1, 0))), DecoderError);
    CHECK_THROWS_WITH_AS(static_cast<void>(scheduler.add(request_of(150, 51))),
                         "prompt and max_new_tokens together is 201; allowed: up to the context, 200",
                         DecoderError);
    options = usual;
    options.pages = 8;
    Scheduler small(options);
    CHECK_THROWS_WITH_AS(static_cast<void>(small.add(request_of(30, 4))), doctest::Contains("up to 33"),
                         DecoderError);
    CHECK_NOTHROW(static_cast<void>(small.add(request_of(30, 3))));
    static_cast<void>(small.next());
    CHECK_THROWS_WITH_AS(static_cast<void>(small.complete(std::vector{1, 2})),
                         doctest::Contains("drawn tokens is 2"), DecoderError);
    CHECK(small.idle() == false);
}
