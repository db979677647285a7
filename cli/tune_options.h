// What the user asked of `hone tune`, as values.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "cli/arguments.h"
#include "cli/targets.h"
#if HONE_WITH_DECODER
#include "cli/decoder/weight_format.h"
#endif
#include "tuner/search/tuner.h"

namespace hone::cli {

/// One of `count` shares of a workload, numbered from 1.
struct Shard {
    std::size_t number = 1;
    std::size_t count = 1;
};

struct TuneCommandOptions {
    Target target;
    std::string shard;   ///< "3/8"; empty: all problems
    std::string gpu;     ///< a number, "all", or empty for the first
    std::string effort;  ///< empty: quick
    std::string budget;
    bool retune = false;
    int kernels = 0;  ///< of a static problem; 0: as many as win
    bool offline = false;
    std::string arch = "sm_90a";
    bool replay = false;
    std::string replay_file;  ///< empty: every file of configs/recorded/
    std::string record_file;
    bool dry_run = false;
    bool chain = false;
    std::int64_t kv_len = 1024;  ///< with chain
#if HONE_WITH_DECODER
    KvCacheOption kv_cache{};
#endif

    void declare(const Arguments& app);
    /// Throws Failure (usage) for contradictions and values that make no sense.
    void check() const;
    [[nodiscard]] tuner::TuneOptions tune_options() const;
    /// Throws Failure (usage).
    [[nodiscard]] std::optional<Shard> shard_asked() const;
};

/// "500ms", "90s", "10m", "2h", or seconds without a unit; at most a week. Throws Failure (usage).
[[nodiscard]] std::chrono::milliseconds duration_from(const std::string& text);

}  // namespace hone::cli
