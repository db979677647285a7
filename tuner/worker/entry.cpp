#include "tuner/worker/entry.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "runtime/system/folder.h"
#include "tuner/compile/compile_worker.h"
#include "tuner/gpu/measure_worker.h"
#include "tuner/worker/process.h"

namespace hone::tuner {
namespace {

/// By the call of Linux 5.9, or one by one. glibc has a function for it since 2.34.
void close_from(int first) {
    if (syscall(SYS_close_range, first, ~0U, 0) == 0) return;
    for (const std::filesystem::path& open : runtime::entries_of("/proc/self/fd")) {
        const int descriptor = std::atoi(open.filename().c_str());
        if (descriptor >= first) close(descriptor);
    }
}

/// Dies with the tuner, leaves no core file, and holds no descriptor but the standard ones and its socket.
/// The parent may have died before the prctl, which then never fires: so its pid is checked afterwards.
bool settle_in(pid_t parent) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) return false;
    close_from(worker_socket_fd + 1);
    return true;
}

}  // namespace

bool is_worker(int argc, char** argv) {
    return argc >= 2 && std::string_view(argv[1]).starts_with(worker_argument);
}

int worker_main(int argc, char** argv, CompileFunction compile) {
    if (argc < 3 || !std::string_view(argv[2]).starts_with(parent_argument)) return 2;
    const std::string_view kind = std::string_view(argv[1]).substr(worker_argument.size());
    const std::string parent(std::string_view(argv[2]).substr(parent_argument.size()));
    if (!settle_in(static_cast<pid_t>(std::strtol(parent.c_str(), nullptr, 10)))) return 2;
    Channel channel{UniqueFd(worker_socket_fd)};
    if (kind == compile_kind) return serve_compiles(channel, compile);
    if (kind == measure_kind) return serve_measurements(channel);
    return 2;
}

}  // namespace hone::tuner
