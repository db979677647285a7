// Linear on the host: the problem as plain numbers, the call's arguments, and the variants. A variant's plan,
// constraints and cost stand in <variant>.cpp beside <variant>.cu.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>

#include "kernel_templates/family.h"

namespace hone::linear {

/// Index of each pointer of a call.
enum Pointer : int { x, norm_weight, weight, up, bias, residual, out, workspace, pointer_count };
/// Index of each scalar of a call. Strides count elements from one row to the next.
enum CallScalar : int {
    tokens,
    x_stride,
    weight_stride,
    up_stride,
    residual_stride,
    out_stride,
    epsilon,  ///< float32, of the norm
    scalar_count
};

/// Choices of the field `activation`, in order.
enum class Activation : std::int64_t { none, gelu_tanh, gelu_erf, silu, relu };

/// A problem as numbers.
struct LinearProblem {
    Dtype dtype = Dtype::bf16;
    bool norm = false;
    Activation activation = Activation::none;
    bool gated = false;
    bool bias = false;
    bool residual = false;
    std::int64_t in = 0;
    std::int64_t out = 0;
    std::int64_t tokens = 0;

    [[nodiscard]] std::int64_t element_bytes() const { return size_bytes(dtype); }
    /// Weights: x is multiplied with each of them.
    [[nodiscard]] std::int64_t products() const { return gated ? 2 : 1; }
    /// Of all weights.
    [[nodiscard]] double weight_bytes() const {
        return static_cast<double>(products() * out * element_bytes()) * static_cast<double>(in);
    }
    [[nodiscard]] double x_bytes() const {
        return static_cast<double>(tokens * element_bytes()) * static_cast<double>(in);
    }
    /// Results, and what is added to them: of products of 8-bit codes they have 16 bits.
    [[nodiscard]] double out_bytes() const {
        const std::int64_t result_bytes = element_bytes() == 1 ? 2 : element_bytes();
        return static_cast<double>(tokens * (residual ? 2 : 1) * result_bytes) * static_cast<double>(out);
    }
    [[nodiscard]] double flops() const {
        return 2.0 * static_cast<double>(products() * tokens) * static_cast<double>(in) *
               static_cast<double>(out);
    }
};
[[nodiscard]] LinearProblem linear_problem(const Problem&);

extern const Variant wgmma;
extern const Variant wgmma_tf32;
extern const Variant mma;
extern const Variant mma_tiles;
extern const Variant gemv;
extern const Variant plain;

[[nodiscard]] constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// A launch of the signature that most kernels share: all pointers, then all scalars.
[[nodiscard]] Launch launch(const char* kernel, Dim3 grid, std::int64_t threads);

/// For a fallback: of some configs of a variant the allowed one that its cost model likes best, the first of
/// equals.
[[nodiscard]] std::optional<Config> best_of(const Problem&, const Variant&, std::span<const Config>,
                                            const DeviceTraits&);

/// Of variants whose tunable `index` is "programmatic".
template <std::size_t index>
inline constexpr Constraint programmatic_needs_sm_90{
    "programmatic dependent launch needs sm_90", [](const Problem&, const Config& c, const DeviceTraits& t) {
        return c[index] == 0 || t.has_programmatic_launch();
    }};

}  // namespace hone::linear
