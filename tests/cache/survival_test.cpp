// What happens when processes die, fork, crowd, or run out of disk.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "support.h"

using namespace hone::cache;
using namespace hone::cache::test;
namespace fs = std::filesystem;

namespace {

/// Stores for ever and writes the number of each trial to `acknowledge` after the store has returned.
[[noreturn]] void write_until_killed(const fs::path& file, int first, int acknowledge) {
    try {
        Cache cache = Cache::open(file);
        cache.set_image_limit(50'000);
        for (int i = first;; ++i) {
            const InFlight row{.key = sample_trial(i).key,
                               .candidate = sample_trial(i).candidate,
                               .pid = ::getpid(),
                               .started_at = 1};
            cache.begin(row);
            cache.store(sample_trial(i));
            if (::write(acknowledge, &i, sizeof i) != sizeof i) break;
            cache.end(row);
            if (i % 3 == 0) cache.store_image(sample_image_key(i % 40), sample_image(i, 5000));
            if (i % 17 == 0) (void)cache.gc();
        }
    } catch (const std::exception& error) {
        const int failed = -1;
        (void)!::write(acknowledge, &failed, sizeof failed);
    }
    ::_exit(1);
}

/// A process that stores from trial `first` on, and is killed.
class Writer {
  public:
    Writer(const fs::path& file, int first) {
        int ends[2];
        REQUIRE(::pipe(ends) == 0);
        pid_ = ::fork();
        if (pid_ == 0) write_until_killed(file, first, ends[1]);
        ::close(ends[1]);
        acknowledged_ = ends[0];
    }
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;
    ~Writer() {
        kill();
        ::close(acknowledged_);
    }
    void kill() {
        if (pid_ < 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(std::exchange(pid_, -1), nullptr, 0);
    }
    /// The next trial that it has acknowledged, for which this waits while it lives.
    std::optional<int> next() const {
        int i = 0;
        return ::read(acknowledged_, &i, sizeof i) == sizeof i ? std::optional(i) : std::nullopt;
    }

  private:
    pid_t pid_ = -1;
    int acknowledged_ = -1;
};

/// Lets a writer run for this long, kills it, and returns what it acknowledged.
std::vector<int> run_and_kill(const fs::path& file, int first, std::chrono::microseconds life) {
    Writer writer(file, first);
    std::this_thread::sleep_for(life);
    writer.kill();
    std::vector<int> acknowledged;
    while (const std::optional<int> i = writer.next()) acknowledged.push_back(*i);
    return acknowledged;
}

/// How long a writer takes here and now from its start to its first trial: longer than some lives under a
/// sanitizer on a busy machine.
std::chrono::microseconds time_to_first_trial(const fs::path& file) {
    const auto begin = std::chrono::steady_clock::now();
    const Writer writer(file, 0);
    CHECK(writer.next() == 0);
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
}

/// Numbers of the trials in a cache that must be sound.
std::set<std::string> stored_in(const fs::path& file) {
    const Cache cache = Cache::open(file);
    const VerifyReport report = cache.verify();
    CHECK_MESSAGE(report.ok, (report.problems.empty() ? std::string() : report.problems[0]));
    std::set<std::string> identities;
    for (const Trial& trial : cache.trials()) identities.insert(identity(trial));
    return identities;
}

}  // namespace

TEST_CASE("five hundred kills lose no acknowledged trial and leave no cache that needs repair") {
    const TemporaryDirectory directory;
    std::mt19937 random(1);
    std::size_t acknowledged_in_all = 0;
    const auto first = static_cast<unsigned>(time_to_first_trial(directory / "first.db").count());
    const unsigned longest = std::max(25'000u, 2 * first);
    fs::path file;
    std::set<std::string> acknowledged;
    for (int kill = 0; kill < scaled(500); ++kill) {
        if (kill % 20 == 0) {  // a new file, so that creating one is killed as well
            file = directory / ("cache" + std::to_string(kill) + ".db");
            acknowledged.clear();
        }
        const auto life = std::chrono::microseconds(random() % (kill % 20 == 0 ? longest / 3 : longest));
        for (const int i : run_and_kill(file, kill * 100'000, life)) {
            REQUIRE(i >= 0);
            acknowledged.insert(identity(sample_trial(i)));
            ++acknowledged_in_all;
        }
        const std::set<std::string> stored = stored_in(file);
        for (const std::string& one : acknowledged) CHECK(stored.contains(one));
    }
    MESSAGE("kills: " << scaled(500) << ", acknowledged trials, all there: " << acknowledged_in_all);
    CHECK(acknowledged_in_all > 0);
}

TEST_CASE("sixteen processes store, read, merge and clean one cache without an error or a lost row") {
    constexpr int processes = 16;
    const int rounds = scaled(15);
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    const auto work = [&](int p) {
        Cache cache = Cache::open(file);
        Cache own = Cache::open(directory / ("own" + std::to_string(p) + ".db"));
        for (int i = 0; i < rounds; ++i) {
            cache.store(sample_trial(i));  // the same in all
            cache.store(sample_trial(1000 * (p + 1) + i));
            own.store(sample_trial(1'000'000 * (p + 1) + i));
            cache.begin({.key = sample_trial(i).key, .candidate = "x", .pid = ::getpid(), .started_at = 1});
            // Of a candidate that no trial names: gc() of another process takes the image of one that lost.
            const ImageKey unraced = sample_image_key(500'000 + i);
            cache.store_image(unraced, sample_image(i));
            const auto image = cache.image(unraced);
            require(image && image->cubin == sample_image(i).cubin, "image");
            require(!cache.winners().empty(), "winners");
            if (i % 5 == 4) require(merge(cache, own).added > 0, "merge");
            if (i % 6 == 5) (void)cache.gc();
            if (i % 4 == 3) cache = Cache::open(file);  // opening and closing in between, too
            if (i % 7 == 6) require(!Cache::open(file, OpenMode::read_only).trials().empty(), "reader");
            cache.end({.key = sample_trial(i).key, .candidate = "x", .pid = ::getpid()});
        }
        require(merge(cache, own).added >= 0, "merge");
    };
    std::vector<pid_t> children;
    std::vector<int> pipes;
    for (int p = 0; p < processes; ++p) {
        int ends[2];
        REQUIRE(::pipe(ends) == 0);
        const pid_t child = ::fork();
        if (child == 0) {
            std::string trouble;
            try {
                work(p);
            } catch (const std::exception& error) {
                trouble = error.what();
            }
            ::_exit(::write(ends[1], trouble.data(), trouble.size()) == 0 ? 0 : 1);
        }
        ::close(ends[1]);
        children.push_back(child);
        pipes.push_back(ends[0]);
    }
    for (std::size_t p = 0; p < children.size(); ++p) {
        char buffer[1000];
        const ssize_t n = ::read(pipes[p], buffer, sizeof buffer);
        CHECK(std::string(buffer, static_cast<std::size_t>(std::max<ssize_t>(n, 0))) == "");
        ::close(pipes[p]);
        int status = 0;
        ::waitpid(children[p], &status, 0);
        CHECK(status == 0);
    }
    const std::set<std::string> stored = stored_in(file);
    CHECK(stored.size() == static_cast<std::size_t>(rounds + 2 * processes * rounds));
    CHECK(Cache::open(file).in_flight().empty());
}

TEST_CASE("processes that create one cache at the same moment all find a cache") {
    constexpr int processes = 6;
    const TemporaryDirectory directory;
    for (int round = 0; round < scaled(100); ++round) {
        const auto file = directory / ("cache" + std::to_string(round) + ".db");
        int gate[2];
        REQUIRE(::pipe(gate) == 0);
        std::vector<pid_t> children;
        for (int p = 0; p < processes; ++p) {
            children.push_back(::fork());
            if (children.back() != 0) continue;
            char open = 0;
            ::close(gate[1]);
            (void)!::read(gate[0], &open, 1);  // until the parent closes its end
            try {
                (void)Cache::open(file);
            } catch (const std::exception& error) {
                std::fprintf(stderr, "%s\n", error.what());
                ::_exit(1);
            }
            ::_exit(0);
        }
        ::close(gate[0]);
        ::close(gate[1]);
        for (const pid_t child : children) {
            int status = 0;
            ::waitpid(child, &status, 0);
            CHECK(status == 0);
        }
    }
}

TEST_CASE("a child that inherits a cache must not touch it, and the parent's stays whole") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    Cache cache = Cache::open(file);
    cache.store(sample_trial(0));
    for (int i = 1; i <= scaled(50); ++i) {
        CHECK(in_child([&] {
                  require(kind_of_error([&] { cache.store(sample_trial(99)); }) == "unusable", "stored");
                  require(kind_of_error([&] { (void)cache.trials(); }) == "unusable", "read");
                  require(kind_of_error([&] { (void)cache.gc(); }) == "unusable", "cleaned");
                  { const Cache dies_here = std::move(cache); }
                  Cache::open(file).store(sample_trial(1000 + i));  // a connection of its own is fine
              }) == "");
        cache.store(sample_trial(i));
    }
    CHECK(cache.verify().ok);
    CHECK(cache.trials().size() == static_cast<std::size_t>(1 + 2 * scaled(50)));
}

TEST_CASE("a full disk is said to be full, and what was acknowledged stays") {
    const TemporaryDirectory directory;
    for (int step = 0; step < 24; ++step) {
        const rlim_t limit = static_cast<rlim_t>(step < 12 ? 1000 + step * 9000 : 100'000 + step * 30'000);
        const auto file = directory / ("cache" + std::to_string(step) + ".db");
        INFO("limit " << limit);
        CHECK(in_child([&] {
                  const rlimit small{.rlim_cur = limit, .rlim_max = RLIM_INFINITY};
                  const rlimit large{.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
                  require(::setrlimit(RLIMIT_FSIZE, &small) == 0, "setrlimit");
                  std::vector<int> acknowledged;
                  std::string kind;
                  {
                      std::optional<Cache> cache;
                      kind = kind_of_error([&] { cache = Cache::open(file); });
                      for (int i = 0; kind.empty() && i < 100'000; ++i) {
                          kind = kind_of_error([&] {
                              Trial trial = sample_trial(i);
                              trial.detail = std::string(3000, 'x');
                              cache->store(trial);
                              acknowledged.push_back(i);
                          });
                      }
                      require(kind == "full", "kind is '" + kind + "'");
                      if (cache)
                          require(cache->trials().size() == acknowledged.size(), "the open cache lost rows");
                      require(::setrlimit(RLIMIT_FSIZE, &large) == 0, "setrlimit");
                      if (cache) cache->store(sample_trial(7));  // space again: the same connection goes on
                  }
                  Cache cache = Cache::open(file);
                  require(cache.verify().ok, "not sound");
                  require(cache.trials().size() >= acknowledged.size(), "lost rows");
              }) == "");
    }
}
