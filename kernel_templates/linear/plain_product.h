// What the variants plain of linear and of quantized_linear share on the host (plain_product.cuh on the
// device): tunables, constraints, the cost and the fallback. A variant tells of its operands.
#pragma once

#include "kernel_templates/linear/linear.h"

namespace hone::linear::plain_product {

/// Index of each tunable of either variant.
enum Index : std::size_t { tile_tokens, tile_out, tile_in, thread_tokens, thread_out, vector, programmatic };

inline constexpr Tunable tunables[] = {
    {"tile_tokens", "tokens of a block", {16, 64, 128}},
    {"tile_out", "results a token of a block", {64, 128}},
    {"tile_in", "columns that a step multiplies", {8, 16}},
    {"thread_tokens", "tokens of a thread", {2, 4, 8}},
    {"thread_out", "results a token of a thread", {4, 8}},
    {"vector", "elements, or bytes of codes, a load", {1, 4}},
    {"programmatic", "1: programmatic dependent launch", {0, 1}},
};

/// What constraints and cost need of a variant's problem and config.
struct Operands {
    LinearProblem product;              ///< its sizes
    double bytes = 0;                   ///< of weights, x and results
    std::int64_t weights_a_load = 1;    ///< elements of a weight that a load brings
    std::int64_t x_registers = 1;       ///< of a load of x on its way to shared memory
    std::int64_t weight_registers = 1;  ///< of a load of a weight, with its scales
    double stage_operations = 1;        ///< for each element of both, from registers to shared memory
};

[[nodiscard]] std::int64_t threads(const Config&);
[[nodiscard]] std::int64_t blocks(const LinearProblem&, const Config&);
/// Two buffers of floats, as in plain_product.cuh.
[[nodiscard]] std::int64_t shared_bytes(const LinearProblem&, const Config&);
/// Sums, the numbers of one column, and the operands on their way to shared memory.
[[nodiscard]] std::int64_t held_registers(const Operands&, const Config&);

/// Modelled microseconds: waves of blocks, each bound by the arithmetic of its step or by the latency of the
/// loads for the next one; and the memory.
[[nodiscard]] double predict_us(const Operands&, const Config&, const DeviceTraits&);
[[nodiscard]] Config fallback_config(const LinearProblem&, const DeviceTraits&);

// Constraints of both; `of`: the Operands of a Problem and a Config.
inline constexpr Constraint block_has_threads{"blocks have 64 to 256 threads",
                                              [](const Problem&, const Config& c, const DeviceTraits&) {
                                                  return threads(c) >= 64 && threads(c) <= 256;
                                              }};
template <auto of>
inline constexpr Constraint loads_fit_rows{"loads are as wide as the rows allow",
                                           [](const Problem& p, const Config& c, const DeviceTraits&) {
                                               return (of(p, c).product.in % 4 == 0) == (c[vector] == 4);
                                           }};
template <auto of>
inline constexpr Constraint tile_has_tokens{"tiles of more than 16 tokens are for problems that have more",
                                            [](const Problem& p, const Config& c, const DeviceTraits&) {
                                                return c[tile_tokens] == 16 ||
                                                       c[tile_tokens] < 2 * of(p, c).product.tokens;
                                            }};
template <auto of>
inline constexpr Constraint registers_fit{
    "a thread's sums and the operands on their way must fit its registers",
    [](const Problem& p, const Config& c, const DeviceTraits&) {
        return held_registers(of(p, c), c) <= 150;
    }};
template <auto of>
inline constexpr Constraint buffers_fit{"the two buffers must fit 48 KiB",
                                        [](const Problem& p, const Config& c, const DeviceTraits&) {
                                            return shared_bytes(of(p, c).product, c) <= 48 * 1024;
                                        }};

}  // namespace hone::linear::plain_product
