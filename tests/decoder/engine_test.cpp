// Starts threads: the thread sanitizer runs this file, too.
#include "decoder/engine/engine.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <limits>
#include <mutex>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "decoder/engine/step_times.h"
#include "decoder/error.h"
#include "tests/decoder/coded_model.h"
#include "tests/decoder/heard.h"
#include "tests/decoder/small_model.h"
#include "tests/support/fake_machine.h"
#include "tests/support/sanitized.h"

using namespace hone;
using namespace hone::decoder;
using hone::test::Heard;
using hone::test::small_options;

TEST_CASE("requests of many lengths come to their ends, side by side, and give their pages back") {
    const test::FakeMachine machine;
    RunningModel model(small_options());
    CHECK(model.capacity().pages == 4 * 256 / 16);
    Engine engine(model);
    std::vector<Heard> heard(9);
    for (int i = 0; i < 9; ++i) {
        const TextRequest request{.prompt = std::vector<int>(static_cast<std::size_t>(1 + 23 * i), i),
                                  .max_new_tokens = 1 + 5 * i};
        engine.submit(request, heard[static_cast<std::size_t>(i)].listener());
    }
    for (int i = 0; i < 9; ++i) {
        const std::vector<NewToken> tokens = heard[static_cast<std::size_t>(i)].tokens();
        CHECK(static_cast<int>(tokens.size()) == 1 + 5 * i);
        CHECK(tokens.back().end == NewToken::End::length);
    }
    CHECK(engine.state().pages_used == 0);
    CHECK(engine.state().new_tokens == 9 + 5 * 36);
    CHECK(engine.state().counters.shared_tokens == 0);
    CHECK(model.runtime().counters().failed_launches == 0);
}

TEST_CASE("steps are measured before a model serves, and prompts beside texts are held within the stretch") {
    const test::FakeMachine machine;
    RunningModel model(small_options());
    const std::uint64_t compiles = model.runtime().counters().compiles;
    const std::vector<StepTime> times = measured_steps(model, 1.5);
    const auto some = [&](auto holds) { return std::ranges::any_of(times, holds); };
    CHECK(some([](const StepTime& t) { return t.load == StepLoad{.sequences = 4, .keys = 4 * 256}; }));
    CHECK(some([](const StepTime& t) { return t.load == StepLoad{.prompt_tokens = 64}; }));
    CHECK(some([](const StepTime& t) { return t.load.prompt_tokens > 0 && t.load.prompt_begin > 0; }));
    CHECK(some([](const StepTime& t) { return t.load.is_mixed(); }));
    CHECK(std::ranges::all_of(times, [](const StepTime& t) { return t.s > 0; }));
    Engine engine(model, {.step_stretch = 1.5, .step_times = times});
    Heard first;
    Heard second;
    engine.submit({.prompt = std::vector<int>(9, 7), .max_new_tokens = 200}, first.listener());
    engine.submit({.prompt = std::vector<int>(250, 8), .max_new_tokens = 2}, second.listener());
    CHECK(second.tokens().size() == 2);
    CHECK(first.tokens().size() == 200);
    const EngineState state = engine.state();
    CHECK(state.times.steps_s > state.times.mixed_steps_s);
    CHECK((state.times.mixed_steps_s > 0) == (state.counters.mixed_steps > 0));
    CHECK((state.times.expected_mixed_s > 0) == (state.counters.mixed_steps > 0));
    CHECK(model.runtime().counters().compiles == compiles);
    CHECK(model.runtime().counters().failed_launches == 0);
}

TEST_CASE("after the start nothing is compiled and no memory is made") {
    const test::FakeMachine machine;
    RunningModel model(small_options());
    const int memory = machine.live("memory");
    const int graphs = machine.live("graph_exec");
    const std::uint64_t compiles = model.runtime().counters().compiles;
    {
        Engine engine(model);
        Heard heard;
        engine.submit({.prompt = std::vector<int>(100, 7), .max_new_tokens = 40}, heard.listener());
        CHECK(heard.tokens().size() == 40);
    }
    CHECK(machine.live("memory") == memory);
    CHECK(machine.live("graph_exec") == graphs);
    CHECK(model.runtime().counters().compiles == compiles);
}

TEST_CASE(
    "long contexts have few graphs more than short ones, and each length the graph that has room for it") {
    const auto graphs = [](std::int64_t context) {
        const test::FakeMachine machine;
        ModelOptions options = small_options();
        options.made_up->max_position_embeddings = context;
        options.max_context = context;
        options.max_sequences = 1;
        const RunningModel model(options);
        return machine.live("graph_exec");
    };
    constexpr int kinds = 2 * 3;  // samplers and turns
    CHECK(graphs(1024) == 1 * kinds);
    CHECK(graphs(2304) == 2 * kinds);
    CHECK(graphs(16384) == 3 * kinds);
    CHECK(graphs(16400) == 4 * kinds);
    CHECK(graphs(131072) == 5 * kinds);
    CHECK(graph_length(1) == 1024);
    CHECK(graph_length(1024) == 1024);
    CHECK(graph_length(1025) == 4096);
    CHECK(graph_length(16385) == 65536);
}

TEST_CASE("beside a prompt single tokens are computed by decode's kernels, and no launch finds nothing") {
    const test::FakeMachine machine;
    RunningModel model(small_options());
    const std::vector<int> tokens{1, 2, 3, 4, 5, 6};
    const std::vector<std::vector<int>> pages{{0}, {1}, {2}, {3}};
    const auto part = [&](std::size_t which, int begin, std::size_t count, bool samples) {
        return StepPart{.request = which,
                        .begin = begin,
                        .tokens = std::span(tokens).first(count),
                        .pages = pages[which],
                        .samples = samples};
    };
    const auto launched = [&](const std::vector<StepPart>& parts) {
        const int from = machine.launch_count();
        std::vector<Draw> draws(static_cast<std::size_t>(
            std::ranges::count_if(parts, [](const StepPart& one) { return one.samples; })));
        model.forward().start(parts, draws);
        CHECK(model.forward().finish().size() == draws.size());
        return std::pair{test::launches_of(machine, from, "attention_decode") > 0,
                         test::launches_of(machine, from, "attention_prefill") > 0};
    };
    CHECK(launched({part(0, 0, 6, true), part(1, 9, 1, true), part(2, 0, 3, false), part(3, 4, 1, true)}) ==
          std::pair{true, true});
    CHECK(launched({part(0, 0, 5, true), part(1, 0, 5, false)}) == std::pair{false, true});
    CHECK(launched({part(0, 0, 6, true), part(1, 0, 5, false)}) == std::pair{false, true});
    CHECK(launched({part(1, 9, 1, true), part(3, 4, 1, false)}) == std::pair{true, false});
    CHECK(model.runtime().counters().failed_launches == 0);
}

TEST_CASE("a cache of codes has half the bytes of one of 16-bit numbers, for prompts and for single tokens") {
    const test::FakeMachine machine;
    ModelOptions options = small_options();
    const RunningModel numbers(options);
    options.kv_dtype = KvDtype::fp8;
    RunningModel codes(options);
    const auto bytes_of_keys = [](const RunningModel& model) {
        return model.floor_bytes(1, 100) - model.floor_bytes(1, 0);
    };
    CHECK(bytes_of_keys(numbers) == 2 * bytes_of_keys(codes));
    CHECK(codes.capacity().pages == numbers.capacity().pages);
    Engine engine(codes);
    std::vector<Heard> heard(3);
    for (int i = 0; i < 3; ++i) {
        engine.submit(
            {.prompt = std::vector<int>(static_cast<std::size_t>(1 + 40 * i), i), .max_new_tokens = 20},
            heard[static_cast<std::size_t>(i)].listener());
    }
    for (Heard& one : heard) CHECK(one.tokens().size() == 20);
    CHECK(codes.runtime().counters().failed_launches == 0);
}

TEST_CASE("what does not go is refused by its name") {
    const test::FakeMachine machine;
    const auto refusal = [](const ModelOptions& options) {
        try {
            const RunningModel model(options);
        } catch (const DecoderError& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    ModelOptions options = small_options();
    options.max_context = 513;
    CHECK(refusal(options) == "context is 513; allowed: 1 to 512, as many positions as the model knows");
    options.max_context = -1;
    CHECK(refusal(options) == "context is -1; allowed: from 0, as much as is usual");
    for (const double share : {0.0, -1.0, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
        options = small_options();
        options.memory_share = share;
        CHECK(refusal(options).find("share of the memory is ") == 0);
    }
    options = small_options();
    options.max_sequences = 1025;
    CHECK(refusal(options).find("sequences is 1025") == 0);
    options = small_options();
    options.made_up->architecture = "bloom";
    CHECK(refusal(options).find("small: model_type bloom is not run yet; those that are: cohere, cohere2, "
                                "falcon, gemma, gemma2, gemma3_text") == 0);
    options = small_options();
    options.made_up->experts = 8;
    CHECK(refusal(options) == "small: not run yet: a mixture of experts");

    RunningModel model(small_options());
    Engine engine(model);
    Heard heard;
    CHECK_THROWS_WITH_AS(engine.submit({.prompt = {1, 1000}}, heard.listener()),
                         "the prompt has the token 1000; the model knows 0 to 999", DecoderError);
    CHECK_THROWS_AS(engine.submit({.prompt = {}}, heard.listener()), DecoderError);
    CHECK_THROWS_AS(
        engine.submit({.prompt = std::vector<int>(256, 1), .max_new_tokens = 100}, heard.listener()),
        DecoderError);
}

TEST_CASE("a model that does not fit says what it takes") {
    const test::FakeMachine machine("device:memory=3000000");
    try {
        const RunningModel model(small_options());
        FAIL("it fits");
    } catch (const DecoderError& error) {
        const std::string what = error.what();
        CHECK(what.find("the weights take 0.00 GB, and the GPU has 0.00 GB free") == 0);
        CHECK(what.find("--format w4a16") != std::string::npos);
    }
}

TEST_CASE("a request that is cancelled hears nothing more") {
    const test::FakeMachine machine;
    RunningModel model(small_options());
    Engine engine(model);
    Heard left;
    Heard stays;
    const RequestId id = engine.submit({.prompt = {1, 2, 3}, .max_new_tokens = 200}, left.listener());
    engine.submit({.prompt = {4, 5}, .max_new_tokens = 20}, stays.listener());
    engine.cancel(id);
    CHECK(stays.tokens().size() == 20);
    CHECK(engine.state().running == 0);
    CHECK(engine.state().pages_used == 0);
}

TEST_CASE("a text's first token is heard before the next step begins, the others while it is computed") {
    const test::FakeMachine machine;
    RunningModel model(small_options());
    Engine engine(model);
    std::vector<int> launches;
    std::promise<void> ended;
    engine.submit({.prompt = {1, 2, 3}, .max_new_tokens = 4},
                  {.on_token =
                       [&](const NewToken& token) {
                           CHECK(token.is_first == launches.empty());
                           launches.push_back(machine.launch_count());
                           if (token.end != NewToken::End::none) ended.set_value();
                       },
                   .on_failure = [&](const std::string&) { ended.set_value(); }});
    ended.get_future().wait();
    REQUIRE(launches.size() == 4);
    CHECK(launches[1] - launches[0] > launches[2] - launches[1]);  // two steps began in between
    CHECK(launches[3] == launches[2]);
}

namespace {

/// Of so many texts at a time that steps are prepared while the one before is computed.
ModelOptions options_of_many() {
    ModelOptions options = small_options();
    options.max_sequences = 16;
    return options;
}

/// Tokens of each step come so much later than it was launched.
std::string late_by(int us) { return "launch:match=sample_row:late_us=" + std::to_string(us); }

}  // namespace

TEST_CASE(
    "steps of many texts are prepared while the one before is computed, and texts are as long as wanted") {
    const test::FakeMachine machine(late_by(2000));
    RunningModel model(options_of_many());
    const int memory = machine.live("memory");
    Engine engine(model);
    std::vector<Heard> heard(24);
    for (int i = 0; i < 24; ++i) {
        engine.submit(
            {.prompt = std::vector<int>(static_cast<std::size_t>(1 + 7 * i), i),
             .max_new_tokens = 5 + i,
             .end_ids = i % 4 == 0 ? std::vector{0} : std::vector<int>()},  // the fake GPU's only token
            heard[static_cast<std::size_t>(i)].listener());
    }
    for (int i = 0; i < 24; ++i) {
        CAPTURE(i);
        const std::vector<NewToken> tokens = heard[static_cast<std::size_t>(i)].tokens();
        CHECK(static_cast<int>(tokens.size()) == (i % 4 == 0 ? 1 : 5 + i));
        CHECK(tokens.back().end == (i % 4 == 0 ? NewToken::End::end_id : NewToken::End::length));
        CHECK(std::ranges::count_if(tokens, &NewToken::is_first) == 1);
    }
    const EngineState state = engine.state();
    CHECK(state.times.prepared_steps >= 5);
    CHECK(state.times.prepared_steps < state.counters.steps);
    CHECK(state.new_tokens == 6 + 18 * 5 + (24 * 23 / 2 - 4 * (5 * 6 / 2)));
    CHECK(state.pages_used == 0);
    CHECK(machine.live("memory") == memory);
    CHECK(model.runtime().counters().failed_launches == 0);
}

namespace {

/// Has all of them computed at a time, and looks at each token.
void check_texts(Engine& engine, const std::vector<TextRequest>& requests) {
    std::vector<Heard> heard(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) engine.submit(requests[i], heard[i].listener());
    for (std::size_t i = 0; i < requests.size(); ++i) {
        CAPTURE(i);
        CHECK(heard[i].ids() == test::seeded_tokens(requests[i]));
    }
}

}  // namespace

TEST_CASE("tokens follow each other also where the next step is launched before the host has them") {
    const test::FakeMachine machine(late_by(2000) + ";launch:match=sample_row:seeded");
    RunningModel model(small_options());
    Engine engine(model);
    const auto texts = [&](int count, int end) {
        std::vector<TextRequest> requests;
        for (int i = 0; i < count; ++i) {
            requests.push_back(
                {.prompt = {1, 2, i}, .max_new_tokens = 60, .wishes = {.seed = i}, .end_ids = {end}});
        }
        check_texts(engine, requests);
    };
    texts(1, -1);
    const std::uint64_t of_one = engine.state().times.ahead_steps;
    CHECK(of_one > 10);
    texts(1, 7 * 30);  // ends where the next step is under way, for nobody
    texts(3, -1);
    CHECK(engine.state().times.ahead_steps > of_one + 20);
    CHECK(engine.state().pages_used == 0);
    CHECK(model.runtime().counters().failed_launches == 0);
}

TEST_CASE("steps of many texts whose rows move are launched ahead, and tokens follow each other") {
    const test::FakeMachine machine(late_by(test::is_sanitized ? 20'000 : 2'000) +
                                    ";launch:match=sample_row:seeded");
    ModelOptions options = options_of_many();
    options.max_sequences = 128;
    options.max_step_tokens = 256;
    RunningModel model(options);
    Engine engine(model);
    std::vector<TextRequest> requests;
    for (int i = 0; i < 150; ++i) {
        requests.push_back({.prompt = std::vector<int>(static_cast<std::size_t>(1 + 5 * i % 60), i),
                            .max_new_tokens = 20 + 7 * i % 31,
                            .wishes = {.seed = i}});
    }
    check_texts(engine, requests);
    CHECK(engine.state().pages_used == 0);
    CHECK(engine.state().times.ahead_steps > 20);
    CHECK(model.runtime().counters().failed_launches == 0);
}

TEST_CASE("steps with prompts are launched ahead, and tokens follow each other") {
    const test::FakeMachine machine(late_by(test::is_sanitized ? 30'000 : 5'000) +
                                    ";launch:match=sample_row:seeded");
    RunningModel model(options_of_many());
    Engine engine(model);
    std::vector<TextRequest> requests;
    for (int i = 0; i < 40; ++i) {
        requests.push_back({.prompt = std::vector<int>(i < 10 ? 3 : 200, i),
                            .max_new_tokens = i < 10 ? 60 : 1,
                            .wishes = {.seed = i}});
    }
    check_texts(engine, requests);
    CHECK(engine.state().pages_used == 0);
    const EngineState state = engine.state();
    CHECK(state.times.ahead_steps > state.counters.steps - state.counters.mixed_steps);
    CHECK(model.runtime().counters().failed_launches == 0);
}

namespace {

/// The step that a text has its first token of which comes while the sixth of so many texts is computed.
/// That takes longer than was expected, so that the next one has been prepared long before its end.
/// `rows_move`: the first of them ends with it.
std::uint64_t first_step_of_another(int texts, bool rows_move) {
    const test::FakeMachine machine(late_by(2000) + ";" + late_by(400'000) + ":after=6:times=1");
    ModelOptions options = options_of_many();
    options.max_sequences = 96;
    options.max_step_tokens = 256;
    RunningModel model(options);
    Engine engine(model);
    std::promise<void> five;
    int heard_of_first = 0;
    for (int i = 0; i < texts; ++i) {
        Listener listener{.on_token = [](const NewToken&) {}, .on_failure = [](const std::string&) {}};
        if (i == 0) {
            listener.on_token = [&](const NewToken&) {
                if (++heard_of_first == 5) five.set_value();
            };
        }
        engine.submit({.prompt = {1, i}, .max_new_tokens = i == 0 && rows_move ? 6 : 12}, listener);
    }
    five.get_future().wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::promise<std::uint64_t> steps;  // that have ended when it hears of its second token
    engine.submit({.prompt = {2, 2}, .max_new_tokens = 2},
                  {.on_token =
                       [&](const NewToken& token) {
                           if (!token.is_first) steps.set_value(engine.state().counters.steps);
                       },
                   .on_failure = [](const std::string&) {}});
    return steps.get_future().get() - 1;
}

}  // namespace

TEST_CASE("who comes when the next step has been prepared has a part in it, where that is not launched") {
    CHECK(first_step_of_another(10, true) == 7);
    for (const int texts : {9, 66}) {
        CAPTURE(texts);
        CHECK(first_step_of_another(texts, false) == 8);  // the seventh is launched
    }
    CHECK(first_step_of_another(67, true) == 8);  // also where rows move, in steps of so many
}

TEST_CASE("requests that are cancelled at any time hear nothing more, and others all that is theirs") {
    const test::FakeMachine machine(late_by(300));
    RunningModel model(options_of_many());
    Engine engine(model);
    std::vector<Heard> stay(8);
    for (Heard& one : stay) engine.submit({.prompt = {1, 2, 3}, .max_new_tokens = 120}, one.listener());
    for (int round = 0; round < 40; ++round) {
        std::atomic<int> heard = 0;
        std::vector<RequestId> leave;
        for (int i = 0; i < 8; ++i) {
            leave.push_back(engine.submit(
                {.prompt = {4, round, i}, .max_new_tokens = 200},
                {.on_token = [&](const NewToken&) { ++heard; }, .on_failure = [](const std::string&) {}}));
        }
        std::this_thread::sleep_for(std::chrono::microseconds(137 * round % 2000));
        for (const RequestId id : leave) engine.cancel(id);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));  // what is being handed out
        const int before = heard;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        CHECK(heard == before);
    }
    for (Heard& one : stay) CHECK(one.tokens().size() == 120);
    CHECK(engine.state().running == 0);
    CHECK(engine.state().pages_used == 0);
    CHECK(engine.state().times.prepared_steps > 0);
}

TEST_CASE(
    "texts are as their seeds and counters say, whoever comes, ends, leaves and gives way beside them") {
    std::uint64_t prepared = 0;
    std::uint64_t ahead = 0;
    std::uint64_t preemptions = 0;
    for (unsigned round = 0; round < 6; ++round) {
        std::minstd_rand random(round + 1);
        const auto between = [&](int least, int most) {
            return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
        };
        const test::FakeMachine machine(late_by(400) + ";launch:match=sample_row:seeded");
        ModelOptions options = options_of_many();
        if (round % 2 == 0) options.memory_share = 1e-5;  // pages run out
        RunningModel model(options);
        Engine engine(model);
        std::vector<Heard> heard(60);
        std::vector<std::vector<int>> expected(heard.size());
        for (int i = 0; i < 60; ++i) {
            const TextRequest request{
                .prompt = std::vector<int>(static_cast<std::size_t>(between(1, 100)), i % 3),
                .max_new_tokens = between(1, 60),
                .wishes = {.seed = i},
                .end_ids = i % 3 == 0 ? std::vector{test::seeded_token(i, 20)} : std::vector<int>()};
            expected[static_cast<std::size_t>(i)] = test::seeded_tokens(request);
            const RequestId id = engine.submit(request, heard[static_cast<std::size_t>(i)].listener());
            const RequestId leaves =
                engine.submit({.prompt = {i}, .max_new_tokens = 100}, {[](auto&) {}, [](auto&) {}});
            std::this_thread::sleep_for(std::chrono::microseconds(between(0, 3) * 300));
            engine.cancel(leaves);
            CHECK(leaves == id + 1);
        }
        for (std::size_t i = 0; i < heard.size(); ++i) {
            CAPTURE(i);
            CHECK(heard[i].ids() == expected[i]);
        }
        prepared += engine.state().times.prepared_steps;
        ahead += engine.state().times.ahead_steps;
        preemptions += engine.state().counters.preemptions;
        CHECK(engine.state().pages_used == 0);
    }
    CHECK(prepared > 50);
    CHECK(ahead > 5);
    CHECK(ahead < prepared);
    CHECK(preemptions > 0);
}

TEST_CASE("an engine that goes while its steps follow each other leaves a model that another one serves") {
    const test::FakeMachine machine(late_by(1000));
    RunningModel model(options_of_many());
    std::vector<Heard> heard(8);
    {
        Engine engine(model);
        for (Heard& one : heard) engine.submit({.prompt = {1}, .max_new_tokens = 200}, one.listener());
        while (engine.state().times.prepared_steps < 3) std::this_thread::yield();
    }
    Engine engine(model);
    Heard whole;
    engine.submit({.prompt = {1, 2}, .max_new_tokens = 20}, whole.listener());
    CHECK(whole.tokens().size() == 20);
}

TEST_CASE("tokens of a step are heard also where the next one, which was prepared, cannot be launched") {
    const test::FakeMachine machine(late_by(5000) + ";launch:match=sample_row:fail=1:after=20");
    RunningModel model(options_of_many());
    Engine engine(model);
    std::vector<Heard> heard(8);
    for (Heard& one : heard) engine.submit({.prompt = {1, 2, 3}, .max_new_tokens = 50}, one.listener());
    for (Heard& one : heard) CHECK(one.failure().find("CUDA_ERROR_INVALID_VALUE") != std::string::npos);
    CHECK(heard.front().tokens().size() == 19);
    CHECK(engine.state().times.prepared_steps > 0);
}

TEST_CASE("tokens of a step are heard also where the next step fails") {
    const test::FakeMachine machine(
        "launch:match=sample:fail=700:after=4");  // found when the step is waited for
    RunningModel model(small_options());
    Engine engine(model);
    Heard heard;
    engine.submit({.prompt = {1, 2, 3}, .max_new_tokens = 50}, heard.listener());
    CHECK(heard.failure().find("700") != std::string::npos);
    CHECK(heard.tokens().size() == 3);
    CHECK_THROWS_AS(engine.submit({.prompt = {1}}, heard.listener()), EngineFailure);
}

TEST_CASE("a GPU that hangs is waited for as long as a step may take, and what stands there is left") {
    const test::FakeMachine machine("launch:match=sample_row:hang:after=4");
    {
        ModelOptions options = small_options();
        options.longest_step = std::chrono::milliseconds(300);
        RunningModel model(options);
        Engine engine(model);
        Heard heard;
        engine.submit({.prompt = {1, 2, 3}, .max_new_tokens = 50}, heard.listener());
        CHECK(heard.failure().find("the GPU has not ended a step within 0.3 s: it hangs") !=
              std::string::npos);
        CHECK(heard.tokens().size() == 3);
        CHECK_THROWS_AS(engine.submit({.prompt = {1}}, heard.listener()), EngineFailure);
    }
    CHECK(machine.live("memory") > 0);
}

TEST_CASE("a GPU that hangs while weights are brought to it is waited for no longer, and left") {
    std::optional<checkpoints::QuantizeRequest> quantize;
    for (const char* script :
         {"free:waits;copy:hang:after=3", "free:waits;launch:match=quantize:hang:after=3"}) {
        CAPTURE(script);
        const test::FakeMachine machine(script);
        ModelOptions options = small_options();
        options.longest_step = std::chrono::milliseconds(300);
        options.quantize = std::exchange(quantize, checkpoints::QuantizeRequest{.format = QuantFormat::fp8});
        CHECK_THROWS_WITH_AS(RunningModel{options},
                             doctest::Contains("has not taken a piece of the weights within 0.3 s: it hangs"),
                             EngineFailure);
        CHECK(machine.live("memory") > 0);
    }
}

TEST_CASE("a GPU that hangs while its steps are measured is waited for no longer, and left") {
    const test::FakeMachine machine("launch:match=sample_row:hang:after=9");
    {
        ModelOptions options = small_options();
        options.longest_step = std::chrono::milliseconds(300);
        RunningModel model(options);
        CHECK_THROWS_WITH_AS((void)measured_steps(model, 1.5),
                             doctest::Contains("has not ended a step within 0.3 s: it hangs"), EngineFailure);
    }
    CHECK(machine.live("memory") > 0);
}

TEST_CASE("what the GPU has ended is no hang, however late the process looks") {
    const test::FakeMachine machine;
    ModelOptions options = small_options();
    options.longest_step =
        std::chrono::milliseconds(0);  // as after a stop that was longer than a step may be
    RunningModel model(options);
    Engine engine(model);
    Heard heard;
    // More than a step takes: the first steps draw no token, and only the driver says that they have ended.
    engine.submit({.prompt = std::vector<int>(200, 1), .max_new_tokens = 3}, heard.listener());
    CHECK(heard.failure().empty());
    CHECK(heard.tokens().size() == 3);
}

TEST_CASE("a step that ends without a token, or with one that there is not, fails by its name") {
    for (const auto& [script, what] :
         {std::pair{"launch:match=sample_row:idle:after=3", "wrote no token for row 0 of 1"},
          std::pair{"launch:match=sample_row:idle:write=7:value=1000000:after=3",
                    "wrote the token 1000000 for row 0 of 1; allowed: 0 to "}}) {
        CAPTURE(script);
        const test::FakeMachine machine(script);
        RunningModel model(small_options());
        Engine engine(model);
        Heard heard;
        engine.submit({.prompt = {1, 2, 3}, .max_new_tokens = 50}, heard.listener());
        CHECK(heard.failure().find(what) != std::string::npos);
        CHECK(heard.tokens().size() == 2);
        CHECK_THROWS_AS(engine.submit({.prompt = {1}}, heard.listener()), EngineFailure);
    }
}

TEST_CASE("a listener that cannot take a token leaves nobody waiting") {
    const test::FakeMachine machine;
    RunningModel model(small_options());
    Engine engine(model);
    std::mutex mutex;
    std::condition_variable ended;
    int waiting = 2;
    const auto end = [&](const std::string&) {
        const std::lock_guard lock(mutex);
        --waiting;
        ended.notify_all();
    };
    const auto submit = [&](int tokens, std::function<void(const NewToken&)> on_token) {
        engine.submit({.prompt = {1, 2}, .max_new_tokens = tokens},
                      {.on_token = std::move(on_token), .on_failure = end});
    };
    std::promise<void> both;
    submit(1, [&](const NewToken&) {
        both.get_future().wait();
        throw std::bad_alloc();
    });
    submit(200, [](const NewToken&) {});
    both.set_value();
    std::unique_lock lock(mutex);
    CHECK(ended.wait_for(lock, std::chrono::seconds(20), [&] { return waiting == 0; }));
}
