// The scheduler through random traces.
#include <doctest/doctest.h>

#include <string>

#include "decoder/scheduling/scheduler.h"
#include "tests/decoder/scheduler_machine.h"
#include "tests/support/sanitized.h"

using namespace hone::decoder;
using namespace hone::test::scheduling;

namespace {

constexpr unsigned traces = hone::test::is_sanitized ? 10'000 : 100'000;

/// What happened in many traces.
struct Seen {
    std::uint64_t preemptions = 0;
    std::uint64_t shared_tokens = 0;
    int parts_for_nobody = 0;
    int bounded_steps = 0;  ///< whose time the scheduler was held to
};

/// A trace: requests come and are cancelled between steps and while one is under way, and steps are planned
/// behind the one before or while it is computed. What went wrong; empty: nothing.
std::string run_trace(unsigned seed, Seen& seen) {
    Random random(seed + 1);
    const int plans_ahead = between(random, 0, 4);  // of four steps
    Machine machine(random_options(random));
    std::map<RequestId, std::vector<int>> expected;
    int left = between(random, 1, 9);
    const auto come = [&] {
        const Request request = random_request(random);
        expected[machine.add(request)] = generated_alone(request);
        --left;
    };
    const auto leave = [&] {
        const auto id =
            static_cast<RequestId>(between(random, 1, static_cast<int>(expected.rbegin()->first)));
        if (machine.cancel(id)) expected.erase(id);
    };
    const auto meanwhile = [&] {
        if (left > 0 && random() % 4 == 0) come();
        if (!expected.empty() && random() % 16 == 0) leave();
    };
    for (int step = 0; left > 0 || !machine.scheduler.idle(); ++step) {
        if (step > 2000) return "it does not end";
        while (left > 0 && random() % 3 != 0) come();
        if (!expected.empty() && random() % 16 == 0) {
            leave();
            if (expected.empty() && left == 0 && machine.scheduler.idle()) break;
        }
        const Ahead ahead = between(random, 1, 4) > plans_ahead ? Ahead::no
                            : random() % 8 == 0                 ? Ahead::dropped
                                                                : Ahead::yes;
        if (!machine.step(ahead, meanwhile)) return "a step is wrong";
    }
    for (const auto& [id, tokens] : expected) {
        if (machine.made[id] != tokens) return "a text is not as it would be alone";
        if (!machine.ended.contains(id)) return "an end is not told";
    }
    if (machine.scheduler.pool().available() != machine.scheduler.pool().size()) return "pages are lost";
    seen.preemptions += machine.scheduler.counters().preemptions;
    seen.shared_tokens += machine.scheduler.counters().shared_tokens;
    seen.parts_for_nobody += machine.parts_for_nobody;
    seen.bounded_steps += machine.bounded_steps;
    return "";
}

}  // namespace

TEST_CASE(
    "a hundred thousand random traces: texts are as they would be alone, and no page is lost or shared "
    "wrongly") {
    Seen seen;
    for (unsigned seed = 0; seed < traces; ++seed) {
        const std::string wrong = run_trace(seed, seen);
        REQUIRE_MESSAGE(wrong.empty(), "seed ", seed, ": ", wrong);
    }
    CHECK(seen.preemptions > traces / 10);
    CHECK(seen.shared_tokens > traces);
    CHECK(seen.parts_for_nobody > static_cast<int>(traces) / 10);
    CHECK(seen.bounded_steps > static_cast<int>(traces) / 10);
}

TEST_CASE(
    "steps planned while the one before is computed are those planned behind it, where lengths end texts") {
    std::uint64_t preemptions = 0;
    for (unsigned seed = 0; seed < traces / 10; ++seed) {
        CAPTURE(seed);
        Random random(seed + 1);
        const SchedulerOptions options = random_options(random);
        Scheduler ahead(options);
        Scheduler behind(options);
        int left = between(random, 1, 9);
        const auto come = [&] {
            for (; left > 0 && random() % 3 != 0; --left) {
                Request request = random_request(random);
                request.end_ids.clear();
                static_cast<void>(ahead.add(request));
                static_cast<void>(behind.add(request));
            }
        };
        const auto is_same = [](const StepPart& a, const StepPart& b) {
            return a.request == b.request && a.begin == b.begin && a.drawn == b.drawn &&
                   a.samples == b.samples && a.tokens.size() == b.tokens.size() &&
                   std::ranges::equal(a.pages, b.pages);
        };
        come();
        while (left > 0 || !behind.idle()) {
            REQUIRE(std::ranges::equal(ahead.next(), behind.next(), is_same));
            std::vector<int> drawn;
            for (const StepPart& part : behind.next()) {
                if (part.samples) drawn.push_back(between(random, 0, vocabulary - 1));
            }
            for (Scheduler* one : {&ahead, &behind}) {
                one->note_time(1e-3 * static_cast<double>(1 + drawn.size()));
                one->note_begun();
            }
            if (seed % 2 == 0) come();
            static_cast<void>(ahead.next_ahead());
            CHECK(ahead.complete(drawn).size() == behind.complete(drawn).size());
            if (behind.idle()) come();
        }
        CHECK(ahead.idle());
        preemptions += ahead.counters().preemptions;
        REQUIRE(ahead.counters().preemptions == behind.counters().preemptions);
    }
    CHECK(preemptions > traces / 100);
}
