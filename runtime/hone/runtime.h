// The entry to Hone: one Runtime a GPU. It opens driver, compiler and tuning cache once, prepares operators,
// and counts. All methods are thread-safe; prepare() calls wait for each other. Tuning is not here: `hone
// tune` does it beforehand.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "hone/attention.h"
#include "hone/error.h"
#include "hone/linear.h"
#include "hone/norm.h"
#include "hone/quantize_weights.h"
#include "hone/quantized_linear.h"
#include "hone/report.h"

namespace hone {

struct RuntimeOptions {
    int device = 0;  ///< as the CUDA driver counts, that is, after CUDA_VISIBLE_DEVICES
    /// Tuning results and compiled images of the user; empty: HONE_CACHE, else $XDG_CACHE_HOME/hone/cache.db,
    /// else
    /// ~/.cache/hone/cache.db. A site's read-only file comes from HONE_SITE_CACHE.
    std::filesystem::path cache_file{};
    /// false: no file is read or written; only the results that Hone was shipped with are known.
    bool use_cache = true;
    /// false: as if freeze() had been called at once; every image has to be in the cache.
    bool allow_compile = true;
    /// For debugging: run() of attention and of its append first copies lengths, starts, pages, positions and
    /// slots to the host, which waits for the stream, and refuses what is out of range. HONE_CHECK_INDICES=1
    /// in the environment does the same.
    bool check_indices = false;
    /// Gets one sentence when something only degrades (an unreadable cache, a winner that does not load).
    /// Called under the lock of prepare(): it must not call the Runtime. Empty: a line on stderr.
    std::function<void(std::string_view)> on_warning{};
};

/// Since construction.
struct Counters {
    std::uint64_t runs_exact = 0;  ///< successful run() calls by the Origin of the kernel they took
    std::uint64_t runs_neighbour = 0;
    std::uint64_t runs_foreign = 0;
    std::uint64_t runs_fallback = 0;
    std::uint64_t failed_launches = 0;
    std::uint64_t prepares = 0;
    std::uint64_t compiles = 0;  ///< by NVRTC
    std::uint64_t image_cache_hits = 0;
};

class Runtime {
  public:
    /// Loads the driver, retains the device's primary context, and reads the cache layers once into an
    /// immutable snapshot: later tuning is seen by the next Runtime. Throws Error (no_gpu) without driver or
    /// device. A cache that is missing, damaged, foreign, newer, read-only or full only degrades, with a
    /// warning.
    explicit Runtime(RuntimeOptions options = {});
    Runtime(Runtime&&) noexcept;  ///< a moved-from Runtime may only be assigned to or destroyed
    Runtime& operator=(Runtime&&) noexcept;
    ~Runtime();  ///< prepared kernels stay usable

    /// Loads, or compiles, every kernel that a call of up to `max_rows` rows can reach. Throws Error:
    /// bad_argument naming field, value and what is allowed; frozen; compile_failed; failed (out of memory, a
    /// dead device).
    [[nodiscard]] RmsNormKernel prepare(const RmsNorm& norm);
    [[nodiscard]] LayerNormKernel prepare(const LayerNorm& norm);
    [[nodiscard]] RmsNormBackwardKernel prepare(const RmsNormBackward& norm);
    [[nodiscard]] LinearKernel prepare(const Linear& linear);
    [[nodiscard]] FusedFfnKernel prepare(const FusedFfn& ffn);
    [[nodiscard]] QuantizedLinearKernel prepare(const QuantizedLinear& linear);
    [[nodiscard]] QuantizedFfnKernel prepare(const QuantizedFfn& ffn);
    [[nodiscard]] QuantizeWeightsKernel prepare(const QuantizeWeights& weights);
    [[nodiscard]] AttentionKernel prepare(const Attention& attention);
    [[nodiscard]] RopeKvAppendKernel prepare(const RopeKvAppend& rope);

    /// Which kernel a call of `rows` rows takes, and why. Loads nothing, needs no prepare(). Throws like
    /// prepare().
    [[nodiscard]] Explanation explain(const RmsNorm& norm, std::int64_t rows) const;
    [[nodiscard]] Explanation explain(const LayerNorm& norm, std::int64_t rows) const;
    [[nodiscard]] Explanation explain(const RmsNormBackward& norm, std::int64_t rows) const;
    [[nodiscard]] Explanation explain(const Linear& linear, std::int64_t tokens) const;
    /// Of the first half and the second.
    [[nodiscard]] std::array<Explanation, 2> explain(const FusedFfn& ffn, std::int64_t tokens) const;
    [[nodiscard]] Explanation explain(const QuantizedLinear& linear, std::int64_t tokens) const;
    [[nodiscard]] std::array<Explanation, 2> explain(const QuantizedFfn& ffn, std::int64_t tokens) const;
    [[nodiscard]] Explanation explain(const QuantizeWeights& weights, std::int64_t out) const;
    [[nodiscard]] Explanation explain(const Attention& attention, AttentionSizes sizes) const;
    [[nodiscard]] Explanation explain(const RopeKvAppend& rope, std::int64_t tokens) const;

    /// From now on a prepare() that would have to compile throws Error (frozen) instead.
    void freeze() noexcept;

    [[nodiscard]] Counters counters() const;
    /// What the driver said at the latest run() that returned launch_failed, and to which kernel; empty: none
    /// has.
    [[nodiscard]] std::string last_launch_error() const;
    /// "NVIDIA H100 80GB HBM3"
    [[nodiscard]] std::string device_name() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace hone
