#include <cuda.h>

#include <cstdint>
#include <cstring>

#include "tests/fake_driver/cuda/entry_point.h"

namespace {

int element_bytes(CUtensorMapDataType type) {
    switch (type) {
        case CU_TENSOR_MAP_DATA_TYPE_UINT8: return 1;
        case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
        case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16: return 2;
        case CU_TENSOR_MAP_DATA_TYPE_FLOAT32: return 4;
        default: return 0;
    }
}

std::uint64_t widest_box_bytes(CUtensorMapSwizzle swizzle) {
    switch (swizzle) {
        case CU_TENSOR_MAP_SWIZZLE_32B: return 32;
        case CU_TENSOR_MAP_SWIZZLE_64B: return 64;
        case CU_TENSOR_MAP_SWIZZLE_128B: return 128;
        default: return 256 * 4;
    }
}

}  // namespace

extern "C" {

// Refuses what the driver's documentation says that it refuses; the map begins with the tensor's address, its
// rank, and its extents, for whoever wants to look.
CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                const cuuint64_t* extents, const cuuint64_t* stride_bytes,
                                const cuuint32_t* box, const cuuint32_t* element_strides,
                                CUtensorMapInterleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                                CUtensorMapFloatOOBfill) {
    const int bytes = element_bytes(type);
    bool valid = map != nullptr && bytes != 0 && rank >= 1 && rank <= 5 && address != nullptr &&
                 reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
    for (cuuint32_t d = 0; valid && d < rank; ++d) {
        valid = extents[d] >= 1 && extents[d] <= (std::uint64_t{1} << 32) && box[d] >= 1 && box[d] <= 256 &&
                element_strides[d] == 1;
        if (valid && d + 1 < rank)
            valid = stride_bytes[d] % 16 == 0 && stride_bytes[d] < (std::uint64_t{1} << 40);
    }
    const std::uint64_t row_bytes = valid ? std::uint64_t{box[0]} * static_cast<unsigned>(bytes) : 0;
    if (!valid || row_bytes % 16 != 0 || row_bytes > widest_box_bytes(swizzle))
        return CUDA_ERROR_INVALID_VALUE;
    std::memset(map, 0, sizeof *map);
    map->opaque[0] = reinterpret_cast<std::uintptr_t>(address);
    map->opaque[1] = rank;
    for (cuuint32_t d = 0; d < rank; ++d) map->opaque[2 + d] = extents[d];
    return CUDA_SUCCESS;
}

}  // extern "C"
