// What Gemma 2 has that others have not, on the fake GPU: norms around, windows in turn, caps, scales.
// Starts threads: the thread sanitizer runs this file, too.
#include <doctest/doctest.h>

#include <cmath>
#include <string_view>

#include "decoder/engine/running_model.h"
#include "decoder/error.h"
#include "tests/decoder/coded_folder.h"
#include "tests/decoder/coded_model.h"
#include "tests/support/fake_machine.h"

using namespace hone;
using namespace hone::decoder;
using namespace hone::test;

namespace {

constexpr std::size_t layers = 3;

CodedFolder gemma_folder() {
    CodedFolder folder(
        {.hidden = 128, .between = 256, .heads = 2, .kv_heads = 1, .head_dim = 64, .layers = layers},
        "gemma2");
    folder.config["sliding_window"] = 16;
    folder.config["query_pre_attn_scalar"] = 144;
    folder.config["torch_dtype"] = "bfloat16";
    folder.all_layers([&](const auto& name, auto out, auto in) { folder.numbers(name, out, in); });
    for (std::size_t i = 0; i < layers; ++i) {
        folder.norm(CodedFolder::layer(i, "pre_feedforward_layernorm"));
        folder.norm(CodedFolder::layer(i, "post_feedforward_layernorm"));
    }
    folder.tensors.erase("lm_head.weight");
    return folder;
}

std::string refusal_of(const CodedFolder& folder) {
    return refusal([&] { return std::make_unique<RunningModel>(options_of(folder.write())); });
}

}  // namespace

TEST_CASE("windows come in turn, and numbers are those of config.json or Gemma 2's own") {
    CodedFolder folder = gemma_folder();
    Description model = describe_folder(folder.write());
    CHECK(model.windows() == std::vector<std::int64_t>{16, 0});
    CHECK(model.window_of(0) == 0);
    CHECK(model.window_of(1) == 1);
    CHECK(model.window_of(2) == 0);
    CHECK(model.has_norms_behind());
    CHECK(model.score_scale() == 1.0F / 12);
    CHECK(model.model.softcap == 50);
    CHECK(model.model.logit_cap == 30);
    CHECK(models::activation_of(model.model) == Activation::gelu_tanh);
    CHECK(model.model.tied_head);
    CHECK(model.embedding_scale() == 11.3125F);  // the root of 128, 11.31371, in bf16
    folder.config["torch_dtype"] = "float16";
    CHECK(describe_folder(folder.write()).embedding_scale() == 11.3125F);
    folder.config["torch_dtype"] = "float32";
    CHECK(describe_folder(folder.write()).embedding_scale() == std::sqrt(128.0F));
    folder.config["layer_types"] = {"full_attention", "full_attention", "sliding_attention"};
    folder.config["attn_logit_softcapping"] = nullptr;
    folder.config["final_logit_softcapping"] = nullptr;
    model = describe_folder(folder.write());
    CHECK(model.windows() == std::vector<std::int64_t>{0, 16});
    CHECK(model.window_of(2) == 1);
    CHECK(model.model.softcap == 0);
    CHECK(model.model.logit_cap == 0);
}

TEST_CASE(
    "a step of Gemma 2 has four norms a layer, which add the 1 that the file leaves out to their weights") {
    const FakeMachine machine;
    const CodedFolder folder = gemma_folder();
    RunningModel model(options_of(folder.write()));
    const LayerWeights& layer = model.weights().layers[1];
    for (const NormWeight& norm : {layer.attention_norm, layer.behind_attention, layer.network_norm,
                                   layer.behind_network, model.weights().final_norm}) {
        const auto weights = on_gpu<std::uint16_t>(model, norm.weight, folder.sizes.hidden);
        CHECK(weights == std::vector<std::uint16_t>(folder.sizes.hidden, 0x3F80));  // the file's 1 in bf16
    }
    CHECK(contains(norm_problem(model), " unit_offset=yes "));
    CHECK(model.weights().head.values == model.weights().embedding);
    const int before = machine.launch_count();
    CHECK(step_of(model) == 0);
    CHECK(launches_of(machine, before, "norm_") == 4 * static_cast<int>(layers) + 1);
    CHECK(launches_of(machine, before, "attention") >= static_cast<int>(layers));
    CHECK(launches_of(machine, before, "sample") == 1);
}

TEST_CASE("norms in front of products of codes write them, so that only two launches a layer make codes") {
    const FakeMachine machine;
    CodedFolder folder = gemma_folder();
    folder.config["quantization_config"] = {{"quant_method", "fp8"}};
    folder.all_layers([&](const auto& name, auto out, auto in) { folder.fp8(name, out, in, 1, in); });
    RunningModel model(options_of(folder.write()));
    const int before = machine.launch_count();
    CHECK(step_of(model, {}, many_tokens()) == 0);
    CHECK(launches_of(machine, before, "quantized_linear_quantize") ==
          2 * static_cast<int>(layers - 1));  // what comes of attention, and between a network's halves; the
                                              // last layer's one row needs no launch of its own
    CHECK(launches_of(machine, before, "norm_") == 4 * static_cast<int>(layers) + 1);
    CHECK(model.runtime().counters().failed_launches == 0);
}

TEST_CASE("what of a Gemma 2 does not go is refused by its name") {
    const FakeMachine machine;
    CodedFolder folder = gemma_folder();
    folder.config["final_logit_softcapping"] = 30.5;
    CHECK(contains(refusal_of(folder), "a cap of logits that is no whole number up to 65536"));
    folder.config["final_logit_softcapping"] = -30;
    CHECK(contains(refusal_of(folder), "final_logit_softcapping is -30, allowed is a finite number above 0"));
    folder = gemma_folder();
    folder.config["query_pre_attn_scalar"] = "many";
    CHECK(contains(refusal_of(folder),
                   "query_pre_attn_scalar is \"many\", allowed is a finite number above 0"));
    folder = gemma_folder();
    folder.tensors.erase("model.layers.2.post_feedforward_layernorm.weight");
    CHECK(contains(refusal_of(folder), "model.layers.2.post_feedforward_layernorm.weight"));
}
