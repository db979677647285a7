// Element types that tensors may have. Used by every layer; holds no code that touches a device.
// Records and problem texts store the names, never the enumerator values.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hone {

enum class Dtype : std::uint8_t { fp32, fp16, bf16, int8, fp8_e4m3 };

// Element types that no operator computes in: they have names and sizes but no enumerators, so that no switch
// over element types has to think of them.
/// "int32": index tensors (lengths, starts, page numbers).
inline constexpr Dtype index_dtype{5};
/// "int64": index tensors of frameworks.
inline constexpr Dtype wide_index_dtype{6};
/// "untyped": bytes of a workspace that hold several types.
inline constexpr Dtype untyped_dtype{7};

[[nodiscard]] std::string_view name(Dtype dtype);
[[nodiscard]] std::optional<Dtype> dtype_from_name(std::string_view text);
[[nodiscard]] int size_bytes(Dtype dtype);

}  // namespace hone
