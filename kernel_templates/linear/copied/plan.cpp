#include "kernel_templates/linear/copied/plan.h"

namespace hone::linear {
namespace {

/// Room for copied rows in the workspace, behind what is there, for parameter `member` of the launch that
/// writes them. Returns where they begin.
std::int64_t add_rows(Plan& plan, Launch& copies, int member, std::int64_t bytes) {
    const std::int64_t offset = round_up(plan.workspace_bytes, workspace_alignment);
    plan.workspace_bytes = offset + bytes;
    substitute(copies, static_cast<std::uint8_t>(copied_rows_member + member),
               add_value(plan, {.number = offset, .pointer = workspace}));
    return offset;
}

}  // namespace

Plan copied_plan(const LinearProblem& p, const gemm::WgmmaConfig& c, const DeviceTraits& traits) {
    LinearProblem rows = p;
    rows.in = copies::pitch_of(p.in);
    Plan plan = gemm::plan_product(copied_kernels[0], rows, c, traits,
                                   {.result = p.dtype,
                                    .x = workspace,
                                    .weight = workspace,
                                    .up = workspace,
                                    .x_stride = TensorMap::no_gaps,
                                    .weight_stride = TensorMap::no_gaps,
                                    .up_stride = TensorMap::no_gaps});
    const std::int64_t chunks = (p.tokens + p.products() * p.out) * copies::chunks_of(p.in);
    Launch copies = launch(copied_kernels[1], grid_of(ceil_div(chunks, copies::threads)), copies::threads);
    copies.programmatic = plan.launches[0].programmatic;
    plan.tensor_maps[0].offset_bytes = add_rows(plan, copies, 0, copied_bytes(p, p.tokens));
    plan.tensor_maps[4].offset_bytes = plan.tensor_maps[0].offset_bytes;  // the rest of x
    plan.tensor_maps[1].offset_bytes = add_rows(plan, copies, 1, copied_bytes(p, p.out));
    if (p.gated) plan.tensor_maps[2].offset_bytes = add_rows(plan, copies, 2, copied_bytes(p, p.out));
    plan.launches[1] = plan.launches[0];
    plan.launches[0] = copies;
    plan.launch_count = 2;
    return normalize_first(p, plan, copied_kernels[2]);
}

}  // namespace hone::linear
