#include "checkpoints/read/fp8.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "checkpoints/error.h"
#include "checkpoints/read/layer_tensors.h"

namespace hone::checkpoints {
namespace {

constexpr std::int64_t block = 128;  // rows and columns

/// E4M3 without infinities has one NaN of each sign.
bool is_nan(std::uint8_t code) { return (code & 0x7FU) == 0x7FU; }

void check_codes(const StoredTensor& tensor, const Fp8Weight& weight) {
    const auto nan = std::ranges::find_if(weight.codes, is_nan);
    if (nan == weight.codes.end()) return;
    const std::int64_t at = nan - weight.codes.begin();
    throw CheckpointError(fmt::format("{}: row {}, column {} is NaN (code {:#04x}); allowed are numbers",
                                      tensor.place, at / weight.in, at % weight.in, *nan));
}

Fp8Scales kind_of(const StoredTensor& scale, std::int64_t out) {
    const auto rows = static_cast<std::uint64_t>(out);
    const std::vector<std::uint64_t>& shape = scale.shape;
    if (shape.empty() || shape == std::vector<std::uint64_t>{1}) return Fp8Scales::tensor;
    const bool by_row =
        shape == std::vector<std::uint64_t>{rows} || shape == std::vector<std::uint64_t>{rows, 1};
    if (by_row) return Fp8Scales::row;
    throw CheckpointError(fmt::format("{}: shape {}; allowed are [], [1], [{}] and [{}, 1]", scale.place,
                                      shown(shape), out, out));
}

/// The only one of its two tensors that a layer may have.
const StoredTensor& scale_tensor(const Checkpoint& checkpoint, const std::string& layer) {
    const StoredTensor* scale = checkpoint.find(layer + ".weight_scale");
    const StoredTensor* blocks = checkpoint.find(layer + ".weight_scale_inv");
    if ((scale == nullptr) != (blocks == nullptr)) return scale == nullptr ? *blocks : *scale;
    throw CheckpointError(
        fmt::format("{}: layer {} has {} weight_scale_inv; needed is one of them", checkpoint.path().string(),
                    shown(layer), scale == nullptr ? "neither weight_scale nor" : "both weight_scale and"));
}

void require_blocks(const QuantizationConfig& config) {
    const nlohmann::json* size = config.find("weight_block_size");
    if (size != nullptr && *size != nlohmann::json{block, block})
        config.refuse("weight_block_size", fmt::format("[{}, {}]", block, block));
}

}  // namespace

void require_fp8(const QuantizationConfig& config) {
    if (config.method() == "compressed-tensors") {
        if (config.text({"format"}) != "float-quantized") config.refuse("format", "float-quantized");
        return;
    }
    if (config.method() == "modelopt") {
        if (config.text({"quant_algo"}) != "FP8") config.refuse("quant_algo", "FP8");
        return;
    }
    config.require_method("fp8");
    if (config.text({"fmt"}).value_or("e4m3") != "e4m3") config.refuse("fmt", "e4m3");
    require_blocks(config);
}

Fp8Scales fp8_scales(const Checkpoint& checkpoint, const std::string& layer, std::int64_t out,
                     std::int64_t in) {
    const StoredTensor& scale = scale_tensor(checkpoint, layer);
    if (checkpoint.find(layer + ".weight_scale_inv") == nullptr) return kind_of(scale, out);
    require_shape(scale, {(out + block - 1) / block, (in + block - 1) / block});
    return Fp8Scales::block;
}

Fp8Weight read_fp8(const Checkpoint& checkpoint, const std::string& layer) {
    const StoredTensor& tensor = checkpoint.at(layer + ".weight");
    require_type(tensor, StoredType::f8_e4m3);
    require_matrix(tensor);
    Fp8Weight weight{.out = static_cast<std::int64_t>(tensor.shape[0]),
                     .in = static_cast<std::int64_t>(tensor.shape[1]),
                     .codes = std::vector<std::uint8_t>(tensor.size_bytes)};
    tensor.read_at(0, std::as_writable_bytes(std::span(weight.codes)));
    weight.kind = fp8_scales(checkpoint, layer, weight.out, weight.in);
    weight.scales = scales_of(scale_tensor(checkpoint, layer));
    check_codes(tensor, weight);
    if (const StoredTensor* fixed = checkpoint.find(layer + ".input_scale"))
        weight.notes.push_back(fixed->place + " is left aside: x is scaled by what it holds");
    return weight;
}

}  // namespace hone::checkpoints
