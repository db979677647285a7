// Streams, events and graphs as owners, and the few things Hone does with them. The Driver and its context
// must outlive them. All functions throw CudaError unless they say otherwise.
#pragma once

#include <cuda.h>

#include <functional>

#include "runtime/cuda/driver.h"
#include "runtime/unique_handle.h"

namespace hone::runtime {

struct StreamTraits {
    using Handle = CUstream;
    static constexpr Handle none = nullptr;
    const Driver* driver = nullptr;
    void destroy(Handle handle) const noexcept { driver->cuStreamDestroy(handle); }
};
using Stream = UniqueHandle<StreamTraits>;

struct EventTraits {
    using Handle = CUevent;
    static constexpr Handle none = nullptr;
    const Driver* driver = nullptr;
    void destroy(Handle handle) const noexcept { driver->cuEventDestroy(handle); }
};
using Event = UniqueHandle<EventTraits>;

struct GraphTraits {
    using Handle = CUgraph;
    static constexpr Handle none = nullptr;
    const Driver* driver = nullptr;
    void destroy(Handle handle) const noexcept { driver->cuGraphDestroy(handle); }
};
using Graph = UniqueHandle<GraphTraits>;

struct GraphExecTraits {
    using Handle = CUgraphExec;
    static constexpr Handle none = nullptr;
    const Driver* driver = nullptr;
    void destroy(Handle handle) const noexcept { driver->cuGraphExecDestroy(handle); }
};
using GraphExec = UniqueHandle<GraphExecTraits>;

/// Does not synchronise with the legacy default stream.
[[nodiscard]] Stream create_stream(const Driver& driver);
/// With timing.
[[nodiscard]] Event create_event(const Driver& driver);

/// Runs `enqueue`, which issues work to `stream`, under thread-local capture, and makes an executable graph
/// of it. Whatever `enqueue` throws passes through; the capture is ended in any case.
[[nodiscard]] GraphExec capture_graph(const Driver& driver, CUstream stream,
                                      const std::function<void()>& enqueue);

/// Both events must have been reached.
[[nodiscard]] double elapsed_us(const Driver& driver, CUevent start, CUevent stop);

/// Whether all work before the event is done. Never waits.
[[nodiscard]] bool reached(const Driver& driver, CUevent event);

}  // namespace hone::runtime
