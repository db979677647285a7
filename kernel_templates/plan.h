// The ordered launches of one call, as plain values without heap memory, and the call's own arguments.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "kernel_templates/dtype.h"

namespace hone {

inline constexpr int max_launches = 3;
inline constexpr int max_kernel_args = 44;
inline constexpr int max_substitutions = 6;
inline constexpr int max_tensor_maps = 6;
inline constexpr int max_plan_values = 8;
inline constexpr int max_call_pointers = 16;
inline constexpr int max_call_scalars = 24;

struct Dim3 {
    std::uint32_t x = 1;
    std::uint32_t y = 1;
    std::uint32_t z = 1;

    friend bool operator==(const Dim3&, const Dim3&) = default;
};

/// One parameter of a kernel: its name there, and where its value stands, in the call or among the plan's
/// tensor maps and values.
struct KernelArg {
    enum class Kind : std::uint8_t {
        pointer,       ///< one of Call::pointers
        scalar,        ///< one of Call::scalars: a long long
        narrow,        ///< one of Call::scalars: an int, the low half
        real,          ///< one of Call::scalars: a float
        tensor_map,    ///< one of Plan::tensor_maps
        value,         ///< one of Plan::values: a long long
        narrow_value,  ///< one of Plan::values: an int
    };
    Kind kind = Kind::pointer;
    std::uint8_t index = 0;
    const char* name = "";

    [[nodiscard]] constexpr std::size_t bytes() const {
        if (kind == Kind::tensor_map) return 128;
        return kind == Kind::narrow || kind == Kind::real || kind == Kind::narrow_value ? 4 : 8;
    }
};

[[nodiscard]] constexpr KernelArg pointer_arg(int index, const char* name) {
    return {KernelArg::Kind::pointer, static_cast<std::uint8_t>(index), name};
}
[[nodiscard]] constexpr KernelArg scalar_arg(int index, const char* name) {
    return {KernelArg::Kind::scalar, static_cast<std::uint8_t>(index), name};
}
[[nodiscard]] constexpr KernelArg narrow_arg(int index, const char* name) {
    return {KernelArg::Kind::narrow, static_cast<std::uint8_t>(index), name};
}
[[nodiscard]] constexpr KernelArg float_arg(int index, const char* name) {
    return {KernelArg::Kind::real, static_cast<std::uint8_t>(index), name};
}
[[nodiscard]] constexpr KernelArg tensor_map_arg(int index, const char* name) {
    return {KernelArg::Kind::tensor_map, static_cast<std::uint8_t>(index), name};
}
[[nodiscard]] constexpr KernelArg value_arg(int index, const char* name) {
    return {KernelArg::Kind::value, static_cast<std::uint8_t>(index), name};
}
[[nodiscard]] constexpr KernelArg narrow_value_arg(int index, const char* name) {
    return {KernelArg::Kind::narrow_value, static_cast<std::uint8_t>(index), name};
}

/// A kernel of an image and its parameters, in order. Constant data of a variant: source.h renders the list
/// from it, the launcher fills it in.
struct Kernel {
    const char* name = "";  ///< extern "C" name in the image
    std::span<const KernelArg> args;
};

/// A number that the plan makes up, or the address so many bytes behind a pointer of the call.
struct PlanValue {
    static constexpr std::int8_t no_pointer = -1;
    std::int64_t number = 0;
    std::int8_t pointer = no_pointer;  ///< index in Call::pointers

    friend bool operator==(const PlanValue&, const PlanValue&) = default;
};

/// A tensor of the call as the tensor memory accelerator (TMA, sm_90 and later) sees it: kernels copy boxes
/// of it, parts of a box beyond the extents read as zeros and are not written. Dimension 0 is the innermost,
/// whose elements are contiguous. Described anew for each call, since extents and strides may be dynamic; the
/// struct that the kernel takes holds it as a `TensorMap`. The base must be aligned to 16 bytes, strides be
/// multiples of 16 bytes, and box[0] take at most `swizzle_bytes`, where that is not 0.
struct TensorMap {
    /// In `stride_scalars`: as far apart as the extents below say.
    static constexpr std::uint8_t no_gaps = 255;
    /// In `extent_scalars`: as `extents` says.
    static constexpr std::uint8_t fixed = 255;

    /// In `same_as`: a map of its own.
    static constexpr std::uint8_t none = 255;

    std::uint8_t pointer = 0;  ///< index in Call::pointers
    Dtype dtype = Dtype::bf16;
    std::uint8_t rank = 2;                   ///< 2 to 5
    std::uint8_t swizzle_bytes = 0;          ///< 0, 32, 64 or 128
    std::array<std::uint32_t, 5> extents{};  ///< elements, at least 1
    std::array<std::uint8_t, 4>
        stride_scalars{};  ///< index in Call::scalars for dimensions 1 and up, elements; or no_gaps
    std::array<std::uint16_t, 5> box{};  ///< elements, 1 to 256
    std::int64_t offset_bytes = 0;       ///< where the tensor begins behind its pointer
    /// Index in Call::scalars of the extent, for what only the call knows: tokens of a packed tensor.
    std::array<std::uint8_t, 5> extent_scalars{fixed, fixed, fixed, fixed, fixed};
    /// Index of an earlier map that the kernel gets in place of this one, which it does not read; or none.
    std::uint8_t same_as = none;

    friend bool operator==(const TensorMap&, const TensorMap&) = default;
};

/// A launch takes a value of the plan for an argument of the call: with it one launch hands the next a tensor
/// in the workspace in place of the call's own.
struct Substitution {
    std::uint8_t arg = 0;    ///< index in Kernel::args
    std::uint8_t value = 0;  ///< index in Plan::values

    friend bool operator==(const Substitution&, const Substitution&) = default;
};

struct Launch {
    const Kernel* kernel = nullptr;  ///< lives as long as the program
    Dim3 grid;
    Dim3 block;
    Dim3 cluster;  ///< 1,1,1: none
    std::uint32_t shared_bytes = 0;
    bool programmatic =
        false;  ///< programmatic stream serialization: may start before its predecessor has ended
    std::uint8_t substitution_count = 0;
    std::array<Substitution, max_substitutions> substitutions{};

    [[nodiscard]] bool has_cluster() const { return cluster.x * cluster.y * cluster.z > 1; }
};

/// Places for plain values, of which only those that were assigned may be read: a plan is made at each call,
/// and most of its places stay empty.
template <class T, std::size_t capacity>
class Slots {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

  public:
    constexpr Slots() {}  // leaves the items uninitialized, which `= default` may not

    constexpr T& operator[](std::size_t i) { return items_[i]; }
    constexpr const T& operator[](std::size_t i) const { return items_[i]; }
    [[nodiscard]] constexpr std::span<const T> first(int count) const {
        return std::span<const T>(items_).first(static_cast<std::size_t>(count));
    }
    [[nodiscard]] static constexpr std::size_t size() { return capacity; }

  private:
    union {
        T items_[capacity];
    };
};

struct Plan {
    int launch_count = 0;
    int first_launch = 0;  ///< those before it are left out
    /// Its first launch and that of another plan, of which this is said too, may run at the same time: the
    /// one in front leaves multiprocessors to the other when it is planned for fewer, and the other starts
    /// early and ends last where the call says that it stands behind it.
    bool runs_beside = false;
    Slots<Launch, max_launches> launches;
    int tensor_map_count = 0;
    Slots<TensorMap, max_tensor_maps> tensor_maps;
    int value_count = 0;
    Slots<PlanValue, max_plan_values> values;
    std::int64_t workspace_bytes = 0;
};

/// Eight bytes handed to a kernel by value; what is narrower there takes the low bytes.
struct Scalar {
    std::uint64_t bits = 0;

    static constexpr Scalar of(std::int64_t value) { return {static_cast<std::uint64_t>(value)}; }
    static constexpr Scalar of(float value) { return {std::bit_cast<std::uint32_t>(value)}; }
};

/// The arguments of one call, indexed as the family declares them; null and 0 until they are assigned.
struct Call {
    std::array<void*, max_call_pointers> pointers{};
    std::array<Scalar, max_call_scalars> scalars{};
};

}  // namespace hone
