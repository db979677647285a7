// The state behind the fake driver: contexts, memory, modules, streams with a virtual clock, graphs.
// Functions here do what the entry points in cuda/ ask for, under their lock.
//
// Time: nothing takes real time. A kernel's duration is a hash of its name, constants and number of waves; it
// is added to its stream's clock, which events read. Memory: up to 1 MiB is real (zeroed) host memory; larger
// allocations are address ranges that nobody touches: copies from them give zeros.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/fake_driver/devices.h"
#include "tests/fake_driver/fake_cuda.h"
#include "tests/fake_driver/image.h"
#include "tests/fake_driver/script.h"

struct CUstream_st;

struct CUctx_st {
    int device = 0;
    int retained = 0;
    CUresult sticky = CUDA_SUCCESS;
    bool hung = false;  ///< any of its streams
    std::unique_ptr<CUstream_st> default_stream;
    std::set<CUstream_st*> streams;  ///< live ones: who leaves them to a GPU that hangs has lost nothing
};

struct CUfunc_st {
    CUmod_st* module = nullptr;
    hone::fake::ImageKernel kernel;
    hone::fake::Subject subject;
    unsigned long long hash = 0;               ///< of the subject's words
    std::vector<std::size_t> parameter_bytes;  ///< of each parameter
    int max_dynamic_shared_bytes = 0;
    int non_portable_cluster = 0;
    bool of_harness = false;
};

struct CUmod_st {
    CUctx_st* context = nullptr;
    hone::fake::FakeImage image;
    std::map<std::string, CUfunc_st> functions;
};

/// What a stream does at one point; kept in graphs, run at once elsewhere.
using Work = std::function<CUresult(CUstream_st&)>;

struct CUgraph_st {
    std::vector<Work> nodes;
};
struct CUgraphExec_st {
    std::vector<Work> nodes;
};

/// What a kernel does some time after its launch.
struct LateWork {
    ~LateWork() { thread.join(); }
    std::atomic<bool> done{false};
    std::thread thread;
};

struct CUstream_st {
    CUctx_st* context = nullptr;
    double clock_us = 0;
    bool hung = false;
    std::unique_ptr<CUgraph_st> capture;    ///< set between begin and end of a capture
    std::unique_ptr<LateWork> late;         ///< of the last kernel
    bool in_graph = false;                  ///< what runs is a graph's
    std::vector<std::int32_t> embedded{};   ///< ids of the last embedding of a step
    std::vector<std::int32_t> positions{};  ///< of its rows
    std::vector<std::int32_t> gathered{};   ///< rows of these that were gathered last
};

struct CUevent_st {
    CUctx_st* context = nullptr;
    bool recorded = false;
    bool hung = false;
    double clock_us = 0;
};

namespace hone::fake {

/// Contexts of a thread. No std::vector: the C library ends a process that has no memory for noting that a
/// thread's object is to be destroyed.
class ContextStack {
  public:
    [[nodiscard]] bool empty() const { return size_ == 0; }
    [[nodiscard]] CUctx_st* back() const { return contexts_[size_ - 1]; }
    void push_back(CUctx_st* context) { contexts_.at(size_++) = context; }
    void pop_back() { --size_; }

  private:
    std::array<CUctx_st*, 64> contexts_{};
    std::size_t size_ = 0;
};

/// The calling thread's contexts, the current one last.
extern thread_local constinit ContextStack context_stack;

struct LaunchRequest {
    CUfunction function = nullptr;
    FakeLaunch record{};
    std::map<int, CUdeviceptr>
        pointers;  ///< arguments that `write` rules need, taken when the launch is made
};

class Machine {
  public:
    Machine() { reset(); }
    void reset();
    /// reset() when the environment's script is another one than that in use.
    void reset_if_script_changed();

    Script script;
    std::vector<FakeDevice> devices;
    std::vector<std::unique_ptr<CUctx_st>> primary_contexts;
    std::map<std::string, int> live;

    [[nodiscard]] CUctx_st* current_context() const;
    [[nodiscard]] const FakeDevice& device_of(const CUctx_st& context) const;

    CUresult allocate(CUctx_st& context, std::size_t bytes, CUdeviceptr* address);
    CUresult release(CUdeviceptr address);
    [[nodiscard]] std::int64_t allocated_bytes(int device) const;
    /// Memory of the host's, which the GPU may write to as well.
    void note_host_memory(void* memory, std::size_t bytes);
    void forget_host_memory(void* memory);
    /// Host memory of [address, address + bytes), nullptr for a large allocation; `valid` says whether there
    /// is any.
    [[nodiscard]] char* host_memory(CUdeviceptr address, std::size_t bytes, bool* valid);
    /// Fills with `fill`, or copies, wherever there is host memory.
    CUresult set_memory(CUdeviceptr to, std::size_t bytes, const void* pattern, std::size_t pattern_bytes);
    CUresult copy_memory(CUdeviceptr to, CUdeviceptr from, std::size_t bytes);

    CUresult load_module(CUctx_st& context, const char* image, CUmodule* module);

    /// Checks the launch as a driver does and takes its arguments; then runs it, or adds it to the stream's
    /// capture.
    CUresult launch(CUstream_st& stream, LaunchRequest request, void** parameters);
    /// Runs now, or when the captured graph does.
    CUresult enqueue(CUstream_st& stream, Work work);

    [[nodiscard]] const std::deque<FakeLaunch>& launches() const { return launches_; }
    [[nodiscard]] int launch_count() const { return launch_count_; }

  private:
    struct Allocation {
        std::size_t bytes = 0;
        int device = 0;
        std::unique_ptr<char[]> memory;  ///< none for a large one
    };

    void note_ids(CUstream_st& stream, const LaunchRequest& request);
    void draw_tokens(CUstream_st& stream, const LaunchRequest& request,
                     const std::vector<const Rule*>& rules);
    void make_logits(const CUstream_st& stream, const LaunchRequest& request, std::size_t vocabulary);
    /// That many numbers where one of a launch's pointers points; nullptr where they are not all there.
    template <class T>
    T* numbers_at(const FakeLaunch& launch, int parameter, std::size_t count) {
        bool valid = false;
        return reinterpret_cast<T*>(host_memory(launch.parameters[parameter], count * sizeof(T), &valid));
    }
    [[nodiscard]] CUresult check_launch(const CUctx_st& context, const LaunchRequest& request) const;
    CUresult run_kernel(CUstream_st& stream, const LaunchRequest& request);
    CUresult apply(const Rule& rule, CUstream_st& stream, const LaunchRequest& request);
    [[nodiscard]] double duration_us(const CUctx_st& context, const LaunchRequest& request,
                                     const std::vector<const Rule*>& rules);

    std::map<CUdeviceptr, Allocation> memory_;
    std::map<CUdeviceptr, std::size_t> host_memory_;  ///< bytes
    CUdeviceptr next_large_address_ = 0x030000000000;
    std::deque<FakeLaunch> launches_;
    int launch_count_ = 0;
    Subject previous_;  ///< the last kernel launched that is not one of the harness
    std::mt19937_64 noise_;
};

}  // namespace hone::fake
