// What a Runtime learns once, when it starts: the winners of all cache layers, and where images come from.
// Everything that is missing or broken here only degrades, with one warning each.
#pragma once

#include "cache/layers.h"
#include "hone/runtime.h"
#include "runtime/compile/image_provider.h"

namespace hone::runtime {

struct Snapshot {
    cache::Winners winners;
    ImageOptions images;
};

/// A line on stderr.
[[nodiscard]] WarningSink sink_of_stderr();
/// The caller's sink, or that of stderr.
[[nodiscard]] WarningSink warning_sink(const RuntimeOptions& options);

/// Never throws for a cache or an NVRTC that cannot be used.
[[nodiscard]] Snapshot take_snapshot(const DeviceSession& session, const RuntimeOptions& options,
                                     const WarningSink& warn);

}  // namespace hone::runtime
