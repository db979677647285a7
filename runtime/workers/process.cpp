#include "runtime/workers/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "runtime/system/environment.h"
#include "runtime/workers/entry.h"

namespace hone::runtime {
namespace {

[[noreturn]] void throw_cannot_start(const std::filesystem::path& program, const char* why) {
    const bool is_named = program == read_environment().worker;
    throw WorkerError("cannot start " + program.string() +
                      (is_named ? ", which HONE_WORKER_EXECUTABLE names: " : ": ") + why);
}

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
    if (fcntl(STDERR_FILENO, F_GETFD) < 0)
        posix_spawn_file_actions_addopen(&settings.actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
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

/// In a process that has closed its standard streams the socket may have got one of their numbers, which
/// configure() takes.
UniqueFd beyond_fixed(UniqueFd socket) {
    if (socket.get() > worker_socket_fd) return socket;
    UniqueFd moved(fcntl(socket.get(), F_DUPFD_CLOEXEC, worker_socket_fd + 1));
    if (!moved) throw WorkerError(std::string("a worker's socket: ") + std::strerror(errno));
    return moved;
}

/// This process's environment, with one variable set. `setting` is "NAME=VALUE", or empty: as it is.
std::vector<char*> environment_with(std::string& setting) {
    const std::string_view name = std::string_view(setting).substr(0, setting.find('=') + 1);
    std::vector<char*> variables;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        if (name.empty() || !std::string_view(*variable).starts_with(name)) variables.push_back(*variable);
    }
    if (!setting.empty()) variables.push_back(setting.data());
    variables.push_back(nullptr);
    return variables;
}

pid_t spawn(const std::filesystem::path& program, std::string_view kind, int socket, std::string setting) {
    SpawnSettings settings;
    configure(settings, socket);
    std::string name = "hone";
    std::string role = std::string(worker_argument) + std::string(kind);
    std::string parent = std::string(parent_argument) + std::to_string(getpid());
    std::array<char*, 4> arguments{name.data(), role.data(), parent.data(), nullptr};
    const std::vector<char*> environment = environment_with(setting);
    pid_t pid = -1;
    const int error = posix_spawn(&pid, program.c_str(), &settings.actions, &settings.attributes,
                                  arguments.data(), environment.data());
    if (error != 0) throw_cannot_start(program, std::strerror(error));
    return pid;
}

WorkerEnding ending_of(int status) {
    if (WIFEXITED(status)) return {.exit_code = WEXITSTATUS(status)};
    if (WIFSIGNALED(status)) return {.signal = WTERMSIG(status)};
    return {};
}

/// Whether the number is still that of a child. Where SIGCHLD is ignored, or somebody waits for all children,
/// it may be another process's by now.
bool is_child(pid_t pid, siginfo_t& info) noexcept {
    return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/// A process that the driver holds cannot be reaped; nothing is gained by waiting for it for ever.
std::optional<int> reap(pid_t pid) noexcept {
    const Clock::time_point deadline = Clock::now() + std::chrono::seconds(30);
    int status = 0;
    pid_t waited = 0;
    while ((waited = waitpid(pid, &status, WNOHANG)) == 0 && Clock::now() < deadline)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return waited == pid ? std::optional(status) : std::nullopt;
}

/// The worker may be on its way out by itself, and its exit code says more than our signal.
void let_end(pid_t pid) noexcept {
    const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(20);
    siginfo_t info{};
    while (Clock::now() < deadline && is_child(pid, info) && info.si_pid != pid)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

std::string WorkerEnding::text() const {
    if (exit_code) return "exit code " + std::to_string(*exit_code);
    if (!signal) return "an unknown end";
    const char* name = strsignal(*signal);
    return "signal " + std::to_string(*signal) + " (" + (name == nullptr ? "?" : name) + ")";
}

WorkerProcess WorkerProcess::start(const std::filesystem::path& program, std::string_view kind,
                                   const std::string& setting) {
    if (!program.is_absolute()) throw_cannot_start(program, "a worker's program is an absolute path");
    auto [ours, theirs] = socket_pair();
    const UniqueFd inherited = beyond_fixed(std::move(theirs));
    const pid_t pid = spawn(program, kind, inherited.get(), setting);
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

WorkerEnding WorkerProcess::kill() {
    if (pid_ <= 0) return {};
    let_end(pid_);
    const std::optional<int> status = end();
    return status ? ending_of(*status) : WorkerEnding{};
}

void WorkerProcess::begin_to_kill() noexcept {
    siginfo_t info{};
    if (pid_ <= 0 || !is_child(pid_, info)) return;
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);  // in case it has not reached its own group yet
}

std::optional<int> WorkerProcess::end() noexcept {
    if (pid_ <= 0) return std::nullopt;
    begin_to_kill();
    return reap(std::exchange(pid_, -1));
}

}  // namespace hone::runtime
