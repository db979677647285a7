#include "runtime/cuda/stream.h"

namespace hone::runtime {

Stream create_stream(const Driver& driver) {
    CUstream stream = nullptr;
    check(driver, driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "creating a stream");
    return Stream(stream, {&driver});
}

Event create_event(const Driver& driver) {
    CUevent event = nullptr;
    check(driver, driver.cuEventCreate(&event, CU_EVENT_DEFAULT), "creating an event");
    return Event(event, {&driver});
}

Graph capture(const Driver& driver, CUstream stream, const std::function<void()>& enqueue) {
    check(driver, driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
          "beginning a stream capture");
    CUgraph captured = nullptr;
    try {
        enqueue();
    } catch (...) {
        if (driver.cuStreamEndCapture(stream, &captured) == CUDA_SUCCESS && captured != nullptr)
            driver.cuGraphDestroy(captured);
        throw;
    }
    check(driver, driver.cuStreamEndCapture(stream, &captured), "ending a stream capture");
    return Graph(captured, {&driver});
}

GraphExec instantiate(const Driver& driver, const Graph& graph) {
    CUgraphExec executable = nullptr;
    check(driver, driver.cuGraphInstantiate(&executable, graph.get(), 0), "instantiating a graph");
    return GraphExec(executable, {&driver});
}

GraphExec capture_graph(const Driver& driver, CUstream stream, const std::function<void()>& enqueue) {
    return instantiate(driver, capture(driver, stream, enqueue));
}

std::int64_t node_count(const Driver& driver, const Graph& graph) {
    std::size_t nodes = 0;
    check(driver, driver.cuGraphGetNodes(graph.get(), nullptr, &nodes), "nodes of a graph");
    return static_cast<std::int64_t>(nodes);
}

bool is_capturing(const Driver& driver, CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult result = driver.cuStreamIsCapturing(stream, &status);
    if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) return true;
    check(driver, result, "stream");
    return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

double elapsed_us(const Driver& driver, CUevent start, CUevent stop) {
    float milliseconds = 0;
    check(driver, driver.cuEventElapsedTime(&milliseconds, start, stop), "time between two events");
    return 1e3 * static_cast<double>(milliseconds);
}

bool reached(const Driver& driver, CUevent event) {
    const CUresult result = driver.cuEventQuery(event);
    if (result == CUDA_ERROR_NOT_READY) return false;
    check(driver, result, "waiting for an event");
    return true;
}

}  // namespace hone::runtime
