#include "checkpoints/read/fp8.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <span>

#include "tests/checkpoints/checkpoint_files.h"
#include "tests/support/scratch.h"

using namespace hone::checkpoints;
using namespace hone::test;

namespace {

constexpr std::uint64_t out = 200;
constexpr std::uint64_t in = 300;

/// Every code that is a number, over and over.
TensorFile layer() {
    TensorFile file;
    Bytes codes;
    for (unsigned code = 0; codes.size() < out * in; code = (code + 1) % 256) {
        if (code % 128 != 127) codes.push_back(static_cast<std::byte>(code));
    }
    file["l.weight"] = {StoredType::f8_e4m3, {out, in}, codes};
    return file;
}

Checkpoint checkpoint_of(const Scratch& scratch, const TensorFile& file) {
    file.write(scratch.path("model.safetensors"));
    return Checkpoint::open(scratch.path(""));
}

std::string refusal_of(const Scratch& scratch, const TensorFile& file) {
    const Checkpoint checkpoint = checkpoint_of(scratch, file);
    return refusal([&] { return read_fp8(checkpoint, "l"); });
}

std::string refusal_of_config(nlohmann::json values) {
    return refusal([&] {
        require_fp8({std::move(values), "c.json"});
        return 0;
    });
}

std::vector<float> numbered(std::size_t count) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i + 1) / 256;
    return values;
}

}  // namespace

TEST_CASE("codes are a view of the file; scales are one, one a row, or one a block") {
    const Scratch scratch;
    struct Case {
        const char* name;
        std::vector<std::uint64_t> shape;
        std::size_t scales;
        Fp8Scales kind;
    };
    for (const Case& given :
         {Case{"l.weight_scale", {}, 1, Fp8Scales::tensor}, Case{"l.weight_scale", {1}, 1, Fp8Scales::tensor},
          Case{"l.weight_scale", {out}, out, Fp8Scales::row},
          Case{"l.weight_scale", {out, 1}, out, Fp8Scales::row},
          Case{"l.weight_scale_inv", {2, 3}, 6, Fp8Scales::block}}) {
        TensorFile file = layer();
        file.set_floats(given.name, given.shape, numbered(given.scales));
        const Checkpoint checkpoint = checkpoint_of(scratch, file);
        const Fp8Weight weight = read_fp8(checkpoint, "l");
        CHECK(weight.out == 200);
        CHECK(weight.in == 300);
        CHECK(weight.kind == given.kind);
        CHECK(weight.scales == numbered(given.scales));
        CHECK(std::ranges::equal(std::as_bytes(std::span(weight.codes)), file["l.weight"].bytes));
        CHECK(weight.codes.size() == out * in);
        CHECK(weight.notes.empty());
    }
}

TEST_CASE("scales in 16 bits are read; a fixed scale of x is noted and left aside") {
    const Scratch scratch;
    TensorFile file = layer();
    file["l.weight_scale"] = {StoredType::bf16, {1}, {std::byte{0x00}, std::byte{0x3F}}};
    file.set_floats("l.input_scale", {}, {0.0F});
    const Checkpoint checkpoint = checkpoint_of(scratch, file);
    const Fp8Weight weight = read_fp8(checkpoint, "l");
    CHECK(weight.scales == std::vector<float>{0.5F});
    REQUIRE(weight.notes.size() == 1);
    CHECK(contains(weight.notes[0], "tensor 'l.input_scale' is left aside"));
}

TEST_CASE("NaN codes are refused with their place") {
    const Scratch scratch;
    for (const unsigned code : {0x7FU, 0xFFU}) {
        TensorFile file = layer();
        file.set_floats("l.weight_scale", {}, {1});
        file["l.weight"].bytes[5 * in + 17] = static_cast<std::byte>(code);
        CHECK(contains(refusal_of(scratch, file), "tensor 'l.weight': row 5, column 17 is NaN (code 0x"));
    }
}

TEST_CASE("faults of a layer are refused by tensor, value and what is allowed") {
    const Scratch scratch;
    const auto refused = [&](const auto& change) {
        TensorFile file = layer();
        change(file);
        return refusal_of(scratch, file);
    };
    const auto scaled = [&](const char* name, std::vector<std::uint64_t> shape, std::vector<float> values) {
        return refused([&](TensorFile& file) { file.set_floats(name, shape, values); });
    };
    CHECK(contains(refused([](TensorFile&) {}), "layer 'l' has neither weight_scale nor weight_scale_inv"));
    CHECK(contains(refused([](TensorFile& file) {
                       file.set_floats("l.weight_scale", {}, {1});
                       file.set_floats("l.weight_scale_inv", {2, 3}, numbered(6));
                   }),
                   "has both"));
    CHECK(contains(refused([](TensorFile& file) {
                       file.erase("l.weight");
                       file.set_floats("l.weight_scale", {}, {1});
                   }),
                   "no tensor 'l.weight'"));
    CHECK(contains(refused([](TensorFile& file) { file["l.weight"].type = StoredType::f8_e5m2; }),
                   "dtype F8_E5M2; allowed is F8_E4M3"));
    CHECK(contains(refused([](TensorFile& file) { file["l.weight"].shape = {out * in}; }),
                   "needed is a matrix"));
    CHECK(contains(scaled("l.weight_scale", {2, 3}, numbered(6)),
                   "tensor 'l.weight_scale': shape [2, 3]; allowed are [], [1], [200] and [200, 1]"));
    CHECK(contains(scaled("l.weight_scale", {1, out}, numbered(out)), "allowed are"));
    CHECK(contains(scaled("l.weight_scale", {0}, {}), "allowed are"));
    CHECK(contains(scaled("l.weight_scale_inv", {2, 2}, numbered(4)), "shape [2, 2]; needed is [2, 3]"));
    CHECK(contains(scaled("l.weight_scale", {}, {0}), "scale 0 of 1 is 0; allowed are finite numbers but 0"));
    CHECK(contains(scaled("l.weight_scale", {}, {INFINITY}), "scale 0 of 1 is inf"));
    CHECK(contains(scaled("l.weight_scale", {}, {NAN}), "scale 0 of 1 is nan"));
    CHECK(contains(refused([](TensorFile& file) {
                       file["l.weight_scale"] = {StoredType::f64, {}, Bytes(8)};
                   }),
                   "dtype F64; allowed are F32, F16 and BF16"));
}

TEST_CASE("configurations of E4M3 codes are taken, others refused") {
    CHECK(refusal_of_config({{"quant_method", "fp8"}}).empty());
    CHECK(refusal_of_config({{"quant_method", "fp8"}, {"fmt", "e4m3"}, {"weight_block_size", {128, 128}}})
              .empty());
    CHECK(refusal_of_config({{"quant_method", "compressed-tensors"}, {"format", "float-quantized"}}).empty());
    CHECK(refusal_of_config({{"quant_method", "modelopt"}, {"quant_algo", "FP8"}}).empty());
    CHECK(contains(refusal_of_config({{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}}),
                   "quant_algo is \"NVFP4\"; allowed: FP8"));
    CHECK(contains(refusal_of_config({{"quant_method", "modelopt"}}), "allowed: FP8"));
    CHECK(contains(refusal_of_config({{"quant_method", "fp8"}, {"fmt", "e5m2"}}),
                   "fmt is \"e5m2\"; allowed: e4m3"));
    CHECK(contains(refusal_of_config({{"quant_method", "fp8"}, {"weight_block_size", {64, 128}}}),
                   "weight_block_size is [64,128]; allowed: [128, 128]"));
    CHECK(contains(refusal_of_config({{"quant_method", "fp8"}, {"weight_block_size", 128}}),
                   "allowed: [128, 128]"));
    CHECK(contains(refusal_of_config({{"quant_method", "compressed-tensors"}, {"format", "pack-quantized"}}),
                   "allowed: float-quantized"));
    CHECK(contains(refusal_of_config({{"quant_method", "gptq"}}), "allowed: fp8"));
}
