#include "runtime/workers/entry.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "runtime/system/folder.h"

namespace hone::runtime {
namespace {

std::atomic<bool> asked{false};

/// By the call of Linux 5.9, or one by one. glibc has a function for it since 2.34.
void close_from(int first) {
    if (syscall(SYS_close_range, first, ~0U, 0) == 0) return;
    for (const std::filesystem::path& open : entries_of("/proc/self/fd")) {
        const int descriptor = std::atoi(open.filename().c_str());
        if (descriptor >= first) close(descriptor);
    }
}

}  // namespace

bool is_worker(int argc, char** argv) noexcept {
    asked = true;
    return argc >= 2 && std::string_view(argv[1]).starts_with(worker_argument);
}

bool can_be_worker() noexcept { return asked; }

// The parent may have died before the prctl, which then never fires: so its pid is checked afterwards.
std::optional<WorkerRole> settle_in(int argc, char** argv) {
    if (argc < 3 || !std::string_view(argv[2]).starts_with(parent_argument)) return std::nullopt;
    const std::string parent(std::string_view(argv[2]).substr(parent_argument.size()));
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != static_cast<pid_t>(std::strtol(parent.c_str(), nullptr, 10))) return std::nullopt;
    close_from(worker_socket_fd + 1);
    return WorkerRole{.kind = std::string_view(argv[1]).substr(worker_argument.size()),
                      .channel = Channel(UniqueFd(worker_socket_fd))};
}

}  // namespace hone::runtime
