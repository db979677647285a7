// The facts the cache keeps, as plain values: who measured what, on which GPU, with which toolchain, and how
// it ended. Names written to disk (status, stage, provenance) are never renamed or reused; enumerator order
// is free.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace hone::cache {

/// The kind of GPU a result is valid for. No UUID: results are shared by all GPUs of a kind.
struct GpuKey {
    std::string name;  ///< as the driver says, "NVIDIA H100 80GB HBM3"
    int compute_major = 0;
    int compute_minor = 0;
    int sm_count = 0;
    int memory_clock_mhz = 0;
    std::string mig_profile;  ///< "1g.10gb", empty without MIG

    friend auto operator<=>(const GpuKey&, const GpuKey&) = default;
};

struct Toolchain {
    std::string driver;  ///< "580.159.04"
    std::string nvrtc;   ///< "13.0"

    friend bool operator==(const Toolchain&, const Toolchain&) = default;
};

/// How a candidate ended. An expected answer, not an accident.
enum class TrialStatus : std::uint8_t {
    ok,
    over_limits,  ///< spills, too many registers or too much shared memory: not worth or not able to launch
    compile_failed,  ///< NVRTC refused it, or took longer than its limit
    launch_failed,   ///< the driver refused the launch
    wrong_result,
    timed_out,  ///< did not end within its limit; the worker was killed
    crashed,    ///< a sticky device error or a dead worker, twice, the second time alone
};

/// Where the time comes from. Only `measured` says anything about this GPU.
enum class Provenance : std::uint8_t { measured, replayed, predicted };

/// How far a trial came in the race.
enum class Stage : std::uint8_t { screened, raced, final_round };

[[nodiscard]] std::string_view name(TrialStatus);
[[nodiscard]] std::string_view name(Provenance);
[[nodiscard]] std::string_view name(Stage);
[[nodiscard]] std::optional<TrialStatus> trial_status_from_name(std::string_view);
[[nodiscard]] std::optional<Provenance> provenance_from_name(std::string_view);
[[nodiscard]] std::optional<Stage> stage_from_name(std::string_view);

struct Timing {
    double median_us = 0;
    double p10_us = 0;
    double p90_us = 0;
    int samples = 0;
    int sm_clock_mhz = 0;        ///< of the multiprocessors when the last of them ended; 0: not known
    double incumbent_ratio = 0;  ///< to the incumbent's times, round by round; 0: it did not run beside

    friend bool operator==(const Timing&, const Timing&) = default;
};

struct Resources {
    int registers = 0;
    int shared_bytes = 0;  ///< static plus dynamic
    int spill_bytes = 0;   ///< stores plus loads

    friend bool operator==(const Resources&, const Resources&) = default;
};

/// What is tuned: everything a result depends on, each in a column of its own.
struct TuningKey {
    GpuKey gpu;
    std::string family;          ///< "rmsnorm"
    std::string static_fields;   ///< "dtype=bf16 output=same residual=no hidden=4096"
    std::string dynamic_fields;  ///< "rows=16"

    friend bool operator==(const TuningKey&, const TuningKey&) = default;
    /// Problems first: the order of a bundle's rows.
    friend std::strong_ordering operator<=>(const TuningKey& a, const TuningKey& b) {
        const auto fields = [](const TuningKey& key) {
            return std::tie(key.family, key.static_fields, key.dynamic_fields, key.gpu);
        };
        return fields(a) <=> fields(b);
    }
};

/// One candidate measured on one problem. Append-only: a stored trial never changes.
struct Trial {
    TuningKey key;
    Toolchain toolchain;
    std::string candidate;      ///< "group_rows threads=256 lanes=64 ..."
    std::string template_hash;  ///< hash of the candidate's variant
    TrialStatus status = TrialStatus::ok;
    Stage stage = Stage::screened;
    Provenance provenance = Provenance::measured;
    bool winner = false;      ///< chosen by the race that ended with this row
    bool is_default = false;  ///< the family's fallback for this problem
    Timing timing;            ///< zero unless status is ok
    Resources resources;
    double energy_mj = 0;         ///< millijoules a call, 0: not measured
    std::string detail;           ///< why it failed; when ok, what disturbed its measurement
    std::int64_t created_at = 0;  ///< Unix time, milliseconds
    std::string tool_version;
    /// A winner that was chosen by what it does in a model's step, and in which: "llama-3-8b tokens=8
    /// kv=1024". Its times are those alone all the same. Empty: chosen by them. Where that step is shorter
    /// computed in another way it ends in not_kept (kept_step.h).
    std::string chain{};

    friend bool operator==(const Trial&, const Trial&) = default;
};

/// Identity of a trial: XXH3-128 over all its facts, 32 hex digits. Equal trials have equal identities, so
/// merging caches is a union.
[[nodiscard]] std::string identity(const Trial&);

/// How far a stored winner may be trusted here and now; worked out at load.
enum class Trust : std::uint8_t {
    exact,       ///< same GPU kind, same template, same toolchain
    compatible,  ///< driver or NVRTC changed since
    stale,       ///< template changed: a seed for tuning, never dispatched
    foreign,     ///< another GPU of the same compute capability: better than the fallback, and said so
    unusable,    ///< another compute capability
};
[[nodiscard]] std::string_view name(Trust);

}  // namespace hone::cache
