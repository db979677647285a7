#include "cli/decoder/ends_in_time.h"

#include <fmt/format.h>
#include <unistd.h>

#include <exception>
#include <optional>
#include <system_error>
#include <utility>

#include "cli/cli.h"

namespace hone::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds glance{50};

Outcome hanging(std::chrono::milliseconds limit) {
    return {.exit = ExitCode::failure,
            .error = ErrorInfo{"not_ended",
                               fmt::format("work under way had not ended {} s after the process was asked to "
                                           "stop, and is not waited for any longer: a step of the GPU, or a "
                                           "request that was being read",
                                           (limit.count() + 999) / 1000),
                               "where it was the GPU, `dmesg | grep Xid` and `nvidia-smi -q` may say why"}};
}

}  // namespace

EndsInTime::EndsInTime(std::string command, const std::atomic<bool>& stop, std::chrono::milliseconds limit,
                       const Console& console) {
    try {
        thread_ = std::jthread([this, command = std::move(command), &stop, limit, &console] {
            watch(command, stop, limit, console);
        });
    } catch (const std::system_error&) {  // no more threads
    }
}

void EndsInTime::watch(const std::string& command, const std::atomic<bool>& stop,
                       std::chrono::milliseconds limit, const Console& console) const {
    std::optional<Clock::time_point> end;
    while (!has_ended_) {
        if (!end && stop) end = Clock::now() + limit;
        if (end && Clock::now() >= *end) {
            int code = static_cast<int>(ExitCode::failure);
            try {
                code = present(command, hanging(limit), console);
            } catch (const std::exception&) {  // no memory for words
            }
            _exit(code);
        }
        std::this_thread::sleep_for(glance);
    }
}

}  // namespace hone::cli
