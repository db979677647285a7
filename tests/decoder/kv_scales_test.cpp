// Scales of a cache of codes, as checkpoints have them that were calibrated for one.
// Starts threads: the thread sanitizer runs this file, too.
#include "decoder/weights/kv_scales.h"

#include <doctest/doctest.h>

#include <cmath>

#include "decoder/error.h"
#include "tests/decoder/coded_folder.h"
#include "tests/decoder/coded_model.h"
#include "tests/support/fake_machine.h"

using namespace hone;
using namespace hone::decoder;
using namespace hone::test;

namespace {

/// A model of numbers, two layers of two heads of keys.
CodedFolder folder_of_numbers() {
    CodedFolder folder;
    folder.all_layers([&](const auto& name, auto out, auto in) { folder.numbers(name, out, in); });
    return folder;
}

ModelOptions with_codes(const CodedFolder& folder) {
    ModelOptions options = options_of(folder.write());
    options.kv_dtype = KvDtype::fp8;
    return options;
}

void set(CodedFolder& folder, int layer, const std::string& name, std::vector<std::size_t> shape,
         const std::vector<float>& scales) {
    folder.tensors.set_floats(CodedFolder::layer(static_cast<std::size_t>(layer), "self_attn." + name),
                              std::move(shape), scales);
}

std::string refusal_of(const CodedFolder& folder) {
    try {
        const RunningModel model(with_codes(folder));
    } catch (const DecoderError& error) {
        return error.what();
    }
    return "";
}

/// Whether a launch from number `from` on has this address among its parameters.
bool is_given(const FakeMachine& machine, int from, const float* wanted) {
    const auto address = reinterpret_cast<CUdeviceptr>(wanted);
    for (int i = from; i < machine.launch_count(); ++i) {
        const FakeLaunch& launch = *machine.launch(i);
        for (int parameter = 0; parameter < launch.parameter_count; ++parameter) {
            if (launch.parameters[parameter] == address) return true;
        }
    }
    return false;
}

}  // namespace

TEST_CASE("scales of keys and values are found under the names of those who write them") {
    const FakeMachine machine;
    const std::pair<std::string, std::string> names[]{{"k_scale", "v_scale"},
                                                      {"k_proj.k_scale", "v_proj.v_scale"},
                                                      {"attn.k_scale", "attn.v_scale"},
                                                      {"k_proj.output_scale", "v_proj.output_scale"}};
    for (const auto& [k, v] : names) {
        CAPTURE(k);
        CodedFolder folder = folder_of_numbers();
        set(folder, 0, k, {}, {0.5F});
        set(folder, 0, v, {1}, {0.25F});
        set(folder, 1, k, {2}, {2, 3});
        set(folder, 1, v, {2, 1, 1}, {4, 5});
        RunningModel model(with_codes(folder));
        CHECK(model.weights().kv_scales.k == std::vector<float>{0.5F, 0.5F, 2, 3});
        CHECK(model.weights().kv_scales.v == std::vector<float>{0.25F, 0.25F, 4, 5});
        CHECK(step_of(model) == 0);
    }
}

TEST_CASE("one scale may be that of both, in 16 bits too, and a layer without has 1") {
    const FakeMachine machine;
    CodedFolder folder = folder_of_numbers();
    folder.tensors.set_halves(CodedFolder::layer(1, "self_attn.kv_scale"), {1}, {0.125});
    const RunningModel model(with_codes(folder));
    CHECK(model.weights().kv_scales.k == std::vector<float>{1, 1, 0.125F, 0.125F});
    CHECK(model.weights().kv_scales.v == model.weights().kv_scales.k);
}

TEST_CASE("each layer's kernels get its own scales") {
    const FakeMachine machine;
    CodedFolder folder = folder_of_numbers();
    for (const int layer : {0, 1}) {
        set(folder, layer, "k_scale", {}, {static_cast<float>(1 + layer)});
        set(folder, layer, "v_scale", {}, {static_cast<float>(3 + layer)});
    }
    RunningModel model(with_codes(folder));
    const int from = machine.launch_count();
    CHECK(step_of(model) == 0);
    const auto given = [&](int layer) {
        return std::pair{is_given(machine, from, model.forward().kv_scales_at(layer).first),
                         is_given(machine, from, model.forward().kv_scales_at(layer).second)};
    };
    CHECK(given(0) == std::pair{true, true});
    CHECK(given(1) == std::pair{true, true});
    CHECK(model.forward().kv_scales_at(0).first != model.forward().kv_scales_at(1).first);
}

TEST_CASE("FP8 checkpoints of ModelOpt and compressed-tensors bring scales of their cache along") {
    const FakeMachine machine;
    const nlohmann::json configs[]{{{"quant_method", "modelopt"}, {"quant_algo", "FP8"}},
                                   {{"quant_method", "compressed-tensors"},
                                    {"format", "float-quantized"},
                                    {"kv_cache_scheme", {{"num_bits", 8}, {"type", "float"}}}}};
    for (const nlohmann::json& config : configs) {
        CAPTURE(config);
        CodedFolder folder;
        folder.config["quantization_config"] = config;
        folder.all_layers([&](const auto& name, auto out, auto in) { folder.fp8(name, out, in, out, in); });
        for (const int layer : {0, 1}) {
            set(folder, layer, "k_proj.k_scale", {}, {0.5F});
            set(folder, layer, "v_proj.v_scale", {}, {0.25F});
        }
        const RunningModel model(with_codes(folder));
        CHECK(model.weights().code_format.format == QuantFormat::fp8);
        CHECK(model.weights().kv_scales.k == std::vector<float>(4, 0.5F));
    }
}

TEST_CASE("a checkpoint that was calibrated for its cache alone has weights of numbers") {
    const FakeMachine machine;
    const nlohmann::json scheme{{"num_bits", 8}, {"type", "float"}};
    const nlohmann::json configs[]{
        {{"quant_method", "compressed-tensors"},
         {"config_groups", nlohmann::json::object()},
         {"kv_cache_scheme", scheme}},
        {{"quant_method", "modelopt"}, {"quant_algo", nullptr}, {"kv_cache_scheme", scheme}}};
    for (const nlohmann::json& config : configs) {
        CAPTURE(config);
        CodedFolder folder = folder_of_numbers();
        folder.config["quantization_config"] = config;
        set(folder, 0, "k_scale", {}, {0.5F});
        set(folder, 0, "v_scale", {}, {0.5F});
        const RunningModel model(with_codes(folder));
        CHECK_FALSE(model.weights().code_format.format);
        CHECK(model.weights().kv_scales.k == std::vector<float>{0.5F, 0.5F, 1, 1});
    }
}

TEST_CASE("scales that are none are refused by their tensor, and only where the cache has codes") {
    const FakeMachine machine;
    const auto with = [](std::vector<std::size_t> shape, const std::vector<float>& scales) {
        CodedFolder folder = folder_of_numbers();
        set(folder, 1, "k_scale", std::move(shape), scales);
        set(folder, 1, "v_scale", {}, {1});
        return folder;
    };
    const std::string name = "model.layers.1.self_attn.k_scale";
    CHECK(refusal_of(with({3}, {1, 1, 1})) ==
          name + " has 3 numbers; allowed: 1, or one for each of 2 heads");
    CHECK(refusal_of(with({}, {0})) == name + " is 0 for head 0; allowed: numbers above 0");
    CHECK(refusal_of(with({2}, {1, -1})) == name + " is -1 for head 1; allowed: numbers above 0");
    CHECK(refusal_of(with({2}, {1, INFINITY})).find("is inf for head 1") != std::string::npos);
    CHECK(refusal_of(with({2}, {NAN, 1})).find("is nan for head 0") != std::string::npos);
    CodedFolder alone = folder_of_numbers();
    set(alone, 0, "k_scale", {}, {1});
    CHECK(refusal_of(alone) ==
          "layer 0 has model.layers.0.self_attn.k_scale and no scale of values; needed are both or none");
    CodedFolder typed = folder_of_numbers();
    typed.tensors[CodedFolder::layer(0, "self_attn.k_scale")] = {
        checkpoints::StoredType::f64, {}, std::vector<std::byte>(8)};
    CHECK(refusal_of(typed).find("has elements of type F64; allowed are F32, F16 and BF16") !=
          std::string::npos);
    ModelOptions numbers = options_of(alone.write());
    CHECK_NOTHROW(RunningModel{numbers});
}
