// What RMSNorm and LayerNorm share on the host: the problem as plain numbers, the call's arguments, tolerances, and the
// four variants. A variant's plan, constraints and cost stand in norm/<variant>.cpp beside norm/<variant>.cuh.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernel_templates/family.h"

namespace hone::norm {

/// Index of each pointer of a call, for both families.
enum Pointer : int { x, residual, weight, bias, out, sum, scale, pointer_count };
/// Index of each scalar of a call. Strides count elements from one row to the next.
enum CallScalar : int { rows, x_stride, residual_stride, out_stride, sum_stride, epsilon, scalar_count };

/// Choices of the field `output`, in order.
enum class OutputKind : std::int64_t { same, int8, fp8 };

/// A problem of either family as numbers.
struct NormProblem {
    Dtype dtype = Dtype::bf16;
    OutputKind output = OutputKind::same;
    bool residual = false;
    bool bias = false;
    bool layer_norm = false;
    std::int64_t hidden = 0;
    std::int64_t rows = 0;

    [[nodiscard]] bool quantized() const { return output != OutputKind::same; }
    [[nodiscard]] Dtype out_dtype() const;
    [[nodiscard]] std::int64_t element_bytes() const { return size_bytes(dtype); }
    /// Reductions that follow one another.
    [[nodiscard]] int reductions() const { return layer_norm ? (quantized() ? 3 : 2) : 1; }
};
[[nodiscard]] NormProblem norm_problem(const Problem&);

// The fields, in order; LayerNorm has `bias` after `residual`.
[[nodiscard]] std::span<const Field> rmsnorm_fields();
[[nodiscard]] std::span<const Field> layernorm_fields();

[[nodiscard]] std::string validate(const Problem&);
[[nodiscard]] std::vector<Argument> arguments(const Problem&);
[[nodiscard]] std::vector<ScalarArgument> scalars(const Problem&);
[[nodiscard]] Tolerance tolerance(const Problem&, int argument);
[[nodiscard]] Work work(const Problem&);
[[nodiscard]] Plan reference_plan(const Problem&);

/// `source`: the family's template for this variant.
[[nodiscard]] Variant group_rows(std::string_view source);
[[nodiscard]] Variant persistent_rows(std::string_view source);
[[nodiscard]] Variant cluster_row(std::string_view source);
[[nodiscard]] Variant streamed_row(std::string_view source);

/// A launch of the family's kernel signature: all pointers, then all scalars.
[[nodiscard]] Launch norm_launch(const char* kernel);

/// Widest access in elements that fits 16 bytes and divides hidden.
[[nodiscard]] std::int64_t widest_vector(const NormProblem&);
/// That width or half of it: narrower accesses never win.
[[nodiscard]] bool vector_is_sensible(const NormProblem&, std::int64_t vector);

[[nodiscard]] constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}
/// Packets of `vector` elements that each of `lanes` threads holds of a row.
[[nodiscard]] constexpr std::int64_t packets_of(const NormProblem& problem, std::int64_t lanes, std::int64_t vector) {
    return ceil_div(problem.hidden, lanes * vector);
}
/// 32-bit registers for one copy of a thread's share of a row.
[[nodiscard]] inline std::int64_t row_registers(const NormProblem& problem, std::int64_t lanes, std::int64_t vector) {
    return ceil_div(packets_of(problem, lanes, vector) * vector * problem.element_bytes(), 4);
}
/// Registers a thread may spend on held data, given that a block of `threads` must fit at all and addresses, partial sums
/// and results in flight want some too.
[[nodiscard]] constexpr std::int64_t register_budget(std::int64_t threads) {
    return (threads > 512 ? 64 : threads > 256 ? 128 : 168) - 32;
}

/// What the cost model needs of a candidate.
struct Footprint {
    std::int64_t blocks = 1;
    std::int64_t threads = 32;
    std::int64_t registers = 32;         ///< a thread
    std::int64_t shared_bytes = 0;       ///< a block
    double bytes_in_flight = 0;          ///< loads a block keeps in flight
    double latency_us = 0;               ///< reductions, barriers and passes that nothing hides
    double extra_bytes = 0;              ///< traffic beyond the floor
    bool programmatic = false;
};
/// Modelled microseconds: the larger of bytes over bandwidth and bytes over what the loads in flight can draw, plus a
/// fixed part. Constants are fitted to an H100 (docs/performance.md).
[[nodiscard]] double predict_us(const Problem&, const Footprint&, const DeviceTraits&);
/// Latency of `count` reductions over `lanes` threads of a block.
[[nodiscard]] double reduction_us(int count, std::int64_t lanes);

}  // namespace hone::norm
