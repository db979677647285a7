#include "tuner/worker/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "runtime/system/environment.h"
#include "tuner/errors.h"
#include "tuner/worker/entry.h"

namespace hone::tuner {
namespace {

struct SpawnSettings {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;

    SpawnSettings() {
        posix_spawn_file_actions_init(&actions);
        posix_spawnattr_init(&attributes);
    }
    SpawnSettings(const SpawnSettings&) = delete;
    SpawnSettings& operator=(const SpawnSettings&) = delete;
    ~SpawnSettings() {
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
    }
};

/// The socket on a fixed descriptor, nothing to read on stdin, data never on stdout, default signals, an own
/// group.
void configure(SpawnSettings& settings, int socket) {
    posix_spawn_file_actions_addopen(&settings.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&settings.actions, STDERR_FILENO, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&settings.actions, socket, worker_socket_fd);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&settings.attributes, &none);
    posix_spawnattr_setsigdefault(&settings.attributes, &all);
    posix_spawnattr_setpgroup(&settings.attributes, 0);
    posix_spawnattr_setflags(&settings.attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

pid_t spawn(const std::filesystem::path& program, std::string_view kind, int socket) {
    SpawnSettings settings;
    configure(settings, socket);
    std::string name = "hone";
    std::string role = std::string(worker_argument) + std::string(kind);
    std::string parent = std::string(parent_argument) + std::to_string(getpid());
    std::array<char*, 4> arguments{name.data(), role.data(), parent.data(), nullptr};
    pid_t pid = -1;
    const int error = posix_spawn(&pid, program.c_str(), &settings.actions, &settings.attributes,
                                  arguments.data(), environ);
    if (error != 0) throw WorkerError("cannot start " + program.string() + ": " + std::strerror(error));
    return pid;
}

std::string describe_ending(int status) {
    if (WIFEXITED(status)) return "exit code " + std::to_string(WEXITSTATUS(status));
    if (!WIFSIGNALED(status)) return "an unknown end";
    const char* name = strsignal(WTERMSIG(status));
    return "signal " + std::to_string(WTERMSIG(status)) + " (" + (name == nullptr ? "?" : name) + ")";
}

/// A process that the driver holds cannot be reaped; nothing is gained by waiting for it for ever.
std::optional<int> reap(pid_t pid) noexcept {
    const Clock::time_point deadline = Clock::now() + std::chrono::seconds(30);
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (Clock::now() > deadline) return std::nullopt;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return status;
}

/// The worker may be on its way out by itself, and its exit code says more than our signal.
bool ends_by_itself(pid_t pid) noexcept {
    const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(20);
    siginfo_t info{};
    while (Clock::now() < deadline) {
        if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid == pid) {
            return true;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
}

}  // namespace

std::filesystem::path worker_executable() {
    const std::string named = runtime::environment_variable("HONE_WORKER_EXECUTABLE");
    return named.empty() ? "/proc/self/exe" : named;
}

WorkerProcess WorkerProcess::start(std::string_view kind) {
    auto [ours, theirs] = socket_pair();
    const pid_t pid = spawn(worker_executable(), kind, theirs.get());
    return WorkerProcess(pid, Channel(std::move(ours)));
}

WorkerProcess::WorkerProcess(pid_t pid, Channel channel) : pid_(pid), channel_(std::move(channel)) {}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), channel_(std::move(other.channel_)) {}

WorkerProcess& WorkerProcess::operator=(WorkerProcess&& other) noexcept {
    if (this != &other) {
        end();
        pid_ = std::exchange(other.pid_, -1);
        channel_ = std::move(other.channel_);
    }
    return *this;
}

WorkerProcess::~WorkerProcess() { end(); }

std::string WorkerProcess::kill() {
    if (pid_ <= 0) return {};
    const std::optional<int> status = end();
    return status ? describe_ending(*status) : "still there 30 s after it was killed";
}

std::optional<int> WorkerProcess::end() noexcept {
    if (pid_ <= 0) return std::nullopt;
    const bool ended = channel_.fd() >= 0 && ends_by_itself(pid_);
    ::kill(-pid_, SIGKILL);
    if (!ended) ::kill(pid_, SIGKILL);  // in case it has not reached its own group yet
    return reap(std::exchange(pid_, -1));
}

}  // namespace hone::tuner
