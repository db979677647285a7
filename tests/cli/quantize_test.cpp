// hone quantize: from checkpoints of every kind to packed ones, which mean the same.
#include <doctest/doctest.h>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "tests/cli/made_checkpoints.h"
#include "tests/cli/program.h"

using namespace hone::test;
using hone::checkpoints::Checkpoint;
using hone::checkpoints::StoredTensor;
using hone::checkpoints::StoredType;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

const std::string layer_a = "model.layers.0.a";
const std::string layer_b = "model.layers.0.b";

Ended quantize(const Sandbox& sandbox, const std::string& format, const Sandbox::Words& more = {}) {
    Sandbox::Words words{"quantize", "in", "--format", format, "-o", "out", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return sandbox.run(words);
}

json report_of(const Ended& ended) {
    INFO(ended.out, ended.err);
    REQUIRE(ended.code == 0);
    CHECK(ended.json()["schema"] == "hone.quantize/1");
    return ended.json()["data"];
}

/// Neither the output nor a part of it.
bool nothing_left(const Sandbox& sandbox) {
    return std::ranges::none_of(fs::directory_iterator(sandbox.path("")), [](const auto& entry) {
        return entry.path().filename().string().starts_with("out");
    });
}

void check_copied(const Checkpoint& to, TensorFile& from, const std::string& name) {
    CAPTURE(name);
    const StoredTensor* tensor = to.find(name);
    REQUIRE(tensor != nullptr);
    CHECK(tensor->type == from[name].type);
    CHECK(tensor->shape == from[name].shape);
    CHECK(std::ranges::equal(tensor->bytes(), from[name].bytes));
}

const json fp8_config{{"quantization_config", {{"quant_method", "fp8"}}}};

json gptq_config(int bits, int group, bool sym, const char* format) {
    return {{"quantization_config",
             {{"quant_method", "gptq"},
              {"bits", bits},
              {"group_size", group},
              {"sym", sym},
              {"checkpoint_format", format}}}};
}

json awq_config(int group, bool zero_point) {
    return {{"quantization_config",
             {{"quant_method", "awq"}, {"bits", 4}, {"group_size", group}, {"zero_point", zero_point}}}};
}

/// 200 rows, 384 columns, every code that is a number.
TensorFile fp8_layer(const std::string& scale_name, const std::vector<std::uint64_t>& shape,
                     const std::vector<float>& scales) {
    TensorFile file;
    Bytes codes;
    for (unsigned code = 0; codes.size() < 200 * 384; code = (code + 1) % 256) {
        if (code % 128 != 127) codes.push_back(static_cast<std::byte>(code));
    }
    file["l.weight"] = {StoredType::f8_e4m3, {200, 384}, codes};
    file.set_floats("l." + scale_name, shape, scales);
    return file;
}

std::vector<float> counted(std::size_t count) {
    std::vector<float> numbers;
    for (std::size_t i = 0; i < count; ++i) numbers.push_back(static_cast<float>(i + 1) / 64);
    return numbers;
}

}  // namespace

TEST_CASE("linear layers are packed in each format, everything else is copied") {
    struct Case {
        std::string format;
        Sandbox::Words options;
        double error;
        int group;
        std::int64_t bytes;  ///< a layer's
    };
    const std::vector<Case> cases{{"w4a16", {}, 0.11, 128, 8192 + 256},
                                  {"w4a16", {"--group", "32", "--zeros"}, 0.10, 32, 8192 + 1024 + 512},
                                  {"w4a16", {"--no-search", "--dtype", "fp16"}, 0.12, 128, 8192 + 256},
                                  {"w8a16", {}, 0.012, 0, 16384 + 384},
                                  {"w8a8", {}, 0.012, 0, 12288 + 384},
                                  {"fp8", {}, 0.03, 0, 12288 + 384},
                                  {"fp8", {"--group", "128"}, 0.03, 128, 12288 + 4}};
    TensorFile model = small_model();
    for (const Case& one : cases) {
        CAPTURE(one.format);
        CAPTURE(one.options);
        const Sandbox sandbox;
        write_checkpoint(sandbox.path("in"), model, {{"model_type", "llama"}, {"hidden_size", 128}});
        const json report = report_of(quantize(sandbox, one.format, one.options));
        CHECK(report["source"] == "bf16");
        CHECK(report["format"] == one.format);
        CHECK(report["copied_tensors"] == 5);
        REQUIRE(report["layers"].size() == 2);
        for (std::size_t i = 0; i < 2; ++i) {
            const std::string name = i == 0 ? layer_a : layer_b;
            const json& layer = report["layers"][i];
            CHECK(layer["name"] == name);
            CHECK(layer["source_bytes"] == 96 * 128 * 2);
            CHECK(layer["bytes"] == one.bytes);
            const std::vector<float> values = packed_values(sandbox.path("out"), name);
            const double error = relative_distance(bf16_values(model[name + ".weight"]), values);
            CHECK(error > 0);
            CHECK(error < one.error);
            CHECK(layer["relative_error"].get<double>() == doctest::Approx(error).epsilon(1e-4));
        }
        const json packing = packing_of(sandbox.path("out"));
        CHECK(packing["quant_method"] == "hone");
        CHECK(packing["layout"] == 1);
        CHECK(packing["group"] == one.group);
        CHECK(packing["dtype"] == (one.options.size() == 3 && one.group == 128 ? "fp16" : "bf16"));
        CHECK(json::parse(sandbox.read("out/config.json"))["hidden_size"] == 128);
        const Checkpoint out = Checkpoint::open(sandbox.path("out"));
        for (const char* name : {"model.embed_tokens.weight", "model.layers.0.norm.weight", "lm_head.weight",
                                 "model.layers.0.moe.gate.weight", "model.layers.0.a.bias"})
            check_copied(out, model, name);
        CHECK(out.find(layer_a + ".weight") == nullptr);
    }
}

TEST_CASE("--lm-head adds the language head, --skip leaves layers as they are") {
    const Sandbox sandbox;
    TensorFile model = small_model();
    write_checkpoint(sandbox.path("in"), model);
    const json report = report_of(quantize(sandbox, "w8a16", {"--lm-head", "--skip", "b"}));
    REQUIRE(report["layers"].size() == 2);
    CHECK(report["layers"][0]["name"] == "lm_head");
    CHECK(report["layers"][1]["name"] == layer_a);
    check_copied(Checkpoint::open(sandbox.path("out")), model, layer_b + ".weight");
}

TEST_CASE("shards stay shards, and their index lists what is in them") {
    const Sandbox sandbox;
    TensorFile first;
    TensorFile second;
    first["x.weight"] = bf16_matrix(64, 128, 1);
    second["y.weight"] = bf16_matrix(64, 128, 2);
    second["y.bias"] = bf16_matrix(1, 64, 3);
    fs::create_directory(sandbox.path("in"));
    first.write(sandbox.path("in/m-1.safetensors"));
    second.write(sandbox.path("in/m-2.safetensors"));
    sandbox.write("in/model.safetensors.index.json",
                  R"({"weight_map":{"x.weight":"m-1.safetensors","y.weight":"m-2.safetensors",
                      "y.bias":"m-2.safetensors"}})");
    const json report = report_of(quantize(sandbox, "w4a16", {"--zeros"}));
    CHECK(report["layers"].size() == 2);
    const json index = json::parse(sandbox.read("out/model.safetensors.index.json"));
    CHECK(index["weight_map"] == json{{"x.codes", "m-1.safetensors"},
                                      {"x.scales", "m-1.safetensors"},
                                      {"x.zeros", "m-1.safetensors"},
                                      {"y.bias", "m-2.safetensors"},
                                      {"y.codes", "m-2.safetensors"},
                                      {"y.scales", "m-2.safetensors"},
                                      {"y.zeros", "m-2.safetensors"}});
    CHECK(index["metadata"]["total_size"] == report["bytes"]);
    CHECK(relative_distance(bf16_values(second["y.weight"]), packed_values(sandbox.path("out"), "y")) < 0.11);
    CHECK(fs::exists(sandbox.path("out/m-1.safetensors")));
    CHECK_FALSE(fs::exists(sandbox.path("out/model.safetensors")));
}

TEST_CASE("GPTQ codes are packed as they are: both formats, groups and whole rows, symmetric or not") {
    for (const bool less_one : {true, false}) {
        for (const std::size_t group : {std::size_t{32}, std::size_t{64}, coded_in}) {
            for (const bool symmetric : {true, false}) {
                CAPTURE(less_one);
                CAPTURE(group);
                CAPTURE(symmetric);
                const Sandbox sandbox;
                const CodedLayer layer =
                    gptq_layer({.group = group, .symmetric = symmetric, .zeros_less_one = less_one});
                const int stated = group == coded_in ? -1 : static_cast<int>(group);
                write_checkpoint(sandbox.path("in"), layer.tensors,
                                 gptq_config(4, stated, symmetric, less_one ? "gptq" : "gptq_v2"));
                const json report = report_of(quantize(sandbox, "w4a16"));
                CHECK(report["source"] == "gptq");
                CHECK(report["zeros"] == !symmetric);
                CHECK(report["dtype"] == "fp16");
                CHECK(report["relative_error"] == 0);
                CHECK(packed_values(sandbox.path("out"), "l") == layer.values);
                CHECK(Checkpoint::open(sandbox.path("out")).find("l.qweight") == nullptr);
            }
        }
    }
}

TEST_CASE("GPTQ columns in activation order are sorted by group, and input_order says how x follows") {
    for (const bool symmetric : {true, false}) {
        for (const std::size_t group : {std::size_t{32}, std::size_t{64}}) {
            const Sandbox sandbox;
            const CodedLayer layer = gptq_layer({.group = group, .symmetric = symmetric, .shuffled = true});
            json config = gptq_config(4, static_cast<int>(group), symmetric, "gptq");
            config["quantization_config"]["desc_act"] = true;
            TensorFile tensors = layer.tensors;
            for (const char* part : {".qweight", ".qzeros", ".scales"})  // a layer that has no order
                tensors[std::string("m") + part] = tensors[std::string("l") + part];
            std::vector<std::uint32_t> natural;
            for (std::size_t column = 0; column < coded_in; ++column)
                natural.push_back(static_cast<std::uint32_t>(column / group));
            tensors.set("m.g_idx", {coded_in}, natural);
            write_checkpoint(sandbox.path("in"), tensors, config);
            const json report = report_of(quantize(sandbox, "w4a16"));
            CHECK(report["input_order"] == true);
            CHECK(report["relative_error"] == 0);
            CHECK(report["copied_tensors"] == 0);
            CHECK(packed_values(sandbox.path("out"), "l") == layer.values);
            const CodedLayer other = gptq_layer({.group = group, .symmetric = symmetric});
            CHECK(packed_values(sandbox.path("out"), "m") == other.values);
            const Checkpoint out = Checkpoint::open(sandbox.path("out"));
            REQUIRE(out.find("m.input_order") != nullptr);
            for (std::int32_t column = 0; column < static_cast<std::int32_t>(coded_in); ++column) {
                std::int32_t element = 0;
                out.at("m.input_order")
                    .read_at(static_cast<std::uint64_t>(column) * 4,
                             std::as_writable_bytes(std::span(&element, 1)));
                REQUIRE(element == column);
            }
        }
    }
}

TEST_CASE("desc_act with groups side by side needs no order") {
    const Sandbox sandbox;
    const CodedLayer layer = gptq_layer({.symmetric = true});
    TensorFile tensors = layer.tensors;
    std::vector<std::uint32_t> natural;
    for (std::uint32_t column = 0; column < coded_in; ++column) natural.push_back(column / 32);
    tensors.set("l.g_idx", {coded_in}, natural);
    json config = gptq_config(4, 32, true, "gptq");
    config["quantization_config"]["desc_act"] = true;
    write_checkpoint(sandbox.path("in"), tensors, config);
    CHECK(report_of(quantize(sandbox, "w4a16"))["input_order"] == false);
    CHECK(packing_of(sandbox.path("out"))["input_order"] == false);
    CHECK(packed_values(sandbox.path("out"), "l") == layer.values);
    CHECK(Checkpoint::open(sandbox.path("out")).find("l.input_order") == nullptr);
}

TEST_CASE("GPTQ's 8 bits with a scale a row become w8a16 and w8a8") {
    for (const char* format : {"w8a16", "w8a8"}) {
        CAPTURE(format);
        const Sandbox sandbox;
        const CodedLayer layer = gptq_layer({.bits = 8, .group = coded_in, .symmetric = true});
        write_checkpoint(sandbox.path("in"), layer.tensors, gptq_config(8, -1, true, "gptq"));
        CHECK(report_of(quantize(sandbox, format))["relative_error"] == 0);
        CHECK(packed_values(sandbox.path("out"), "l") == layer.values);
    }
}

TEST_CASE("AWQ codes are packed as they are") {
    for (const bool symmetric : {true, false}) {
        const Sandbox sandbox;
        const CodedLayer layer = awq_layer({.group = 64, .symmetric = symmetric});
        write_checkpoint(sandbox.path("in"), layer.tensors, awq_config(64, !symmetric));
        const json report = report_of(quantize(sandbox, "w4a16"));
        CHECK(report["zeros"] == !symmetric);
        CHECK(report["group"] == 64);
        CHECK(packed_values(sandbox.path("out"), "l") == layer.values);
    }
}

TEST_CASE("--dtype rounds the scales of codes, and the report says by how much") {
    const Sandbox sandbox;
    const CodedLayer layer = awq_layer({.group = 32});
    write_checkpoint(sandbox.path("in"), layer.tensors, awq_config(32, true));
    const json report = report_of(quantize(sandbox, "w4a16", {"--dtype", "bf16"}));
    CHECK(report["dtype"] == "bf16");
    const double error = relative_distance(layer.values, packed_values(sandbox.path("out"), "l"));
    CHECK(error > 0);
    CHECK(error < 1.0 / 256);
    CHECK(report["layers"][0]["relative_error"].get<double>() == doctest::Approx(error).epsilon(1e-4));
}

TEST_CASE("FP8 codes are packed as they are: a scale for all, a row, a block") {
    struct Case {
        std::string name;
        std::vector<std::uint64_t> shape;
        std::size_t count;
        int group;
    };
    for (const Case& one : {Case{"weight_scale", {}, 1, 0},
                            {"weight_scale", {200, 1}, 200, 0},
                            {"weight_scale_inv", {2, 3}, 6, 128}}) {
        CAPTURE(one.shape);
        const Sandbox sandbox;
        const std::vector<float> scales = counted(one.count);
        TensorFile file = fp8_layer(one.name, one.shape, scales);
        file.set_floats("l.input_scale", {}, {0.5F});
        file["lm_head.weight"] = bf16_matrix(16, 384, 1);
        write_checkpoint(sandbox.path("in"), file, fp8_config);
        const json report = report_of(quantize(sandbox, "fp8"));
        CHECK(report["group"] == one.group);
        CHECK(contains(report["layers"][0]["notes"][0].get<std::string>(), "input_scale"));
        const std::vector<float> values = packed_values(sandbox.path("out"), "l");
        const Bytes codes = file["l.weight"].bytes;
        for (std::size_t i = 0; i < values.size(); ++i) {
            const std::size_t row = i / 384;
            const std::size_t at = one.group == 0 ? row % one.count : row / 128 * 3 + i % 384 / 128;
            const double code = decoded(std::to_integer<std::uint32_t>(codes[i]), fp8_format);
            REQUIRE(values[i] == static_cast<float>(code * scales[one.count == 1 ? 0 : at]));
        }
        check_copied(Checkpoint::open(sandbox.path("out")), file, "lm_head.weight");
        CHECK(Checkpoint::open(sandbox.path("out")).find("l.input_scale") == nullptr);
    }
}

TEST_CASE("the report is a table, with sums below it") {
    const Sandbox sandbox;
    write_checkpoint(sandbox.path("in"), small_model());
    const Ended ended = sandbox.run({"quantize", "in/model.safetensors", "--format", "w4a16", "-o", "out/"});
    INFO(ended.err);
    CHECK(ended.code == 0);
    CHECK(contains(ended.out, "relative error"));
    CHECK(contains(ended.out, layer_b));
    CHECK(contains(ended.out, "2 layers, bf16 to w4a16, groups of 128, scales of bf16: relative error 0."));
    CHECK(contains(ended.out, "5 tensors copied as they are"));
    CHECK(Checkpoint::open(sandbox.path("out")).find(layer_a + ".codes") != nullptr);
}

TEST_CASE("what cannot be packed is refused with 2 and its reason, and nothing is left behind") {
    struct Case {
        TensorFile tensors;
        json config;
        std::string format;
        Sandbox::Words options;
        std::string expected;
    };
    TensorFile with_nan = small_model();
    with_nan[layer_b + ".weight"].bytes[3] = std::byte{0x7F};
    with_nan[layer_b + ".weight"].bytes[2] = std::byte{0xC0};
    TensorFile taken = small_model();
    taken[layer_a + ".codes"] = bf16_matrix(1, 1, 1);
    TensorFile odd;
    odd["l.weight"] = bf16_matrix(64, 100, 1);
    TensorFile embedding;
    embedding["embed_tokens.weight"] = bf16_matrix(64, 128, 1);
    const TensorFile gptq = gptq_layer({}).tensors;
    TensorFile uneven = gptq;
    std::vector<std::uint32_t> groups;
    for (std::uint32_t column = 0; column < coded_in; ++column) groups.push_back(column % 4);
    groups[0] = 1;
    uneven.set("l.g_idx", {coded_in}, groups);
    groups[0] = 4;
    TensorFile beyond = gptq;
    beyond.set("l.g_idx", {coded_in}, groups);
    TensorFile float_scales = gptq;
    float_scales.set_floats("l.scales", {4, 96}, std::vector<float>(384, 0.1F));
    const json gptq_4 = gptq_config(4, 32, false, "gptq");
    json by_order = gptq_4;
    by_order["quantization_config"]["desc_act"] = true;
    const TensorFile fp8 = fp8_layer("weight_scale", {}, {1});
    const auto method = [](const char* name) {
        return json{{"quantization_config", {{"quant_method", name}}}};
    };
    const TensorFile model = small_model();
    const std::vector<Case> cases{
        {model,
         {},
         "w4a8",
         {},
         "--format: no 'w4a8' (did you mean 'w8a8'?): allowed is w4a16, w8a16, w8a8, fp8"},
        {model, {}, "w4a16", {"--dtype", "fp32"}, "--dtype: no 'fp32'"},
        {model, {}, "w8a8", {"--zeros"}, "--zeros goes with --format w4a16"},
        {model, {}, "fp8", {"--no-search"}, "--no-search goes with --format w4a16"},
        {model, {}, "w4a16", {"--group", "48"}, "layer 'model.layers.0.a': group is 48; allowed with w4a16"},
        {model, {}, "w8a16", {"--group", "64"}, "group is 64; allowed with integer codes of 8 bits: 0"},
        {model, {}, "w4a16", {"--skip", "aa"}, "--skip: no linear layer has 'aa' in its name"},
        {odd, {}, "w4a16", {}, "layer 'l': group is 128 and in is 100"},
        {embedding, {}, "w4a16", {}, "no linear layers to quantize"},
        {with_nan, {}, "w4a16", {}, "layer 'model.layers.0.b': weight [0, 1] is nan"},
        {taken,
         {},
         "w4a16",
         {},
         "'model.layers.0.a.codes': has the name of a tensor that a packed layer needs"},
        {model, {{"model_type", "gpt2"}}, "w4a16", {}, "stored as [in, out]"},
        {gptq, {}, "w4a16", {}, "is quantized already"},
        {fp8, {}, "fp8", {}, "is quantized already"},
        {model, gptq_4, "w4a16", {}, "no layers with a tensor NAME.qweight"},
        {model, fp8_config, "fp8", {}, "no layers with a tensor NAME.weight of F8_E4M3"},
        {gptq, gptq_4, "fp8", {}, "allowed: fp8, compressed-tensors and modelopt with --format fp8"},
        {gptq, gptq_4, "w8a16", {}, "bits is 4; allowed: 8 with --format w8a16"},
        {gptq, gptq_config(8, 32, true, "gptq"), "w4a16", {}, "bits is 8; allowed: 4 with --format w4a16"},
        {gptq, gptq_config(8, 32, true, "gptq"), "w8a16", {}, "group_size is 32; allowed: -1 (whole rows)"},
        {gptq_layer({.bits = 8, .group = coded_in}).tensors,
         gptq_config(8, -1, false, "gptq"),
         "w8a8",
         {},
         "zero points other than 128"},
        {awq_layer({}).tensors, awq_config(32, false), "w4a16", {}, "zero points other than 8"},
        {uneven, by_order, "w4a16", {}, "g_idx gives group 0 31 columns; needed are group_size, 32"},
        {beyond, by_order, "w4a16", {}, "column 0 has group 4; allowed are 0 to 3"},
        {gptq, by_order, "w4a16", {}, "no tensor 'l.g_idx', which desc_act needs"},
        {float_scales, gptq_4, "w4a16", {}, "says to round it"},
        {gptq, gptq_4, "w4a16", {"--group", "32"}, "--group goes with weights of 16 or 32 bits"},
        {gptq, gptq_4, "w4a16", {"--skip", "l"}, "--skip goes with weights of 16 or 32 bits"},
        {fp8, fp8_config, "w4a16", {}, "with --format w4a16"},
        {fp8_layer("weight_scale", {}, {-1}), fp8_config, "fp8", {}, "scale 0 is -1"},
        {model, method("hone"), "w4a16", {}, "a checkpoint that Hone has not packed yet"},
        {model,
         method("bitsandbytes"),
         "w4a16",
         {},
         "gptq, awq, fp8, compressed-tensors, modelopt, or weights of 16 or 32 bits"},
    };
    for (const Case& one : cases) {
        CAPTURE(one.expected);
        const Sandbox sandbox;
        write_checkpoint(sandbox.path("in"), one.tensors, one.config);
        const Ended ended = quantize(sandbox, one.format, one.options);
        CHECK(ended.code == 2);
        const std::string message = ended.json()["error"]["message"];
        CHECK_MESSAGE(contains(message, one.expected), message);
        CHECK(nothing_left(sandbox));
    }
}

TEST_CASE("an output that is there, or cannot be made, is refused and left as it is") {
    const Sandbox sandbox;
    write_checkpoint(sandbox.path("in"), small_model());
    fs::create_directory(sandbox.path("out"));
    sandbox.write("out/mine", "text");
    const Ended there = quantize(sandbox, "w4a16");
    CHECK(there.code == 2);
    CHECK(contains(there.json()["error"]["message"], "out: is there already"));
    CHECK(sandbox.read("out/mine") == "text");
    CHECK(std::distance(fs::directory_iterator(sandbox.path("out")), {}) == 1);
    const Ended nowhere = sandbox.run({"quantize", "in", "--format", "fp8", "-o", "no/such/out"});
    CHECK(nowhere.code == 2);
    CHECK(contains(nowhere.err, "cannot be made: No such file"));
}

TEST_CASE("Ctrl-C, SIGTERM and a terminal that is closed end with 130 and leave nothing behind") {
    TensorFile model;
    const TensorFile::Entry matrix = bf16_matrix(256, 1024, 1);
    for (int i = 0; i < 64; ++i) model["l" + std::to_string(i) + ".weight"] = matrix;
    for (const int asks_to_end : {SIGINT, SIGTERM, SIGHUP}) {
        CAPTURE(asks_to_end);
        const Sandbox sandbox;
        write_checkpoint(sandbox.path("in"), model);
        const auto interrupt_at_work = [&](pid_t pid) {
            for (int i = 0; i < 1000 && nothing_left(sandbox); ++i)
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
            kill(pid, asks_to_end);
        };
        const Ended ended =
            sandbox.run({"quantize", "in", "--format", "w4a16", "-o", "out"}, interrupt_at_work);
        INFO(ended.err);
        CHECK(ended.code == 130);
        CHECK(contains(ended.err, "stopping after this layer"));
        CHECK(contains(ended.err, "nothing was written"));
        CHECK(nothing_left(sandbox));
    }
}
