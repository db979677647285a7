// How long a connection waits for a lock that others hold: for as long as they get on. A fixed time fails in
// a crowd, where each of many takes its turn.
#pragma once

#include <array>
#include <chrono>
#include <filesystem>
#include <string>

struct sqlite3;

namespace hone::cache::sqlite {

class Patience {
  public:
    using Clock = std::chrono::steady_clock;

    /// With the writers of the database `file`: for `stall` while none of them writes, and `longest` in all.
    explicit Patience(const std::filesystem::path& file, Clock::duration stall = std::chrono::seconds(10),
                      Clock::duration longest = std::chrono::minutes(5));

    /// From now on a statement that finds a lock waits as wait() says. This has to outlive the connection.
    void guard(sqlite3* connection);

    /// Sleeps a little, the longer the more often it was asked: `tries` times for this lock. False, without
    /// having slept, when there was enough of it.
    [[nodiscard]] bool wait(int tries);

  private:
    /// When each of the files was last written, in ns, and its size; 0 for one that is not there.
    using Traces = std::array<long long, 6>;
    [[nodiscard]] Traces traces() const;

    Clock::duration stall_;
    Clock::duration longest_;
    std::array<std::string, 3> files_;  ///< the database, its log, its journal
    Traces seen_{};
    Clock::time_point began_;
    Clock::time_point changed_;
};

}  // namespace hone::cache::sqlite
