#include "runtime/compile/compiler_process.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <ctime>
#include <utility>

#include "runtime/compile/compile_worker.h"

namespace hone::runtime {
namespace {

/// A process's niceness that leaves it a tenth of what this one gets of a core.
int background() { return std::min(19, getpriority(PRIO_PROCESS, 0) + 10); }

id_t id_of(const WorkerProcess& process) { return static_cast<id_t>(process.pid()); }

/// How long a process has had a core; 0 where it is gone.
std::chrono::nanoseconds cpu_time(const WorkerProcess& process) {
    clockid_t clock{};
    timespec time{};
    if (clock_getcpuclockid(process.pid(), &clock) != 0 || clock_gettime(clock, &time) != 0) return {};
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::string seconds_text(std::chrono::milliseconds time) {
    const auto ms = time.count();
    return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

/// Whether a process was ended by others: by the system for want of memory, or by somebody who shuts it down.
bool was_killed(const WorkerEnding& ending) {
    constexpr std::array of_others{SIGKILL, SIGTERM, SIGHUP, SIGINT, SIGQUIT};
    return ending.signal && std::ranges::find(of_others, *ending.signal) != of_others.end();
}

CompiledImage image_of(Message reply) {
    if (!boolean(reply.head, "ok")) {
        if (boolean(reply.head, "refused")) throw CompilerAccident(text(reply.head, "detail"));
        throw NvrtcError(text(reply.head, "detail"), text(reply.head, "log"));
    }
    return {.cubin = std::move(reply.blob),
            .resources = {.registers = small_integer(reply.head, "registers"),
                          .shared_bytes = small_integer(reply.head, "shared_bytes"),
                          .spill_bytes = small_integer(reply.head, "spill_bytes")},
            .log = {}};
}

}  // namespace

CompiledImage CompilerProcess::compile(const CompileRequest& request, int cancel_fd) {
    try {
        return image_of(ask(request, cancel_fd));
    } catch (const ProtocolError& error) {
        end(std::string("the compiler broke the protocol: ") + error.what());
    } catch (const std::bad_alloc&) {
        process_.reset();  // it may be about to answer
        throw;
    }
}

Message CompilerProcess::ask(const CompileRequest& request, int cancel_fd) {
    const Clock::time_point deadline = Clock::now() + options_.time_limit;
    nlohmann::json head = to_json(request);
    head["build"] = build_text(request);
    head["nvrtc"] = options_.nvrtc_version;
    if (!process_) {
        const std::string library =
            options_.nvrtc_library.empty() ? "" : "HONE_NVRTC_LIBRARY=" + options_.nvrtc_library;
        start(library);
        if (options_.in_background)
            static_cast<void>(setpriority(PRIO_PROCESS, id_of(*process_), background()));
    }
    const std::chrono::nanoseconds cpu_before = cpu_time(*process_);
    try {
        process_->channel().send(head, {}, deadline);
    } catch (const ProtocolError&) {  // nobody is there to read
        end_dead();
    }
    Message reply;
    switch (process_->channel().receive(reply, deadline, cancel_fd)) {
        case Received::message: return reply;
        case Received::timed_out: end_slow(cpu_before);
        case Received::cancelled: end("the run was stopped");
        case Received::end_of_file: break;
    }
    end_dead();
}

void CompilerProcess::start(const std::string& setting) {
    try {
        process_.emplace(WorkerProcess::start(options_.program, compile_kind, setting));
    } catch (const WorkerError& error) {
        throw CompilerAccident(error.what());
    }
}

void CompilerProcess::end_dead() {
    const WorkerEnding ending = process_->kill();
    const std::string cause = "the compiler died: " + ending.text();
    if (!was_killed(ending)) end(cause);
    process_.reset();
    throw CompilerAccident(cause);
}

/// One that had no core for half of its time says nothing about the source: the machine had too much to do.
void CompilerProcess::end_slow(std::chrono::nanoseconds cpu_before) {
    const std::string cause = "took longer than " + seconds_text(options_.time_limit);
    if (cpu_time(*process_) - cpu_before > options_.time_limit / 2) end(cause);
    process_.reset();
    throw CompilerAccident(cause);
}

void CompilerProcess::end(const std::string& cause) {
    process_.reset();
    throw WorkerError(cause);
}

}  // namespace hone::runtime
