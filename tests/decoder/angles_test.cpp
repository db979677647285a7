// Layers that turn by different angles, or not at all, on the fake GPU: Gemma 3, OLMo 3, SmolLM 3.
// Starts threads: the thread sanitizer runs this file, too.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/engine/running_model.h"
#include "kernel_templates/rope_kv_append/declaration.h"
#include "tests/decoder/coded_folder.h"
#include "tests/decoder/coded_model.h"

using namespace hone;
using namespace hone::decoder;
using namespace hone::test;

namespace {

constexpr std::size_t layers = 3;

CodedFolder folder_of(const char* model_type) {
    CodedFolder folder({.layers = layers}, model_type);
    folder.all_layers([&](const auto& name, auto out, auto in) { folder.numbers(name, out, in); });
    return folder;
}

CodedFolder gemma3_folder() {
    CodedFolder folder = folder_of("gemma3_text");
    folder.config["sliding_window"] = 16;
    folder.config["layer_types"] = {"sliding_attention", "full_attention", "sliding_attention"};
    folder.tensors.erase("lm_head.weight");
    for (std::size_t i = 0; i < layers; ++i) {
        folder.norm(CodedFolder::layer(i, "pre_feedforward_layernorm"));
        folder.norm(CodedFolder::layer(i, "post_feedforward_layernorm"));
        for (const char* name : {"self_attn.q_norm.weight", "self_attn.k_norm.weight"})
            folder.tensors.set_halves(CodedFolder::layer(i, name), {32}, std::vector<double>(32, 0.5));
    }
    return folder;
}

/// The table of cosines that each layer's rotation of a prompt takes, and the second row of it.
struct Taken {
    std::vector<std::uint64_t> tables;
    std::vector<float> cosines;
};
Taken taken_by(RunningModel& model, const FakeMachine& machine) {
    const int before = machine.launch_count();
    CHECK(step_of(model, {}, many_tokens()) == 0);
    CHECK(model.runtime().counters().failed_launches == 0);
    Taken taken;
    for (const FakeLaunch& launch : all_launches_of(machine, before, "rope_kv_append")) {
        const std::uint64_t table = launch.parameters[rope_kv_append::cos];
        taken.tables.push_back(table);
        taken.cosines.push_back(on_gpu<float>(model, CUdeviceptr{table}, 32)[17]);  // of position 1, pair 1
    }
    REQUIRE(taken.tables.size() == layers);
    return taken;
}

}  // namespace

TEST_CASE("Gemma 3: layers with a window turn faster, and norms of heads add 1 to their weights") {
    const FakeMachine machine;
    CodedFolder folder = gemma3_folder();
    {
        RunningModel model(options_of(folder.write()));
        const Taken taken = taken_by(model, machine);
        CHECK(taken.tables[0] == taken.tables[2]);
        CHECK(taken.tables[0] != taken.tables[1]);
        CHECK(taken.cosines[0] == doctest::Approx(std::cos(std::pow(10'000, -2.0 / 32))));
        CHECK(taken.cosines[1] == doctest::Approx(std::cos(std::pow(1e6, -2.0 / 32))));
        bool adds = false;
        for (const StepKernel& kernel : model.forward().step_kernels({}))
            adds |= kernel.part == Part::attention &&
                    static_text(kernel.problem).find(" norm=yes unit_offset=yes ") != std::string::npos;
        CHECK(adds);
    }
    // No text is longer than the window, which is none then; the angles stay those of windows.
    folder.config["sliding_window"] = 4096;
    RunningModel model(options_of(folder.write()));
    CHECK(model.description().windows() == std::vector<std::int64_t>{0});
    CHECK(taken_by(model, machine).tables[0] != taken_by(model, machine).tables[1]);
}

TEST_CASE("a language model beside one of images is found under either name") {
    const FakeMachine machine;
    for (const std::string prefix : {"language_model.model.", "model.language_model."}) {
        CodedFolder folder = gemma3_folder();
        const CodedFolder plain = folder;
        folder.tensors = {};
        for (const auto& [name, entry] : plain.tensors.entries()) {
            REQUIRE(name.starts_with("model."));
            folder.tensors[prefix + name.substr(6)] = entry;
        }
        folder.tensors.set_floats("vision_tower.patch.weight", {2}, {1, 2});
        nlohmann::json text = folder.config;
        folder.config = {{"model_type", "gemma3"}, {"text_config", text}, {"torch_dtype", "float16"}};
        std::vector<std::string> told;
        ModelOptions options = options_of(folder.write());
        options.runtime.on_warning = [&](std::string_view words) { told.emplace_back(words); };
        RunningModel model(options);
        CHECK(step_of(model) == 0);
        REQUIRE(told.size() == 1);
        CHECK(told[0].find("not read: vision_tower.patch.weight") != std::string::npos);
    }
}

TEST_CASE("SmolLM 3: a layer that does not rotate takes a table that turns nothing") {
    const FakeMachine machine;
    CodedFolder folder = folder_of("smollm3");
    folder.config["no_rope_layers"] = {1, 0, 1};
    folder.tensors.erase("lm_head.weight");
    RunningModel model(options_of(folder.write()));
    const Taken taken = taken_by(model, machine);
    CHECK(taken.tables[0] == taken.tables[2]);
    CHECK(taken.cosines[1] == 1);
    CHECK(taken.cosines[0] < 0.95F);
}
