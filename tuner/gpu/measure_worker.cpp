#include "tuner/gpu/measure_worker.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <random>
#include <unordered_map>

#include "runtime/cuda/driver.h"
#include "runtime/nvml/nvml.h"
#include "tuner/gpu/energy_meter.h"
#include "tuner/gpu/graph_timer.h"
#include "tuner/gpu/verifier.h"
#include "tuner/measure/wire.h"

namespace hone::tuner {
namespace {

using cache::TrialStatus;
using nlohmann::json;

constexpr auto forever = std::chrono::hours(24 * 365);

/// The context is lost: the reply says so, then the process ends.
struct Lost {
    Verdict verdict;
};

Clock::time_point deadline_of(const json& request) {
    return Clock::now() + std::chrono::milliseconds(integer(request, "limit_ms"));
}

std::int64_t microseconds_since(Clock::time_point start) {
    return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count();
}

class Worker {
  public:
    /// Opens the driver and NVML, most of a worker's start: one that waits as a spare has it behind it. What
    /// fails here fails again at hello, which reports it.
    void open_libraries() {
        try {
            driver_ = runtime::Driver::load();
            nvml_ = runtime::NvmlDevice::open(runtime::pci_bus_id(*driver_, 0));
        } catch (const std::exception&) {
        }
    }

    json answer(const Message& request) {
        const std::string op = text(request.head, "op");
        if (op == "describe") return describe();
        if (op == "hello") return hello(request.head);
        if (op == "harness") return harness(request);
        if (!harness_) throw ProtocolError("a request before the harness");
        if (op == "begin") return begin(request);
        if (op == "load") return load(request);
        if (op == "verify") return verify(request.head);
        if (op == "time") return time(request.head);
        if (op == "interleave") return interleave(request.head);
        if (op == "sustain") return sustain(request.head);
        if (op == "forget") return forget();
        if (op == "end") return end();
        throw ProtocolError("an unknown request");
    }

  private:
    json hello(const json& request) {
        if (!device_) device_.emplace(small_integer(request, "ordinal"));
        return {{"gpu", to_json(device_->info().gpu)}};
    }

    /// Needs no context.
    static json describe() { return {{"device", to_json(device_info(*runtime::Driver::load(), 0))}}; }

    json harness(const Message& request) {
        if (!device_) throw ProtocolError("a harness before hello");
        return guarded([&]() -> Verdict {
            harness_.emplace(device_->driver(), request.blob, device_->stream(),
                             device_->info().traits.sm_count);
            sets_.emplace(*device_, *harness_);
            timer_.emplace(*device_, *sets_);
            verifier_.emplace(*device_, *harness_, *sets_);
            return {};
        });
    }

    json begin(const Message& request) {
        const Clock::time_point start = Clock::now();
        const ProblemSetup setup = problem_setup_from_json(member(request.head, "setup"), names_);
        const Clock::time_point deadline = deadline_of(request.head);
        json reply = guarded([&] {
            timer_->clear();
            const runtime::LoadedPlan reference(device_->driver(), request.blob, setup.reference_plan);
            sets_->prepare(setup);
            return verifier_->begin(reference, setup.reference_plan, deadline);
        });
        reply["calls"] = sets_->calls();
        reply["elapsed_us"] = microseconds_since(start);
        return reply;
    }

    json load(const Message& request) {
        const CandidateCall call = candidate_call_from_json(request.head, names_);
        return guarded([&]() -> Verdict {
            loaded_.insert_or_assign(call.image,
                                     runtime::LoadedPlan(device_->driver(), request.blob, call.plan));
            return {};
        });
    }

    json verify(const json& request) {
        const CandidateCall call = candidate_call_from_json(member(request, "candidate"), names_);
        const Clock::time_point start = Clock::now();
        json reply =
            guarded([&] { return verifier_->verify(image(call.image), call.plan, deadline_of(request)); });
        reply["elapsed_us"] = microseconds_since(start);
        return reply;
    }

    json time(const json& request) {
        const int replays = small_integer(request, "replays");
        const json candidates = json::array({member(request, "candidate")});
        return {{"samples", measure(candidates, replays, deadline_of(request))[0]}};
    }

    json interleave(const json& request) {
        return {{"samples", measure(list(request, "candidates"), small_integer(request, "rounds"),
                                    deadline_of(request))}};
    }

    json sustain(const json& request) {
        const CandidateCall call = candidate_call_from_json(member(request, "candidate"), names_);
        const std::chrono::milliseconds duration(integer(request, "duration_ms"));
        const Clock::time_point deadline = deadline_of(request);
        Sustained sustained;
        const Verdict verdict = verdict_of([&]() -> Verdict {
            sets_->reserve_workspace(call.plan.workspace_bytes);
            if (Verdict ready = prepare(call, deadline); ready.status != TrialStatus::ok) return ready;
            const double call_us = timer_->replay({call.image}, deadline).us.front();
            const Replays replays{timer_->graph(call.image), call_us * sets_->calls(), sets_->calls()};
            sustained = EnergyMeter(*device_).measure(replays, duration, deadline);
            return sustained.verdict;
        });
        sustained.verdict = verdict;
        return {{"sustained", to_json(sustained)}};
    }

    json end() {
        timer_->clear();
        return {{"verdict", to_json(Verdict{})}};
    }

    /// Each round has another order, so that none always follows the same one. Those that cannot be captured
    /// are left out and say why.
    json measure(const json& candidates, int rounds, Clock::time_point deadline) {
        if (rounds < 0 || rounds > 10'000 || candidates.empty() || candidates.size() > 64) {
            throw ProtocolError("too many rounds or candidates");
        }
        std::vector<Samples> samples(candidates.size());
        std::vector<std::size_t> running;
        std::vector<CandidateCall> calls;
        std::int64_t workspace = 0;
        for (const json& item : candidates) {
            calls.push_back(candidate_call_from_json(item, names_));
            workspace = std::max(workspace, calls.back().plan.workspace_bytes);
        }
        const Verdict room =
            verdict_of([&]() -> Verdict { return sets_->reserve_workspace(workspace), Verdict{}; });
        if (room.status != TrialStatus::ok)
            return json(candidates.size(), to_json(Samples{.verdict = room, .us = {}}));
        for (std::size_t i = 0; i < calls.size(); ++i) {
            samples[i].verdict = prepare(calls[i], deadline);
            if (samples[i].verdict.status == TrialStatus::ok) running.push_back(i);
        }
        if (!running.empty()) replay(calls, running, rounds, deadline, samples);
        json replies = json::array();
        for (const Samples& one : samples) replies.push_back(to_json(one));
        return replies;
    }

    Verdict prepare(const CandidateCall& call, Clock::time_point deadline) {
        return verdict_of(
            [&] { return timer_->prepare(call.image, image(call.image), call.plan, deadline); });
    }

    void replay(const std::vector<CandidateCall>& calls, const std::vector<std::size_t>& running, int rounds,
                Clock::time_point deadline, std::vector<Samples>& samples) {
        std::vector<std::string> order;
        std::vector<std::size_t> owner;
        std::vector<std::size_t> one_round = running;
        for (int round = 0; round < rounds; ++round) {
            std::ranges::shuffle(one_round, shuffling_);
            owner.insert(owner.end(), one_round.begin(), one_round.end());
        }
        for (const std::size_t i : owner) order.push_back(calls[i].image);
        GraphTimer::Batch batch;
        const Verdict verdict = verdict_of([&] {
            batch = timer_->replay(order, deadline);
            return Verdict{.detail = batch.disturbance};
        });
        for (const std::size_t i : running) {
            samples[i].verdict = verdict;
            samples[i].sm_clock_mhz = batch.sm_clock_mhz;
        }
        for (std::size_t i = 0; i < batch.us.size(); ++i) samples[owner[i]].us.push_back(batch.us[i]);
    }

    const runtime::LoadedPlan& image(const std::string& name) const {
        const auto found = loaded_.find(name);
        if (found == loaded_.end()) throw ProtocolError("an image that was never sent");
        return found->second;
    }

    json forget() {
        timer_->clear();
        loaded_.clear();
        return {{"verdict", to_json(Verdict{})}};
    }

    /// The one place where a driver's error becomes a verdict.
    template <class Work>
    static Verdict verdict_of(Work work) {
        try {
            return work();
        } catch (const runtime::CudaError& error) {
            if (error.sticky()) throw Lost{{.status = TrialStatus::crashed, .detail = error.what()}};
            return {.status = TrialStatus::launch_failed, .detail = error.what()};
        }
    }
    template <class Work>
    static json guarded(Work work) {
        return {{"verdict", to_json(verdict_of(work))}};
    }

    std::shared_ptr<const runtime::Driver> driver_;    ///< kept open until the device's own are
    std::shared_ptr<const runtime::NvmlDevice> nvml_;  ///< the same
    NameTable names_;
    std::optional<DeviceContext> device_;
    std::optional<Harness> harness_;
    std::optional<InputSets> sets_;
    std::optional<Verifier> verifier_;
    std::unordered_map<std::string, runtime::LoadedPlan> loaded_;
    std::optional<GraphTimer> timer_;
    std::mt19937_64 shuffling_{1};  ///< always the same orders: two runs differ by what they measure alone
};

/// Leaves without any destructor: unloading a module waits for a kernel that may never end.
[[noreturn]] void leave(WorkerExit code) { _exit(static_cast<int>(code)); }

void serve(Channel& channel, Worker& worker) {
    Message request;
    const auto reply = [&](const json& head) {
        channel.send(head, {}, Clock::now() + std::chrono::seconds(30));
    };
    while (channel.receive(request, Clock::now() + forever) == Received::message) {
        try {
            reply(worker.answer(request));
        } catch (const Lost& lost) {
            reply({{"lost", to_json(lost.verdict)}});
            leave(WorkerExit::sticky_error);
        } catch (const DeadlinePassed&) {
            leave(WorkerExit::deadline);
        } catch (const ProtocolError&) {
            throw;
        } catch (const std::exception& error) {  // no driver, no such device
            reply({{"error", error.what()}});
        }
    }
}

}  // namespace

int serve_measurements(Channel& channel) {
    Worker worker;
    worker.open_libraries();
    try {
        serve(channel, worker);
    } catch (const ProtocolError&) {
        leave(WorkerExit::protocol);
    }
    leave(WorkerExit::closed);
}

}  // namespace hone::tuner
