// Linear layers of experts, variant drawn (sm_90a), for few rows an expert, where memory decides: wgmma's
// ring, products and results with the weight as the left operand (wgmma/roles.cuh says how they work), and
// tiles that blocks draw when they have asked for all of the one before. A multiprocessor that memory serves
// slowly so takes fewer tiles, and the others need not wait for it at the end.
//
// Data's way is wgmma's. Who draws is the producer's first thread; the numbers of tiles go through two words
// of shared memory in turn to all warps (numbers.cuh), which find them in the call's starts.
//
// Barriers: wgmma's pair a stage, and for each of the two words
//   given[w]  an arrival of the thread that draws. All warps wait for it.
//   taken[w]  an arrival of every warp that has read the word. The thread that draws waits for it before it
//             writes the word again.
#include "expert_linear/wgmma/tunables.cuh"

namespace hone::linear::gemm {
inline constexpr Operands operands{};
}
namespace hone::expert_linear::wgmma {
struct Sources {
    static constexpr bool copies_x = ::Tuned::copied_x != 0;
    static constexpr bool x_by_token = gathers && !copies_x;
    static constexpr bool any_column = true;
    static constexpr bool splits_tail = false;
    static constexpr int narrow_rows = 0;
    static constexpr int stages_together = 1;
};
}  // namespace hone::expert_linear::wgmma

#include "expert_linear/drawn/roles.cuh"

extern "C" __global__ void __launch_bounds__(hone::linear::gemm::threads, Tuned::blocks_per_sm)
    expert_linear_drawn(HONE_PARAMETERS(expert_linear_drawn)) {
    const hone::expert_linear::Tensors tensors{HONE_ARGUMENTS(expert_linear_drawn)};
    using namespace hone::expert_linear;
    drawn::run(tensors, {x_map, x_map}, wgmma::MatrixWeights(weight_map, up_map));
}

namespace hone::expert_linear::combine {
inline constexpr int vector = 8;
}

#include "expert_linear/combine.cuh"
#include "expert_linear/copies.cuh"
