// Starts threads: the thread sanitizer runs this file, too.
#include "decoder/engine/growing_text.h"

#include <doctest/doctest.h>

#include <future>

#include "tests/decoder/scripted_engine.h"
#include "tests/decoder/support.h"

using namespace hone;
using namespace hone::decoder;
using namespace std::chrono_literals;

namespace {

using End = TextPiece::End;

Tokenizer tokenizer() { return Tokenizer::load(test::data_folder("llama3")); }

/// All of it in one piece.
TextPiece whole(GrowingText& text) {
    TextPiece all;
    while (all.end == End::none) {
        const TextPiece piece = text.next(1s);
        all.text += piece.text;
        all.ids.insert(all.ids.end(), piece.ids.begin(), piece.ids.end());
        all.end = piece.end;
    }
    return all;
}

}  // namespace

TEST_CASE("a text comes in pieces to its end, and says that end again") {
    const Tokenizer words = tokenizer();
    const std::vector<int> script = words.encode("Once upon a time", {.add_special_tokens = false});
    test::ScriptedEngine engine(script, 3);
    GrowingText text(engine, words, {.prompt = {1}, .max_new_tokens = 50, .end_ids = {3}}, {});
    const TextPiece all = whole(text);
    CHECK(all.text == "Once upon a time");
    CHECK(all.ids.size() == script.size() + 1);
    CHECK(all.ids.back() == 3);
    CHECK(all.end == End::end_id);
    const TextPiece again = text.next(0ms);
    CHECK(again.end == End::end_id);
    CHECK(again.text.empty());
    CHECK(again.ids.empty());
}

TEST_CASE("a text that may be as long as it likes ends by its length") {
    const Tokenizer words = tokenizer();
    test::ScriptedEngine engine({0});
    GrowingText text(engine, words, {.prompt = {1}, .max_new_tokens = 7}, {});
    const TextPiece all = whole(text);
    CHECK(all.ids.size() == 7);
    CHECK(all.end == End::length);
}

TEST_CASE("a text ends before its stop, and the engine computes no more of it") {
    const Tokenizer words = tokenizer();
    test::ScriptedEngine engine(words.encode("one two three ", {.add_special_tokens = false}));
    GrowingText text(engine, words, {.prompt = {1}, .max_new_tokens = 100'000}, {"two thr", "never"});
    const TextPiece all = whole(text);
    CHECK(all.text == "one ");
    CHECK(all.end == End::stop);
    CHECK(engine.cancelled() == 1);
}

TEST_CASE("without tokens a text waits no longer than it may") {
    const Tokenizer words = tokenizer();
    test::ScriptedEngine engine({0});
    engine.hold(true);
    GrowingText text(engine, words, {.prompt = {1}, .max_new_tokens = 2}, {});
    CHECK(text.next(0ms).end == End::none);
    const TextPiece piece = text.next(20ms);
    CHECK(piece.end == End::none);
    CHECK(piece.ids.empty());
    engine.hold(false);
    CHECK(whole(text).ids.size() == 2);
}

TEST_CASE("cancelling wakes who waits") {
    const Tokenizer words = tokenizer();
    test::ScriptedEngine engine({0});
    engine.hold(true);
    GrowingText text(engine, words, {.prompt = {1}, .max_new_tokens = 2}, {});
    auto waiting = std::async(std::launch::async, [&] { return text.next(1h); });
    text.cancel();
    CHECK(waiting.get().end == End::cancelled);
    CHECK(text.next(1h).end == End::cancelled);
    CHECK(engine.cancelled() == 1);
}

TEST_CASE("a failed GPU is an error for texts that wait and for those that come") {
    const Tokenizer words = tokenizer();
    test::ScriptedEngine engine({0});
    engine.hold(true);
    GrowingText text(engine, words, {.prompt = {1}, .max_new_tokens = 2}, {});
    engine.fail("the GPU fell off the bus");
    CHECK_THROWS_WITH_AS(static_cast<void>(text.next(1s)), "the GPU fell off the bus", EngineFailure);
    CHECK(text.next(1s).end == End::cancelled);
    CHECK_THROWS_AS(GrowingText(engine, words, {.prompt = {1}}, {}), EngineFailure);
}

TEST_CASE("a text that is dropped is computed no further") {
    const Tokenizer words = tokenizer();
    test::ScriptedEngine engine({0});
    { const GrowingText text(engine, words, {.prompt = {1}, .max_new_tokens = 100'000}, {}); }
    CHECK(engine.cancelled() == 1);
}

TEST_CASE(
    "log probabilities come with their tokens, those of the prompt with the first, none behind a stop") {
    const Tokenizer words = tokenizer();
    const std::vector<int> script = words.encode("Once upon a time", {.add_special_tokens = false});
    test::ScriptedEngine engine(script, 3);
    const TextRequest request{
        .prompt = {1, 5, 6}, .max_new_tokens = 50, .end_ids = {3}, .likeliest = 2, .scores_prompt = true};
    for (const char* stop : {"", "upon"}) {
        GrowingText text(engine, words, request, {stop});
        End end = End::none;
        std::size_t tokens = 0;
        while (end == End::none) {
            const TextPiece piece = text.next(1s);
            REQUIRE(piece.chances.size() == piece.ids.size());
            for (std::size_t i = 0; i < piece.ids.size(); ++i) {
                CHECK(piece.chances[i].log_probability ==
                      test::ScriptedEngine::chances(piece.ids[i], 2).log_probability);
                CHECK(piece.chances[i].likeliest.size() == 2);
            }
            CHECK(piece.of_prompt.has_value() == (tokens == 0 && !piece.ids.empty()));
            if (piece.of_prompt) CHECK(piece.of_prompt->size() == 2);
            tokens += piece.ids.size();
            end = piece.end;
        }
        CHECK((end == End::stop) == (stop[0] != '\0'));
    }
}
