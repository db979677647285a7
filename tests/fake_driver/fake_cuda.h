// What tests may ask the fake driver, as C symbols of libfake_cuda.so: look them up with dlsym in the library
// that HONE_FAKE_CUDA names, after Driver::load() has opened it.
#pragma once

extern "C" {

/// One kernel launch as the driver got it; graph launches count each kernel node when the graph runs.
struct FakeLaunch {
    char kernel[64];
    unsigned int grid[3];
    unsigned int block[3];
    unsigned int cluster[3];  ///< 1,1,1 without the attribute
    unsigned int shared_bytes;
    int extended;         ///< through cuLaunchKernelEx
    int programmatic;     ///< programmatic stream serialization asked for
    int parameter_count;  ///< as many as the source shows plainly: pointers, ints, floats, tensor maps
    unsigned long long parameters[24];  ///< a tensor map's is its address
    double duration_us;
};

/// Launches since the script was read; only the last 4096 are kept.
int fake_cuda_launch_count();
/// The index-th launch, 0 the first; nullptr when there is none, or it is no longer kept. Valid until the
/// next launch.
const FakeLaunch* fake_cuda_launch(int index);

/// Objects that were made and not destroyed: "memory", "module", "stream", "event", "graph", "graph_exec",
/// "context".
int fake_cuda_live(const char* kind);

/// Reads HONE_FAKE_SCRIPT again and forgets launches, counts and errors (not the live objects).
void fake_cuda_reset();
}
