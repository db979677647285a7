#include "decoder/forward/step_inputs.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "tests/decoder/small_model.h"
#include "tests/support/fake_machine.h"

using namespace hone;
using namespace hone::decoder;

namespace {

constexpr int page_size = 16;

/// Parts of a step, one for each number of tokens, with what stands in front of them; pages are their own.
class Parts {
  public:
    void add(int tokens, int begin, bool samples) {
        std::vector<int>& ids = numbers_.emplace_back(static_cast<std::size_t>(tokens));
        std::iota(ids.begin(), ids.end(), next_id_);
        next_id_ += tokens;
        std::vector<int>& pages =
            numbers_.emplace_back(static_cast<std::size_t>((begin + tokens + page_size - 1) / page_size));
        std::iota(pages.begin(), pages.end(), next_page_);
        next_page_ += static_cast<int>(pages.size());
        parts.push_back({.begin = begin, .tokens = ids, .pages = pages, .samples = samples});
    }

    std::vector<StepPart> parts;

  private:
    std::deque<std::vector<int>> numbers_;
    int next_id_ = 1;
    int next_page_ = 0;
};

/// Only prompts, only single tokens, or both in any order.
Parts some_parts() {
    const auto kinds = *rc::gen::inRange(1, 4);
    Parts parts;
    const auto count = *rc::gen::inRange(1, 9);
    for (int i = 0; i < count; ++i) {
        const bool is_prompt = kinds == 1 || (kinds == 3 && *rc::gen::arbitrary<bool>());
        parts.add(is_prompt ? *rc::gen::inRange(2, 40) : 1, *rc::gen::inRange(0, 80),
                  *rc::gen::arbitrary<bool>());
    }
    return parts;
}

}  // namespace

TEST_CASE("what operators are told of a step's prompts is what its inputs hold") {
    const test::FakeMachine fakes;
    const Gpu gpu(0);
    StepInputs inputs(gpu, 9 * 40, 9, 8);
    const StepInputs::Arrays& in = inputs.host();
    CHECK(rc::check([&] {
        const Parts some = some_parts();
        const auto sequences = std::ssize(some.parts);
        const PackedStep step = inputs.fill(some.parts, page_size);
        // As Attention's `prompts` wants it: so many have more than one query, and stand behind all others.
        RC_ASSERT(in.q_starts[0] == 0);
        RC_ASSERT(in.q_starts[sequences] == step.tokens);
        for (std::int64_t i = 0; i < sequences; ++i) {
            const int queries = in.q_starts[i + 1] - in.q_starts[i];
            RC_ASSERT((i < sequences - step.prompts ? queries == 1 : queries > 1));
            RC_ASSERT(queries <= step.longest);
        }
        RC_ASSERT(*std::max_element(in.kv_lengths, in.kv_lengths + sequences) == step.kv_len);
        std::size_t draw = 0;
        for (const StepPart& part : some.parts) {
            const int* const first = std::find(in.ids, in.ids + step.tokens, part.tokens.front());
            const auto row = first - in.ids;
            RC_ASSERT(row + std::ssize(part.tokens) <= step.tokens);
            for (std::size_t i = 0; i < part.tokens.size(); ++i) {
                const auto at = row + static_cast<std::ptrdiff_t>(i);
                const int position = part.begin + static_cast<int>(i);
                RC_ASSERT(in.ids[at] == part.tokens[i]);
                RC_ASSERT(in.positions[at] == position);
                RC_ASSERT(in.slots[at] ==
                          part.pages[static_cast<std::size_t>(position / page_size)] * page_size +
                              position % page_size);
            }
            const auto sequence =
                std::upper_bound(in.q_starts, in.q_starts + sequences, row) - in.q_starts - 1;
            RC_ASSERT(in.kv_lengths[sequence] == part.begin + static_cast<int>(part.tokens.size()));
            RC_ASSERT(std::ranges::equal(
                part.pages, std::span(in.pages + sequence * inputs.pages_a_sequence(), part.pages.size())));
            if (part.samples) RC_ASSERT(in.last_rows[draw++] == row + std::ssize(part.tokens) - 1);
        }
    }));
}

TEST_CASE("rows that fill a step up to its graph's size are those of nobody") {
    const test::FakeMachine fakes;
    const Gpu gpu(0);
    StepInputs inputs(gpu, 8, 8, 8);
    const StepInputs::Arrays& in = inputs.host();
    std::fill(in.kv_lengths, in.kv_lengths + 8, 77);
    std::fill(in.temperature, in.temperature + 8, 1.0F);
    Parts some;
    for (const int begin : {0, 20, 7}) some.add(1, begin, true);
    inputs.fill_one_each(some.parts, 4);
    CHECK(std::vector(in.kv_lengths, in.kv_lengths + 5) == std::vector{1, 21, 8, 0, 77});
    CHECK(std::vector(in.positions, in.positions + 4) == std::vector{0, 20, 7, 0});
    CHECK(in.temperature[3] == 0);  // draws no number of its own
}

TEST_CASE("tokens that a step waits for come in their places, whoever drew them in the step before") {
    const test::FakeMachine fakes;
    const Gpu gpu(0);
    StepInputs inputs(gpu, 64, 8, 8);
    Parts some;
    for (const int tokens : {3, 1, 5, 1}) some.add(tokens, 20, tokens != 5);
    some.parts[0].awaited = 2;  // one that gave way, and starts again: its last token is new
    some.parts[3].awaited = 0;
    static_cast<void>(inputs.fill(some.parts, page_size));
    CHECK_FALSE(inputs.awaits_singles());
    inputs.fill_awaited(std::vector{700, 800, 900});
    const StepInputs::Arrays& in = inputs.host();
    CHECK(std::vector(in.ids, in.ids + 10) == std::vector{4, 700, 1, 2, 900, 5, 6, 7, 8, 9});
    CHECK(std::vector(in.last_rows, in.last_rows + 3) == std::vector{4, 0, 1});
    Parts singles;
    for (int i = 0; i < 3; ++i) singles.add(1, i, true);
    singles.parts[1].awaited = 1;
    inputs.fill_one_each(singles.parts, 4);
    inputs.fill_awaited(std::vector{700, 800});
    CHECK(std::vector(in.ids, in.ids + 4) == std::vector{1, 800, 3, 0});
    CHECK_FALSE(inputs.awaits_singles());
}

TEST_CASE("where all parts of one token wait, and no others, it is written which token each waits for") {
    const test::FakeMachine fakes;
    const Gpu gpu(0);
    StepInputs inputs(gpu, 64, 8, 8);
    Parts some;
    for (const int tokens : {1, 5, 1, 3}) some.add(tokens, 20, tokens != 5);
    some.parts[0].awaited = 4;
    some.parts[2].awaited = 1;
    static_cast<void>(inputs.fill(some.parts, page_size));
    const StepInputs::Arrays& in = inputs.host();
    CHECK(inputs.awaits_singles());
    CHECK(std::vector(in.awaited, in.awaited + 2) == std::vector{4, 1});
    Parts singles;
    for (const int awaited : {2, 0}) {
        singles.add(1, 20, true);
        singles.parts.back().awaited = awaited;
    }
    inputs.fill_one_each(singles.parts, 4);
    CHECK(inputs.awaits_singles());
    CHECK(std::vector(in.awaited, in.awaited + 4) == std::vector{2, 0, 0, 0});  // nobody's: any token will do
}

TEST_CASE("a step goes to the block that it is sent to, and leaves the others") {
    const test::FakeMachine fakes;
    const Gpu gpu(0);
    StepInputs inputs(gpu, 8, 8, 8, 2);
    Parts some;
    some.add(1, 3, true);
    some.add(1, 4, true);
    const auto send = [&](const StepPart& part, std::size_t block) {
        inputs.begin();
        inputs.fill_one_each({&part, 1}, 1);
        inputs.send_ahead(1, block);
        CHECK(gpu.has_copied());
    };
    send(some.parts[0], 0);
    send(some.parts[1], 1);
    CHECK(*inputs.device(0).positions == 3);  // the fake GPU's memory is the host's
    CHECK(*inputs.device(1).positions == 4);
    send(some.parts[1], 0);
    CHECK(*inputs.device(0).positions == 4);
}

TEST_CASE("a step is written beside the one that was sent last") {
    const test::FakeMachine fakes;
    const Gpu gpu(0);
    StepInputs inputs(gpu, 8, 8, 8);
    Parts some;
    for (const int begin : {3, 4}) some.add(1, begin, true);
    inputs.fill_one_each(some.parts, 2);
    const StepInputs::Arrays sent = inputs.host();
    inputs.send(2);
    inputs.begin();
    inputs.fill_one_each(std::span(some.parts).last(1), 1);
    CHECK((sent.positions[0] == 3 && sent.positions[1] == 4));
    CHECK(inputs.host().positions[0] == 4);
    inputs.send(1);
    inputs.begin();
    CHECK(inputs.host().positions == sent.positions);
}
