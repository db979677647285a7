// Variant plain: its space, plan and preference.
#include "kernel_templates/attention_append/attention_append.h"
#include "kernel_templates/kit/fixed_answers.h"
#include "kernel_templates/kit/typed.h"

namespace hone::attention_append {
namespace {

struct PlainConfig {
    std::int64_t threads = 128;
};

constexpr auto tunables = tunables_of({
    tunable<&PlainConfig::threads>("of a block: tokens that are read together", {64, 128, 256}),
});

constexpr Kernel kernels[] = {{"attention_append_plain", call_args}};

Plan plan(const AppendProblem& p, const PlainConfig& c, const DeviceTraits&) {
    return plan_of(launch(kernels[0], grid_of(p.batch * p.heads), c.threads));
}

std::optional<PlainConfig> fallback(const AppendProblem&, const DeviceTraits&) { return PlainConfig{}; }

/// Modelled microseconds: every head reads its keys again, a thread an element at a time.
double predict(const AppendProblem& p, const PlainConfig& c, const DeviceTraits& traits) {
    const auto bytes = 2.0 * static_cast<double>(p.batch * p.heads * p.kv_len * p.head_dim);
    return 20.0 + bytes / (0.1e-6 * traits.memory_bytes_per_s) +
           0.05 * static_cast<double>(p.kv_len * p.head_dim) / static_cast<double>(c.threads);
}

}  // namespace

const Variant plain{.name = "plain",
                    .summary = "a block a query head, on CUDA cores; right everywhere, and slow",
                    .source = "attention_append/plain.cu",
                    .tunables = tunables,
                    .kernels = kernels,
                    .plan = typed<plan>,
                    .fallback = typed<fallback>,
                    .access_elements = accesses_of<1>,
                    .predict_us = typed<predict>};

}  // namespace hone::attention_append
