// Where the weights of a model come from: a checkpoint, or numbers that are made up to have a model of its
// shapes. Reads into memory of the caller; const access from many threads is fine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoints/pack/layer_source.h"
#include "checkpoints/pack/weight_format.h"
#include "kernel_templates/dtype.h"

namespace hone::decoder {

/// A tensor that is asked for, row-major.
struct WantedTensor {
    std::string name;  ///< "model.layers.0.self_attn.q_proj.weight"
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    bool transposed = false;  ///< it stands there as [columns, rows]
    bool is_vector = false;   ///< it stands there as [rows * columns]
    /// It stands there as so many matrices, [stacked, rows / stacked, columns], or, where it is transposed,
    /// [stacked, columns, rows / stacked]; 0: as one.
    std::int64_t stacked = 0;
    /// Rows of each matrix are asked for in two halves, and stand there in turns: the first of the first
    /// half, the first of the second, and so on.
    bool in_turns = false;

    [[nodiscard]] std::int64_t elements() const { return rows * columns; }
};

/// Throws DecoderError naming file and tensor for another shape.
void require_shape(const checkpoints::StoredTensor& tensor, const std::vector<std::uint64_t>& shape);

/// What all codes of a source have in common.
struct StoredCodes {
    checkpoints::WeightFormat format;
    Dtype dtype = Dtype::bf16;  ///< what x has to be
};

class WeightSource {
  public:
    WeightSource() = default;
    WeightSource(const WeightSource&) = delete;
    WeightSource& operator=(const WeightSource&) = delete;
    virtual ~WeightSource() = default;

    [[nodiscard]] virtual bool has(std::string_view name) const = 0;
    /// Throws CheckpointError or DecoderError naming file and tensor where it is not there, or has another
    /// shape or a type that is no number of 16 or 32 bits.
    virtual void check(const WantedTensor& wanted) const = 0;
    /// `count` elements from the `first` on, as numbers of `dtype`. check() has accepted the tensor.
    virtual void read(const WantedTensor& wanted, Dtype dtype, std::int64_t first, std::int64_t count,
                      std::span<std::byte> out) const = 0;

    /// All elements of a tensor of a few, whatever its shape; none: it is not there. Throws CheckpointError
    /// or DecoderError for another type, and for more than 65,536.
    [[nodiscard]] virtual std::vector<float> numbers(std::string_view) const { return {}; }

    /// Names of the weights and biases that it has beside these, in order. Buffers, such as masks and
    /// frequencies, are none, nor is what comes with codes.
    [[nodiscard]] virtual std::vector<std::string> beside(const std::set<std::string, std::less<>>&) const {
        return {};
    }

    /// nullopt: it has none.
    [[nodiscard]] virtual std::optional<StoredCodes> codes() const { return std::nullopt; }
    /// The layer whose weight ("model.layers.0.mlp.up_proj.weight") it has as codes; nullptr where it has
    /// numbers, or nothing.
    [[nodiscard]] virtual const checkpoints::LayerOutline* coded(std::string_view) const { return nullptr; }
    /// The codes of such a layer. Throws CheckpointError.
    [[nodiscard]] virtual QuantizedWeight read_codes(const checkpoints::LayerOutline&) const { return {}; }
};

/// A folder's model.safetensors, or its shards. `config` says how its linear layers are quantized, if they
/// are; `wanted`, if anything, what has to hold of their codes. Throws CheckpointError for what does not go
/// together, and DecoderError for codes that the decoder does not take.
[[nodiscard]] std::unique_ptr<WeightSource> checkpoint_weights(
    const std::filesystem::path& folder, const std::optional<checkpoints::QuantizationConfig>& config = {},
    const std::optional<checkpoints::QuantizeRequest>& wanted = {});

/// All tensors there are, but for biases' names: normal numbers with a standard deviation of 0.02, and ones
/// where a norm is scaled. The same for each name, whenever it is asked for.
[[nodiscard]] std::unique_ptr<WeightSource> made_up_weights();

}  // namespace hone::decoder
