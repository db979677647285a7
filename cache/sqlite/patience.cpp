#include "cache/sqlite/patience.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <thread>

namespace hone::cache::sqlite {

Patience::Patience(const std::filesystem::path& file, Clock::duration stall, Clock::duration longest)
    : stall_(stall),
      longest_(longest),
      files_{file.string(), file.string() + "-wal", file.string() + "-journal"} {}

void Patience::guard(sqlite3* connection) {
    sqlite3_busy_handler(
        connection,
        [](void* patience, int tries) { return static_cast<Patience*>(patience)->wait(tries) ? 1 : 0; },
        this);
}

bool Patience::wait(int tries) {
    const Clock::time_point now = Clock::now();
    const Traces found = traces();
    if (tries == 0) began_ = now;
    if (tries == 0 || found != seen_) {
        seen_ = found;
        changed_ = now;
    }
    if (now - changed_ > stall_ || now - began_ > longest_) return false;
    constexpr int longest_sleep_ms = 25;
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(tries + 1, longest_sleep_ms)));
    return true;
}

Patience::Traces Patience::traces() const {
    Traces found{};
    for (std::size_t i = 0; i < files_.size(); ++i) {
        struct stat status {};
        if (::stat(files_[i].c_str(), &status) != 0) continue;
        constexpr long long ns_a_second = 1'000'000'000;
        found[2 * i] = status.st_mtim.tv_sec * ns_a_second + status.st_mtim.tv_nsec;
        found[2 * i + 1] = status.st_size;
    }
    return found;
}

}  // namespace hone::cache::sqlite
