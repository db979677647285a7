// Element types and their conversions, for templates compiled without any toolkit header. Rounding is to
// nearest even; subnormals are kept.
#pragma once

namespace hone {

using int8 = signed char;
using uint8 = unsigned char;
using uint16 = unsigned short;
using uint32 = unsigned int;
using int64 = long long;
using uint64 = unsigned long long;

struct fp16 {
    uint16 bits;
};
struct bf16 {
    uint16 bits;
};
/// OCP FP8 E4M3: 4 exponent bits, bias 7, 3 mantissa bits, largest 448, no infinity.
struct fp8 {
    uint8 bits;
};

__device__ inline float to_float(float value) { return value; }
__device__ inline float to_float(int8 value) { return static_cast<float>(value); }
__device__ inline float to_float(fp16 value) {
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
    return result;
}
__device__ inline float to_float(bf16 value) {
    return __uint_as_float(static_cast<uint32>(value.bits) << 16);
}
/// Exact: mantissa and exponent move into a float whose bias is 120 higher, and the product by 2^120 also
/// makes the subnormals right.
__device__ inline float to_float(fp8 value) {
    if ((value.bits & 0x7f) == 0x7f) return __uint_as_float(0x7fffffffu);
    const uint32 magnitude = static_cast<uint32>(value.bits & 0x7f) << 20;
    const float result = __uint_as_float(magnitude) * 0x1p120f;
    return (value.bits & 0x80) ? -result : result;
}

/// Two floats as two 16-bit elements, the first in the low half.
__device__ inline uint32 pack_pair(fp16, float low, float high) {
    uint32 result;
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
#else
    uint16 l, h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(l) : "f"(low));
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(high));
    result = static_cast<uint32>(h) << 16 | l;
#endif
    return result;
}

/// Round to nearest even by integer arithmetic, for chips without a conversion instruction; NaN stays NaN.
__device__ inline uint32 round_to_bf16(float value) {
    const uint32 bits = __float_as_uint(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffu;
    return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

__device__ inline uint32 pack_pair(bf16, float low, float high) {
#if __CUDA_ARCH__ >= 800
    uint32 result;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
    return result;
#else
    return round_to_bf16(high) << 16 | round_to_bf16(low);
#endif
}

/// Nearest E4M3, ties to even, magnitudes above 448 saturate.
__device__ inline uint32 round_to_fp8(float value) {
    const uint32 sign = (__float_as_uint(value) >> 24) & 0x80u;
    if (value != value) return 0x7fu;
    const float magnitude = fminf(fabsf(value), 448.0f);
    if (magnitude < 0x1p-6f) return sign | __float2uint_rn(magnitude * 0x1p9f);  // subnormals: units of 2^-9
    const uint32 bits = __float_as_uint(magnitude);
    const uint32 rounded = (bits + 0x7ffffu + ((bits >> 20) & 1u)) >> 20;
    return sign | (rounded - (120u << 3));
}

/// Two floats as two fp8 codes, the first in the low byte.
__device__ inline uint32 pack_pair(fp8, float low, float high) {
#if __CUDA_ARCH__ >= 890
    uint16 result;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(result) : "f"(high), "f"(low));
    return result;
#else
    return round_to_fp8(high) << 8 | round_to_fp8(low);
#endif
}

/// Nearest integer, ties to even, saturating, in the low byte.
__device__ inline uint32 round_to_int8(float value) {
    int result;
    asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(result) : "f"(value));
    return static_cast<uint32>(result) & 0xffu;
}

__device__ inline uint32 pack_pair(int8, float low, float high) {
    return round_to_int8(high) << 8 | round_to_int8(low);
}

template <class T>
__device__ inline T from_float(float value);
template <>
__device__ inline float from_float<float>(float value) {
    return value;
}
template <>
__device__ inline fp16 from_float<fp16>(float value) {
    return {static_cast<uint16>(pack_pair(fp16{}, value, 0.0f))};
}
template <>
__device__ inline bf16 from_float<bf16>(float value) {
    return {static_cast<uint16>(pack_pair(bf16{}, value, 0.0f))};
}
template <>
__device__ inline fp8 from_float<fp8>(float value) {
    return {static_cast<uint8>(pack_pair(fp8{}, value, 0.0f))};
}
template <>
__device__ inline int8 from_float<int8>(float value) {
    return static_cast<int8>(round_to_int8(value));
}

/// The element types in the order in which families list them as the choices of `dtype`: fp32, fp16, bf16.
template <int64 choice>
struct DtypeOf;
template <>
struct DtypeOf<0> {
    using type = float;
};
template <>
struct DtypeOf<1> {
    using type = fp16;
};
template <>
struct DtypeOf<2> {
    using type = bf16;
};

template <bool condition, class A, class B>
struct Conditional {
    using type = A;
};
template <class A, class B>
struct Conditional<false, A, B> {
    using type = B;
};

}  // namespace hone
