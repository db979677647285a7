// Measures on one GPU through a worker process that may die at any moment. Keeps a limit for each request,
// kills a worker that does not answer, goes on with a spare one, which has opened the driver meanwhile but
// made no context, and brings it to the problem at hand. A candidate that kills its worker is tried once more
// alone; what kills it again is `crashed`, what does not end is `timed_out` where the GPU answers behind it.
// Used by one thread.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/workers/process.h"
#include "tuner/compile/image_source.h"
#include "tuner/measure/measurer.h"
#include "tuner/measure/wire.h"

namespace hone::tuner {

struct GpuMeasurerOptions {
    std::chrono::milliseconds start_limit{60'000};    ///< hello: driver initialization and context
    std::chrono::milliseconds load_limit{10'000};     ///< harness and images
    std::chrono::milliseconds begin_limit{30'000};    ///< fill all input sets and run the reference
    std::chrono::milliseconds verify_limit{10'000};   ///< usually at most; less where the floor is small
    std::chrono::milliseconds time_limit{15'000};     ///< usually at most; less where launches were quick
    std::chrono::milliseconds shortest_limit{2'000};  ///< no launch gets less than this
    std::chrono::milliseconds grace{1'000};  ///< for the worker to leave by itself before it is killed
    int deaths_in_a_row = 5;                 ///< workers that died before they were ready: then the run stops
    const std::atomic<bool>* stop = nullptr;          ///< set: nobody waits for a worker that is not ready
    std::optional<runtime::Clock::time_point> end{};  ///< the same, `grace` behind it
};

/// What a worker needs for a problem, with inputs from a fresh seed.
[[nodiscard]] ProblemSetup setup_of(const Problem& problem);

/// A GPU, and a worker that sees it alone and has opened the driver.
struct DescribedGpu {
    DeviceInfo device;  ///< without the NVRTC version
    runtime::WorkerProcess worker;
};
/// The GPU with this UUID as a worker says, so that this process need not open the driver, which takes a
/// quarter of a second for each visible GPU. Nothing where that worker fails, for whatever reason.
[[nodiscard]] std::optional<DescribedGpu> described_gpu(const std::string& uuid);

class GpuMeasurer final : public Measurer {
  public:
    /// Starts nothing: a run with nothing to measure needs no worker.
    GpuMeasurer(DeviceInfo device, GpuMeasurerOptions options);
    GpuMeasurer(const GpuMeasurer&) = delete;
    GpuMeasurer& operator=(const GpuMeasurer&) = delete;
    /// What a worker holds on the GPU takes a tenth of a second to go.
    ~GpuMeasurer() override;
    /// One that has described the device, in place of the first that would be started.
    void use_worker(runtime::WorkerProcess worker) { spare_ = std::move(worker); }
    /// Must be called before the first problem; the images' target is `device().traits.arch()`.
    void use_images(HarnessImages& images) { images_ = &images; }

    [[nodiscard]] const DeviceInfo& device() const override { return device_; }
    [[nodiscard]] cache::Provenance provenance() const override { return cache::Provenance::measured; }
    [[nodiscard]] bool needs_images() const override { return true; }
    /// Starts the worker, which opens the driver and makes its context while others go on. Throws WorkerError
    /// when it cannot be started.
    void get_ready() override;
    /// Has the worker begin it meanwhile, where there is one and the reference is compiled.
    void expect_problem(const Problem& problem) override;
    /// Throws NoDeviceError when the worker sees no such GPU, WorkerError when workers cannot be started.
    [[nodiscard]] Verdict begin_problem(const Problem& problem) override;
    [[nodiscard]] Verdict verify(const CandidateImage& candidate) override;
    [[nodiscard]] Samples time(const CandidateImage& candidate, int replays) override;
    [[nodiscard]] std::vector<Samples> interleave(const std::vector<CandidateImage>& candidates,
                                                  int rounds) override;
    /// One candidate without pause for so long, with what NVML says of it meanwhile; the GPU alone can tell.
    [[nodiscard]] Sustained sustain(const CandidateImage& candidate, std::chrono::milliseconds duration);
    void end_problem() override;
    [[nodiscard]] std::chrono::nanoseconds busy() const override { return busy_; }
    [[nodiscard]] int calls_per_replay() const override { return calls_; }

    /// Pid of the worker that is running now, or -1; for tests that kill it.
    [[nodiscard]] pid_t worker_pid() const { return worker_ ? worker_->pid() : -1; }

  private:
    /// The end of a worker in the middle of a request.
    struct Death {
        bool hung = false;
        std::string cause;
    };
    struct Active {
        Problem problem;
        ProblemSetup setup;
        cache::Image reference;
        double call_us = 0;  ///< longest call seen, from verification; 0: none yet
    };
    using Reply = nlohmann::json;

    /// What it does with the worker's replies. Throws Death when none comes or one makes no sense; the worker
    /// is then gone.
    template <class Exchange>
    auto in_protocol(Exchange exchange);
    /// Sends a request and hands the reply to `parse`; throws likewise.
    template <class Parse>
    auto ask(const nlohmann::json& head, std::span<const std::byte> blob, std::chrono::milliseconds limit,
             Parse parse);
    Reply request(const nlohmann::json& head, std::span<const std::byte> blob,
                  std::chrono::milliseconds limit);
    Reply receive(runtime::Clock::time_point since, std::chrono::milliseconds limit);
    [[nodiscard]] bool is_given_up() const;
    [[nodiscard]] runtime::Clock::time_point heard_until(runtime::Clock::time_point moment);
    Verdict ask_verdict(const nlohmann::json& head, std::span<const std::byte> blob,
                        std::chrono::milliseconds limit);
    [[noreturn]] void bury(bool hung, const std::string& cause);
    void count_early_death(const Death& death);
    void start_spare();
    [[nodiscard]] nlohmann::json hello() const;
    void start_worker();
    void activate(const Problem& problem, cache::Image reference);
    Verdict make_ready();
    Verdict begin_in_worker();
    void ask_to_begin();
    Verdict hear_of_begin();
    void drop_expected();
    Verdict send_image(const CandidateImage& candidate);
    std::vector<Samples> interleave_once(const std::vector<CandidateImage>& candidates, int rounds);
    [[nodiscard]] CandidateCall call_of(const CandidateImage& candidate) const;
    [[nodiscard]] std::string image_name(const Candidate& candidate) const;
    [[nodiscard]] double floor_us() const;
    [[nodiscard]] std::chrono::milliseconds begin_limit() const;
    [[nodiscard]] std::chrono::milliseconds verify_limit() const;
    [[nodiscard]] std::chrono::milliseconds time_limit(std::size_t replays) const;
    [[nodiscard]] Verdict verdict_of_hang(const std::string& cause);
    template <class Attempt>
    Verdict twice(Attempt attempt);

    DeviceInfo device_;
    GpuMeasurerOptions options_;
    HarnessImages* images_ = nullptr;
    std::optional<runtime::WorkerProcess> worker_;
    std::optional<runtime::WorkerProcess> spare_;  ///< takes the place of worker_ when that dies
    bool spare_is_greeted_ = false;                ///< it makes a context, and will answer
    bool has_ended_one_ = false;                   ///< a problem: until then no spare competes for the driver
    std::optional<Active> active_;
    std::optional<cache::Image> harness_;
    std::set<std::string> sent_;  ///< images that this worker holds
    bool ready_ = false;          ///< this worker holds the harness and the active problem
    std::optional<runtime::Clock::time_point> asked_to_begin_;  ///< this worker, which has not answered yet
    std::chrono::nanoseconds busy_{};
    int calls_ = 1;
    int early_deaths_ = 0;
};

}  // namespace hone::tuner
