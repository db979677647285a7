#include "tests/cli/program.h"

#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "kernel_templates/text.h"

namespace hone::test {
namespace {

int exit_code(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Reads both until both have ended.
void drain(int out, int err, Ended& ended) {
    std::array<pollfd, 2> fds{{{out, POLLIN, 0}, {err, POLLIN, 0}}};
    const std::array<std::string*, 2> texts{&ended.out, &ended.err};
    int open = err < 0 ? 1 : 2;
    while (open > 0 && poll(fds.data(), fds.size(), -1) >= 0) {
        for (std::size_t i = 0; i < fds.size(); ++i) {
            if (fds[i].fd < 0 || fds[i].revents == 0) continue;
            std::array<char, 4096> buffer{};
            const ssize_t count = read(fds[i].fd, buffer.data(), buffer.size());
            if (count > 0) {
                texts[i]->append(buffer.data(), static_cast<std::size_t>(count));
                continue;
            }
            fds[i].fd = -1;
            --open;
        }
    }
}

}  // namespace

nlohmann::json Ended::json() const {
    INFO("stdout: ", out, "\nstderr: ", err);
    const nlohmann::json parsed = nlohmann::json::parse(out, nullptr, false);
    REQUIRE_FALSE(parsed.is_discarded());
    return parsed;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

std::size_t columns_of(const std::string& line) {
    return line.size() - static_cast<std::size_t>(std::ranges::count_if(line, is_utf8_continuation));
}

bool has_controls(const std::string& text) {
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if ((byte < 0x20 && c != '\n') || byte == 0x7F) return true;
    }
    return false;
}

Sandbox::Sandbox() {
    std::string name = (std::filesystem::temp_directory_path() / "hone-cli-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    folder_ = name;
    environment_ = {{"PATH", "/usr/bin:/bin"},
                    {"HONE_PACKAGED", "off"},
                    {"HOME", folder_.string()},
                    {"HONE_CACHE", path("cache/cache.db").string()},
                    {"HONE_CUDA_LIBRARY", "/nonexistent/libcuda.so.1"},
                    {"HONE_NVML_LIBRARY", "/nonexistent/libnvidia-ml.so.1"},
                    {"HONE_NVRTC_LIBRARY", HONE_FAKE_NVRTC},
                    {"TERM", "xterm"}};
}

Sandbox::~Sandbox() {
    std::error_code ignored;
    std::filesystem::permissions(path("cache"), std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(folder_, ignored);
}

void Sandbox::use_fake_gpus(const std::string& script) {
    set("HONE_CUDA_LIBRARY", HONE_FAKE_CUDA);
    set("HONE_NVML_LIBRARY", HONE_FAKE_NVML);
    set("HONE_FAKE_SCRIPT", script);
}

std::filesystem::path Sandbox::write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
}

std::string Sandbox::read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(path(name), std::ios::binary).rdbuf();
    return text.str();
}

void Sandbox::exec(const std::string& program, const Words& arguments) const {
    std::vector<std::string> variables;
    for (const auto& [name, value] : environment_) variables.push_back(name + "=" + value);
    std::vector<char*> environment;
    for (std::string& variable : variables) environment.push_back(variable.data());
    environment.push_back(nullptr);
    std::vector<std::string> words{program};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    if (chdir(folder_.c_str()) == 0) execve(program.c_str(), argv.data(), environment.data());
    _exit(126);
}

Ended Sandbox::run(const Words& arguments, const std::function<void(pid_t)>& while_running) const {
    return run_other(HONE_PROGRAM, arguments, while_running);
}

Ended Sandbox::run_other(const std::string& program, const Words& arguments,
                         const std::function<void(pid_t)>& while_running) const {
    std::array<int, 2> out{};
    std::array<int, 2> err{};
    REQUIRE(pipe(out.data()) == 0);
    REQUIRE(pipe(err.data()) == 0);
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        dup2(err[1], STDERR_FILENO);
        for (const int fd : {out[0], out[1], err[0], err[1]}) close(fd);
        close(STDIN_FILENO);
        exec(program, arguments);
    }
    close(out[1]);
    close(err[1]);
    if (while_running) while_running(pid);
    Ended ended;
    drain(out[0], err[0], ended);
    close(out[0]);
    close(err[0]);
    ended.code = exit_code(pid);
    return ended;
}

Ended Sandbox::run_on_terminal(const Words& arguments) const {
    int terminal = -1;
    const pid_t pid = forkpty(&terminal, nullptr, nullptr, nullptr);
    if (pid == 0) exec(HONE_PROGRAM, arguments);
    Ended ended;
    drain(terminal, -1, ended);
    close(terminal);
    ended.code = exit_code(pid);
    return ended;
}

Ended Sandbox::run_on_terminal_until(const std::string& program, const Words& arguments,
                                     const std::string& text) const {
    int terminal = -1;
    const pid_t pid = forkpty(&terminal, nullptr, nullptr, nullptr);
    if (pid == 0) exec(program, arguments);
    Ended ended;
    std::array<char, 256> buffer{};
    while (ended.out.find(text) == std::string::npos) {
        const ssize_t count = ::read(terminal, buffer.data(), buffer.size());
        if (count <= 0) break;
        ended.out.append(buffer.data(), static_cast<std::size_t>(count));
    }
    close(terminal);
    ended.code = exit_code(pid);
    return ended;
}

std::vector<Sandbox::Words> sample_commands() {
    return {{"tune", "llama-3-8b", "--dry-run"},
            {"model"},
            {"model", "gemma-3-4b"},
            {"list"},
            {"show", "rmsnorm", "dtype=bf16", "hidden=4096", "rows=16"},
            {"explain", "rmsnorm", "dtype=bf16", "hidden=4096", "rows=16"},
            {"cache", "path"},
            {"spaces"},
            {"spaces", "rmsnorm"},
            {"--version"}};
}

}  // namespace hone::test
