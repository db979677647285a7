#include "kernel_templates/embedding/plain_plan.h"
#include "kernel_templates/embedding/rank.h"
#include "kernel_templates/kit/ceil_div.h"
#include "kernel_templates/kit/rules.h"

namespace hone::embedding {
namespace {

constexpr auto tunables = tunables_of({
    tunable<&PlainConfig::threads>("threads a block", {64, 128, 256, 512}),
    tunable<&PlainConfig::programmatic>("1: programmatic dependent launch", {0, 1}),
});

constexpr Constraint constraints[] = {
    rule("at least half of the threads must own columns",
         [](const EmbeddingProblem& p, const PlainConfig& c) {
             return c.threads == 64 || c.threads < 2 * p.hidden;
         }),
    programmatic_needs_sm_90<PlainConfig>,
};

double predict(const EmbeddingProblem& p, const PlainConfig& c, const DeviceTraits& traits) {
    return predict_us(p,
                      {.packets = static_cast<double>(ceil_div(p.hidden, c.threads)),
                       .vector = 1,
                       .lanes = static_cast<double>(c.threads),
                       .programmatic = c.programmatic != 0},
                      traits);
}

std::optional<PlainConfig> fallback(const EmbeddingProblem& p, const DeviceTraits& traits) {
    PlainConfig c{.threads = 64, .programmatic = traits.has_programmatic_launch() ? 1 : 0};
    while (c.threads < 256 && c.threads < p.hidden) c.threads *= 2;
    return c;
}

}  // namespace

const Variant plain{.name = "plain",
                    .summary = "a block copies a token's row element by element",
                    .source = "embedding/plain.cu",
                    .tunables = tunables,
                    .constraints = constraints,
                    .kernels = plain_kernels,
                    .plan = typed<plain_plan>,
                    .fallback = typed<fallback>,
                    .access_elements = typed<plain_access_elements>,
                    .predict_us = typed<predict>};

}  // namespace hone::embedding
