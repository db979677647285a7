// x of the variant mma (kernel.cu) in shared memory: a batch of panels of 64 columns, each [tokens][64]. Rows
// of 16-bit elements have their 16-byte chunks exchanged for ldmatrix; rows of codes stand one behind the
// other, as lanes read 16 bytes of them in order. Behind the panels, where x has a scale for each 128
// columns, those scales [blocks][tokens].
#pragma once

#include "device/packet.cuh"
#include "device/shared_tile.cuh"
#include "device/sync.cuh"
#include "quantized_linear/mma/geometry.cuh"
#include "quantized_linear/tensors.cuh"

namespace hone::quantized_linear::mma_blocks {

inline constexpr Geometry geometry{.tokens = Tuned::tokens,
                                   .rows = Tuned::rows,
                                   .k_warps = Tuned::k_warps,
                                   .row_warps = Tuned::row_warps,
                                   .unroll = Tuned::unroll,
                                   .products = products,
                                   .x_bytes = is_packed ? 2 : 1,
                                   .blocks_scaled = has_blocks};
static_assert(!has_blocks || geometry.panels() % 2 == 0, "batches are whole blocks of 128 columns");

inline constexpr int panel_bytes = panel * geometry.x_bytes;  ///< a token's
inline constexpr int chunks = panel_bytes / 16;

/// Place of 16 bytes in a panel.
__device__ inline uint32 chunk_place(int token, int chunk) {
    if constexpr (is_packed) return swizzled_offset<panel>(token, chunk);
    return token * panel_bytes + chunk * 16;
}

#if __CUDA_ARCH__ >= 800
__device__ inline void copy_scale(uint32 to, const float* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}
#else
__device__ inline void copy_chunk_async_or_zero(uint32 to, const void* from, bool exists) {
    store_shared(to, exists ? load_word<LoadHint::normal, 16>(from) : uint4{0, 0, 0, 0});
}
__device__ inline void copy_scale(uint32 to, const float* from) {
    store_shared(to, load_word<LoadHint::normal, 4>(from));
}
__device__ inline void commit_copies() {}
template <int pending>
__device__ inline void wait_for_copies() {}
#endif

/// Which rows of x a block multiplies; tokens that are none repeat the last.
struct TokenRows {
    int64 first;
    int64 count;

    __device__ int64 place(int token) const { return min(first + token, count - 1); }
};

/// `Rows` says where a token's row stands, as TokenRows.
template <class Rows>
class X {
  public:
    __device__ X(const Tensors& tensors, const Rows& rows, uint32 shared)
        : tensors_(tensors), rows_(rows), shared_(shared) {}

    /// Begins the copies of a batch; before sm_80 they have ended when it returns. Columns beyond x are
    /// zeros.
    __device__ void copy(int batch) const {
        const uint32 to = buffer(batch);
        constexpr int chunks_a_row = geometry.panels() * chunks;
#pragma unroll 1
        for (int i = threadIdx.x; i < geometry.tokens * chunks_a_row; i += geometry.threads()) {
            const int token = i / chunks_a_row;
            const int chunk = i % chunks_a_row;
            const int byte = (batch * chunks_a_row + chunk) * 16;
            const bool exists = byte < in * geometry.x_bytes;
            const uint8* row = reinterpret_cast<const uint8*>(tensors_.x) +
                               rows_.place(token) * tensors_.x_stride * geometry.x_bytes;
            copy_chunk_async_or_zero(
                to + chunk / chunks * geometry.tokens * panel_bytes + chunk_place(token, chunk % chunks),
                row + (exists ? byte : 0), exists);
        }
        if constexpr (has_blocks) copy_scales(batch, to + geometry.x_buffer_bytes());
        commit_copies();
    }

    /// For 8 tokens from 8 n on, 32 columns of 16 bits from 32 step on: b0 and b1 of one product of 16, and
    /// of the next.
    __device__ void load(uint32 (&words)[4], int batch, int index, int step, int n) const {
        const int lane = threadIdx.x % 32;
        load_matrices(words, panel_at(batch, index) + chunk_place(n * 8 + lane % 8, step * 4 + lane / 8));
    }
    /// The 16 codes of token 8 n + g from column 16 t of a panel on.
    __device__ uint4 load(int batch, int index, int n) const {
        return load_shared_16(panel_at(batch, index) + n * 8 * panel_bytes + threadIdx.x % 32 * 16);
    }
    /// Scale of token 8 n + 2 t + i for a panel.
    __device__ float scale(int batch, int index, int n, int i) const {
        const int token = n * 8 + threadIdx.x % 4 * 2 + i;
        return __uint_as_float(load_shared(buffer(batch) + geometry.x_buffer_bytes() +
                                           (index / 2 * geometry.tokens + token) * 4));
    }

  private:
    __device__ uint32 buffer(int batch) const { return shared_ + batch % 2 * geometry.buffer_bytes(); }
    __device__ uint32 panel_at(int batch, int index) const {
        return buffer(batch) + index * geometry.tokens * panel_bytes;
    }
    __device__ void copy_scales(int batch, uint32 to) const {
        for (int i = threadIdx.x; i < geometry.scale_blocks() * geometry.tokens; i += geometry.threads()) {
            const int block = min(batch * geometry.scale_blocks() + i / geometry.tokens, groups - 1);
            copy_scale(to + i * 4, tensors_.x_scales +
                                       rows_.place(i % geometry.tokens) * tensors_.x_scale_stride + block);
        }
    }

    const Tensors& tensors_;
    const Rows& rows_;
    uint32 shared_;
};

}  // namespace hone::quantized_linear::mma_blocks
