#include "checkpoints/pack/weight_format.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "checkpoints/pack/request.h"
#include "runtime/system/input_error.h"

using namespace hone;
using namespace hone::checkpoints;
using nlohmann::json;

namespace {

WeightFormat read(const json& config) { return weight_format({config, "config.json: quantization_config"}); }

/// "w4a16 64 zeros lm_head"
std::string text_of(const json& config) {
    const WeightFormat weights = read(config);
    REQUIRE(weights.format.has_value());
    return std::string(name(*weights.format)) + ' ' + std::to_string(weights.group) +
           (weights.zeros ? " zeros" : "") + (weights.lm_head ? " lm_head" : "");
}

json with(json config, const char* key, json value) {
    config[key] = std::move(value);
    return config;
}

const json gptq{{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 128}, {"sym", true}};
const json awq{{"quant_method", "awq"}, {"bits", 4}, {"group_size", 64}};
const json fp8{{"quant_method", "fp8"}, {"activation_scheme", "dynamic"}};
const json packed{{"quant_method", "hone"},
                  {"layout", 1},
                  {"format", "w4a16"},
                  {"group", 32},
                  {"zeros", true},
                  {"dtype", "fp16"},
                  {"layers", {{"model.layers.0.mlp.up_proj", {128, 64}}}}};

}  // namespace

TEST_CASE("configs of checkpoints say the format that hone quantize packs them in") {
    CHECK(text_of(gptq) == "w4a16 128");
    CHECK(text_of(with(gptq, "sym", false)) == "w4a16 128 zeros");
    CHECK(text_of(with(gptq, "group_size", -1)) == "w4a16 0");
    CHECK(text_of(with(gptq, "lm_head", true)) == "w4a16 128 lm_head");
    CHECK(text_of(with(with(gptq, "bits", 8), "group_size", -1)) == "w8a16 0");
    CHECK(text_of(awq) == "w4a16 64 zeros");
    CHECK(text_of(with(awq, "zero_point", false)) == "w4a16 64");
    CHECK(text_of(fp8) == "fp8 0");
    CHECK(text_of(with(fp8, "weight_block_size", {128, 128})) == "fp8 128");
    CHECK(text_of({{"quant_method", "compressed-tensors"}, {"format", "float-quantized"}}) == "fp8 0");
    CHECK(text_of(packed) == "w4a16 32 zeros");
    CHECK(text_of(with(packed, "layers", {{"lm_head", {128, 64}}})) == "w4a16 32 zeros lm_head");
    CHECK(text_of(with(with(with(packed, "format", "w8a8"), "group", 0), "zeros", false)) == "w8a8 0");
}

TEST_CASE("configs that no format follows from are refused by key") {
    const auto refused = [](const json& config, const char* text) {
        CHECK_THROWS_WITH_AS(static_cast<void>(read(config)), doctest::Contains(text),
                             hone::runtime::InputError);
    };
    refused(with(gptq, "bits", 3), "bits is 3; allowed: 4 and 8");
    refused(with(gptq, "bits", 8), "group_size is 128; allowed: -1 (whole rows) with bits 8");
    refused(with(awq, "version", "gemv"), "version is \"gemv\"");
    refused(with(fp8, "weight_block_size", {64, 64}), "weight_block_size is [64,64]; allowed: [128, 128]");
    refused({{"quant_method", "compressed-tensors"}, {"format", "pack-quantized"}}, "float-quantized");
    refused({{"quant_method", "bitsandbytes"}}, "quant_method is \"bitsandbytes\"");
    refused(with(packed, "layout", 2), "layout is 2; allowed: 1");
    refused(with(packed, "format", "w2a16"), "format is \"w2a16\"; allowed: w4a16, w8a16, w8a8, fp8");
    refused(with(packed, "layers", 7), "layers is 7");
}
