// What the runtime tells about its choices: which kernel serves which sizes, where that knowledge comes from,
// and how it could be better. Plain values; nothing here touches a device.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

/// Why a kernel serves a bucket, best first.
enum class Origin : std::uint8_t {
    exact,      ///< the winner measured for this very bucket on this kind of GPU
    neighbour,  ///< the winner of a measured bucket nearby, or of the same product without norm or epilogue
    foreign,    ///< the winner of another GPU of the same compute capability
    fallback,   ///< nothing is known: the family's safe default
};
inline constexpr int origin_count = 4;

/// How far the measurement behind a choice may be trusted here and now.
enum class Trust : std::uint8_t {
    none,        ///< not measured (fallback)
    exact,       ///< same kind of GPU, same kernel, same driver and compiler
    compatible,  ///< the driver or the compiler has changed since
    foreign,     ///< measured on another GPU
};

/// Where the machine code of a bucket came from.
enum class ImageOrigin : std::uint8_t {
    compiled,  ///< by NVRTC, now
    cached,    ///< from the image cache
    shared,    ///< another bucket or an earlier prepare() had loaded it already
};

[[nodiscard]] std::string_view name(Origin origin);
[[nodiscard]] std::string_view name(Trust trust);
[[nodiscard]] std::string_view name(ImageOrigin origin);

/// Sizes of one kind that a bucket serves: from `first` to `last`.
struct SizeRange {
    std::string name;  ///< "rows", "tokens", "batch", "kv_len"
    std::int64_t first = 0;
    std::int64_t last = 0;
};

/// One bucket of a prepared operator: all calls whose sizes lie in all of its ranges.
struct BucketReport {
    std::vector<SizeRange> sizes;
    std::string candidate;  ///< "group_rows threads=256 lanes=64 ..."
    Origin origin = Origin::fallback;
    Trust trust = Trust::none;
    /// Where the candidate won: "rows=16", of another problem with what differs: "tokens=8 norm=no"; empty
    /// for a fallback.
    std::string measured_at;
    ImageOrigin image = ImageOrigin::compiled;
    double load_ms = 0;        ///< compiling or reading, and loading
    std::string note;          ///< why a better known candidate was not taken; usually empty
    std::string tune_command;  ///< what would improve this bucket; empty when it is exact
};

/// What one prepare() did for an operator, or for a part of it.
struct PrepareReport {
    /// Which part: "first", "second", "up to 4 queries", "prefill"; empty: the operator has but one.
    std::string part{};
    std::string problem;  ///< "rmsnorm dtype=bf16 output=same residual=no hidden=4096 rows=8192"
    std::vector<BucketReport> buckets;
    std::string tune_command;  ///< would make every bucket exact; empty when all are
    double elapsed_ms = 0;
};

/// Why one size runs the kernel that it runs.
struct Explanation {
    std::string problem;
    BucketReport bucket;      ///< its image fields are unset: explaining loads nothing
    double measured_us = 0;   ///< median of the chosen candidate where it was measured; 0: not measured
    int measured_at_mhz = 0;  ///< the multiprocessors' clock in that measurement; 0: not known
    std::string measured_on;  ///< GPU, driver and compiler of the measurement
    std::string layer;        ///< cache layer that knows it: "user", "site", "packaged"
    /// The model's step in which it was chosen: "llama-3-8b tokens=8 kv=1024", with " kept=no" behind it
    /// where that step is shorter computed in another way. Empty: it was the fastest alone.
    std::string chain;
    std::string fallback;   ///< what would run without any knowledge
    std::string runner_up;  ///< second best trial of that measurement, if the cache has it
    double runner_up_us = 0;
    std::vector<std::string> tied_with;    ///< candidates that could have won as well, the closest first
    double tied_within = 0;                ///< how far off the furthest is: 0.004 is 0.4 %
    std::vector<std::string> passed_over;  ///< stored results that were not taken, one sentence each
};

/// For people: several lines, each ending in a newline.
[[nodiscard]] std::string to_string(const PrepareReport& report);
[[nodiscard]] std::string to_string(const Explanation& explanation);

}  // namespace hone
