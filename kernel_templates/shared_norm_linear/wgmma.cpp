// Variant wgmma: of linear's space what can share a norm, tokens as the left operand and all of them in one
// tile; predicted as the product without a norm.
#include "kernel_templates/kit/fixed_answers.h"
#include "kernel_templates/linear/variants.h"
#include "kernel_templates/linear/wgmma/rules.h"
#include "kernel_templates/shared_norm_linear/as_linear.h"
#include "kernel_templates/shared_norm_linear/wgmma_plan.h"

namespace hone::shared_norm_linear {
namespace {

/// linear's, without the values that no such config has.
constexpr auto product_tunables = tunables_of({
    tunable<&linear::gemm::WgmmaConfig::tile_m>("rows of a tile: tokens", {64, 128}),
    tunable<&linear::gemm::WgmmaConfig::tile_n>(
        "columns of a tile: results a token", {64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256}),
    tunable<&linear::gemm::WgmmaConfig::consumers>("warpgroups that multiply", {1, 2}),
    tunable<&linear::gemm::WgmmaConfig::ping_pong>("1: they take tiles in turn instead of sharing one",
                                                   {0, 1}),
    tunable<&linear::gemm::WgmmaConfig::blocks_per_sm>("resident blocks a multiprocessor", {1, 2}),
    tunable<&linear::gemm::WgmmaConfig::swapped>("1: the weight is the left operand", {0}),
    tunable<&linear::gemm::WgmmaConfig::tail_split>("1: tiles of a last round are split", {0}),
    tunable<&linear::gemm::WgmmaConfig::cluster_k>("parts of a sum, added up within a cluster of blocks",
                                                   {1, 2, 4}),
    tunable<&linear::gemm::WgmmaConfig::staged>(
        "1: results leave through shared memory and the copy engine; with cluster_k "
        "2: the others' sums come into memory of their own",
        {0, 1, 2}),
    tunable<&linear::gemm::WgmmaConfig::raster>("rows of tiles that are worked on together", {8}),
    tunable<&linear::gemm::WgmmaConfig::l2_hint>("1: weights leave level 2 first, x last", {0, 1}),
    programmatic_launch<&linear::gemm::WgmmaConfig::programmatic>(),
});
constexpr auto tunables = tunables_of(
    product_tunables,
    {tunable<&WgmmaConfig::neighbours>("blocks that stand side by side and take neighbouring tiles", {1})});

/// Of a block, beside what its launch asks for: a factor for each row, and a barrier.
std::int64_t factor_bytes(const WgmmaConfig& c) { return 4 * c.tile_m + 8; }
std::int64_t most_shared_bytes(const WgmmaConfig& c) {
    return linear::gemm::shared_bytes_per_sm / c.blocks_per_sm - linear::gemm::reserved_bytes;
}

constexpr Constraint constraints[] = {
    rule("all tokens are in one tile",
         [](const SharedNormProblem& p, const WgmmaConfig& c) { return p.tokens <= c.tile_m; }),
    rule("sums of two blocks that share a norm are not joined early",
         [](const SharedNormProblem& p, const WgmmaConfig& c) {
             return !linear::gemm::geometry(p.product(), c).joins_early();
         }),
    rule("in front of a norm a block of a cluster adds up whole slots of squares, and stores them itself",
         [](const SharedNormProblem& p, const WgmmaConfig& c) {
             return !p.next_norm ||
                    (c.cluster_k > 1 &&
                     linear::gemm::geometry(p.product(), c).fragments() % (2 * c.cluster_k) == 0);
         }),
    rule("factors of rows of x fit beside the ring behind a norm",
         [](const SharedNormProblem& p, const WgmmaConfig& c) {
             return !p.norm || linear::gemm::geometry(p.product(), c).shared_bytes() + factor_bytes(c) <=
                                   most_shared_bytes(c);
         }),
    {"what linear's wgmma asks for", allowed_as_linear<linear::wgmma>},
};

}  // namespace

const Variant wgmma{
    .name = "wgmma",
    .summary = "linear's wgmma, whose blocks write squares, or multiply rows of tokens with factors",
    .source = "shared_norm_linear/wgmma.cu",
    .min_arch = {9, 0, true},
    .tunables = tunables,
    .constraints = constraints,
    .kernels = wgmma_kernels,
    .plan = typed<wgmma_plan>,
    .fallback = no_fallback,
    .access_elements = accesses_of<8>,
    .predict_us = as_linear<linear::wgmma>};

}  // namespace hone::shared_norm_linear
