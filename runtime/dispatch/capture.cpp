#include "runtime/dispatch/capture.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <map>
#include <utility>
#include <vector>

#include "cache/file_size_signal.h"
#include "runtime/dispatch/capture_file.h"
#include "runtime/dispatch/snapshot.h"
#include "runtime/system/write_error.h"

namespace hone::runtime {
namespace {

constexpr int ms_between_writes = 5'000;

UniqueFd made_event(const std::filesystem::path& file) {
    UniqueFd event(::eventfd(0, EFD_CLOEXEC));
    if (!event) throw WriteError(file, "cannot be written by a thread", errno);
    return event;
}

/// Captures of this process, so that its end, which destroys no handle that is left, writes them too.
class LiveCaptures {
  public:
    void add(Capture* capture) {
        const std::lock_guard lock(mutex_);
        captures_.push_back(capture);
    }
    void remove(Capture* capture) {
        const std::lock_guard lock(mutex_);
        std::erase(captures_, capture);
    }
    void end_all() {
        const std::lock_guard lock(mutex_);
        for (Capture* capture : captures_) capture->end_with_process();
    }

  private:
    std::mutex mutex_;
    std::vector<Capture*> captures_;
};

/// Never destroyed: a static object of a program may hold a Runtime for longer.
LiveCaptures& live_captures() {
    static LiveCaptures& captures = *new LiveCaptures;
    static const struct AtExit {
        ~AtExit() { captures.end_all(); }
    } at_exit;
    return captures;
}

}  // namespace

std::shared_ptr<Capture> Capture::begin(const std::filesystem::path& file, std::string gpu,
                                        WarningSink warn) {
    const cache::FileSizeSignal quiet;
    try {
        std::error_code error;
        const std::filesystem::path whole = std::filesystem::absolute(file, error);
        if (error) throw_write_error(file, "cannot be written", error.value());  // a folder that is gone
        // Now, while somebody looks: a file of another kind, a folder that is not there.
        add_to_capture(whole, {});
        return std::make_shared<Capture>(whole, std::move(gpu), std::move(warn));
    } catch (const std::exception& why) {
        warn(fmt::format("calls are not captured: {}", why.what()));
        return nullptr;
    }
}

Capture::Capture(std::filesystem::path file, std::string gpu, WarningSink warn)
    : file_(std::move(file)),
      gpu_(std::move(gpu)),
      warn_(std::move(warn)),
      end_(made_event(file_)),
      process_(::getpid()),
      thread_([this] { keep_writing(); }) {
    live_captures().add(this);
}

Capture::~Capture() {
    live_captures().remove(this);
    if (stop_thread()) write();
}

void Capture::end_with_process() noexcept {
    if (!stop_thread()) return;
    warn_ = sink_of_stderr();
    write();
}

bool Capture::stop_thread() noexcept {
    if (!thread_.joinable()) return false;
    if (process_ != ::getpid()) {
        thread_.detach();
        return false;
    }
    static_cast<void>(::eventfd_write(end_.get(), 1));
    thread_.join();
    return true;
}

RunCounter& Capture::counter(const Problem& at_edge, Origin origin) {
    const std::string problem = to_string(at_edge);
    const std::lock_guard lock(mutex_);
    for (Entry& entry : entries_) {
        if (entry.origin == origin && entry.problem == problem) return entry.counter;
    }
    Entry& made = entries_.emplace_back();
    made.problem = problem;
    made.origin = origin;
    return made.counter;
}

/// Calls of each entry, those of graphs' recordings included.
std::vector<std::uint64_t> Capture::sums() const {
    std::vector<std::uint64_t> sums;
    for (const Entry& entry : entries_) sums.push_back(entry.counter.sum());
    return sums;
}

std::shared_ptr<std::atomic<std::uint64_t>> Capture::record(const std::function<void()>& record) {
    std::unique_lock lock(mutex_);
    std::vector<std::uint64_t> before = sums();
    lock.unlock();
    record();
    lock.lock();
    const std::vector<std::uint64_t> after = sums();
    before.resize(after.size());
    auto graph = std::make_shared<Graph>();
    for (std::size_t i = 0; i < after.size(); ++i) {
        if (after[i] == before[i]) continue;
        entries_[i].recorded += after[i] - before[i];
        graph->calls.emplace_back(&entries_[i], after[i] - before[i]);
    }
    graphs_.push_back(graph);
    return {graph, &graph->launches};
}

/// Calls of each entry that ran.
std::vector<std::uint64_t> Capture::calls() const {
    std::map<const Entry*, std::uint64_t> replayed;
    for (const auto& graph : graphs_) {
        const std::uint64_t launches = graph->launches.load(std::memory_order_relaxed);
        for (const auto& [entry, calls] : graph->calls) replayed[entry] += launches * calls;
    }
    std::vector<std::uint64_t> calls = sums();
    for (std::size_t i = 0; i < calls.size(); ++i) {
        const auto found = replayed.find(&entries_[i]);
        calls[i] += (found == replayed.end() ? 0 : found->second) - entries_[i].recorded;
    }
    return calls;
}

std::uint64_t Capture::runs(Origin origin) const {
    const std::lock_guard lock(mutex_);
    std::uint64_t sum = 0;
    for (const Entry& entry : entries_) {
        if (entry.origin == origin) sum += entry.counter.sum();
    }
    return sum;
}

void Capture::write() noexcept {
    if (process_ != ::getpid()) return;
    const std::lock_guard lock(mutex_);
    const cache::FileSizeSignal quiet;
    try {
        write_changes();
    } catch (const std::exception& error) {
        if (std::exchange(warned_, true)) return;
        try {
            warn_(fmt::format("captured calls wait to be written: {}", error.what()));
        } catch (...) {  // a sink that throws, or no memory for a message
        }
    }
}

void Capture::write_changes() {
    std::vector<CapturedProblem> changes;
    std::vector<std::pair<Entry*, std::uint64_t>> counted;
    const std::vector<std::uint64_t> all = calls();
    for (std::size_t i = 0; i < all.size(); ++i) {
        Entry& entry = entries_[i];
        if (all[i] <= entry.written) continue;  // less while a graph is being recorded
        changes.push_back({gpu_, entry.problem, all[i] - entry.written});
        counted.emplace_back(&entry, all[i]);
    }
    if (changes.empty()) return;
    add_to_capture(file_, changes);
    for (const auto& [entry, now] : counted) entry->written = now;
}

void Capture::keep_writing() {
    pollfd end{.fd = end_.get(), .events = POLLIN, .revents = 0};
    while (::poll(&end, 1, ms_between_writes) <= 0) write();
}

}  // namespace hone::runtime
