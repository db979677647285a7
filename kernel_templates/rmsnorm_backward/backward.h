// RMSNorm backward on the host: the problem as plain numbers, the call's arguments, and the variants. A
// variant's plan, constraints and cost stand in <variant>.cpp beside <variant>.cu.
#pragma once

#include "kernel_templates/norm/norm.h"

namespace hone::rmsnorm_backward {

/// Index of each pointer of a call.
enum Pointer : int { dy, x, weight, dsum, dx, dweight, workspace, pointer_count };
/// Index of each scalar of a call. Strides count elements from one row to the next.
enum CallScalar : int { rows, dy_stride, x_stride, dsum_stride, dx_stride, epsilon, scalar_count };

/// As a norm of the same rows: `residual` says whether dsum is there.
[[nodiscard]] norm::NormProblem norm_problem(const Problem&);

extern const Variant held_rows;
extern const Variant two_pass;

/// A launch of the family's kernel signature: all pointers, then all scalars.
[[nodiscard]] Launch launch(const char* kernel, std::int64_t blocks, std::int64_t threads, bool programmatic);
/// The last launch of every variant, which adds partial rows of dweight: `lanes` packets of columns a block.
[[nodiscard]] Launch sum_launch(const norm::NormProblem&, std::int64_t lanes, bool programmatic);

/// What the cost model needs of a candidate.
struct Cost {
    double read_passes = 1;      ///< times that dy, x and dsum are read
    double bytes_in_flight = 0;  ///< loads that one multiprocessor keeps in flight
    double wait_us = 0;          ///< between two rounds of loads, beyond the memory's latency
    double instructions = 14;    ///< an element
    double partial_rows = 0;     ///< float32 rows of dweight that are written and read again
    double launches = 2;
    bool programmatic = false;
};
/// Modelled microseconds: launches, plus the largest of three rates - bytes over bandwidth, bytes over what
/// the loads in flight can draw, instructions over issue slots - joined by a soft maximum, plus the partial
/// rows. Constants are those of norm::predict_us(); they order candidates, and the race decides.
[[nodiscard]] double predict_us(const Problem&, const Cost&, const DeviceTraits&);

}  // namespace hone::rmsnorm_backward
