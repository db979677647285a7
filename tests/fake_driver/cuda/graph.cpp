#include <cuda.h>

#include <mutex>

#include "tests/fake_driver/cuda/entry_point.h"

using namespace hone::fake;

extern "C" {

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode*, size_t* count) {
    *count = graph->nodes.size();
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiate(CUgraphExec* executable, CUgraph graph, unsigned long long) {
    return in_context([&](CUctx_st&) {
        *executable = new CUgraphExec_st{.nodes = graph->nodes};
        ++machine().live["graph_exec"];
        return CUDA_SUCCESS;
    });
}

CUresult cuGraphUpload(CUgraphExec, CUstream) {
    return in_context([](CUctx_st&) { return CUDA_SUCCESS; });
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
    return in_context([&](CUctx_st& context) {
        CUstream_st& on = resolve(context, stream);
        CUresult result = CUDA_SUCCESS;
        on.in_graph = true;
        for (auto work = executable->nodes.begin(); work != executable->nodes.end() && result == CUDA_SUCCESS;
             ++work)
            result = (*work)(on);
        on.in_graph = false;
        return result;
    });
}

CUresult cuGraphExecDestroy(CUgraphExec executable) {
    const std::lock_guard lock(mutex);
    delete executable;
    --machine().live["graph_exec"];
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph) {
    const std::lock_guard lock(mutex);
    delete graph;
    --machine().live["graph"];
    return CUDA_SUCCESS;
}

}  // extern "C"
