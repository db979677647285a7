#include "tuner/measure/gpu_measurer.h"

#include <poll.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include <fmt/format.h>

#include "runtime/system/random_bits.h"
#include "runtime/workers/program.h"
#include "tuner/errors.h"
#include "tuner/gpu/energy_meter.h"
#include "tuner/gpu/measure_worker.h"
#include "tuner/gpu/verifier.h"
#include "tuner/worker/entry.h"

namespace hone::tuner {
namespace {

using cache::TrialStatus;
using nlohmann::json;
using std::chrono::milliseconds;

constexpr std::string_view silent_death = "the measuring worker died";
constexpr std::string_view given_up = "the run ended before its measuring worker was ready";
constexpr int glance_ms = 50;
constexpr std::size_t max_images_in_worker = 1024;
constexpr std::size_t replays_around_loop = 8;  // before a sustained run, and what is in its queue

// How many times the memory and arithmetic floors a first launch may take before it counts as hanging, within
// the limit for usual problems, and where that is too short: attention over 16384 tokens is a second of
// float32 arithmetic.
constexpr double slowest_over_floor = 2000;
constexpr double slow_over_floor = 20;
constexpr double slow_reference_over_floor = 100;  // a reference kernel's, in place of slow_over_floor
// How many times its longest call so far a candidate may take, within the limit for usual problems and
// beyond.
constexpr double slack = 20;
constexpr double least_slack = 3;

double floor_of(const Work& work, const DeviceTraits& traits) {
    const double bytes_per_us = std::max(1.0, traits.memory_bytes_per_s * 1e-6);
    const double flops_per_us = std::max(1.0, 64e-3 * traits.sm_count * traits.sm_clock_khz);
    return work.bytes / bytes_per_us + work.flops / flops_per_us;
}

/// Ten minutes at most.
milliseconds long_limit(double us) {
    return milliseconds(static_cast<std::int64_t>(std::min(us * 1e-3, 600e3)));
}

milliseconds clamped(double us, milliseconds shortest, milliseconds longest) {
    const double ms = std::min(us * 1e-3, static_cast<double>(longest.count()));
    return std::min(longest, shortest + milliseconds(static_cast<std::int64_t>(ms)));
}

bool ok(const Verdict& verdict) { return verdict.status == TrialStatus::ok; }

/// It sees that GPU alone: the driver takes a quarter of a second longer to open for each one more.
runtime::WorkerProcess started_worker(const std::string& uuid) {
    return runtime::WorkerProcess::start(runtime::own_worker_program(), measure_kind,
                                         uuid.empty() ? "" : "CUDA_VISIBLE_DEVICES=" + uuid);
}

}  // namespace

std::optional<DescribedGpu> described_gpu(const std::string& uuid) {
    try {
        runtime::WorkerProcess worker = started_worker(uuid);
        const Clock::time_point limit = Clock::now() + GpuMeasurerOptions{}.start_limit;
        worker.channel().send({{"op", "describe"}}, {}, limit);
        Message reply;
        if (worker.channel().receive(reply, limit) != Received::message || reply.head.contains("error"))
            return std::nullopt;
        DeviceInfo device = device_info_from_json(member(reply.head, "device"));
        device.uuid = uuid;
        return DescribedGpu{std::move(device), std::move(worker)};
    } catch (const ProtocolError&) {
    } catch (const WorkerError&) {
    }
    return std::nullopt;
}

ProblemSetup setup_of(const Problem& problem) {
    const Family& family = *problem.family;
    ProblemSetup setup{.arguments = family.arguments(problem),
                       .tolerances = {},
                       .scalars = {},
                       .reference_plan = family.reference_plan(problem),
                       .bytes_per_call = family.work(problem).bytes,
                       .seed = runtime::random_bits()};
    for (std::size_t i = 0; i < setup.arguments.size(); ++i) {
        const bool output = setup.arguments[i].role == Role::output;
        setup.tolerances.push_back(output ? family.tolerance(problem, static_cast<int>(i)) : Tolerance{});
    }
    for (const ScalarArgument& scalar : family.scalars(problem)) setup.scalars.push_back(scalar.tuning_value);
    return setup;
}

GpuMeasurer::GpuMeasurer(DeviceInfo device, GpuMeasurerOptions options)
    : device_(std::move(device)), options_(options) {}

GpuMeasurer::~GpuMeasurer() {
    for (std::optional<runtime::WorkerProcess>* worker : {&worker_, &spare_})
        if (*worker) (*worker)->begin_to_kill();
}

GpuMeasurer::Reply GpuMeasurer::request(const json& head, std::span<const std::byte> blob,
                                        milliseconds limit) {
    const Clock::time_point start = Clock::now();
    worker_->channel().send(head, blob, start + limit + options_.grace);
    return receive(start, limit);
}

GpuMeasurer::Reply GpuMeasurer::receive(Clock::time_point since, milliseconds limit) {
    Message reply;
    // From now on at the earliest: this process may have stood still since.
    Clock::time_point moment = std::max(since + limit, Clock::now()) + options_.grace;
    if (!ready_) moment = heard_until(moment);
    const Received received = worker_->channel().receive(reply, moment);
    busy_ += Clock::now() - since;
    switch (received) {
        case Received::message: break;
        case Received::timed_out:
        case Received::cancelled: bury(true, fmt::format("no answer within {} ms", limit.count()));
        case Received::end_of_file: bury(false, std::string(silent_death));
    }
    if (const auto lost = reply.head.find("lost"); lost != reply.head.end()) {
        bury(false, verdict_from_json(*lost).detail);
    }
    return std::move(reply.head);
}

/// The run ends: what a worker that has not begun would say is of no use.
bool GpuMeasurer::is_given_up() const {
    if (options_.stop != nullptr && *options_.stop) return true;
    return options_.end && Clock::now() >= *options_.end + options_.grace;
}

/// Waits for the worker's first word in glances. Until when the rest of it may take; at once where the run
/// ends first.
Clock::time_point GpuMeasurer::heard_until(Clock::time_point moment) {
    pollfd asked{.fd = worker_->channel().fd(), .events = POLLIN, .revents = 0};
    while (Clock::now() < moment) {
        if (is_given_up()) return Clock::now();
        if (poll(&asked, 1, glance_ms) > 0) break;
    }
    return moment;
}

template <class Exchange>
auto GpuMeasurer::in_protocol(Exchange exchange) {
    try {
        return exchange();
    } catch (const ProtocolError& error) {
        bury(false, std::string("the measuring worker broke the protocol: ") + error.what());
    }
}

template <class Parse>
auto GpuMeasurer::ask(const json& head, std::span<const std::byte> blob, milliseconds limit, Parse parse) {
    return in_protocol([&] { return parse(request(head, blob, limit)); });
}

Verdict GpuMeasurer::ask_verdict(const json& head, std::span<const std::byte> blob, milliseconds limit) {
    return ask(head, blob, limit,
               [](const Reply& reply) { return verdict_from_json(member(reply, "verdict")); });
}

void GpuMeasurer::bury(bool hung, const std::string& cause) {
    const runtime::WorkerEnding ending = worker_->kill();
    const bool left_at_deadline = ending.exit_code == static_cast<int>(WorkerExit::deadline);
    worker_.reset();
    ready_ = false;
    asked_to_begin_.reset();
    sent_.clear();
    if (left_at_deadline) throw Death{true, "did not end within its time limit"};
    throw Death{hung, cause == silent_death ? cause + ": " + ending.text() : cause};
}

/// It opens the driver while others go on.
void GpuMeasurer::start_spare() {
    if (!spare_) spare_.emplace(started_worker(device_.uuid));
}

json GpuMeasurer::hello() const {
    return {{"op", "hello"}, {"ordinal", device_.uuid.empty() ? device_.ordinal : 0}};
}

/// One that is not there to be greeted is found dead when it takes its place.
void GpuMeasurer::get_ready() {
    if (worker_) return;
    images_->prefetch_harness();
    start_spare();
    if (spare_is_greeted_) return;
    try {
        spare_->channel().send(hello(), {}, Clock::now() + options_.grace);
        spare_is_greeted_ = true;
    } catch (const ProtocolError&) {
    }
}

void GpuMeasurer::start_worker() {
    start_spare();
    worker_ = std::exchange(spare_, std::nullopt);
    const bool is_greeted = std::exchange(spare_is_greeted_, false);
    in_protocol([&] {
        const Reply reply = is_greeted ? receive(Clock::now(), options_.start_limit)
                                       : request(hello(), {}, options_.start_limit);
        if (reply.contains("error")) {
            throw NoDeviceError(text(reply, "error"), "`hone doctor` and nvidia-smi show what can be seen");
        }
        const cache::GpuKey seen = gpu_key_from_json(member(reply, "gpu"));
        if (seen != device_.gpu)
            throw WorkerError(fmt::format("the measuring worker sees {} as GPU {}, not {}", seen.name,
                                          device_.ordinal, device_.gpu.name));
    });
}

/// Workers that die before a candidate runs say that the GPU, not a candidate, is at fault.
void GpuMeasurer::count_early_death(const Death& death) {
    if (is_given_up() || ++early_deaths_ < options_.deaths_in_a_row) return;
    throw WorkerError(
        fmt::format("{} measuring {} in a row died before they could measure; the last: {}. "
                    "`dmesg | grep Xid` and `nvidia-smi -q` may say why",
                    early_deaths_, early_deaths_ == 1 ? "worker" : "workers", death.cause));
}

Verdict GpuMeasurer::begin_problem(const Problem& problem) {
    if (active_ && !ready_ && active_->problem == problem) return make_ready();  // expected
    if (asked_to_begin_) drop_expected();
    if (!worker_) start_spare();  // before the wait for a compiler
    const ImageSource::Result reference = images_->reference(problem);
    if (reference.status != TrialStatus::ok) {
        return {.status = reference.status, .detail = "reference kernel: " + reference.detail};
    }
    if (!harness_) {
        ImageSource::Result harness = images_->harness();
        if (harness.status != TrialStatus::ok) return {.status = harness.status, .detail = harness.detail};
        harness_ = std::move(harness.image);
    }
    activate(problem, reference.image);
    return make_ready();
}

void GpuMeasurer::activate(const Problem& problem, cache::Image reference) {
    active_ = Active{.problem = problem, .setup = setup_of(problem), .reference = std::move(reference)};
    ready_ = false;
}

void GpuMeasurer::expect_problem(const Problem& problem) {
    if (!worker_ || sent_.empty() || active_ || !images_->has_reference(problem)) return;
    ImageSource::Result reference = images_->reference(problem);
    if (reference.status != TrialStatus::ok) return;
    activate(problem, std::move(reference.image));
    try {
        ask_to_begin();
    } catch (const Death& death) {
        count_early_death(death);  // the next worker is asked in its turn
    }
}

/// Another problem than the expected one begins.
void GpuMeasurer::drop_expected() {
    try {
        [[maybe_unused]] const Verdict verdict = hear_of_begin();
    } catch (const Death& death) {
        count_early_death(death);
    }
}

/// Brings this worker, or a fresh one, to the active problem. The reference kernel that runs on the way
/// proves the GPU.
Verdict GpuMeasurer::make_ready() {
    while (!ready_) {
        try {
            if (!worker_) start_worker();
            if (has_ended_one_) start_spare();
            if (Verdict verdict = begin_in_worker(); !ok(verdict)) return verdict;
            ready_ = true;
            early_deaths_ = 0;
        } catch (const Death& death) {
            // It says nothing about a candidate, and does not last.
            if (is_given_up()) return {.status = TrialStatus::launch_failed, .detail = std::string(given_up)};
            count_early_death(death);
        }
    }
    return {};
}

Verdict GpuMeasurer::begin_in_worker() {
    if (sent_.empty()) {
        if (Verdict verdict = ask_verdict({{"op", "harness"}}, harness_->cubin, options_.load_limit);
            !ok(verdict)) {
            return verdict;
        }
        sent_.insert("harness");
    }
    if (!asked_to_begin_) ask_to_begin();
    return hear_of_begin();
}

void GpuMeasurer::ask_to_begin() {
    const milliseconds limit = begin_limit();
    const json begin{{"op", "begin"}, {"setup", to_json(active_->setup)}, {"limit_ms", limit.count()}};
    const Clock::time_point start = Clock::now();
    in_protocol([&] {
        worker_->channel().send(begin, active_->reference.cubin, start + limit + options_.grace);
        asked_to_begin_ = start;
    });
}

/// The worker may have been idle for a while when it is heard.
Verdict GpuMeasurer::hear_of_begin() {
    const std::chrono::nanoseconds before = busy_;
    return in_protocol([&] {
        const Reply reply = receive(*asked_to_begin_, begin_limit());
        asked_to_begin_.reset();
        busy_ = before + std::chrono::microseconds(integer(reply, "elapsed_us"));
        calls_ = std::max(1, small_integer(reply, "calls"));
        return verdict_from_json(member(reply, "verdict"));
    });
}

std::string GpuMeasurer::image_name(const Candidate& candidate) const {
    return std::string(active_->problem.family->name) + ' ' + static_text(active_->problem) + ' ' +
           to_string(candidate);
}

CandidateCall GpuMeasurer::call_of(const CandidateImage& candidate) const {
    return {.image = image_name(candidate.candidate),
            .plan = candidate.candidate.variant->plan(active_->problem, candidate.candidate.config,
                                                      device_.traits)};
}

Verdict GpuMeasurer::send_image(const CandidateImage& candidate) {
    const CandidateCall call = call_of(candidate);
    if (sent_.contains(call.image)) return {};
    if (sent_.size() >= max_images_in_worker) {
        [[maybe_unused]] const Verdict forgotten = ask_verdict({{"op", "forget"}}, {}, options_.load_limit);
        sent_ = {"harness"};
    }
    json head = to_json(call);
    head["op"] = "load";
    Verdict verdict = ask_verdict(head, candidate.image->cubin, options_.load_limit);
    if (ok(verdict)) sent_.insert(call.image);
    return verdict;
}

double GpuMeasurer::floor_us() const {
    return floor_of(active_->problem.family->work(active_->problem), device_.traits);
}

milliseconds GpuMeasurer::begin_limit() const {
    return std::max(options_.begin_limit, long_limit(slow_reference_over_floor * floor_us() * verified_sets));
}

milliseconds GpuMeasurer::verify_limit() const {
    const double floor = floor_us() * (agreeing_launches + verified_sets);
    return clamped(slowest_over_floor * floor, options_.shortest_limit,
                   std::max(options_.verify_limit, long_limit(slow_over_floor * floor)));
}

milliseconds GpuMeasurer::time_limit(std::size_t replays) const {
    const double all_us = active_->call_us * calls_ * static_cast<double>(replays + 1);
    return clamped(slack * all_us, options_.shortest_limit,
                   std::max(options_.time_limit, long_limit(least_slack * all_us)));
}

/// A candidate that was on the GPU when it hung is at fault where the GPU answers a fresh worker. One that
/// the run ends with is not known to be, and may be tried again.
Verdict GpuMeasurer::verdict_of_hang(const std::string& cause) {
    const Verdict ready = make_ready();
    return ok(ready) ? Verdict{.status = TrialStatus::timed_out, .detail = cause} : ready;
}

/// Runs an attempt; one that kills its worker gets a second chance alone in a fresh one.
template <class Attempt>
Verdict GpuMeasurer::twice(Attempt attempt) {
    std::string cause;
    for (int i = 0; i < 2; ++i) {
        if (Verdict ready = make_ready(); !ok(ready)) return ready;
        try {
            return attempt();
        } catch (const Death& death) {
            if (death.hung) return verdict_of_hang(death.cause);
            cause = death.cause;
        }
    }
    return {.status = TrialStatus::crashed, .detail = cause + " (twice, the second time alone)"};
}

Verdict GpuMeasurer::verify(const CandidateImage& candidate) {
    return twice([&]() -> Verdict {
        if (Verdict loaded = send_image(candidate); !ok(loaded)) return loaded;
        const milliseconds limit = verify_limit();
        const json head{
            {"op", "verify"}, {"candidate", to_json(call_of(candidate))}, {"limit_ms", limit.count()}};
        return ask(head, {}, limit, [&](const Reply& reply) {
            const double us = static_cast<double>(integer(reply, "elapsed_us")) / (agreeing_launches + 1);
            active_->call_us = std::max(active_->call_us, us);
            return verdict_from_json(member(reply, "verdict"));
        });
    });
}

Samples GpuMeasurer::time(const CandidateImage& candidate, int replays) {
    Samples samples;
    const Verdict verdict = twice([&]() -> Verdict {
        if (Verdict loaded = send_image(candidate); !ok(loaded)) return loaded;
        const milliseconds limit = time_limit(static_cast<std::size_t>(replays));
        const json head{{"op", "time"},
                        {"candidate", to_json(call_of(candidate))},
                        {"replays", replays},
                        {"limit_ms", limit.count()}};
        samples = ask(head, {}, limit,
                      [](const Reply& reply) { return samples_from_json(member(reply, "samples")); });
        return samples.verdict;
    });
    samples.verdict = verdict;
    return samples;
}

Sustained GpuMeasurer::sustain(const CandidateImage& candidate, milliseconds duration) {
    Sustained sustained;
    const Verdict verdict = twice([&]() -> Verdict {
        if (Verdict loaded = send_image(candidate); !ok(loaded)) return loaded;
        const milliseconds limit = EnergyMeter::longest_warm_up + duration + time_limit(replays_around_loop);
        const json head{{"op", "sustain"},
                        {"candidate", to_json(call_of(candidate))},
                        {"duration_ms", duration.count()},
                        {"limit_ms", limit.count()}};
        sustained = ask(head, {}, limit,
                        [](const Reply& reply) { return sustained_from_json(member(reply, "sustained")); });
        return sustained.verdict;
    });
    sustained.verdict = verdict;
    return sustained;
}

std::vector<Samples> GpuMeasurer::interleave_once(const std::vector<CandidateImage>& candidates, int rounds) {
    json calls = json::array();
    for (const CandidateImage& candidate : candidates) {
        if (const Verdict loaded = send_image(candidate); !ok(loaded)) return {};
        calls.push_back(to_json(call_of(candidate)));
    }
    const milliseconds limit = time_limit(candidates.size() * static_cast<std::size_t>(rounds));
    const json head{
        {"op", "interleave"}, {"candidates", calls}, {"rounds", rounds}, {"limit_ms", limit.count()}};
    return ask(head, {}, limit, [&](const Reply& reply) {
        std::vector<Samples> samples;
        for (const json& item : list(reply, "samples")) samples.push_back(samples_from_json(item));
        if (samples.size() != candidates.size())
            throw ProtocolError("samples of another number of candidates");
        return samples;
    });
}

/// A death among several candidates names no culprit: each is then timed alone, which finds it.
std::vector<Samples> GpuMeasurer::interleave(const std::vector<CandidateImage>& candidates, int rounds) {
    std::vector<Samples> samples;
    try {
        if (ok(make_ready())) samples = interleave_once(candidates, rounds);
    } catch (const Death&) {
    }
    if (!samples.empty()) return samples;
    if (!ok(make_ready()) && is_given_up()) return std::vector<Samples>(candidates.size());  // no times
    for (const CandidateImage& candidate : candidates) samples.push_back(time(candidate, rounds));
    return samples;
}

void GpuMeasurer::end_problem() {
    has_ended_one_ = true;
    active_.reset();
    ready_ = false;
}

}  // namespace hone::tuner
