// Linear layers of experts, variant wgmma (sm_90a): weights and x of 16 bits, both through shared memory.
// roles.cuh says how it works.
#include "expert_linear/wgmma/tunables.cuh"

namespace hone::linear::gemm {
inline constexpr Operands operands{};
}
namespace hone::expert_linear::wgmma {
struct Sources {
    static constexpr bool copies_x = ::Tuned::copied_x != 0;
    static constexpr bool x_by_token = gathers && !copies_x;
    static constexpr bool any_column = true;  ///< tiles of results may begin anywhere
    static constexpr bool splits_tail = ::Tuned::tail_split != 0;
    static constexpr int narrow_rows = 0;
    static constexpr int stages_together = 1;  ///< that consumers need at once, beside the next one
};
}  // namespace hone::expert_linear::wgmma

#include "expert_linear/wgmma/roles.cuh"

namespace hone::expert_linear::wgmma {

/// Together the file's 64 Ki, in steps of 8.
struct Registers {
    static constexpr bool moves = geometry.blocks_per_sm == 1 && gemm::consumers == 2;
    static constexpr int producer = 56;
    static constexpr int consumer = 224;
};

struct ElementProducts {
    __device__ void multiply(uint32 shared, int warpgroup, const Tile&, const gemm::Work& steps,
                             gemm::Ring& ring, gemm::Sums& sums) const {
        gemm::ElementProduct().multiply(shared, warpgroup, steps, ring, sums, [] {});
    }
};

}  // namespace hone::expert_linear::wgmma

extern "C" __global__ void __launch_bounds__(hone::linear::gemm::threads, Tuned::blocks_per_sm)
    expert_linear_wgmma(HONE_PARAMETERS(expert_linear_wgmma)) {
    const hone::expert_linear::Tensors tensors{HONE_ARGUMENTS(expert_linear_wgmma)};
    using namespace hone::expert_linear::wgmma;
    run<Registers>(tensors, {x_map, x_map}, MatrixWeights(weight_map, up_map), ElementProducts());
}

namespace hone::expert_linear::combine {
inline constexpr int vector = 8;
}

#include "expert_linear/combine.cuh"
#include "expert_linear/copies.cuh"
