#include "runtime/quantize/scale_search.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/quantize/group_error.h"
#include "runtime/quantize/small_floats.h"

namespace hone::runtime {
namespace {

namespace rule = quantize_weights;

constexpr auto parts = [] {
    std::array<float, rule::most_parts> found{};
    for (int i = 0; i < rule::most_parts; ++i) found[static_cast<std::size_t>(i)] = rule::part(i);
    return found;
}();

rule::Stored stored_as(float scale, Dtype dtype) {
    if (dtype == Dtype::bf16) {
        const std::uint16_t bits = encode_bf16(scale);
        return {bits, decode_bf16(bits)};
    }
    if (std::fabs(scale) >= 65520.0F) return {0x7C00, rule::infinity};
    const auto bits = static_cast<std::uint16_t>(Half::encode(scale));
    return {bits, Half::decode(bits)};
}

/// A Group of the search.
class HostGroup {
  public:
    /// `values` in units, with zeros up to a multiple of 32.
    HostGroup(const float* values, std::int64_t count, Dtype scale_dtype)
        : values_(values), count_(count), dtype_(scale_dtype) {}

    [[nodiscard]] int count() const { return static_cast<int>(count_); }
    [[nodiscard]] float part(int index) const { return parts[static_cast<std::size_t>(index)]; }
    [[nodiscard]] rule::Stored stored(float scale) const { return stored_as(scale, dtype_); }
    [[nodiscard]] float error(const rule::Codes& codes) const {
        return squared_error(values_, padded(), codes);
    }
    [[nodiscard]] float best_unit(const rule::Codes& codes) const {
        return best_scale_for(values_, padded(), codes);
    }

    template <class TrialOf>
    void attempt(int trials, const TrialOf& trial_of, const rule::Range& range, rule::Choice& choice) const {
        for (int i = 0; i < trials; ++i) rule::try_one(*this, range, trial_of(i), choice);
    }

  private:
    [[nodiscard]] std::int64_t padded() const {
        return (count_ + rule::lanes - 1) / rule::lanes * rule::lanes;
    }

    const float* values_;
    std::int64_t count_;
    Dtype dtype_;
};

}  // namespace

GroupScale choose_scale(const float* values, std::int64_t count, const GroupRule& wanted, float* room) {
    const auto [low, high] = std::minmax_element(values, values + count);
    if (std::max(-*low, *high) < rule::smallest_magnitude) return {};
    const rule::Range range = rule::Range::of(*low, *high);
    for (std::int64_t i = 0; i < count; ++i) room[i] = values[i] * range.factor();
    std::fill(room + count, room + count + room_beyond, 0.0F);
    const HostGroup group(room, count, wanted.scale_dtype);
    const rule::Choice found = wanted.zeros
                                   ? rule::ScaleSearch<true, HostGroup>(group, range).run(wanted.search)
                                   : rule::ScaleSearch<false, HostGroup>(group, range).run(wanted.search);
    return {found.stored.bits, found.stored.scale, found.zero, found.too_large()};
}

void encode_w4(const float* values, std::int64_t count, const GroupScale& scale, std::uint8_t* codes) {
    if (scale.scale == 0) {
        std::fill(codes, codes + count, static_cast<std::uint8_t>(scale.zero));
        return;
    }
    const rule::Codes range = rule::codes_of(scale.scale, scale.zero);
    for (std::int64_t i = 0; i < count; ++i) {
        const float code = rule::nearest(values[i] / scale.scale, range.low, range.high);
        codes[i] = static_cast<std::uint8_t>(static_cast<int>(code) + scale.zero);
    }
}

}  // namespace hone::runtime
