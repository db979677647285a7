// What RMSNorm and LayerNorm share on the host: the problem as plain numbers, the call's arguments,
// tolerances, and the variants. A variant's plan, constraints and cost stand in norm/<variant>.cpp
// beside norm/<variant>.cuh.
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

/// Adds what both families share to what is a family's own: name, summary, fields, variants, reference
/// source.
[[nodiscard]] Family family(Family own);
[[nodiscard]] Work work(const Problem&);

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

[[nodiscard]] constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
/// Packets of `vector` elements that each of `lanes` threads holds of a row.
[[nodiscard]] constexpr std::int64_t packets_of(const NormProblem& problem, std::int64_t lanes,
                                                std::int64_t vector) {
    return ceil_div(problem.hidden, lanes * vector);
}
/// 32-bit registers for one copy of a thread's share of a row.
[[nodiscard]] inline std::int64_t row_registers(const NormProblem& problem, std::int64_t lanes,
                                                std::int64_t vector) {
    return ceil_div(packets_of(problem, lanes, vector) * vector * problem.element_bytes(), 4);
}
/// Registers a thread may spend on held data, given that a block of `threads` must fit at all and addresses,
/// partial sums and results in flight want some too.
[[nodiscard]] constexpr std::int64_t register_budget(std::int64_t threads) {
    return (threads > 512 ? 64 : threads > 256 ? 128 : 168) - 32;
}

/// What the cost model needs of a candidate.
struct Footprint {
    std::int64_t blocks = 1;
    std::int64_t threads = 32;        ///< a block
    std::int64_t held_registers = 0;  ///< that hold data, a thread
    std::int64_t shared_bytes = 0;    ///< a block
    std::int64_t blocks_per_sm = 32;  ///< more than these never run side by side
    double rounds = 1;                ///< rows, or groups of them, that a block walks over one after another
    double elements = 1;              ///< a thread and round
    double work_factor = 1;           ///< instructions an element, relative to a plain norm
    double reducing_warps = 0;        ///< that meet in a reduction; 0 when it stays within a warp
    double bytes_in_flight = 0;       ///< loads that a block keeps in flight
    bool loads_ahead = false;  ///< loads of the next round are under way while one is reduced and written
    double latency_us = 0;     ///< from a block's loads to its end, beyond what elements and threads explain
    double slowdown = 1;
    bool programmatic = false;
};
/// Modelled microseconds: launch and memory latency, plus the largest of three rates - bytes over bandwidth,
/// bytes over what the loads in flight can draw, instructions over issue slots - joined by a soft maximum.
/// Constants are fitted to 9,398 measured candidates of 34 problems on an H100 (docs/performance.md); another
/// GPU scales them by its bandwidth, clock and multiprocessors.
[[nodiscard]] double predict_us(const Problem&, const Footprint&, const DeviceTraits&);
/// How one thread and block take part in keeping memory busy.
struct MemoryShape {
    double bytes_per_thread = 0;  ///< of a row
    double rows_per_block = 1;    ///< side by side
    double rows_in_flight = 1;    ///< one after another, all loaded first
};
/// For `slowdown`. Where a call moves more than twice L2, every decent candidate is bound by memory, and they
/// differ by the order in which they ask for it: best is one row a block with 16 to 64 bytes a thread, which
/// keeps few rows open at a time. Fitted to 1,913 candidates of group_rows at 117 MB to 1.1 GB on an H100.
[[nodiscard]] double memory_factor(const Problem&, const MemoryShape&, const DeviceTraits&);
/// Whether a call moves more than twice L2.
[[nodiscard]] bool bound_by_memory(const Problem&, const DeviceTraits&);
/// Streaming hints pay where a call's tensors and L2 are of one size: what is read once then leaves room for
/// what is written, which the next operator reads. Elsewhere they are neutral, and ranked a little behind.
/// For `slowdown`.
[[nodiscard]] double hint_factor(const Problem&, bool streaming_loads, bool streaming_stores,
                                 const DeviceTraits&);
/// Instructions an element of this problem takes, relative to a plain norm.
[[nodiscard]] double work_factor(const NormProblem&);

}  // namespace hone::norm
