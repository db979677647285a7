#include <cuda.h>

#include "tests/fake_driver/cuda/entry_point.h"

using namespace hone::fake;

namespace {

LaunchRequest request_of(CUfunction function, const CUlaunchConfig& config, bool extended) {
    LaunchRequest request{.function = function,
                          .record = {.kernel = {},
                                     .grid = {config.gridDimX, config.gridDimY, config.gridDimZ},
                                     .block = {config.blockDimX, config.blockDimY, config.blockDimZ},
                                     .cluster = {1, 1, 1},
                                     .shared_bytes = config.sharedMemBytes,
                                     .extended = extended ? 1 : 0,
                                     .programmatic = 0,
                                     .parameter_count = 0,
                                     .parameters = {},
                                     .duration_us = 0},
                          .pointers = {}};
    for (unsigned int i = 0; i < config.numAttrs; ++i) {
        const CUlaunchAttribute& attribute = config.attrs[i];
        if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            request.record.cluster[0] = attribute.value.clusterDim.x;
            request.record.cluster[1] = attribute.value.clusterDim.y;
            request.record.cluster[2] = attribute.value.clusterDim.z;
        }
        if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
            request.record.programmatic = attribute.value.programmaticStreamSerializationAllowed;
        }
    }
    return request;
}

}  // namespace

extern "C" {

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z,
                        unsigned int shared_bytes, CUstream stream, void** parameters, void**) {
    CUlaunchConfig config{};
    config.gridDimX = grid_x;
    config.gridDimY = grid_y;
    config.gridDimZ = grid_z;
    config.blockDimX = block_x;
    config.blockDimY = block_y;
    config.blockDimZ = block_z;
    config.sharedMemBytes = shared_bytes;
    return in_context([&](CUctx_st& context) {
        return machine().launch(resolve(context, stream), request_of(function, config, false), parameters);
    });
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters, void**) {
    return in_context([&](CUctx_st& context) {
        return machine().launch(resolve(context, config->hStream), request_of(function, *config, true),
                                parameters);
    });
}

}  // extern "C"
