#include "decoder/weights/weight_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "checkpoints/read/checkpoint.h"
#include "decoder/error.h"
#include "decoder/weights/mxfp4.h"
#include "decoder/weights/stored_rows.h"
#include "runtime/quantize/small_floats.h"

namespace hone::decoder {

void require_shape(const checkpoints::StoredTensor& tensor, const std::vector<std::uint64_t>& shape) {
    if (tensor.shape != shape)
        throw DecoderError(fmt::format("{}: has the shape {}; as config.json says, it has to be {}",
                                       tensor.place, checkpoints::shown(tensor.shape),
                                       checkpoints::shown(shape)));
}

namespace {

using checkpoints::StoredTensor;
using checkpoints::StoredType;

std::optional<Dtype> dtype_of(StoredType type) {
    switch (type) {
        case StoredType::f32: return Dtype::fp32;
        case StoredType::f16: return Dtype::fp16;
        case StoredType::bf16: return Dtype::bf16;
        default: return std::nullopt;
    }
}

/// Throws DecoderError.
Dtype dtype_of(const StoredTensor& tensor) {
    if (const std::optional<Dtype> dtype = dtype_of(tensor.type)) return *dtype;
    throw DecoderError(fmt::format("{}: has elements of type {}; allowed are F32, F16 and BF16", tensor.place,
                                   checkpoints::name_of(tensor.type)));
}

template <class T>
T number_at(const std::byte* bytes, std::size_t index) {
    T number;
    std::memcpy(&number, bytes + index * sizeof(T), sizeof(T));
    return number;
}

float value_at(Dtype dtype, const std::byte* bytes, std::size_t index) {
    if (dtype == Dtype::fp32) return number_at<float>(bytes, index);
    const auto bits = number_at<std::uint16_t>(bytes, index);
    return dtype == Dtype::fp16 ? runtime::decode_half(bits) : runtime::decode_bf16(bits);
}

void store(Dtype dtype, float value, std::byte* bytes, std::size_t index) {
    if (dtype == Dtype::fp32) {
        std::memcpy(bytes + index * sizeof(float), &value, sizeof(float));
        return;
    }
    const auto bits = static_cast<std::uint16_t>(dtype == Dtype::fp16 ? runtime::Half::encode(value)
                                                                      : runtime::encode_bf16(value));
    std::memcpy(bytes + index * sizeof(bits), &bits, sizeof(bits));
}

/// Not a buffer: masks are called a bias, too, and have more extents.
bool is_parameter(std::string_view name, const StoredTensor& tensor) {
    return (name.ends_with(".weight") || name.ends_with(".bias")) && tensor.shape.size() <= 2;
}

class CheckpointWeights : public WeightSource {
  public:
    CheckpointWeights(const std::filesystem::path& folder,
                      const std::optional<checkpoints::QuantizationConfig>& config,
                      const std::optional<checkpoints::QuantizeRequest>& wanted)
        : checkpoint_(checkpoints::Checkpoint::open(folder)) {
        if (!config) return;
        layers_ = checkpoints::coded_layers(checkpoint_, *config, wanted);
        for (const checkpoints::LayerOutline& layer : layers_->layers())
            coded_.emplace(layer.name + ".weight", &layer);
        refuse_input_order(*config);
    }

    bool has(std::string_view name) const override {
        return checkpoint_.find(name) != nullptr || coded(name) != nullptr ||
               Mxfp4(checkpoint_, name).exists();
    }

    void check(const WantedTensor& wanted) const override {
        if (const Mxfp4 codes(checkpoint_, wanted.name); codes.exists()) return codes.check(wanted);
        const StoredTensor& tensor = checkpoint_.at(wanted.name);
        static_cast<void>(dtype_of(tensor));
        require_shape(tensor, shape_of(wanted));
    }

    void read(const WantedTensor& wanted, Dtype dtype, std::int64_t first, std::int64_t count,
              std::span<std::byte> out) const override {
        if (const Mxfp4 codes(checkpoint_, wanted.name); codes.exists())
            return codes.read(wanted, dtype, first, count, out);
        const StoredTensor& tensor = checkpoint_.at(wanted.name);
        const Dtype stored = dtype_of(tensor);
        const auto width = static_cast<std::int64_t>(size_bytes(stored));
        if (stored == dtype && !wanted.transposed && !wanted.in_turns)
            return tensor.read_at(static_cast<std::uint64_t>(first * width), out);
        const StoredRows rows(wanted);
        const StoredRows::Span span = rows.rows_of(first, count);
        std::vector<std::byte> bytes(static_cast<std::size_t>(span.count * wanted.columns * width));
        tensor.read_at(static_cast<std::uint64_t>(span.first * wanted.columns * width), bytes);
        const auto put = [&](std::int64_t from, std::int64_t to) {
            const float value = value_at(stored, bytes.data(), static_cast<std::size_t>(from));
            store(dtype, value, out.data(), static_cast<std::size_t>(to));
        };
        const std::int64_t begin = span.first * wanted.columns;
        if (wanted.transposed) {  // read whole by each piece: such checkpoints are small
            for (std::int64_t i = 0; i < count; ++i) put(rows.transposed(first + i) - begin, i);
            return;
        }
        rows.for_each_run(first, count, [&](const StoredRows::Run& run) {
            const std::int64_t from = run.row * wanted.columns + run.column - begin;
            for (std::int64_t i = 0; i < run.count; ++i) put(from + i, run.to + i);
        });
    }

    std::vector<float> numbers(std::string_view name) const override {
        constexpr std::size_t most = 65536;
        const StoredTensor* const tensor = checkpoint_.find(name);
        if (tensor == nullptr) return {};
        const Dtype dtype = dtype_of(*tensor);
        const std::size_t count = tensor->size_bytes / size_bytes(dtype);
        if (count > most)
            throw DecoderError(
                fmt::format("{}: has {} numbers; allowed: up to {}", tensor->place, count, most));
        const std::vector<std::byte> bytes = tensor->bytes();
        std::vector<float> numbers;
        for (std::size_t i = 0; i < count; ++i) numbers.push_back(value_at(dtype, bytes.data(), i));
        return numbers;
    }

    std::vector<std::string> beside(const std::set<std::string, std::less<>>& wanted) const override {
        std::vector<std::string> others;
        for (const auto& [name, tensor] : checkpoint_.tensors()) {
            // Writers of GPTQ give each layer a bias, of zeros.
            const std::string layer = name.substr(0, name.rfind('.')) + ".weight";
            const bool is_of_codes = coded(layer) != nullptr && wanted.contains(layer);
            if (!wanted.contains(name) && !is_of_codes && is_parameter(name, *tensor)) others.push_back(name);
        }
        return others;
    }

    std::optional<StoredCodes> codes() const override {
        if (!layers_) return std::nullopt;
        const PackedShape& shape = layers_->layers().front().shape;
        return StoredCodes{.format = {.format = shape.format, .group = shape.group, .zeros = shape.zeros},
                           .dtype = layers_->dtype()};
    }
    const checkpoints::LayerOutline* coded(std::string_view name) const override {
        const auto found = coded_.find(name);
        return found == coded_.end() ? nullptr : found->second;
    }
    QuantizedWeight read_codes(const checkpoints::LayerOutline& layer) const override {
        return checkpoints::pack_layer(*layers_, layer).weight;
    }

  private:
    void refuse_input_order(const checkpoints::QuantizationConfig& config) const {
        if (!layers_->layers().front().input_order) return;
        throw DecoderError(fmt::format(
            "{}: columns stand by activation order (desc_act), and the decoder does not reorder x; "
            "allowed: codes whose columns stand as x does, or the original weights with --format",
            config.place()));
    }

    static std::vector<std::uint64_t> shape_of(const WantedTensor& wanted) {
        const auto rows = static_cast<std::uint64_t>(wanted.rows);
        const auto columns = static_cast<std::uint64_t>(wanted.columns);
        const auto stacked = static_cast<std::uint64_t>(wanted.stacked);
        if (wanted.is_vector && stacked > 0) return {stacked, rows / stacked};
        if (wanted.is_vector) return {rows * columns};
        if (wanted.transposed && stacked > 0) return {stacked, columns, rows / stacked};
        if (wanted.transposed) return {columns, rows};
        if (stacked > 0) return {stacked, rows / stacked, columns};
        return {rows, columns};
    }

    checkpoints::Checkpoint checkpoint_;
    std::unique_ptr<checkpoints::LayerSource> layers_;  ///< those with codes
    std::map<std::string, const checkpoints::LayerOutline*, std::less<>> coded_;
};

/// Copies out of one table a dtype: to make 16 GB of numbers one by one takes longer than to load them.
class MadeUpWeights : public WeightSource {
  public:
    MadeUpWeights() {
        std::vector<float> values((std::size_t{1} << 20) + 7);  // no row repeats another
        std::mt19937 engine(20260701);                          // NOLINT: the same every time, on purpose
        std::normal_distribution<float> normal(0, 0.02F);
        for (float& value : values) value = normal(engine);
        for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
            std::vector<std::byte>& table = tables_[dtype];
            table.resize(values.size() * size_bytes(dtype));
            for (std::size_t i = 0; i < values.size(); ++i) store(dtype, values[i], table.data(), i);
        }
    }

    bool has(std::string_view) const override { return true; }
    void check(const WantedTensor&) const override {}

    void read(const WantedTensor& wanted, Dtype dtype, std::int64_t first, std::int64_t count,
              std::span<std::byte> out) const override {
        if (wanted.is_vector && wanted.name.ends_with(".weight")) {
            for (std::int64_t i = 0; i < count; ++i) store(dtype, 1, out.data(), static_cast<std::size_t>(i));
            return;
        }
        const std::vector<std::byte>& table = tables_.at(dtype);
        const std::size_t width = size_bytes(dtype);
        const std::size_t values = table.size() / width;
        std::size_t at = (std::hash<std::string>()(wanted.name) + static_cast<std::size_t>(first)) % values;
        out = out.first(static_cast<std::size_t>(count) * width);
        while (!out.empty()) {
            const std::size_t bytes = std::min(out.size(), table.size() - at * width);
            std::memcpy(out.data(), table.data() + at * width, bytes);
            out = out.subspan(bytes);
            at = 0;
        }
    }

  private:
    std::map<Dtype, std::vector<std::byte>> tables_;
};

}  // namespace

std::unique_ptr<WeightSource> checkpoint_weights(const std::filesystem::path& folder,
                                                 const std::optional<checkpoints::QuantizationConfig>& config,
                                                 const std::optional<checkpoints::QuantizeRequest>& wanted) {
    return std::make_unique<CheckpointWeights>(folder, config, wanted);
}

std::unique_ptr<WeightSource> made_up_weights() { return std::make_unique<MadeUpWeights>(); }

}  // namespace hone::decoder
