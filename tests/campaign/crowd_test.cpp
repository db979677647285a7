// Sixty-four processes on one cache: each stores, reads, cleans and reopens, and
// none fails because of another.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/cache/support.h"
#include "tests/campaign/results.h"

using namespace hone::cache;
using namespace hone::cache::test;
namespace fs = std::filesystem;

namespace {

constexpr int processes = 64;

int trial_number(int process, int round) { return 1'000'000 * (process + 1) + round; }

/// One process's part of a round; throws when anything is not as it must be.
void take_part(const fs::path& file, Cache& cache, int process, int round) {
    const InFlight row{.key = sample_trial(round).key,
                       .candidate = "x" + std::to_string(process),
                       .pid = ::getpid(),
                       .started_at = 1};
    cache.begin(row);
    cache.store(sample_trial(round % 50));  // the same in all
    cache.store(sample_trial(trial_number(process, round)));
    cache.end(row);
    // Of a candidate that no trial names: gc() of another process takes the image of one that lost.
    const ImageKey unraced = sample_image_key(500'000 + round % 20);
    cache.store_image(unraced, sample_image(round % 20));
    const auto image = cache.image(unraced);
    require(image && image->cubin == sample_image(round % 20).cubin, "an image is not what was stored");
    if ((round + process) % 8 == 0) cache = Cache::open(file);
    if ((round + process) % 16 == 3) (void)cache.gc();
    if ((round + process) % 16 == 7) {
        const Cache reader = Cache::open(file, OpenMode::read_only);
        require(!reader.winners({.gpu = {}, .family = "sample", .static_fields = {}, .dynamic_fields = {}})
                     .empty(),
                "a reader finds no winners");
    }
}

/// Runs in each of the processes; returns what went wrong.
std::string crowd(const std::function<void(int)>& work) {
    std::vector<pid_t> children;
    int ends[2];
    require(::pipe(ends) == 0, "pipe");
    for (int process = 0; process < processes; ++process) {
        children.push_back(::fork());
        if (children.back() != 0) continue;
        std::string trouble;
        try {
            work(process);
        } catch (const std::exception& error) {
            trouble = std::string(error.what()) + "\n";
        }
        ::_exit(::write(ends[1], trouble.data(), trouble.size()) < 0 || !trouble.empty() ? 1 : 0);
    }
    ::close(ends[1]);
    std::string troubles;
    char buffer[4096];
    for (ssize_t n = 0; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;)
        troubles.append(buffer, static_cast<std::size_t>(n));
    ::close(ends[0]);
    for (const pid_t child : children) {
        int status = 0;
        ::waitpid(child, &status, 0);
        if (status != 0 && troubles.empty()) troubles = "a process ended with " + std::to_string(status);
    }
    return troubles;
}

std::set<std::string> identities_in(const Cache& cache) {
    std::set<std::string> found;
    for (const Trial& trial : cache.trials()) found.insert(identity(trial));
    return found;
}

using Clock = std::chrono::steady_clock;

Clock::duration seconds_of(const char* variable, double otherwise) {
    const char* text = std::getenv(variable);
    const std::chrono::duration<double> seconds(text == nullptr ? otherwise : std::atof(text));
    return std::chrono::duration_cast<Clock::duration>(seconds);
}

}  // namespace

TEST_CASE("sixty-four processes on one cache lose no row, and none fails because of another") {
    constexpr int rounds_of_a_process = 4;  // then another one goes on
    const int wanted = hone::campaign::scaled(4, 500);
    const auto end = Clock::now() + seconds_of("HONE_CAMPAIGN_SECONDS", 60);
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    int rounds = 0;
    for (; rounds < wanted && (Clock::now() < end || rounds == 0); rounds += rounds_of_a_process) {
        CHECK(crowd([&](int process) {
                  Cache cache = Cache::open(file);
                  for (int i = 0; i < rounds_of_a_process; ++i) take_part(file, cache, process, rounds + i);
              }) == "");
    }
    const Cache cache = Cache::open(file);
    CHECK(cache.verify().ok);
    CHECK(cache.in_flight().empty());
    const std::set<std::string> found = identities_in(cache);
    for (int process = 0; process < processes; ++process)
        for (int round = 0; round < rounds; ++round)
            CHECK(found.contains(identity(sample_trial(trial_number(process, round)))));
    hone::campaign::report(4, "campaign.crowd_test", "rounds of each of 64 processes on one cache", rounds,
                           wanted);
}

TEST_CASE("a soak: processes come and go on one cache for as long as HONE_CAMPAIGN_SOAK says") {
    const auto seconds = seconds_of("HONE_CAMPAIGN_SOAK", 1);
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    const auto end = Clock::now() + seconds;
    std::int64_t waves = 0;
    for (; Clock::now() < end; ++waves) {
        const int first = static_cast<int>(waves) * 4;
        CHECK(crowd([&](int process) {
                  Cache cache = Cache::open(file);
                  for (int round = first; round < first + 4; ++round) take_part(file, cache, process, round);
              }) == "");
        const Cache cache = Cache::open(file, OpenMode::read_only);
        CHECK(cache.verify().ok);
        CHECK(cache.trials().size() >= static_cast<std::size_t>(processes) * 4 * (waves + 1));
    }
    CHECK(waves > 0);
    hone::campaign::report(4, "campaign.crowd_test", "processes started in the soak", waves * processes);
    hone::campaign::report(4, "campaign.crowd_test", "seconds of soak",
                           std::chrono::duration_cast<std::chrono::seconds>(seconds).count());
}
