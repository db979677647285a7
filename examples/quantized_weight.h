// A weight of the examples as codes: on the device, and on the CPU the values that the codes stand for.
#pragma once

#include <span>

#include "example.h"

namespace examples {

class QuantizedWeight {
  public:
    /// Made-up numbers, [out, in].
    QuantizedWeight(hone::QuantFormat format, std::int64_t out, std::int64_t in, std::int64_t group,
                    std::uint32_t seed)
        : QuantizedWeight(made_up({.format = format, .out = out, .in = in, .group = group}, seed)) {}

    [[nodiscard]] hone::QuantizedWeightPointers pointers() const {
        return {.codes = codes_.get(), .scales = scales_.get()};
    }
    [[nodiscard]] const float* row(std::size_t number) const { return &values_[number * in_]; }

  private:
    explicit QuantizedWeight(const hone::QuantizedWeight& stored)
        : in_(static_cast<std::size_t>(stored.shape.in)),
          codes_(stored.codes),
          scales_(stored.scales),
          values_(in_ * static_cast<std::size_t>(stored.shape.out)) {
        hone::dequantize(stored.shape, stored.view(), values_);
    }

    /// Without the search for the best scales, which takes the CPU a while.
    static hone::QuantizedWeight made_up(const hone::PackedShape& shape, std::uint32_t seed) {
        const auto weight = random_values(static_cast<std::size_t>(shape.out * shape.in), seed, 1 / 64.0F);
        return hone::quantize(std::as_bytes(std::span(weight)), hone::Dtype::bf16, shape, {.search = false});
    }

    std::size_t in_;
    DeviceArray<std::uint8_t> codes_;
    DeviceArray<std::uint8_t> scales_;
    std::vector<float> values_;
};

}  // namespace examples
