#include <string>

#include "kernel_templates/kit/launches.h"
#include "kernel_templates/kit/tunables.h"
#include "kernel_templates/kit/work.h"
#include "kernel_templates/linear/ring/plan.h"
#include "kernel_templates/linear/variants.h"
#include "kernel_templates/linear/wgmma/plan.h"
#include "kernel_templates/shared_norm_linear/shared_norm_linear.h"
#include "kernel_templates/shared_norm_linear/sharing.h"

namespace hone {

extern const Family linear_family;

namespace shared_norm_linear {

// linear's plans know x, its stride and so on by their places.
static_assert(x == static_cast<int>(linear::x) && weight == static_cast<int>(linear::weight) &&
              up == static_cast<int>(linear::up) && out == static_cast<int>(linear::out) &&
              workspace == static_cast<int>(linear::workspace) &&
              x_stride == static_cast<int>(linear::x_stride) &&
              weight_stride == static_cast<int>(linear::weight_stride) &&
              up_stride == static_cast<int>(linear::up_stride) &&
              out_stride == static_cast<int>(linear::out_stride));

Problem linear_problem(const Problem& sharing) {
    const linear::LinearProblem p = SharedNormProblem(sharing).product();
    // In the order of the family's fields.
    return {.family = &linear_family,
            .values = {static_cast<std::int64_t>(p.dtype), p.norm, static_cast<std::int64_t>(p.activation),
                       p.gated, p.bias, p.residual, p.in, p.out, p.tokens}};
}

namespace {

const Variant* const variants[] = {&ring, &wgmma, &strips, &gemv, &plain};

std::string validate(const Problem& problem) {
    if (std::string error = wrong_sharing(SharedNormProblem(problem)); !error.empty()) return error;
    return linear_family.validate(linear_problem(problem));
}

Tolerance tolerance(const Problem& problem, int argument) {
    const Tolerance result = linear_family.tolerance(linear_problem(problem), linear::out);
    return argument == squares ? tolerance_of_squares(result) : tolerance_of_results(result);
}

Work work(const Problem& problem) {
    Work work = linear_family.work(linear_problem(problem));
    work.bytes += bytes_of_sharing(SharedNormProblem(problem));
    return work;
}

std::optional<Problem> kin(const Problem& problem) { return linear_problem(problem); }
/// Blocks of a cluster own shares of a tile's rows; where these are no whole slots, a block takes a tile
/// alone.
Config ring_from_kin(const SharedNormProblem& p, linear::RingConfig config) {
    if (p.next_norm && config.rows / config.cluster_k % linear::square_columns != 0) config.cluster_k = 1;
    return config_of(config);
}

Candidate from_kin(const Problem& problem, const Candidate& candidate) {
    if (candidate.variant == &linear::ring)
        return {&ring,
                ring_from_kin(SharedNormProblem(problem), values_of<linear::RingConfig>(candidate.config))};
    if (candidate.variant == &linear::wgmma) return {&wgmma, candidate.config};
    if (candidate.variant == &linear::strips) return {&strips, candidate.config};
    if (candidate.variant == &linear::gemv) return {&gemv, candidate.config};
    return candidate;
}

constexpr Kernel reference_kernels[] = {{"shared_norm_linear_reference", call_args}};

Plan reference_plan(const Problem& problem) {
    const SharedNormProblem p(problem);
    return plan_of(launch(reference_kernels[0], grid_of(p.blocks(1)), 32 * linear::square_columns));
}

}  // namespace
}  // namespace shared_norm_linear

extern const Family shared_norm_linear_family;
const Family shared_norm_linear_family = shared_norm_linear::declared({
    .device_namespace = "linear",
    .variants = shared_norm_linear::variants,
    .validate = shared_norm_linear::validate,
    .tolerance = shared_norm_linear::tolerance,
    .work = shared_norm_linear::work,
    .kin = shared_norm_linear::kin,
    .from_kin = shared_norm_linear::from_kin,
    .reference_source = "shared_norm_linear/reference.cu",
    .reference_kernels = shared_norm_linear::reference_kernels,
    .reference_plan = shared_norm_linear::reference_plan,
});

}  // namespace hone
