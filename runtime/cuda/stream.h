// Streams, events and graphs as owners, and the few things Hone does with them. The Driver and its context
// must outlive them. All functions throw CudaError unless they say otherwise.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>

#include "runtime/cuda/driver.h"
#include "runtime/system/unique_handle.h"

namespace hone::runtime {

/// A handle that one of the driver's functions destroys. That function is a parameter, so an owner stores no
/// more than its handle and the Driver.
template <class DriverHandle, auto destroying_function>
struct DestroyedBy {
    using Handle = DriverHandle;
    static constexpr Handle none = nullptr;
    const Driver* driver = nullptr;
    void destroy(Handle handle) const noexcept { driver->give_back(destroying_function, handle); }
};
using Stream = UniqueHandle<DestroyedBy<CUstream, &Driver::cuStreamDestroy>>;
using Event = UniqueHandle<DestroyedBy<CUevent, &Driver::cuEventDestroy>>;
using Graph = UniqueHandle<DestroyedBy<CUgraph, &Driver::cuGraphDestroy>>;
using GraphExec = UniqueHandle<DestroyedBy<CUgraphExec, &Driver::cuGraphExecDestroy>>;

/// Does not synchronize with the legacy default stream.
[[nodiscard]] Stream create_stream(const Driver& driver);
/// With timing.
[[nodiscard]] Event create_event(const Driver& driver);

/// Runs `enqueue`, which issues work to `stream`, under thread-local capture. Whatever `enqueue` throws
/// passes through; the capture is ended in any case.
[[nodiscard]] Graph capture(const Driver& driver, CUstream stream, const std::function<void()>& enqueue);
[[nodiscard]] GraphExec instantiate(const Driver& driver, const Graph& graph);
/// Both.
[[nodiscard]] GraphExec capture_graph(const Driver& driver, CUstream stream,
                                      const std::function<void()>& enqueue);
/// Launches, copies and fills.
[[nodiscard]] std::int64_t node_count(const Driver& driver, const Graph& graph);

/// The legacy default stream cannot be asked while another stream is captured: then, too.
[[nodiscard]] bool is_capturing(const Driver& driver, CUstream stream);

/// Both events must have been reached.
[[nodiscard]] double elapsed_us(const Driver& driver, CUevent start, CUevent stop);

/// Whether all work before the event is done. Never waits.
[[nodiscard]] bool reached(const Driver& driver, CUevent event);

}  // namespace hone::runtime
