// Preference of the norms' variants: what a thread may hold, and how long a call takes. No template's hash
// covers it.
#pragma once

#include <cstdint>

#include "kernel_templates/norm/norm.h"

namespace hone::norm {

/// 32-bit registers for one copy of a thread's share, `packets` of `vector` elements, of a row.
[[nodiscard]] constexpr std::int64_t row_registers(std::int64_t packets, std::int64_t vector,
                                                   std::int64_t element_bytes) {
    return ceil_div(packets * vector * element_bytes, 4);
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
[[nodiscard]] double predict_us(const NormProblem&, const Footprint&, const DeviceTraits&);
/// How one thread and block take part in keeping memory busy.
struct MemoryShape {
    double bytes_per_thread = 0;  ///< bytes of a row
    double rows_per_block = 1;    ///< side by side
    double rows_in_flight = 1;    ///< one after another, all loaded first
};
/// For `slowdown`. Where a call moves more than twice L2, every decent candidate is bound by memory, and they
/// differ by the order in which they ask for it: best is one row a block with 16 to 64 bytes a thread, which
/// keeps few rows open at a time. Fitted to 1,913 candidates of group_rows at 117 MB to 1.1 GB on an H100.
[[nodiscard]] double memory_factor(const NormProblem&, const MemoryShape&, const DeviceTraits&);
/// Whether a call moves more than twice L2.
[[nodiscard]] bool bound_by_memory(const NormProblem&, const DeviceTraits&);
/// Streaming hints pay where a call's tensors and L2 are of one size: what is read once then leaves room for
/// what is written, which the next operator reads. Elsewhere they are neutral, and ranked a little behind.
/// For `slowdown`.
[[nodiscard]] double hint_factor(const NormProblem&, bool streaming_loads, bool streaming_stores,
                                 const DeviceTraits&);
/// The hints of loads that tell L2 something: RowLoad of row.cuh, which has the reasons for either.
inline constexpr std::int64_t first_to_leave = 3;
inline constexpr std::int64_t last_to_leave = 4;
/// What these two bring, for `slowdown`; 1 for others. Measured on an H200: lines that leave first pay where
/// a call's tensors and L2 are of one size, by up to 10 %, and cost 5 % where they are far larger; lines that
/// leave last pay 3 % there. In between either is level.
[[nodiscard]] double level_2_factor(const NormProblem&, std::int64_t load_hint, const DeviceTraits&);
/// Whether what a call moves takes half of L2.
[[nodiscard]] bool fills_half_of_l2(const NormProblem&, const DeviceTraits&);
/// Whether a call moves more bytes than L2 holds, so that what it reads does not stay there anyway.
[[nodiscard]] bool exceeds_l2(const NormProblem&, const DeviceTraits&);
/// Blocks that share a row where there are few long ones and nobody has tuned.
inline constexpr std::int64_t blocks_of_few_rows = 8;
/// Whether there are: each of these blocks finds a multiprocessor. Rows from 14 KB on take 5 to 8 % less so
/// than in one block, those of 128 KB half (measured on an H200).
[[nodiscard]] bool is_for_clusters(const NormProblem&, const DeviceTraits&);
/// Instructions an element of this problem takes, relative to a plain norm.
[[nodiscard]] double work_factor(const NormProblem&);

}  // namespace hone::norm
