// The contract of a kernel family: START READING HERE.
//
// A family is one operator with its design space: constant data plus plain function pointers over (problem,
// config, device traits), so that everything about it can be tested without a GPU against made-up devices.
//
//   Field      one dimension of what a call asks         (problem.h: Problem holds the values)
//   Variant    one algorithm: a `.cu` template, its tunables, constraints, launch plan and fallback config
//   Tunable    one declared integer of a variant         (config.h: Config holds the values)
//   Plan       the ordered launches of one call          (plan.h)
//
// Problem, Config and Plan are plain values without heap memory: the dispatch library evaluates plans on its
// hot path.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel_templates/calibration.h"
#include "kernel_templates/config.h"
#include "kernel_templates/device_traits.h"
#include "kernel_templates/dtype.h"
#include "kernel_templates/plan.h"
#include "kernel_templates/problem.h"

namespace hone {

/// What one pointer of a call is. Index in the family's argument list == index in `Call::pointers`.
enum class Role : std::uint8_t {
    input,      ///< read; an activation, another one at each call
    weight,     ///< read; each layer has its own, which comes from device memory: weights, caches
    output,     ///< every element is written
    workspace,  ///< scratch of `Plan::workspace_bytes`, aligned to `workspace_alignment`
};

/// How tuning fills an input: drawn per element, seeded, never zero throughout; or, for indices, as follows.
enum class Fill : std::uint8_t {
    normal,
    uniform,
    constant,     ///< every element is fill_offset
    ramp,         ///< element i is fill_offset + i * fill_scale; exact up to 2^24, as the next
    permutation,  ///< 0 to elements - 1 shuffled, times fill_scale, plus fill_offset
    /// A ramp from 0 whose steps are drawn: like sums of fill_scale rows, each put at random, fill_offset of
    /// them at a time into different places.
    uneven_ramp,
};

/// Bytes. What cudaMalloc and every framework's allocator give.
inline constexpr std::int64_t workspace_alignment = 256;

struct Argument {
    std::string_view name;
    Role role = Role::input;
    Dtype dtype = Dtype::fp32;
    std::array<std::int64_t, 4> shape{
        1, 1, 1, 1};  ///< row-major, contiguous when tuning; unused leading extents are 1
    Fill fill = Fill::normal;
    double fill_scale = 1.0;   ///< standard deviation (normal) or half width (uniform)
    double fill_offset = 0.0;  ///< added to every value
    bool present = true;       ///< false: this problem does not use it; callers pass nullptr
    bool appended = false;     ///< of a weight: a call also writes elements of it, the same ones every time

    [[nodiscard]] std::int64_t elements() const { return shape[0] * shape[1] * shape[2] * shape[3]; }
    [[nodiscard]] std::int64_t bytes() const { return present ? elements() * size_bytes(dtype) : 0; }
};

/// One by-value argument of a call. Index in the family's list == index in `Call::scalars`.
struct ScalarArgument {
    std::string_view name;
    /// What tuning passes: contiguous strides, usual epsilon, the problem's dynamic dimensions.
    Scalar tuning_value;
};

/// The scalar argument that is the distance between two rows of a pointer argument, in elements.
struct RowStride {
    std::uint8_t scalar = 0;
    std::uint8_t pointer = 0;
};

/// How far a candidate may be from the reference, for one output. Both must hold, over the whole output:
/// sqrt(sum (out - ref)^2 / sum ref^2) <= relative_l2, and |out - ref| <= max_abs + max_rel * |ref| per
/// element. A NaN or infinity where the reference is finite fails.
struct Tolerance {
    double relative_l2 = 0;
    double max_abs = 0;
    double max_rel = 0;
};

/// Fewest bytes through device memory and operations for one call: the two floors.
struct Work {
    double bytes = 0;
    double flops = 0;
};

/// A rule that a config must obey, with the reason in words (shown by `hone spaces`).
struct Constraint {
    std::string_view reason;
    bool (*holds)(const Problem&, const Config&, const DeviceTraits&);
    /// How many of the config's tunables, from the first on, decide it: the others' values change nothing, so
    /// that a space leaves out all of them at once.
    std::size_t decided_by = max_tunables;
};

struct Candidate;

struct Variant {
    std::string_view name;     ///< "group_rows"
    std::string_view summary;  ///< one line
    std::string_view source;   ///< path below kernel_templates/, "rmsnorm/group_rows.cu"
    /// The oldest architecture; where it is specific, the only one: sm_90a's instructions exist nowhere else.
    Arch min_arch{7, 5, false};
    std::span<const Tunable> tunables;
    std::span<const Constraint> constraints;
    /// Every kernel of the image.
    std::span<const Kernel> kernels;

    /// The launches of one call. Pure, allocates nothing. Kernel names and argument lists depend on static
    /// fields and config only; grids may depend on the dynamic ones.
    Plan (*plan)(const Problem&, const Config&, const DeviceTraits&) = nullptr;
    /// A config that is safe and decent for this problem, or nothing when the variant does not cover it.
    std::optional<Config> (*fallback)(const Problem&, const DeviceTraits&) = nullptr;
    /// Width of the kernel's memory accesses in elements: every pointer and every row stride of a call must
    /// be a multiple of this many of the argument's own elements, or of 16 bytes where those are more.
    std::int64_t (*access_elements)(const Problem&, const Config&) = nullptr;
    /// Modelled time in microseconds: orders candidates before anything is compiled. Only the order matters.
    /// predicted_us() corrects it by what was measured.
    double (*predict_us)(const Problem&, const Config&, const DeviceTraits&) = nullptr;
};

struct Family {
    std::string_view name;
    std::string_view summary;
    /// The namespace of its device code below hone::, where that is not its name: rmsnorm and layernorm share
    /// `norm`.
    std::string_view device_namespace;
    std::span<const Field> fields;
    /// Variants in order of preference: the family's fallback is the first variant that offers one.
    std::span<const Variant* const> variants;
    /// The whole call, pointers before scalars: what the struct `Arguments` holds.
    std::span<const KernelArg> call_args;
    /// The scalars that are distances between rows.
    std::span<const RowStride> row_strides;

    /// Empty when the problem makes sense, else what is wrong with it, naming field, value and what is
    /// allowed. Ranges of single fields have been checked already.
    std::string (*validate)(const Problem&) = nullptr;
    std::vector<Argument> (*arguments)(const Problem&) = nullptr;
    std::vector<ScalarArgument> (*scalars)(const Problem&) = nullptr;
    Tolerance (*tolerance)(const Problem&, int argument) = nullptr;
    Work (*work)(const Problem&) = nullptr;
    /// What measurements add to the variants' cost models; empty where nothing was fitted.
    std::span<const Coefficient> calibration;
    /// A plainer problem whose winners serve this one where it has none of its own; nothing: there is none.
    std::optional<Problem> (*kin)(const Problem&) = nullptr;
    /// The kin's candidate as it serves this problem best. nullptr: as it is.
    Candidate (*from_kin)(const Problem&, const Candidate&) = nullptr;

    /// Slow and obviously right kernel; accumulates in float32 or better. Takes the same call, except that
    /// every output is a float32 array of the same shape (codes of a quantized output as their decoded
    /// values).
    std::string_view reference_source;
    std::span<const Kernel> reference_kernels;
    Plan (*reference_plan)(const Problem&) = nullptr;
};

/// A variant together with values for its tunables.
struct Candidate {
    const Variant* variant = nullptr;
    Config config;

    friend bool operator==(const Candidate&, const Candidate&) = default;
};

/// Whether the device's architecture has the variant's instructions.
[[nodiscard]] bool runs_on(const Variant&, const DeviceTraits&);

/// The candidate whose image it is launched from: itself, but for choices that matter to the launch alone.
[[nodiscard]] Candidate image_candidate(const Candidate&, Arch);

/// First reason why the config may not be used (out of the declared values, another architecture, a
/// constraint), or empty.
[[nodiscard]] std::string_view why_not(const Problem&, const Candidate&, const DeviceTraits&);
[[nodiscard]] inline bool allowed(const Problem& problem, const Candidate& candidate,
                                  const DeviceTraits& traits) {
    return why_not(problem, candidate, traits).empty();
}

/// What runs when nothing is known: the first fallback, in order of variants, that passes its own
/// constraints.
[[nodiscard]] std::optional<Candidate> fallback(const Problem&, const DeviceTraits&);

/// "group_rows threads=256 lanes=64 ..."
[[nodiscard]] std::string to_string(const Candidate&);
/// Inverse of to_string for the given family. Rejects unknown names, missing or repeated tunables, and values
/// that are not declared; `error` then says which.
[[nodiscard]] std::optional<Candidate> parse_candidate(const Family&, std::string_view text,
                                                       std::string* error = nullptr);

}  // namespace hone
