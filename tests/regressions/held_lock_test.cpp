// A process that stands still with the writers' lock of the cache in its hand: whoever wants to keep images
// waits for it once, as long as for any write, and not once for each image.
#include <doctest/doctest.h>
#include <sqlite3.h>

#include <chrono>
#include <string>
#include <vector>

#include "hone/hone.h"
#include "tests/cli/program.h"
#include "tests/support/fake_machine.h"

using namespace hone::test;
using Clock = std::chrono::steady_clock;

namespace {

/// Holds the lock as long as it stands.
class Holder {
  public:
    explicit Holder(const std::filesystem::path& file) {
        REQUIRE(sqlite3_open(file.c_str(), &database_) == SQLITE_OK);
        REQUIRE(sqlite3_exec(database_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK);
    }
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;
    ~Holder() { sqlite3_close(database_); }

  private:
    sqlite3* database_ = nullptr;
};

constexpr std::chrono::seconds few_waits_and_work{45};  // a wait is 10 s; one for each of 7 images was 80

const Sandbox::Words tune{"tune",     "--op", "rmsnorm", "--fields", "dtype=bf16 hidden=4096",
                          "--tokens", "1,16"};

}  // namespace

TEST_CASE("tuning ends soon where somebody holds the cache, and says so") {
    Sandbox sandbox;
    sandbox.use_fake_gpus();
    REQUIRE(sandbox.run({"import", HONE_SOURCE_DIR "/configs/tuned/h100-sxm.json"}).code == 0);
    const Holder holder(sandbox.path("cache/cache.db"));
    const auto begin = Clock::now();
    const Ended ended = sandbox.run(tune);
    CHECK(Clock::now() - begin < few_waits_and_work);
    CHECK(ended.code == 5);
    CHECK(ended.err.find("another process kept the cache locked") != std::string::npos);
}

TEST_CASE("preparing costs one wait and one warning where somebody holds the cache") {
    const FakeMachine machine;
    Sandbox sandbox;
    REQUIRE(sandbox.run({"import", HONE_SOURCE_DIR "/configs/tuned/h100-sxm.json"}).code == 0);
    const Holder holder(sandbox.path("cache/cache.db"));
    std::vector<std::string> warnings;
    hone::Runtime runtime({.cache_file = sandbox.path("cache/cache.db"),
                           .on_warning = [&](std::string_view text) { warnings.emplace_back(text); }});
    const auto begin = Clock::now();
    for (const std::int64_t hidden : {1000, 1100, 1200, 1300})
        static_cast<void>(runtime.prepare(hone::RmsNorm{.hidden = hidden, .max_rows = 64}));
    CHECK(Clock::now() - begin < few_waits_and_work);
    CHECK(runtime.counters().compiles >= 4);
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].find("compiled images cannot be kept in the cache") != std::string::npos);
}
