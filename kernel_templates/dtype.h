// Element types that tensors may have. Used by every layer; holds no code that touches a device.
// Records and problem texts store the names, never the enumerator values.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hone {

enum class Dtype : std::uint8_t { fp32, fp16, bf16, int8, fp8_e4m3 };

/// Of index tensors (lengths, starts, page numbers): "int32". No enumerator, for no operator computes in it
/// and no switch over element types has to think of it.
inline constexpr Dtype index_dtype{5};

[[nodiscard]] std::string_view name(Dtype dtype);
[[nodiscard]] std::optional<Dtype> dtype_from_name(std::string_view text);
[[nodiscard]] int size_bytes(Dtype dtype);

}  // namespace hone
