// The measuring worker's own kernels: fill inputs, compare outputs with the reference, and find what a kernel
// must not do. Data's way: global memory, read or written once, grid-stride; sums in double, one atomic
// addition a block. No kernel here is timed. Every result slot is a 64-bit word in a zeroed array, and zero
// means "all fine". tuner/measure/harness.h holds the host's side of every signature.
#include "device/types.cuh"
#include "harness/permutation.cuh"

namespace hone {

using harness::mix;
using harness::permuted;

// The numbers of kernel_templates/dtype.h, which the worker passes at run time.
constexpr int dtype_fp32 = 0;
constexpr int dtype_fp16 = 1;
constexpr int dtype_bf16 = 2;
constexpr int dtype_int8 = 3;
constexpr int dtype_fp8 = 4;
constexpr int dtype_int32 = 5;
constexpr int dtype_int64 = 6;

// Those of Fill in kernel_templates/family.h.
constexpr int fill_normal = 0;
constexpr int fill_constant = 2;
constexpr int fill_ramp = 3;
constexpr int fill_permutation = 4;
constexpr int fill_uneven_ramp = 5;

// Slots of one compared output.
constexpr int slot_diff2 = 0;       // double: sum of (out - ref)^2
constexpr int slot_ref2 = 1;        // double: sum of ref^2
constexpr int slot_beyond = 2;      // elements beyond max_abs + max_rel * |ref|
constexpr int slot_non_finite = 3;  // NaN or infinity where the reference is finite, or the reverse
constexpr int slot_first_bad = 4;   // elements - index of the first bad element; 0: none

__device__ inline float load(const void* data, uint64 index, int dtype) {
    switch (dtype) {
        case dtype_fp32: return static_cast<const float*>(data)[index];
        case dtype_fp16: return to_float(static_cast<const fp16*>(data)[index]);
        case dtype_bf16: return to_float(static_cast<const bf16*>(data)[index]);
        case dtype_int8: return to_float(static_cast<const int8*>(data)[index]);
        case dtype_fp8: return to_float(static_cast<const fp8*>(data)[index]);
        case dtype_int32: return static_cast<float>(static_cast<const int*>(data)[index]);
        case dtype_int64: return static_cast<float>(static_cast<const int64*>(data)[index]);
    }
    return 0.0f;
}

__device__ inline void store(void* data, uint64 index, int dtype, float value) {
    switch (dtype) {
        case dtype_fp32: static_cast<float*>(data)[index] = value; break;
        case dtype_fp16: static_cast<fp16*>(data)[index] = from_float<fp16>(value); break;
        case dtype_bf16: static_cast<bf16*>(data)[index] = from_float<bf16>(value); break;
        case dtype_int8: static_cast<int8*>(data)[index] = from_float<int8>(value); break;
        case dtype_fp8: static_cast<fp8*>(data)[index] = from_float<fp8>(value); break;
        case dtype_int32: static_cast<int*>(data)[index] = __float2int_rn(value); break;
        case dtype_int64: static_cast<int64*>(data)[index] = __float2ll_rn(value); break;
    }
}

/// Uniform in (0, 1): never 0, so that its logarithm is finite.
__device__ inline float unit(uint32 bits) { return (static_cast<float>(bits >> 8) + 0.5f) * 0x1p-24f; }

__device__ inline float draw(uint64 seed, uint64 index, int fill) {
    const uint64 random = mix(seed ^ mix(index));
    const float u = unit(static_cast<uint32>(random));
    if (fill != fill_normal) return 2.0f * u - 1.0f;
    const float v = unit(static_cast<uint32>(random >> 32));
    return sqrtf(-2.0f * __logf(u)) * __cosf(6.2831853f * v);  // Box-Muller
}

/// Up to so many rows are put into buckets one by one.
constexpr float most_drawn_rows = 4096.0f;

/// Where bucket i begins when rows are put into `buckets` of them at random, `together` rows at a time into
/// different ones, as a token goes to different experts.
__device__ inline float drawn_start(uint64 seed, uint64 i, uint64 buckets, uint32 rows, uint32 together) {
    const uint64 apart = max(buckets / together, uint64{1});
    uint32 before = 0;
    for (uint32 row = 0; row < rows; ++row) {
        const uint64 first = mix(seed ^ mix(row / together)) % buckets;
        before += (first + row % together * apart) % buckets < i ? 1 : 0;
    }
    return static_cast<float>(before);
}

/// Element i of a ramp whose ends are exact and whose other elements are off by as much as makes steps differ
/// as those of rows do that are put at random (a variance of `step`), as far as the ramp never falls.
__device__ inline float uneven(uint64 seed, uint64 i, uint64 elements, float step, float together) {
    const float rows = step * static_cast<float>(elements - 1);
    if (rows <= most_drawn_rows)
        return drawn_start(seed, i, elements - 1, __float2uint_rn(rows), max(__float2uint_rn(together), 1u));
    const float off = fminf(1.22f * sqrtf(step), 0.5f * step);
    const bool is_end = i == 0 || i == elements - 1;
    return step * static_cast<float>(i) + (is_end ? 0.0f : off * draw(seed, i, fill_constant));
}

__device__ inline uint64 first_index() { return static_cast<uint64>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline uint64 stride() { return static_cast<uint64>(gridDim.x) * blockDim.x; }

__device__ inline bool finite(float value) { return fabsf(value) <= 3.402823466e38f; }

__device__ inline void add_to_slot(uint64* slot, double warp_value) {
    for (int distance = 16; distance > 0; distance /= 2) {
        warp_value += __shfl_xor_sync(0xffffffffu, warp_value, distance);
    }
    if (threadIdx.x % 32 == 0 && warp_value != 0.0) atomicAdd(reinterpret_cast<double*>(slot), warp_value);
}

__device__ inline void add_to_slot(uint64* slot, uint64 warp_value) {
    for (int distance = 16; distance > 0; distance /= 2) {
        warp_value += __shfl_xor_sync(0xffffffffu, warp_value, distance);
    }
    if (threadIdx.x % 32 == 0 && warp_value != 0) atomicAdd(slot, warp_value);
}

}  // namespace hone

using namespace hone;

/// data[elements] = offset + scale * what `fill` says of (seed, index): random, 0, the index, or its place in
/// a permutation. Exact up to 2^24.
extern "C" __global__ void __launch_bounds__(256)
    hone_fill(void* data, uint64 elements, int dtype, int fill, float scale, float offset, uint64 seed) {
    for (uint64 i = first_index(); i < elements; i += stride()) {
        float value = 0.0f;
        if (fill == fill_ramp) value = static_cast<float>(i);
        if (fill == fill_permutation) value = static_cast<float>(permuted(seed, i, elements));
        if (fill < fill_constant) value = draw(seed, i, fill);
        const bool is_uneven = fill == fill_uneven_ramp;
        store(data, i, dtype, is_uneven ? uneven(seed, i, elements, scale, offset) : fmaf(scale, value, offset));
    }
}

/// slots[5] of one output against its float32 reference, both [elements].
extern "C" __global__ void __launch_bounds__(256)
    hone_compare(const void* out, const float* reference, uint64 elements, int dtype, float max_abs,
                 float max_rel, uint64* slots) {
    double diff2 = 0.0;
    double ref2 = 0.0;
    uint64 beyond = 0;
    uint64 non_finite = 0;
    uint64 first_bad = 0;
    for (uint64 i = first_index(); i < elements; i += stride()) {
        const float value = load(out, i, dtype);
        const float wanted = reference[i];
        bool bad = false;
        if (!finite(value) || !finite(wanted)) {
            bad = !(value == wanted || (value != value && wanted != wanted));
            non_finite += bad;
        } else {
            const double difference = static_cast<double>(value) - static_cast<double>(wanted);
            diff2 += difference * difference;
            ref2 += static_cast<double>(wanted) * static_cast<double>(wanted);
            bad =
                fabs(difference) > static_cast<double>(max_abs) + static_cast<double>(max_rel) * fabs(wanted);
            beyond += bad;
        }
        if (bad && first_bad == 0) first_bad = elements - i;
    }
    add_to_slot(slots + slot_diff2, diff2);
    add_to_slot(slots + slot_ref2, ref2);
    add_to_slot(slots + slot_beyond, beyond);
    add_to_slot(slots + slot_non_finite, non_finite);
    if (first_bad != 0) atomicMax(slots + slot_first_bad, first_bad);
}

/// *count += bytes that differ between a and b, both [bytes], both 16-byte aligned.
extern "C" __global__ void __launch_bounds__(256)
    hone_count_differences(const uint8* a, const uint8* b, uint64 bytes, uint64* count) {
    uint64 different = 0;
    const uint64 words = bytes / 8;
    for (uint64 i = first_index(); i < words; i += stride()) {
        uint64 changed = reinterpret_cast<const uint64*>(a)[i] ^ reinterpret_cast<const uint64*>(b)[i];
        for (; changed != 0; changed >>= 8) different += (changed & 0xff) != 0;
    }
    for (uint64 i = words * 8 + first_index(); i < bytes; i += stride()) different += a[i] != b[i];
    add_to_slot(count, different);
}

/// *count += bytes of data[bytes] that are not `pattern`.
extern "C" __global__ void __launch_bounds__(256)
    hone_count_other(const uint8* data, uint64 bytes, int pattern, uint64* count) {
    uint64 other = 0;
    for (uint64 i = first_index(); i < bytes; i += stride()) other += data[i] != pattern;
    add_to_slot(count, other);
}

/// *sum += a checksum of data[bytes], 16-byte aligned, that does not depend on the order of additions.
extern "C" __global__ void __launch_bounds__(256)
    hone_checksum(const uint8* data, uint64 bytes, uint64* sum) {
    uint64 total = 0;
    const uint64 words = bytes / 8;
    for (uint64 i = first_index(); i < words; i += stride()) {
        total += mix(reinterpret_cast<const uint64*>(data)[i] ^ (i * 0x9E3779B97F4A7C15ull));
    }
    for (uint64 i = words * 8 + first_index(); i < bytes; i += stride()) {
        total += mix(data[i] + i * 0xD1B54A32D192ED03ull);
    }
    add_to_slot(sum, total);
}
