// libfake_cuda.so: a CUDA driver without a GPU, good enough for the whole tuner to run against. Kernels do
// nothing and take a made-up time (machine.h), but for the one that draws tokens, which are all 0; results
// that the measuring harness reads are the zeros of fresh memory, which mean "all fine". HONE_FAKE_SCRIPT
// makes things go wrong (script.h). The driver's entry points are in cuda/, one file for each kind of object;
// here is what tests ask of it. Thread-safe.
#include "tests/fake_driver/fake_cuda.h"

#include <mutex>

#include "tests/fake_driver/cuda/entry_point.h"

using namespace hone::fake;

extern "C" {

int fake_cuda_launch_count() {
    const std::lock_guard lock(mutex);
    return machine().launch_count();
}

const FakeLaunch* fake_cuda_launch(int index) {
    const std::lock_guard lock(mutex);
    const auto& kept = machine().launches();
    const int first = machine().launch_count() - static_cast<int>(kept.size());
    if (index < first || index >= machine().launch_count()) return nullptr;
    return &kept[static_cast<std::size_t>(index - first)];
}

int fake_cuda_live(const char* kind) {
    const std::lock_guard lock(mutex);
    return machine().live[kind];
}

void fake_cuda_reset() {
    const std::lock_guard lock(mutex);
    machine().reset();
}

}  // extern "C"
