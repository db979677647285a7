#include <utility>

#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/linear/variants.h"
#include "kernel_templates/linear/wgmma/plan.h"
#include "kernel_templates/linear/wgmma/rules.h"

namespace hone::linear {
namespace {

constexpr auto tunables = tunables_of(gemm::tunables, {gemm::neighbours_tunable<&WgmmaConfig::neighbours>()});

constexpr auto elements = std::to_array<Constraint>({
    rule("tensor cores multiply fp16 and bf16",
         [](const LinearProblem& p) { return p.dtype != Dtype::fp32; }),
    rule("rows must start at multiples of 16 bytes: in is a multiple of 8",
         [](const LinearProblem& p) { return p.in % 8 == 0; }),
});
constexpr auto constraints = joined(joined(elements, gemm::rules<LinearProblem, WgmmaConfig>),
                                    gemm::order<LinearProblem, WgmmaConfig>);

/// What neighbours ask level 2 for at the same time is fetched once: less where the tensor cores are busy. A
/// stage more, for which panels take turns, hides some of what is left.
double predict(const LinearProblem& p, const WgmmaConfig& c, const DeviceTraits& traits) {
    const double fetched = c.neighbours == 1 ? 1.0 : p.tokens <= 512 ? 0.96 : 0.99;
    return gemm::predict_fetched(p, c, traits, c.staged == 3 ? 0.99 * fetched : fetched);
}

/// For more than 512 tokens: tiles of all heights and widths, so that some fill the rounds.
std::vector<WgmmaConfig> tiles_of_many_tokens(const LinearProblem& p) {
    const bool by_engine = gemm::stores_by_engine(p);
    std::vector<WgmmaConfig> configs;
    const auto add = [&](WgmmaConfig c) {
        const int step = c.swapped != 0 ? 8 : 16;
        for (const auto& [rows, consumers] : {std::pair{128, 2}, {192, 2}, {192, 3}, {256, 2}}) {
            c.tile_m = rows;
            c.consumers = consumers;
            for (const std::int64_t width : tunables[index_of(&WgmmaConfig::tile_n)].values.span()) {
                c.tile_n = width;
                if (width > 64 && width % step == 0) configs.push_back(c);
            }
        }
    };
    WgmmaConfig c;
    c.programmatic = 2;
    c.staged = by_engine ? 1 : 0;
    add(c);
    for (const std::int64_t staged : {1, 3}) {
        c.staged = by_engine ? staged : 0;
        c.neighbours = 2;
        add(c);
        if (p.tokens > 2048) continue;
        WgmmaConfig weight_left = c;
        weight_left.swapped = 1;
        weight_left.raster = 1;
        add(weight_left);
    }
    return configs;
}

/// Of layers that ring leaves: up to 8 tokens where blocks of a cluster sum up parts of rows faster than
/// mma's and gemv's warps do.
bool is_for(const LinearProblem& p) {
    if (p.tokens > 8) return true;
    if (p.norm || p.out < 512) return false;
    if (p.tokens == 1) return !p.gated && p.in > 2048;
    return p.tokens > 2 || !p.gated;
}

std::optional<WgmmaConfig> fallback(const Problem& problem, const DeviceTraits& traits) {
    const LinearProblem p(problem);
    if (!is_for(p)) return std::nullopt;
    std::vector<WgmmaConfig> configs;
    if (p.tokens > 512) configs = tiles_of_many_tokens(p);
    for (const gemm::WgmmaConfig& proven : gemm::proven_configs(p)) {
        WgmmaConfig& c = configs.emplace_back();
        static_cast<gemm::WgmmaConfig&>(c) = proven;
        if (proven.cluster_k > 1 || proven.blocks_per_sm > 1 || p.tokens <= 128) continue;
        WgmmaConfig beside = c;
        beside.neighbours = 2;
        beside.programmatic = 2;
        beside.raster = beside.swapped != 0 && beside.tile_n < p.tokens ? 1 : 8;
        configs.push_back(beside);
        for (const std::int64_t staged : {2, 3}) {
            beside.staged = staged;
            configs.push_back(beside);
        }
    }
    return gemm::with_few_early_weights(
        p, best_of(problem, wgmma, std::span<const WgmmaConfig>(configs), traits));
}

}  // namespace

const Variant wgmma{.name = "wgmma",
                    .summary = "warpgroup tensor cores fed by tensor copies, one warpgroup for the copies",
                    .source = "linear/wgmma/kernel.cu",
                    .min_arch = {9, 0, true},
                    .tunables = tunables,
                    .constraints = constraints,
                    .kernels = wgmma_kernels,
                    .plan = typed<wgmma_plan>,
                    .fallback = typed<fallback>,
                    .access_elements = typed<wgmma_access_elements>,
                    .predict_us = typed<predict>};

}  // namespace hone::linear
