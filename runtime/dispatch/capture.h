// Which problems a live process runs, and how often: what RuntimeOptions::capture_file and HONE_CAPTURE turn
// on. A prepared kernel then counts its calls in a counter of its own instead of one for all, which costs a
// call nothing; a thread adds the counts to the file every few seconds.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernel_templates/problem.h"
#include "runtime/compile/image_provider.h"
#include "runtime/dispatch/run_log.h"
#include "runtime/system/file_descriptor.h"

namespace hone::runtime {

class Capture {
  public:
    /// nullptr, after a warning, where the file is there and is no capture, or cannot be made.
    [[nodiscard]] static std::shared_ptr<Capture> begin(const std::filesystem::path& file, std::string gpu,
                                                        WarningSink warn);

    Capture(std::filesystem::path file, std::string gpu, WarningSink warn);
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    ~Capture();
    /// What the destructor does, at the end of a process that does not come to it. Whoever listens to
    /// warnings may be gone by then, as Python is: they go to stderr.
    void end_with_process() noexcept;

    /// Where calls of this problem are counted; one counter for all that ask alike. Lives as long as this.
    [[nodiscard]] RunCounter& counter(const Problem& at_edge, Origin origin);
    /// Calls that were counted here.
    [[nodiscard]] std::uint64_t runs(Origin origin) const;
    /// What `record` calls is not counted, but again and again with the number that is returned: a CUDA graph
    /// of calls, and how often it was launched. Nobody else may call meanwhile what `record` does.
    [[nodiscard]] std::shared_ptr<std::atomic<std::uint64_t>> record(const std::function<void()>& record);
    /// Adds what was counted since the last time to the file. Never throws: trouble is a warning, once, and
    /// what could not be written is tried again with the next.
    void write() noexcept;

  private:
    struct Entry {
        std::string problem;
        Origin origin;
        RunCounter counter;
        std::uint64_t recorded = 0;  ///< of these, calls that went into graphs
        std::uint64_t written = 0;
    };
    struct Graph {
        std::vector<std::pair<Entry*, std::uint64_t>> calls;
        std::atomic<std::uint64_t> launches{0};
    };
    /// False for a capture that was ended before, or by another process.
    [[nodiscard]] bool stop_thread() noexcept;
    void write_changes();
    [[nodiscard]] std::vector<std::uint64_t> sums() const;
    [[nodiscard]] std::vector<std::uint64_t> calls() const;
    void keep_writing();

    std::filesystem::path file_;
    std::string gpu_;
    WarningSink warn_;
    bool warned_ = false;
    mutable std::mutex mutex_;  ///< guards entries_ (but for the counters), graphs_ and warned_
    std::deque<Entry> entries_;
    std::vector<std::shared_ptr<Graph>> graphs_;
    UniqueFd end_;  ///< becomes readable when the thread is to end
    int process_;   ///< a forked child has neither the thread nor anything to add
    std::thread thread_;
};

}  // namespace hone::runtime
