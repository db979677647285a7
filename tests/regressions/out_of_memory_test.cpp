// Any allocation may fail: the program then ends with its words and its code, and the C interface with a
// status. Each case lets the n-th allocation fail in a process of its own, for n spread over all that the
// command makes.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <random>

#include "tests/cli/made_checkpoints.h"
#include "tests/cli/program.h"

using namespace hone::test;
namespace fs = std::filesystem;

#ifdef HONE_FAILING_CALLS

namespace {

/// Points of a command at which one allocation fails, or all from there on. HONE_TEST_SCALE multiplies them.
long points_wanted() {
    const char* scale = std::getenv("HONE_TEST_SCALE");
    return 60 * (scale == nullptr ? 1 : std::max(1L, std::atol(scale)));
}

struct Counts {
    long allocations = 0;
    long writes = 0;
};

class Failing {
  public:
    Failing() {
        sandbox_.use_fake_gpus();
        REQUIRE(sandbox_
                    .run({"tune", "--op", "rmsnorm", "--fields", "dtype=bf16 hidden=4096", "--tokens", "1",
                          "--effort", "quick"})
                    .code == 0);
        REQUIRE(sandbox_.run({"export", "-o", "winners.json"}).code == 0);
        write_checkpoint(sandbox_.path("in"), small_model());
    }

    [[nodiscard]] Sandbox& sandbox() { return sandbox_; }
    [[nodiscard]] Ended run(const std::string& program, const Sandbox::Words& words,
                            std::map<std::string, std::string> variables) {
        variables.emplace("LD_PRELOAD", HONE_FAILING_CALLS);
        for (const auto& [name, value] : variables) sandbox_.set(name, value);
        Ended ended = sandbox_.run_other(program, words);
        for (const auto& [name, _] : variables) sandbox_.unset(name);
        std::error_code ignored;
        fs::remove_all(sandbox_.path("out"), ignored);
        return ended;
    }
    [[nodiscard]] Counts count(const std::string& program, const Sandbox::Words& words) {
        const fs::path file = sandbox_.path("count");
        (void)run(program, words, {{"HONE_FAIL_COUNT", file.string()}});
        Counts counts;
        std::ifstream(file) >> counts.allocations >> counts.writes;
        REQUIRE(counts.allocations > 0);
        return counts;
    }

  private:
    Sandbox sandbox_;
};

/// `wanted` points spread over all from 1 to `count`, the same in each run.
std::vector<long> points(long count, long wanted) {
    std::vector<long> chosen;
    std::mt19937 random(20240611);
    for (long i = 0; i < wanted; ++i) {
        const long first = i * count / wanted + 1;
        const long last = std::max(first, (i + 1) * count / wanted);
        chosen.push_back(std::uniform_int_distribution<long>(first, last)(random));
    }
    return chosen;
}

void check_all_points(Failing& failing, const std::string& program, const Sandbox::Words& words,
                      const std::vector<int>& codes) {
    const std::string whole = failing.run(program, words, {}).out;
    for (const long at : points(failing.count(program, words).allocations, points_wanted())) {
        const std::string ever = at % 3 == 0 ? "1" : "0";
        const Ended ended = failing.run(
            program, words, {{"HONE_FAIL_ALLOCATION", std::to_string(at)}, {"HONE_FAIL_EVER", ever}});
        CAPTURE(words);
        CAPTURE(at);
        CAPTURE(ever);
        CAPTURE(ended.err);
        CHECK_MESSAGE(std::find(codes.begin(), codes.end(), ended.code) != codes.end(), ended.code);
        CHECK((ended.code == 0 || !ended.err.empty() || !ended.out.empty()));
        const bool half =
            words.size() == 1 && words.front() == "export" && ended.code == 0 && ended.out != whole;
        CHECK_FALSE(half);
    }
}

}  // namespace

TEST_CASE("no failed allocation ends the program but with a code and words") {
    Failing failing;
    const std::vector<Sandbox::Words> commands{
        {"--version"},
        {"no-such-command"},
        {"import", "winners.json"},
        {"export"},
        {"list", "--json"},
        {"explain", "rmsnorm", "dtype=bf16", "hidden=4096", "rows=16"},
        {"cache", "verify"},
        {"cache", "gc"},
        {"quantize", "in", "--format", "w4a16", "-o", "out"},
        {"tune", "--op", "rmsnorm", "--fields", "dtype=bf16 hidden=4096", "--tokens", "1", "--effort",
         "quick", "--retune"}};
    for (const Sandbox::Words& words : commands)
        check_all_points(failing, HONE_PROGRAM, words, {0, 1, 2, 3, 4, 5, 6});
}

TEST_CASE("no failed allocation leaves the C interface other than as a status with a text") {
    Failing failing;
    check_all_points(failing, HONE_ENGINE, {}, {0});
}

TEST_CASE("a disk that gets full during quantize is an error of its own, and nothing is left") {
    Failing failing;
    const Sandbox::Words words{"quantize", "in", "--format", "w4a16", "-o", "out", "--json"};
    const long writes = failing.count(HONE_PROGRAM, words).writes;
    REQUIRE(writes > 10);
    for (const long at : points(writes, 10)) {
        CAPTURE(at);
        const Ended ended = failing.run(HONE_PROGRAM, words, {{"HONE_FAIL_WRITE", std::to_string(at)}});
        CHECK(ended.code == 1);
        CHECK(ended.json()["error"]["code"] == "disk_full");
        for (const auto& entry : fs::directory_iterator(failing.sandbox().path("")))
            CHECK_FALSE(entry.path().filename().string().starts_with("out"));
    }
}

#else

TEST_CASE("no allocation is made to fail under a sanitizer, which has its own") { MESSAGE("skipped"); }

#endif
