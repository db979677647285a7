// Layers of GPTQ and AWQ checkpoints: codes and zero points are packed as they are, scales too where their
// dtype is kept.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <string_view>
#include <utility>

#include "checkpoints/error.h"
#include "checkpoints/pack/layer_source.h"
#include "checkpoints/pack/linear_layers.h"
#include "checkpoints/pack/model_config.h"
#include "checkpoints/read/awq.h"
#include "checkpoints/read/gptq.h"
#include "checkpoints/read/layer_tensors.h"
#include "runtime/quantize/small_floats.h"

namespace hone::checkpoints {
namespace {

std::uint16_t encoded(float scale, Dtype dtype) {
    if (dtype == Dtype::bf16) return runtime::encode_bf16(scale);
    constexpr std::uint16_t infinity = 0x7C00;  // which pack_scales() refuses
    return std::fabs(scale) < 65536 ? static_cast<std::uint16_t>(runtime::Half::encode(scale)) : infinity;
}

float decoded(std::uint16_t bits, Dtype dtype) {
    return dtype == Dtype::bf16 ? runtime::decode_bf16(bits) : runtime::decode_half(bits);
}

std::span<std::uint16_t> halves(std::vector<std::uint8_t>& bytes) {
    return {reinterpret_cast<std::uint16_t*>(bytes.data()), bytes.size() / 2};
}

/// The loss of rounding the scales: every value changes as its scale does.
QuantLoss loss_of(const GroupedWeight& weight, const std::vector<float>& rounded) {
    const std::int64_t width = weight.group == 0 ? weight.in : weight.group;
    double errors = 0;
    double values = 0;
    double largest = 0;
    for (std::size_t g = 0; g < rounded.size(); ++g) {
        const std::uint8_t* const codes = weight.codes.data() + static_cast<std::int64_t>(g) * width;
        std::int64_t squares = 0;
        int most = 0;
        for (std::int64_t i = 0; i < width; ++i) {
            const int steps = codes[i] - weight.zeros[g];
            squares += steps * steps;
            most = std::max(most, std::abs(steps));
        }
        const double scale = weight.scales[g];
        const double change = std::fabs(scale - rounded[g]);
        errors += change * change * static_cast<double>(squares);
        values += scale * scale * static_cast<double>(squares);
        largest = std::max(largest, change * most);
    }
    return {values > 0 ? std::sqrt(errors / values) : 0, largest};
}

/// Where others of the checkpoint have an order, a layer without one gets that of its columns.
std::vector<std::int32_t> input_order_of(const GroupedWeight& weight, const LayerOutline& layer) {
    std::vector<std::int32_t> order = weight.column_order;
    if (!layer.input_order || !order.empty()) return order;
    order.resize(static_cast<std::size_t>(weight.in));
    std::iota(order.begin(), order.end(), 0);
    return order;
}

/// What the methods' layers differ in.
struct GroupedMethod {
    std::string name;
    int bits = 4;
    std::int64_t group = 0;                ///< columns; 0: whole rows
    bool zeros = false;                    ///< zero points are packed
    bool is_packed_along_columns = false;  ///< a word of qweight has columns of a row, else rows of a column
    bool needs_qzeros = false;             ///< also without `zeros`
    std::string_view why_without_zeros = {};  ///< what the config says then
    std::function<GroupedWeight(const Checkpoint&, const std::string& layer)> read = {};
    std::function<bool(const Checkpoint&, const std::string& layer)> is_reordered = {};
};

GroupedMethod gptq_method(const QuantizationConfig& config) {
    const GptqConfig gptq = gptq_config(config);
    return {
        .name = "gptq",
        .bits = gptq.bits,
        .group = gptq.group,
        .zeros = gptq.bits == 4 && !gptq.sym.value_or(false),
        .is_packed_along_columns = true,
        .needs_qzeros = true,
        .why_without_zeros = "says 8 bits, which are packed without zero points",
        .read = [gptq](const Checkpoint& checkpoint,
                       const std::string& layer) { return read_gptq(checkpoint, layer, gptq); },
        .is_reordered = [gptq](const Checkpoint& checkpoint,
                               const std::string& layer) { return is_reordered(checkpoint, layer, gptq); }};
}

GroupedMethod awq_method(const QuantizationConfig& config) {
    const AwqConfig awq = awq_config(config);
    return {.name = "awq",
            .group = awq.group,
            .zeros = awq.zero_point,
            .why_without_zeros = "says zero_point false",
            .read = [awq](const Checkpoint& checkpoint,
                          const std::string& layer) { return read_awq(checkpoint, layer, awq); },
            .is_reordered = [](const Checkpoint&, const std::string&) { return false; }};
}

class GroupedLayers : public LayerSource {
  public:
    GroupedLayers(const Checkpoint& checkpoint, const QuantizationConfig& config,
                  const QuantizeRequest& request, GroupedMethod method)
        : checkpoint_(checkpoint), method_(std::move(method)), format_(request.format) {
        check_format(config);
        for (const auto& [name, _] : checkpoint.tensors()) {
            if (const std::optional<std::string> layer = layer_named(name, ".qweight"))
                layers_.push_back({.name = *layer, .tensors = tensors_of(*layer), .shape = {}});
        }
        if (layers_.empty())
            throw CheckpointError(fmt::format("{}: no layers with a tensor NAME.qweight, though {} says {}",
                                              checkpoint.path().string(), config.place(), method_.name));
        choose_dtype(request);
        const bool reordered = std::ranges::any_of(
            layers_, [&](const LayerOutline& layer) { return method_.is_reordered(checkpoint, layer.name); });
        for (LayerOutline& layer : layers_) {
            layer.shape = shape_of(layer.name);
            layer.input_order = reordered;
            check_parts(layer);
        }
    }

    std::string kind() const override { return method_.name; }
    Dtype dtype() const override { return dtype_; }
    const std::vector<LayerOutline>& layers() const override { return layers_; }

    PackedLayer pack(const LayerOutline& layer) const override {
        const GroupedWeight weight = method_.read(checkpoint_, layer.name);
        if (!method_.zeros && !weight.is_symmetric()) {
            throw CheckpointError(fmt::format("layer {} has zero points other than {}, where the config {}",
                                              shown(layer.name), 1 << (weight.bits - 1),
                                              method_.why_without_zeros));
        }
        PackedLayer packed{
            .weight = {.shape = layer.shape}, .input_order = input_order_of(weight, layer), .notes = {}};
        packed.weight.codes.resize(
            static_cast<std::size_t>(packed_bytes(format_, layer.shape.out, layer.shape.in)));
        packed.weight.scales.resize(static_cast<std::size_t>(scale_bytes(layer.shape)));
        packed.weight.zeros.resize(static_cast<std::size_t>(zero_count(layer.shape)));
        if (method_.bits == 4) {
            pack_4_bits(weight, layer, packed.weight);
        } else {
            pack_8_bits(weight, layer, packed.weight);
        }
        return packed;
    }

  private:
    void check_format(const QuantizationConfig& config) const {
        const std::string with = fmt::format(" with --format {}", name(format_));
        if (format_ == QuantFormat::fp8)
            config.refuse("quant_method", "fp8, compressed-tensors and modelopt" + with);
        const bool is_w4 = format_ == QuantFormat::w4a16;
        if ((method_.bits == 4) != is_w4)
            config.refuse(config.find("bits") != nullptr ? "bits" : "w_bit", (is_w4 ? "4" : "8") + with);
        if (!is_w4 && method_.group != 0) config.refuse("group_size", "-1 (whole rows)" + with);
    }

    std::vector<std::string> tensors_of(const std::string& layer) const {
        std::vector<std::string> names;
        for (const char* part : {".qweight", ".qzeros", ".scales", ".g_idx"}) {
            if (checkpoint_.find(layer + part) != nullptr) names.push_back(layer + part);
        }
        return names;
    }

    /// The scales' own, so that they stay as they are.
    void choose_dtype(const QuantizeRequest& request) {
        const StoredType type = checkpoint_.at(layers_.front().name + ".scales").type;
        dtype_ = type == StoredType::f16    ? Dtype::fp16
                 : type == StoredType::bf16 ? Dtype::bf16
                                            : model_dtype(model_config(checkpoint_));
        may_round_ = request.dtype.has_value();
        dtype_ = request.dtype.value_or(dtype_);
    }

    /// Scales and zero points that are missing or of another shape are told before anything is read.
    void check_parts(const LayerOutline& layer) const {
        const std::int64_t out = layer.shape.out;
        const std::int64_t groups =
            groups_in(checkpoint_.at(layer.name + ".qweight"), layer.shape.in, method_.group);
        require_shape(checkpoint_.at(layer.name + ".scales"), {groups, out});
        if (method_.zeros || method_.needs_qzeros)
            require_shape(checkpoint_.at(layer.name + ".qzeros"), {groups, out * method_.bits / 32});
    }

    PackedShape shape_of(const std::string& layer) const {
        const StoredTensor& qweight = checkpoint_.at(layer + ".qweight");
        require_matrix(qweight);
        const auto rows = static_cast<std::int64_t>(qweight.shape[0]);
        const auto columns = static_cast<std::int64_t>(qweight.shape[1]);
        const std::int64_t in_word = 32 / method_.bits;
        const bool along_columns = method_.is_packed_along_columns;
        return {.format = format_,
                .out = along_columns ? columns : columns * in_word,
                .in = along_columns ? rows * in_word : rows,
                .group = method_.group,
                .zeros = method_.zeros,
                .scale_dtype = dtype_};
    }

    void pack_4_bits(const GroupedWeight& weight, const LayerOutline& layer, QuantizedWeight& packed) const {
        // Without groups the columns beyond `in` have their row's zero point; else their scale is 0.
        const bool padded = method_.zeros && method_.group == 0;
        pack_w4(weight.codes, weight.out, weight.in, packed.codes,
                padded ? std::span(weight.zeros) : std::span<const std::uint8_t>{});
        std::vector<std::uint16_t> scales;
        std::vector<float> rounded;
        for (const float scale : weight.scales) {
            scales.push_back(encoded(scale, dtype_));
            rounded.push_back(decoded(scales.back(), dtype_));
            if (may_round_ || rounded.back() == scale) continue;
            throw CheckpointError(fmt::format(
                "layer {}: the scale {} is none of {}; hone quantize --dtype fp16 or bf16 says to round it",
                shown(layer.name), scale, name(dtype_)));
        }
        pack_scales(scales, layer.shape, halves(packed.scales));
        if (method_.zeros) pack_zeros(weight.zeros, layer.shape, packed.zeros);
        packed.loss = loss_of(weight, rounded);
    }

    void pack_8_bits(const GroupedWeight& weight, const LayerOutline& layer, QuantizedWeight& packed) const {
        const auto negative = std::ranges::find_if(weight.scales, [](float scale) { return scale < 0; });
        if (negative != weight.scales.end())
            throw CheckpointError(fmt::format("layer {}: the scale of row {} is {}; allowed with {}: above 0",
                                              shown(layer.name), negative - weight.scales.begin(), *negative,
                                              name(format_)));
        std::vector<std::int8_t> codes;
        codes.reserve(weight.codes.size());
        for (const std::uint8_t code : weight.codes) codes.push_back(static_cast<std::int8_t>(code - 128));
        if (format_ == QuantFormat::w8a16) {
            pack_w8(codes, weight.out, weight.in, packed.codes);
        } else {
            std::memcpy(packed.codes.data(), codes.data(), codes.size());
        }
        std::memcpy(packed.scales.data(), weight.scales.data(), packed.scales.size());
    }

    const Checkpoint& checkpoint_;
    GroupedMethod method_;
    QuantFormat format_;
    Dtype dtype_ = Dtype::bf16;
    bool may_round_ = false;  ///< scales, to the dtype that was asked for
    std::vector<LayerOutline> layers_;
};

}  // namespace

std::unique_ptr<LayerSource> gptq_layers(const Checkpoint& checkpoint, const QuantizationConfig& config,
                                         const QuantizeRequest& request) {
    return std::make_unique<GroupedLayers>(checkpoint, config, request, gptq_method(config));
}

std::unique_ptr<LayerSource> awq_layers(const Checkpoint& checkpoint, const QuantizationConfig& config,
                                        const QuantizeRequest& request) {
    return std::make_unique<GroupedLayers>(checkpoint, config, request, awq_method(config));
}

}  // namespace hone::checkpoints
