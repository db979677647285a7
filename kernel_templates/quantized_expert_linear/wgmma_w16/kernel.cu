// Linear layers of experts with quantized weights, variant wgmma_w16 (sm_90a): packed codes of 4 or 8 bits,
// 16-bit x. Roles, ring and results are those of products of experts (expert_linear/wgmma/roles.cuh says how
// they work); codes, scales and zero points come through the ring as in quantized_linear/wgmma_w16, whose
// consumers widen them into left operands. Tiles begin at whole blocks of codes.
#include "quantized_expert_linear/tensors.cuh"

#include "expert_linear/wgmma/tunables.cuh"
#include "quantized_linear/wgmma_w16/stage.cuh"

namespace hone::quantized_linear::w16 {
inline constexpr Stage held{.bits = ::Shape::format == 0 ? 4 : 8,
                            .group = static_cast<int>(::Shape::group),
                            .zeros = ::Shape::zeros != 0};
}
namespace hone::linear::gemm {
inline constexpr Operands operands =
    quantized_linear::w16::held.operands(
        quantized_linear::w16::form_of(static_cast<int>(::Tuned::stages_together)));
}
namespace hone::expert_linear::wgmma {
struct Sources {
    static constexpr bool copies_x = ::Tuned::copied_x != 0;
    static constexpr bool x_by_token = gathers && !copies_x;
    static constexpr bool any_column = false;
    static constexpr bool splits_tail = false;
    static constexpr int narrow_rows = x_by_token ? 0 : static_cast<int>(::Tuned::narrow_n);
    /// Without a pause codes are read up to two stages ahead.
    static constexpr int stages_together =
        ::Tuned::stages_together == 0 ? 2 : static_cast<int>(::Tuned::stages_together);
};
}  // namespace hone::expert_linear::wgmma

#include "expert_linear/wgmma/roles.cuh"
#include "quantized_expert_linear/wgmma_w16/registers.cuh"
#include "quantized_linear/wgmma_w16/product.cuh"

namespace hone::quantized_expert_linear::w16 {

namespace gemm = linear::gemm;
namespace coded = quantized_linear::w16;
using expert_linear::Tile;

/// Steps of a tile's sums, as linear's device code counts them.
__device__ inline gemm::Work work_of(const Tile& tile) {
    return {.row = expert_linear::wgmma::first_column(tile), .first_k = 0, .k_count = gemm::k_tiles};
}

class PackedWeights {
  public:
    __device__ explicit PackedWeights(const Tensors& tensors) : tensors_(tensors) {}

    __device__ void prefetch() const {}
    struct OfTile {
        quantized_linear::Tensors of;
        gemm::Work work;

        __device__ void load(uint32 shared, int k, int stage) const {
            coded::PackedWeights(of).load(shared, work, k, stage);
        }
    };
    __device__ OfTile of(const Tile& tile) const { return {of_expert(tensors_, tile.expert), work_of(tile)}; }

  private:
    const Tensors& tensors_;
};

class WidenedProducts {
  public:
    __device__ explicit WidenedProducts(const Tensors& tensors) : tensors_(tensors) {}

    __device__ void multiply(uint32 shared, int warpgroup, const Tile& tile, const gemm::Work&,
                             gemm::Ring& ring, gemm::Sums& sums) const {
        const quantized_linear::Tensors of = of_expert(tensors_, tile.expert);
        if (expert_linear::wgmma::is_narrow(tile)) {
            multiply<narrow_columns>(of, shared, warpgroup, tile, ring, sums);
        } else {
            multiply<gemm::tile_n>(of, shared, warpgroup, tile, ring, sums);
        }
    }

  private:
    static constexpr int narrow_rows = expert_linear::wgmma::Sources::narrow_rows;
    static constexpr int narrow_columns = narrow_rows != 0 ? narrow_rows : gemm::tile_n;

    template <int columns>
    __device__ static void multiply(const quantized_linear::Tensors& of, uint32 shared, int warpgroup,
                                    const Tile& tile, gemm::Ring& ring, gemm::Sums& sums) {
        coded::WidenedProduct<columns>(of).multiply(shared, warpgroup, work_of(tile), ring, sums, [] {});
    }

    const Tensors& tensors_;
};

struct Registers {
    static constexpr RoleRegisters each =
        registers_of(gemm::geometry, expert_linear::wgmma::Sources::x_by_token);
    static constexpr bool moves = each.moves;
    static constexpr int producer = each.producer;
    static constexpr int consumer = each.consumer;
};

}  // namespace hone::quantized_expert_linear::w16

extern "C" __global__ void __launch_bounds__(hone::linear::gemm::threads, Tuned::blocks_per_sm)
    quantized_expert_linear_wgmma_w16(HONE_PARAMETERS(quantized_expert_linear_wgmma_w16)) {
    const hone::expert_linear::Tensors tensors{HONE_ARGUMENTS(quantized_expert_linear_wgmma_w16)};
    using namespace hone::quantized_expert_linear;
    hone::expert_linear::wgmma::run<w16::Registers>(
        tensors, {x_map, narrow_x_map}, w16::PackedWeights(tensors), w16::WidenedProducts(tensors));
}

namespace hone::expert_linear::combine {
inline constexpr int vector = 8;
}

#include "expert_linear/combine.cuh"
#include "expert_linear/copies.cuh"
