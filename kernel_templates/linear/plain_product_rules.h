// What the variants plain of linear and of quantized_linear share beside their launch (plain_product.h):
// tunables, constraints, the cost and the fallback. A variant tells of its operands.
#pragma once

#include "kernel_templates/kit/rules.h"
#include "kernel_templates/linear/plain_product.h"

namespace hone::linear::plain_product {

inline constexpr auto tunables = tunables_of({
    tunable<&PlainConfig::tile_tokens>("tokens of a block", {16, 64, 128}),
    tunable<&PlainConfig::tile_out>("results a token of a block", {64, 128}),
    tunable<&PlainConfig::tile_in>("columns that a step multiplies", {8, 16}),
    tunable<&PlainConfig::thread_tokens>("tokens of a thread", {2, 4, 8}),
    tunable<&PlainConfig::thread_out>("results a token of a thread", {4, 8}),
    tunable<&PlainConfig::vector>("elements, or bytes of codes, a load", {1, 4}),
    programmatic_launch<&PlainConfig::programmatic>(),
});

/// What constraints and cost need of a variant's problem and config.
struct Operands {
    LinearProblem product;              ///< its sizes
    double bytes = 0;                   ///< bytes of weights, x and results
    std::int64_t weights_a_load = 1;    ///< elements of a weight that a load brings
    std::int64_t x_registers = 1;       ///< registers that a load of x takes on its way to shared memory
    std::int64_t weight_registers = 1;  ///< registers that a load of a weight takes, with its scales
    double stage_operations = 1;        ///< for each element of both, from registers to shared memory
};

/// Two buffers of floats, as in plain_product.cuh.
[[nodiscard]] std::int64_t shared_bytes(const LinearProblem&, const PlainConfig&);
/// Sums, the numbers of one column, and the operands on their way to shared memory.
[[nodiscard]] std::int64_t held_registers(const Operands&, const PlainConfig&);

/// Modelled microseconds: waves of blocks, each bound by the arithmetic of its step or by the latency of the
/// loads for the next one; and the memory.
[[nodiscard]] double predict_us(const Operands&, const PlainConfig&, const DeviceTraits&);
[[nodiscard]] PlainConfig fallback_config(const LinearProblem&, const DeviceTraits&);

inline constexpr Constraint block_has_threads =
    rule("blocks have 64 to 256 threads",
         [](const PlainConfig& c) { return c.threads() >= 64 && c.threads() <= 256; });

// P is a variant's problem type, `operands` makes what a rule needs of it and the config.
template <class P, Operands (*operands)(const P&, const PlainConfig&)>
inline constexpr Constraint loads_fit_rows = rule("loads are as wide as the rows allow",
                                                  [](const P& p, const PlainConfig& c) {
                                                      return (operands(p, c).product.in % 4 == 0) ==
                                                             (c.vector == 4);
                                                  });
template <class P, Operands (*operands)(const P&, const PlainConfig&)>
inline constexpr Constraint tile_has_tokens = rule(
    "tiles of more than 16 tokens are for problems that have more", [](const P& p, const PlainConfig& c) {
        return c.tile_tokens == 16 || c.tile_tokens < 2 * operands(p, c).product.tokens;
    });
template <class P, Operands (*operands)(const P&, const PlainConfig&)>
inline constexpr Constraint registers_fit =
    rule("a thread's sums and the operands on their way must fit its registers",
         [](const P& p, const PlainConfig& c) { return held_registers(operands(p, c), c) <= 150; });
template <class P, Operands (*operands)(const P&, const PlainConfig&)>
inline constexpr Constraint buffers_fit = rule("the two buffers must fit 48 KiB", [](const P& p,
                                                                                     const PlainConfig& c) {
    return shared_bytes(operands(p, c).product, c) <= 48 * 1024;
});

}  // namespace hone::linear::plain_product
