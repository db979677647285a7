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

/// The caller's sink, or a line on stderr.
[[nodiscard]] WarningSink warning_sink(const RuntimeOptions& options);

/// Never throws for a cache or an NVRTC that cannot be used.
[[nodiscard]] Snapshot take_snapshot(const DeviceSession& session, const RuntimeOptions& options,
                                     const WarningSink& warn);

}  // namespace hone::runtime
