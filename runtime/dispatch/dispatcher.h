// The heart of the public Runtime, without its types: makes prepared operators of problems. Thread-safe: a
// mutex is held but while images are compiled, which prepare() calls do side by side; what they hand out is
// immutable. Throws the exceptions of the layers below (public_error.h turns them into hone::Error),
// std::invalid_argument for a problem that nothing can run.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "hone/runtime.h"
#include "runtime/compile/image_provider.h"
#include "runtime/dispatch/capture.h"
#include "runtime/dispatch/choice.h"
#include "runtime/dispatch/prepared_operator.h"

namespace hone::runtime {

class Dispatcher {
  public:
    explicit Dispatcher(const RuntimeOptions& options, std::shared_ptr<const Driver> driver = Driver::load());

    /// `problem` carries the maxima in its run-time fields; kernels for less than `least` are not needed.
    struct Request {
        Problem problem;
        Sizes least{};
    };
    [[nodiscard]] std::shared_ptr<const PreparedOperator> prepare(const Problem& problem,
                                                                  const Sizes& least = {});
    /// For operators of several parts, in this order: the images of all are compiled side by side.
    [[nodiscard]] std::vector<std::shared_ptr<const PreparedOperator>> prepare_all(
        std::span<const Request> requests);
    /// The same, prepared once and kept as long as the dispatcher lives: for functions, whose callers hold
    /// nothing.
    [[nodiscard]] std::shared_ptr<const PreparedOperator> kept(const Problem& problem);
    /// Which kernel a call of these sizes takes; `largest` carries the maxima.
    [[nodiscard]] Explanation explain(const Problem& largest, const Sizes& sizes) const;

    /// From now on prepare() takes this candidate for the cell whose largest problem this is, whatever is
    /// stored, until release(): how a race tries kernels where they run. What is prepared already keeps what
    /// it has, and explain() knows nothing of it.
    void hold(const Problem& at_edge, const Candidate& candidate);
    void release(const Problem& at_edge);

    void freeze() noexcept { images_->freeze(); }
    /// As Capture::record(); nullptr, and no more than the call, where there is no capture.
    [[nodiscard]] std::shared_ptr<std::atomic<std::uint64_t>> record_graph(
        const std::function<void()>& record) const;
    [[nodiscard]] Counters counters() const;
    [[nodiscard]] std::string last_launch_error() const;
    [[nodiscard]] const DeviceSession& session() const { return *session_; }

  private:
    struct Served {
        Choice choice;
        ImageProvider::Result loaded;
        std::string note;
    };
    /// A bucket before its image is loaded.
    struct Cell {
        Problem first;
        Problem last;
        std::optional<Choice> choice;
    };
    using Visit = ImageProvider::Visit;
    /// A request before anything is loaded.
    struct Draft {
        Problem problem;
        BucketGrid grid;
        std::vector<Cell> cells;
    };
    [[nodiscard]] Draft draft(const Request& request) const;
    [[nodiscard]] std::optional<Choice> held(const Problem& at_edge) const;
    [[nodiscard]] std::vector<Bucket> prepare_buckets(Visit& visit, const Draft& draft,
                                                      PrepareReport& report);
    void ask_for_image(Visit& visit, const Cell& cell);
    [[nodiscard]] Bucket prepare_bucket(Visit& visit, const Cell& cell, BucketReport& report);
    [[nodiscard]] Served serve(Visit& visit, const Cell& cell);
    [[nodiscard]] std::optional<ImageProvider::Result> try_winner(Visit& visit, const Problem& at_edge,
                                                                  const Choice& choice, std::string& note);
    [[nodiscard]] std::string demote(const Problem& at_edge, const Choice& choice,
                                     const std::exception& error);
    [[nodiscard]] std::uint32_t site(const Problem& at_edge, const Candidate& candidate);
    [[nodiscard]] RunCounter& counter(const Problem& at_edge, Origin origin);
    [[nodiscard]] std::uint64_t runs(Origin origin) const;

    std::shared_ptr<const DeviceSession> session_;
    WarningSink warn_;
    std::shared_ptr<Capture> capture_;  ///< nullptr: none is asked for
    std::unique_ptr<ImageProvider> images_;
    std::unique_ptr<const WinnerTable> winners_;
    mutable std::mutex mutex_;  ///< guards images_ (but for its atomics), sites_ and unloadable_
    std::vector<std::string> sites_;
    std::set<std::string> unloadable_;       ///< winners that failed before, "rmsnorm ...: group_rows ..."
    mutable std::mutex held_mutex_;          ///< guards held_
    std::map<std::string, Candidate> held_;  ///< by the text of the problem at the cell's edge
    std::mutex kept_mutex_;                  ///< guards kept_; taken before mutex_
    std::map<std::string, std::shared_ptr<const PreparedOperator>> kept_;  ///< by the text of their problems
    std::atomic<std::uint64_t> prepares_{0};
};

}  // namespace hone::runtime
