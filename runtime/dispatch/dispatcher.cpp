#include "runtime/dispatch/dispatcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <stdexcept>
#include <utility>

#include "runtime/dispatch/explain.h"
#include "runtime/dispatch/snapshot.h"
#include "runtime/system/environment.h"

namespace hone::runtime {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::string kernel_name(const Problem& problem, const Candidate& candidate) {
    return fmt::format("{} {}: {}", problem.family->name, static_text(problem), to_string(candidate));
}

std::shared_ptr<Capture> capture_asked_for(const RuntimeOptions& options, const DeviceSession& session,
                                           const WarningSink& warn) {
    std::filesystem::path file = options.capture_file;
    if (file.empty()) file = read_environment().capture;
    return file.empty() ? nullptr : Capture::begin(file, session.traits().name, warn);
}

/// Upper edges of the last dynamic field at which some bucket is not exact.
std::vector<std::int64_t> improvable(std::span<const BucketReport> buckets) {
    std::set<std::int64_t> edges;
    for (const BucketReport& bucket : buckets) {
        if (bucket.origin != Origin::exact) edges.insert(bucket.sizes.back().last);
    }
    return {edges.begin(), edges.end()};
}

}  // namespace

Dispatcher::Dispatcher(const RuntimeOptions& options, std::shared_ptr<const Driver> driver)
    : session_(std::make_shared<const DeviceSession>(std::move(driver), options.device)),
      warn_(warning_sink(options)),
      capture_(capture_asked_for(options, *session_, warn_)) {
    Snapshot snapshot = take_snapshot(*session_, options, warn_);
    winners_ = std::make_unique<const WinnerTable>(std::move(snapshot.winners));
    images_ = std::make_unique<ImageProvider>(session_, std::move(snapshot.images));
    if (!options.allow_compile) freeze();
}

std::shared_ptr<const PreparedOperator> Dispatcher::prepare(const Problem& problem, const Sizes& least) {
    const Request request{problem, least};
    return prepare_all({&request, 1}).front();
}

std::vector<std::shared_ptr<const PreparedOperator>> Dispatcher::prepare_all(
    std::span<const Request> requests) {
    auto start = Clock::now();
    std::vector<Draft> drafts;
    for (const Request& request : requests) drafts.push_back(draft(request));
    Visit visit(mutex_);
    for (const Draft& draft : drafts) {
        for (const Cell& cell : draft.cells) ask_for_image(visit, cell);
    }
    std::vector<std::shared_ptr<const PreparedOperator>> prepared;
    for (const Draft& draft : drafts) {
        PrepareReport report;
        std::vector<Bucket> buckets = prepare_buckets(visit, draft, report);
        report.elapsed_ms = ms_since(std::exchange(start, Clock::now()));
        prepares_.fetch_add(1, std::memory_order_relaxed);
        prepared.push_back(std::make_shared<const PreparedOperator>(
            session_, capture_, draft.problem, draft.grid, std::move(buckets), std::move(report)));
    }
    return prepared;
}

Dispatcher::Draft Dispatcher::draft(const Request& request) const {
    const Knowledge knowledge = winners_->find(request.problem);
    const std::vector<std::int64_t> finer = measured_between(request.problem, knowledge, session_->traits());
    Draft draft{request.problem, BucketGrid(request.problem, request.least, finer), {}};
    for (std::size_t i = 0; i < draft.grid.cells(); ++i) {
        const Problem last = draft.grid.last(i);
        std::optional<Choice> choice = held(last);
        if (!choice) choice = choose(last, knowledge.winners, session_->traits());
        draft.cells.push_back({draft.grid.first(i), last, std::move(choice)});
    }
    return draft;
}

void Dispatcher::hold(const Problem& at_edge, const Candidate& candidate) {
    const std::lock_guard lock(held_mutex_);
    held_.insert_or_assign(to_string(at_edge), candidate);
}

void Dispatcher::release(const Problem& at_edge) {
    const std::lock_guard lock(held_mutex_);
    held_.erase(to_string(at_edge));
}

/// Without a record, as a fallback has none: one that does not load is an error, not a warning.
std::optional<Choice> Dispatcher::held(const Problem& at_edge) const {
    const std::lock_guard lock(held_mutex_);
    if (held_.empty()) return std::nullopt;
    const auto found = held_.find(to_string(at_edge));
    if (found == held_.end()) return std::nullopt;
    return Choice{.candidate = found->second, .origin = Origin::exact, .measured_at = dynamic_text(at_edge)};
}

std::vector<Bucket> Dispatcher::prepare_buckets(Visit& visit, const Draft& draft, PrepareReport& report) {
    report.problem = to_string(draft.problem);
    std::vector<Bucket> buckets;
    for (const Cell& cell : draft.cells)
        buckets.push_back(prepare_bucket(visit, cell, report.buckets.emplace_back()));
    report.tune_command = tune_command(draft.problem, improvable(report.buckets));
    return buckets;
}

/// What the bucket needs when all goes well; a fallback only where no winner is known to work.
void Dispatcher::ask_for_image(Visit& visit, const Cell& cell) {
    std::optional<Choice> choice = cell.choice;
    if (choice && choice->record != nullptr &&
        unloadable_.contains(kernel_name(cell.last, choice->candidate)))
        choice = choose_fallback(cell.last, session_->traits());
    if (!choice) return;
    const cache::LoadedWinner* winner = choice->record;
    images_->ask(visit, cell.last, choice->candidate,
                 winner == nullptr ? std::string() : winner->trial.toolchain.nvrtc);
}

std::shared_ptr<const PreparedOperator> Dispatcher::kept(const Problem& problem) {
    const std::lock_guard lock(kept_mutex_);
    std::shared_ptr<const PreparedOperator>& place = kept_[to_string(problem)];
    if (place == nullptr) place = prepare(problem);
    return place;
}

Bucket Dispatcher::prepare_bucket(Visit& visit, const Cell& cell, BucketReport& report) {
    const auto start = Clock::now();
    Served served = serve(visit, cell);
    report = describe_choice(cell.first, cell.last, served.choice);
    report.image = served.loaded.origin;
    report.note = std::move(served.note);
    report.load_ms = ms_since(start);
    const Candidate& candidate = served.choice.candidate;
    return {candidate, std::move(served.loaded.image), served.choice.origin, site(cell.last, candidate),
            &counter(cell.last, served.choice.origin)};
}

RunCounter& Dispatcher::counter(const Problem& at_edge, Origin origin) {
    return capture_ == nullptr ? session_->log().runs(origin) : capture_->counter(at_edge, origin);
}

std::uint64_t Dispatcher::runs(Origin origin) const {
    return capture_ == nullptr ? session_->log().runs(origin).sum() : capture_->runs(origin);
}

Dispatcher::Served Dispatcher::serve(Visit& visit, const Cell& cell) {
    Served served;
    const bool has_winner = cell.choice && cell.choice->record != nullptr;
    if (has_winner) {
        if (auto loaded = try_winner(visit, cell.last, *cell.choice, served.note)) {
            served.choice = *cell.choice;
            served.loaded = std::move(*loaded);
            return served;
        }
    }
    const std::optional<Choice> fallback =
        has_winner ? choose_fallback(cell.last, session_->traits()) : cell.choice;
    if (!fallback) {
        throw std::invalid_argument(
            fmt::format("no kernel for {} on {}", to_string(cell.last), session_->traits().name));
    }
    served.choice = *fallback;
    served.loaded = images_->load(visit, cell.last, fallback->candidate);
    return served;
}

// A winner that no longer compiles or loads (another compiler, another driver) is worth a warning, not an
// abort.
std::optional<ImageProvider::Result> Dispatcher::try_winner(Visit& visit, const Problem& at_edge,
                                                            const Choice& choice, std::string& note) {
    if (unloadable_.contains(kernel_name(at_edge, choice.candidate))) {
        note = fmt::format("{} does not load", to_string(choice.candidate));
        return std::nullopt;
    }
    try {
        return images_->load(visit, at_edge, choice.candidate, choice.record->trial.toolchain.nvrtc);
    } catch (const NvrtcError& error) {
        note = demote(at_edge, choice, error);
    } catch (const CompilerMissing& error) {
        note = demote(at_edge, choice, error);
    } catch (const CudaError& error) {
        if (error.sticky()) throw;
        note = demote(at_edge, choice, error);
    }
    return std::nullopt;
}

std::string Dispatcher::demote(const Problem& at_edge, const Choice& choice, const std::exception& error) {
    const std::string kernel = kernel_name(at_edge, choice.candidate);
    if (unloadable_.insert(kernel).second) {  // another call may have waited for the same image
        warn_(fmt::format("the tuned kernel {} cannot be used, its fallback runs instead: {}", kernel,
                          error.what()));
    }
    return fmt::format("{} does not load: {}", to_string(choice.candidate), error.what());
}

std::uint32_t Dispatcher::site(const Problem& at_edge, const Candidate& candidate) {
    const std::string kernel = kernel_name(at_edge, candidate);
    const auto known = std::ranges::find(sites_, kernel);
    if (known == sites_.end()) return sites_.push_back(kernel), static_cast<std::uint32_t>(sites_.size() - 1);
    return static_cast<std::uint32_t>(known - sites_.begin());
}

Explanation Dispatcher::explain(const Problem& largest, const Sizes& sizes) const {
    const std::lock_guard lock(mutex_);
    return runtime::explain(with(largest, sizes), largest,
                            {winners_.get(), &session_->traits(), images_->cache()});
}

std::shared_ptr<std::atomic<std::uint64_t>> Dispatcher::record_graph(
    const std::function<void()>& record) const {
    if (capture_ != nullptr) return capture_->record(record);
    record();
    return nullptr;
}

Counters Dispatcher::counters() const {
    const RunLog& log = session_->log();
    return {.runs_exact = runs(Origin::exact),
            .runs_neighbour = runs(Origin::neighbour),
            .runs_foreign = runs(Origin::foreign),
            .runs_fallback = runs(Origin::fallback),
            .failed_launches = log.failed(),
            .prepares = prepares_.load(std::memory_order_relaxed),
            .compiles = images_->compiles(),
            .image_cache_hits = images_->cache_hits()};
}

std::string Dispatcher::last_launch_error() const {
    const LaunchError error = session_->log().last_error();
    if (error.result == CUDA_SUCCESS) return {};
    const std::lock_guard lock(mutex_);
    return fmt::format("{}: {}", sites_.at(error.site),
                       describe(session_->driver(), static_cast<CUresult>(error.result)));
}

}  // namespace hone::runtime
