#include "kernel_templates/kit/rules.h"
#include "kernel_templates/sample/plain_plan.h"
#include "kernel_templates/sample/rank.h"

namespace hone::sample {
namespace {

constexpr auto tunables = tunables_of({
    tunable<&PlainConfig::threads>("threads a block", {128, 256, 512, 1024}),
    tunable<&PlainConfig::vector>("elements a memory access", {1, 2, 4, 8}),
    tunable<&PlainConfig::programmatic>("1: programmatic dependent launch", {0, 1}),
});

constexpr Constraint constraints[] = {
    vector_is_widest<PlainConfig>,
    rule("at least half of the threads must own logits",
         [](const SampleProblem& p, const PlainConfig& c) {
             return c.threads == 128 || c.threads * c.vector < 2 * p.vocabulary;
         }),
    programmatic_needs_sm_90<PlainConfig>,
};

double predict(const SampleProblem& p, const PlainConfig& c, const DeviceTraits& traits) {
    return predict_us(p,
                      {.blocks = 1,
                       .threads = static_cast<double>(c.threads),
                       .tokens = static_cast<double>(p.vocabulary),
                       .programmatic = c.programmatic != 0},
                      traits);
}

std::optional<PlainConfig> fallback(const SampleProblem& p, const DeviceTraits& traits) {
    PlainConfig c{.threads = 1024,
                  .vector = widest_vector(p),
                  .programmatic = traits.has_programmatic_launch() ? 1 : 0};
    while (c.threads > 128 && c.threads * c.vector >= 2 * p.vocabulary) c.threads /= 2;
    return c;
}

}  // namespace

const Variant plain{.name = "plain",
                    .summary = "a block reads its row anew for each step, on any chip",
                    .source = "sample/plain.cu",
                    .tunables = tunables,
                    .constraints = constraints,
                    .kernels = plain_kernels,
                    .plan = typed<plain_plan>,
                    .fallback = typed<fallback>,
                    .access_elements = typed<plain_access_elements>,
                    .predict_us = typed<predict>};

}  // namespace hone::sample
