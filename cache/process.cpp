#include "cache/process.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <mutex>
#include <sstream>
#include <utility>

#include <fmt/format.h>

namespace hone::cache {
namespace {

std::string first_line(const std::string& file) {
    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    return line;
}

/// Field 22 of /proc/PID/stat, see proc(5). The name in field 2 may hold blanks and brackets: count after its
/// end.
std::int64_t start_ticks(std::int64_t pid) {
    const std::string line = first_line(fmt::format("/proc/{}/stat", pid));
    const std::size_t name_end = line.rfind(')');
    if (name_end == std::string::npos) return 0;
    std::istringstream fields(line.substr(name_end + 1));
    std::string skipped;
    for (int field = 3; field < 22; ++field) fields >> skipped;
    std::int64_t ticks = 0;
    fields >> ticks;
    return ticks;
}

}  // namespace

std::string host_name() {
    std::array<char, 256> buffer{};
    return ::gethostname(buffer.data(), buffer.size() - 1) == 0 ? std::string(buffer.data()) : std::string();
}

namespace {

ProcessIdentity look_at(std::int64_t pid) {
    return {.host = host_name(),
            .boot = first_line("/proc/sys/kernel/random/boot_id"),
            .start = start_ticks(pid)};
}

}  // namespace

/// This process is looked at once: a tuner asks for each candidate. After a fork it is another one.
ProcessIdentity identity_of_process(std::int64_t pid) {
    static std::mutex mutex;
    static std::pair<std::int64_t, ProcessIdentity> own;
    if (pid != getpid()) return look_at(pid);
    const std::scoped_lock lock(mutex);
    if (own.first != pid) own = {pid, look_at(pid)};
    return own.second;
}

std::int64_t now_ms() {
    using namespace std::chrono;
    return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace hone::cache
