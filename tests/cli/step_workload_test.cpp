// What the decoder's steps run, as a capture shows it on the fake driver, beside what `hone tune` and `hone
// compile` list for the same model: they know nothing of each other but models/step_operators.h.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "decoder/engine/running_model.h"
#include "kernel_templates/catalog.h"
#include "models/model_document.h"
#include "runtime/dispatch/capture_file.h"
#include "tests/decoder/whole_model.h"
#include "tests/support/fake_machine.h"
#include "tuner/models/workload.h"

using namespace hone;
using namespace hone::decoder;

namespace {

using Texts = std::set<std::string>;

std::string static_words(const Problem& problem) { return to_string(static_part(problem)); }

/// A published model with two layers, one of each kind, and few elements of everything.
models::Model small_model(const std::string& published) {
    std::ifstream file(std::filesystem::path(HONE_SOURCE_DIR) / "tests/tuner/architectures" /
                       (published + ".json"));
    const std::string config = nlohmann::json::parse(file)["config"].dump();
    models::Model model =
        models::model_from(models::ModelDocument::from_json(config, "config.json"), "small");
    model.dtype = Dtype::bf16;
    const bool turns_whole_heads = model.rotary_dim == model.head_dim;
    model.head_dim = 64;
    model.rotary_dim = model.rotary_dim == 0 ? 0 : turns_whole_heads ? 64 : 32;
    model.num_attention_heads = 8;
    model.num_key_value_heads = 2;
    model.hidden_size = 256;
    model.intermediate_size = 512;
    model.vocab_size = 1000;
    model.max_position_embeddings = 512;
    model.num_hidden_layers = 2;
    if (model.experts > 1) model.experts = 4;
    if (model.experts_per_token > 0) model.experts_per_token = 2;
    if (model.expert_width > 0) model.expert_width = 128;
    if (!model.layers.empty()) {
        model.layers.resize(std::min<std::size_t>(model.layers.size(), 2));
        const bool all_alike = model.layers.size() == 1;
        for (models::LayerGroup& group : model.layers) {
            group.count = all_alike ? 2 : 1;
            if (group.kind.window > 0) group.kind.window = 64;
        }
        model.group_of_layer = {0, all_alike ? std::size_t{0} : std::size_t{1}};
    }
    if (model.sliding_window > 0) model.sliding_window = 64;
    return model;
}

/// Steps of a prompt, of a prompt beside a text, and of single tokens of one, two and four sequences, the
/// likeliest and drawn from some; and of one beside a prompt that is launched ahead of its token.
void run_steps(Forward& forward) {
    const std::vector<int> tokens(20, 1);
    const std::vector<int> one(1, 1);
    const std::vector<int> pages[] = {{0, 1}, {2, 3}, {4, 5}, {6, 7}};
    const Draw likeliest;
    const Draw from_some{.wishes = {.temperature = 1, .top_k = 5}, .counter = 1};
    const auto step = [&](const std::vector<int>& first, const std::vector<int>& second, const Draw& draw) {
        const StepPart parts[] = {{.begin = 0, .tokens = first, .pages = pages[0], .samples = true},
                                  {.begin = 0, .tokens = second, .pages = pages[1], .samples = true}};
        const std::size_t count = second.empty() ? 1 : 2;
        forward.start(std::span(parts).first(count), std::vector(count, draw));
        static_cast<void>(forward.finish());
    };
    for (const Draw& draw : {likeliest, from_some}) {
        step(tokens, {}, draw);
        step(tokens, one, draw);
        step(one, {}, draw);
        step(one, one, draw);
    }
    std::vector<StepPart> four;
    for (const std::vector<int>& of_one : pages)
        four.push_back({.begin = 0, .tokens = one, .pages = of_one, .samples = true});
    forward.start(four, std::vector(four.size(), likeliest));
    const StepPart parts[] = {{.begin = 1, .tokens = one, .pages = pages[0], .samples = true, .awaited = 2},
                              {.begin = 0, .tokens = tokens, .pages = pages[1], .samples = true}};
    forward.prepare(parts, std::vector(2, likeliest));
    CHECK(forward.launch_ahead());
    for (int i = 0; i < 2; ++i) static_cast<void>(forward.finish());
}

/// Static problems of what the steps of such a model run.
Texts run_by_steps(ModelOptions options) {
    const test::Scratch scratch;
    options.runtime.capture_file = scratch.path("capture.json");
    {
        RunningModel model(options);
        run_steps(model.forward());
    }
    Texts run;
    for (const runtime::CapturedProblem& captured : runtime::read_capture(options.runtime.capture_file)) {
        const std::optional<Problem> problem = parse_problem(captured.problem);
        REQUIRE(problem);
        if (problem->family->name != "quantize_weights") run.insert(static_words(*problem));
    }
    return run;
}

Texts listed(const models::Model& model, const tuner::WorkloadOptions& options) {
    Texts texts;
    for (const Problem& problem : tuner::model_workload(model, options).problems)
        texts.insert(static_words(problem));
    return texts;
}

/// Of what is run, what is not listed.
std::string missing(const ModelOptions& options) {
    tuner::WorkloadOptions how;
    if (const auto& codes = options.quantize)
        how.weights = checkpoints::WeightFormat{.format = codes->format,
                                                .group = codes->group.value_or(0),
                                                .zeros = codes->zeros,
                                                .lm_head = codes->lm_head};
    const Texts run = run_by_steps(options);
    CHECK(run.size() >= 10);
    const Texts known = listed(*options.made_up, how);
    std::string text;
    for (const std::string& problem : run) text += known.contains(problem) ? "" : "\n  " + problem;
    return text;
}

ModelOptions options_of(const models::Model& model) {
    ModelOptions options = test::small_options();
    options.made_up = model;
    return options;
}

}  // namespace

TEST_CASE("all that the steps of a model run is tuned and compiled with it") {
    const test::FakeMachine fakes;
    for (const char* const name :
         {"llama-3-8b", "llama-3.2-1b", "mistral-7b", "qwen2-7b", "qwen3-8b", "phi-3-mini-4k",
          "granite-3.1-8b", "gemma-7b", "gemma-2-9b", "glm-4-9b", "glm-4-9b-0414", "olmo-2-7b", "gpt2",
          "starcoder2-7b", "stablelm-3b-4e1t", "mixtral-8x7b", "qwen3-30b-a3b"}) {
        CAPTURE(name);
        ModelOptions options = options_of(small_model(name));
        CHECK(missing(options) == "");
        options.made_up->dtype = Dtype::fp32;
        CHECK(missing(options) == "");
    }
}

TEST_CASE("all that steps with weights of codes run is tuned and compiled with them") {
    // No row of a weight is noted as one without codes.
    const test::FakeMachine fakes("launch:match=quantize_weights_clear:write=4:value=9223372034707292159");
    struct Case {
        QuantFormat format;
        std::int64_t group;
    };
    for (const auto& [format, group] :
         {Case{QuantFormat::w4a16, 128}, Case{QuantFormat::w8a16, 0}, Case{QuantFormat::w8a8, 0},
          Case{QuantFormat::fp8, 0}, Case{QuantFormat::fp8, 128}}) {
        for (const char* const name : {"llama-3-8b", "gemma-2-9b", "gpt2", "mixtral-8x7b"}) {
            CAPTURE(name);
            CAPTURE(hone::name(format));
            CAPTURE(group);
            ModelOptions options = options_of(small_model(name));
            options.quantize = checkpoints::QuantizeRequest{.format = format, .group = group};
            CHECK(missing(options) == "");
        }
    }
    ModelOptions of_codes = options_of(small_model("llama-3-8b"));
    of_codes.quantize = checkpoints::QuantizeRequest{.format = QuantFormat::fp8, .group = 0};
    const Texts run = run_by_steps(of_codes);
    for (const char* const words : {"quantized_x=yes", "rmsnorm dtype=bf16 output=fp8"}) {
        CHECK(std::ranges::any_of(
            run, [&](const std::string& problem) { return problem.find(words) != std::string::npos; }));
    }
}

TEST_CASE("products with norms and sums in them are tuned and compiled for the steps that may have them") {
    const test::FakeMachine fakes;
    const test::Scratch scratch;
    const ModelOptions options = test::whole_options(scratch);
    CHECK(missing(options) == "");
    const Texts run = run_by_steps(options);
    CHECK(std::ranges::count_if(run, [](const std::string& problem) {
              return problem.find("linear ") == 0 && problem.find("norm=yes") != std::string::npos;
          }) == 2);
    CHECK(std::ranges::count_if(run, [](const std::string& problem) {
              return problem.find("linear ") == 0 && problem.find("residual=yes") != std::string::npos;
          }) == 1);  // the network's second half is as large as attention's output
}

TEST_CASE("products that share norms are tuned and compiled for the steps that may have them") {
    const test::FakeMachine fakes;
    const test::Scratch scratch;
    {
        cache::Cache cache = scratch.cache();
        test::store_rings(cache, 4);
    }
    const ModelOptions options = test::sharing_options(scratch);
    CHECK(missing(options) == "");
    const Texts run = run_by_steps(options);
    CHECK(std::ranges::count_if(run, [](const std::string& problem) {
              return problem.starts_with("shared_norm_linear ");
          }) == 4);
}

TEST_CASE("a part of a model, and what the decoder has no operators for, are listed without its steps") {
    const auto appends = [](const models::Model& model, int parts) {
        const std::vector<tuner::ModelOperator> list =
            tuner::operators(model, {.tokens = {1, 16}, .dtype = {}, .tensor_parallel = parts});
        return std::ranges::count(list, "attention_append", &tuner::ModelOperator::family);
    };
    models::Model model = small_model("gemma-2-9b");
    CHECK(appends(model, 1) == 2);  // with a window, and without
    CHECK(appends(model, 2) == 0);
    model.sinks = true;
    CHECK(appends(model, 1) == 0);
    model = small_model("llama-3-8b");
    CHECK(appends(model, 1) == 1);
    model.dtype = Dtype::fp32;  // two launches are faster
    CHECK(appends(model, 1) == 0);
}
