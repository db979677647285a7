// A checkpoint's files, and what its configuration says.
#include <doctest/doctest.h>

#include "checkpoints/read/checkpoint.h"
#include "checkpoints/read/quantization_config.h"
#include "tests/checkpoints/checkpoint_files.h"
#include "tests/support/scratch.h"

namespace fs = std::filesystem;
using namespace hone::checkpoints;
using namespace hone::test;

namespace {

constexpr const char* index_file = "model.safetensors.index.json";

void write_one(const fs::path& file, const std::string& name, std::byte value) {
    const Bytes data{value};
    write_safetensors(file, {{name, StoredType::u8, {1}, data}});
}

std::string refusal_of_index(const Scratch& scratch, const std::string& text) {
    write_text(scratch.path(index_file), text);
    return refusal([&] { return Checkpoint::open(scratch.path("")); });
}

}  // namespace

TEST_CASE("a checkpoint is a folder with one file, or the file") {
    const Scratch scratch;
    write_one(scratch.path("model.safetensors"), "a", std::byte{7});
    for (const fs::path& path : {scratch.path(""), scratch.path("model.safetensors")}) {
        const Checkpoint checkpoint = Checkpoint::open(path);
        CHECK(checkpoint.tensors().size() == 1);
        CHECK(checkpoint.at("a").bytes()[0] == std::byte{7});
        CHECK(checkpoint.find("b") == nullptr);
        CHECK(contains(refusal([&] { return checkpoint.at("b").type; }), "no tensor 'b'"));
        CHECK(checkpoint.file_of("a") == "model.safetensors");
        CHECK_FALSE(checkpoint.is_sharded());
        CHECK(fs::equivalent(checkpoint.folder(), scratch.path("")));
    }
}

TEST_CASE("shards are read by their index; tensors that it does not list are not there") {
    const Scratch scratch;
    write_one(scratch.path("x-1.safetensors"), "a", std::byte{1});
    const Bytes data(2);
    write_safetensors(scratch.path("x-2.safetensors"),
                      {{"b", StoredType::u8, {2}, data}, {"extra", StoredType::u8, {2}, data}});
    write_text(scratch.path(index_file),
               R"({"metadata":{"total_size":3},"weight_map":{"a":"x-1.safetensors","b":"x-2.safetensors"}})");
    Checkpoint opened = Checkpoint::open(scratch.path(""));
    const Checkpoint checkpoint = std::move(opened);  // views stay
    CHECK(checkpoint.tensors().size() == 2);
    CHECK(checkpoint.at("a").bytes()[0] == std::byte{1});
    CHECK(contains(checkpoint.at("b").place, "x-2.safetensors: tensor 'b'"));
    CHECK(checkpoint.find("extra") == nullptr);
    CHECK(checkpoint.is_sharded());
    CHECK(checkpoint.file_of("b") == "x-2.safetensors");
    CHECK(contains(refusal([&] { return checkpoint.file_of("extra"); }), "no tensor 'extra'"));
}

TEST_CASE("a folder with neither or both is refused") {
    const Scratch scratch;
    CHECK(contains(refusal([&] { return Checkpoint::open(scratch.path("")); }),
                   "has neither model.safetensors"));
    write_one(scratch.path("model.safetensors"), "a", std::byte{1});
    CHECK(contains(refusal_of_index(scratch, R"({"weight_map":{"a":"model.safetensors"}})"), "has both"));
}

TEST_CASE("an index reaches no file beyond its folder") {
    const Scratch scratch;
    fs::create_directory(scratch.path("f"));
    write_one(scratch.path("f/x.safetensors"), "a", std::byte{1});
    for (const std::string name :
         {"f/x.safetensors", "../x.safetensors", "/etc/x.safetensors", "..", ".", "", ".safetensors", "x.bin",
          "f\\\\x.safetensors", ".x.safetensors", "x\\u0000.safetensors"}) {
        CAPTURE(name);
        CHECK(contains(refusal_of_index(scratch, R"({"weight_map":{"a":")" + name + R"("}})"),
                       "weight_map names the file"));
    }
}

TEST_CASE("an index that is wrong is refused") {
    const Scratch scratch;
    write_one(scratch.path("x.safetensors"), "a", std::byte{1});
    CHECK(contains(refusal_of_index(scratch, "{"), "not valid JSON"));
    CHECK(contains(refusal_of_index(scratch, "[]"), "not an object"));
    CHECK(contains(refusal_of_index(scratch, "{}"), "no object weight_map"));
    CHECK(contains(refusal_of_index(scratch, R"({"weight_map":{}})"), "no object weight_map"));
    CHECK(contains(refusal_of_index(scratch, R"({"weight_map":["x"]})"), "no object weight_map"));
    CHECK(contains(refusal_of_index(scratch, R"({"weight_map":{"a":1}})"), "the file of 'a' is no text"));
    CHECK(contains(refusal_of_index(scratch, R"({"weight_map":{"a":"x.safetensors","a":"x.safetensors"}})"),
                   "stands twice"));
    CHECK(contains(refusal_of_index(scratch, R"({"weight_map":{"b":"x.safetensors"}})"),
                   "'b' is in x.safetensors, which does not have it"));
    CHECK(contains(refusal_of_index(scratch, R"({"weight_map":{"a":"y.safetensors"}})"), "No such file"));
}

TEST_CASE("the configuration is found where writers put it, config.json first") {
    const Scratch scratch;
    CHECK_FALSE(QuantizationConfig::read(scratch.path("")));
    write_text(scratch.path("config.json"), R"({"hidden_size":4096})");
    CHECK_FALSE(QuantizationConfig::read(scratch.path("")));
    const std::string modelopt = scratch.path("hf_quant_config.json");
    write_text(modelopt, R"({"quantization":{"quant_algo":null,"kv_cache_quant_algo":"FP8"}})");
    CHECK_FALSE(QuantizationConfig::read(scratch.path("")));
    write_text(modelopt, R"({"producer":{"name":"modelopt"}})");
    CHECK(contains(refusal([&] { (void)QuantizationConfig::read(scratch.path("")); }),
                   "hf_quant_config.json: quantization: not an object"));
    write_text(modelopt, R"({"quantization":{"quant_algo":"FP8"}})");
    CHECK(QuantizationConfig::read(scratch.path(""))->method() == "modelopt");
    CHECK(QuantizationConfig::read(scratch.path(""))->text({"quant_algo"}) == "FP8");
    write_text(scratch.path("quant_config.json"), R"({"w_bit":4})");
    CHECK(QuantizationConfig::read(scratch.path(""))->method() == "awq");
    write_text(scratch.path("quantize_config.json"), R"({"bits":4})");
    CHECK(QuantizationConfig::read(scratch.path(""))->method() == "gptq");
    write_text(scratch.path("config.json"), R"({"quantization_config":{"quant_method":"fp8","fmt":"e4m3"}})");
    const auto config = QuantizationConfig::read(scratch.path(""));
    CHECK(config->method() == "fp8");
    CHECK(config->text({"fmt"}) == "e4m3");
    CHECK(contains(config->place(), "config.json: quantization_config"));
}

TEST_CASE("values of another type and configurations without a method are refused") {
    CHECK(contains(refusal([] { return QuantizationConfig({}, "c.json"); }), "c.json: not an object"));
    CHECK(contains(refusal([] { return QuantizationConfig({{"bits", 4}}, "c.json"); }), "no quant_method"));
    const QuantizationConfig config(
        {{"bits", "4"}, {"sym", 1}, {"version", 2}, {"none", nullptr}, {"large", UINT64_MAX}}, "c.json",
        "gptq");
    CHECK(contains(refusal([&] { return config.integer({"bits"}); }),
                   "c.json: bits is \"4\"; allowed: an integer"));
    CHECK(contains(refusal([&] { return config.integer({"large"}); }), "allowed: an integer"));
    CHECK(contains(refusal([&] { return config.boolean("sym"); }), "sym is 1; allowed: true and false"));
    CHECK(contains(refusal([&] { return config.text({"version"}); }), "version is 2; allowed: text"));
    CHECK_FALSE(config.integer({"none"}));
    CHECK_FALSE(config.integer({"missing"}));
}
