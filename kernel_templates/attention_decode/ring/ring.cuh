// The ring of variant ring (kernel.cu): its place in shared memory, and which unit of the cache is where.
#pragma once

#include "attention_decode/fragments.cuh"
#include "device/tma_4d.cuh"

namespace hone::attention_decode::ring {

inline constexpr Ring shape{.geometry = geometry,
                            .page_size = static_cast<int>(Shape::page_size),
                            .unit = unit,
                            .stages = static_cast<int>(Tuned::stages),
                            .producers = static_cast<int>(Tuned::producers)};
inline constexpr int stages = shape.stages;
inline constexpr bool copy_engine = shape.copy_engine();
inline constexpr int producers = shape.producer_warps();
inline constexpr int threads = shape.threads();
inline constexpr int panels = shape.panels();
inline constexpr int panel_columns = shape.panel_columns();
inline constexpr int panel_bytes = shape.panel_bytes();
inline constexpr int box_tokens = shape.box_tokens();
/// Columns of 16 bytes of a row.
inline constexpr int chunk_columns = 16 / static_cast<int>(sizeof(CacheElement));
inline constexpr int token_blocks = unit / 16;
inline constexpr int column_blocks = (head_dim + 15) / 16;
static_assert(unit % 16 == 0 && unit <= 64, "16 tokens an instruction, a page a lane");
static_assert(head_dim % chunk_columns == 0, "a head is whole chunks of 16 bytes");
/// A barrier tells two phases apart. Who waits for a stage must know that the round before has passed, and it
/// does if it was its own: units land in any order, and a warp may be laps ahead of another.
static_assert(stages % warps == 0 && stages % producers == 0,
              "a stage is always filled by the same warp and taken by the same warp");
static_assert(!copy_engine || shape.has_boxes(), "boxes are whole swizzle patterns and stay on a page");

struct Memory {
    alignas(1024) unsigned char ring[stages][2][shape.operand_bytes()];
    Shared join;
    uint64 full[2][stages];
    uint64 empty[stages];
};
static_assert(sizeof(Memory) == shape.memory_bytes(), "the host counts the same bytes");

/// Where the unit of a number stands.
struct Stage {
    int index;
    uint32 parity;

    __device__ explicit Stage(int number) : index(number % stages), parity(number / stages & 1) {}
};

/// Units of a fragment that are read at all.
__device__ inline int units_read(const Fragment& fragment) {
    return fragment.length > 0 ? fragment.units : 0;
}

/// Byte offset of chunk `chunk` of a token in an operand of a stage: as the copy engine swizzles.
__device__ inline uint32 offset_in_operand(int token, int chunk) {
    return chunk / 8 * panel_bytes + token * 128 + ((chunk % 8 ^ token % 8) << 4);
}

}  // namespace hone::attention_decode::ring
