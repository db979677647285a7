// Linear layers of experts with quantized weights, variant wgmma_w8 (sm_90a): codes of 8 bits times codes of
// 8 bits. Roles, ring and results are those of products of experts (expert_linear/wgmma/roles.cuh says how
// they work); a stage has 128 columns. Consumers multiply as in quantized_linear/wgmma_w8. x becomes codes by
// place in a launch in front (codes.cuh), so that its rows come by tensor copies whether x is gathered or
// not.
#include "quantized_expert_linear/tensors.cuh"

#include "expert_linear/wgmma/tunables.cuh"

namespace hone::linear::gemm {
inline constexpr Operands operands{.columns = 128};
}
namespace hone::expert_linear::wgmma {
struct Sources {
    static constexpr bool copies_x = false;  ///< but for its codes, which stand by place
    static constexpr bool x_by_token = false;
    /// With blocks a straight tile's columns share a scale, and begin where blocks do.
    static constexpr bool any_column = !quantized_linear::has_blocks || ::Tuned::swapped != 0;
    static constexpr bool splits_tail = false;
    static constexpr int narrow_rows = 0;
    static constexpr int stages_together = 1;
};
}  // namespace hone::expert_linear::wgmma

#include "expert_linear/wgmma/roles.cuh"
#include "quantized_linear/wgmma_w8/product.cuh"

namespace hone::quantized_expert_linear::w8 {

namespace gemm = linear::gemm;
using expert_linear::Tile;

class CodeProducts {
  public:
    __device__ explicit CodeProducts(const Tensors& tensors) : tensors_(tensors) {}

    __device__ void multiply(uint32 shared, int warpgroup, const Tile& tile, const gemm::Work&,
                             gemm::Ring& ring, gemm::Sums& sums) const {
        const quantized_linear::Tensors of = of_expert(tensors_, tile.expert);
        const quantized_linear::w8::Scales scales{of.x_scales,       of.scales,       of.up_scales,
                                                  of.x_scale_stride, of.scale_stride, tensors_.places()};
        const int place = expert_linear::wgmma::first_row(tile, tensors_.places());
        const int column = expert_linear::wgmma::first_column(tile);
        const gemm::Work work{.row = gemm::swapped ? column : place,
                              .column = gemm::swapped ? place : column,
                              .first_k = 0,
                              .k_count = gemm::k_tiles};
        quantized_linear::w8::CodeProduct(scales).multiply(shared, warpgroup, work, ring, sums, [] {});
    }

  private:
    const Tensors& tensors_;
};

/// Together the file's 64 Ki, in steps of 8.
struct Registers {
    static constexpr bool moves = gemm::geometry.blocks_per_sm == 1 && gemm::consumers == 2;
    static constexpr int producer = 40;
    static constexpr int consumer = 232;
};

}  // namespace hone::quantized_expert_linear::w8

extern "C" __global__ void __launch_bounds__(hone::linear::gemm::threads, Tuned::blocks_per_sm)
    quantized_expert_linear_wgmma_w8(HONE_PARAMETERS(quantized_expert_linear_wgmma_w8)) {
    const hone::expert_linear::Tensors tensors{HONE_ARGUMENTS(quantized_expert_linear_wgmma_w8)};
    using namespace hone::quantized_expert_linear;
    hone::expert_linear::wgmma::run<w8::Registers>(
        tensors, {x_map, x_map}, hone::expert_linear::wgmma::MatrixWeights(weight_map, up_map),
        w8::CodeProducts(tensors));
}

namespace hone::expert_linear::combine {
inline constexpr int vector = 8;
}
namespace hone::quantized_expert_linear::codes {
inline constexpr int vector = 8;
}

#include "expert_linear/combine.cuh"
#include "quantized_expert_linear/codes.cuh"
