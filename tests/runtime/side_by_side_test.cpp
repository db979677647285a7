// prepare() calls whose images are compiled side by side, in processes of this test program.
// Starts threads: the thread sanitizer runs this file, too.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <thread>

#include "runtime/compile/compiler.h"
#include "runtime/compile/compiler_count.h"
#include "tests/runtime/dispatch_machine.h"
#include "tests/runtime/operator_under_test.h"

namespace hone::runtime {
namespace {

using test::Machine;
using test::small_norm;

/// A machine on which this program is the worker's, and whose compiler notes what it does.
class CompilingMachine {
  public:
    explicit CompilingMachine(const std::string& then = "", const std::string& program = "/proc/self/exe")
        : program_("HONE_WORKER_EXECUTABLE", program) {
        script(then);
    }
    /// `then` goes on a rule that holds for all compiles; more rules behind a ';'.
    void script(const std::string& then) {
        machine_.script(fmt::format("compile:log={}{}{}", log().string(), then.empty() ? "" : ":", then));
    }
    /// Winners of `small_norm` for 1, 2, 4, ... rows, each with an image of its own.
    std::vector<Candidate> store_winners(std::size_t count) {
        const std::vector<Candidate> others = test::other_candidates();
        std::vector<Candidate> winners;
        std::set<std::string> images;
        std::vector<cache::Trial> trials;
        for (const Candidate& other : others) {
            if (winners.size() == count) break;
            if (!images.insert(to_string(image_candidate(other, test::traits().arch()))).second) continue;
            trials.push_back(test::trial(std::int64_t{1} << winners.size(), other));
            winners.push_back(other);
        }
        REQUIRE(winners.size() == count);
        test::store(machine_.file(), trials);
        return winners;
    }

    Machine* operator->() { return &machine_; }
    /// What has been compiled: "PID SOURCE CONSTANTS", a line each.
    [[nodiscard]] std::vector<std::string> compiles() const {
        std::vector<std::string> lines;
        std::ifstream file(log());
        for (std::string line; std::getline(file, line);) lines.push_back(line);
        return lines;
    }
    [[nodiscard]] std::set<pid_t> processes() const {
        std::set<pid_t> found;
        for (const std::string& line : compiles()) found.insert(std::stoi(line));
        return found;
    }
    /// The same without the processes, in order of their texts.
    [[nodiscard]] std::multiset<std::string> images() const {
        std::multiset<std::string> found;
        for (const std::string& line : compiles()) found.insert(line.substr(line.find(' ')));
        return found;
    }

    /// Ends a wait of "meet=N".
    void add_lines(int count) const {
        std::ofstream file(log(), std::ios::app);
        for (int i = 0; i < count; ++i) file << "0 a line of the test\n";
    }

  private:
    [[nodiscard]] std::filesystem::path log() const { return machine_.folder() / "log"; }
    test::ScopedVariable program_;
    Machine machine_;
};

bool has_children() { return waitpid(-1, nullptr, WNOHANG) >= 0; }

/// On a machine of one core nothing is side by side.
bool one_core() {
    if (compiler_count() > 1) return false;
    MESSAGE("skipped: there is one core, or memory for one compiler");
    return true;
}

TEST_CASE("the images of an operator are compiled side by side, kept in the cache, and counted") {
    if (one_core()) return;
    CompilingMachine machine;
    machine.store_winners(5);
    machine.script("meet=2");  // the first does not end before the second has begun
    {
        Runtime runtime(machine->options());
        const RmsNormKernel norm = runtime.prepare(small_norm);
        CHECK(norm.run(nullptr, test::untouched_args(), 16) == Status::ok);
        CHECK(runtime.counters().compiles == 5);
        const PrepareReport report = norm.reports().front();
        for (const BucketReport& bucket : report.buckets) CHECK(bucket.image == ImageOrigin::compiled);
    }
    CHECK(machine.compiles().size() == 5);
    CHECK(machine.processes().size() >= 2);
    CHECK_FALSE(has_children());
    CHECK(machine->warnings.empty());

    Runtime second(machine->options());
    CHECK(second.prepare(small_norm).reports().front().buckets[4].image == ImageOrigin::cached);
    CHECK(second.counters().image_cache_hits == 5);
    CHECK(machine.compiles().size() == 5);
}

TEST_CASE("an image is kept and loaded while another one is still compiled") {
    if (one_core()) return;
    CompilingMachine machine;
    std::vector<Candidate> winners = machine.store_winners(5);
    // Equals are begun here in the order of their keys, so the last one is compiled elsewhere.
    std::ranges::sort(winners, {}, [](const Candidate& candidate) {
        return key_text(
            candidate_image_key(problem_of(small_norm), candidate, test::traits().arch(), "13.0"));
    });
    const Candidate& late = winners.back();
    test::store(machine->file(), {test::trial(1, winners.front()), test::trial(2, late)});
    std::string rule = "compile:match=source=" + std::string(late.variant->source);
    for (std::size_t i = 0; i < late.variant->tunables.size(); ++i)
        rule += fmt::format(",{}={}", late.variant->tunables[i].name, late.config[i]);
    machine.script(fmt::format("meet=2;{}:log={}:meet=100", rule, (machine->folder() / "log").string()));
    Runtime runtime(machine->options());
    const std::jthread preparing(
        [&] { static_cast<void>(runtime.prepare(RmsNorm{.hidden = 4096, .max_rows = 2})); });
    const auto kept = [&] { return cache::Cache::open(machine->file()).stats().images; };
    for (int tries = 0; kept() < 1 && tries < 2'000; ++tries)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CHECK(kept() == 1);
    for (int tries = 0; machine->fakes().live("module") < 1 && tries < 2'000; ++tries)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CHECK(machine->fakes().live("module") == 1);
    CHECK(runtime.counters().compiles == 1);
    machine.add_lines(100);
}

TEST_CASE("operators that several threads prepare are compiled side by side, and each image once") {
    if (one_core()) return;
    CompilingMachine machine("meet=2");
    RuntimeOptions options = machine->options();
    options.use_cache = false;  // each image would come from there, compiled once or twice
    Runtime runtime(options);
    std::vector<RmsNormKernel> kernels(6);
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < kernels.size(); ++i) {
            threads.emplace_back([&, i] {
                kernels[i] = runtime.prepare(RmsNorm{.hidden = i < 3 ? 4096 : 2048, .max_rows = 16});
            });
        }
    }
    for (const RmsNormKernel& kernel : kernels)
        CHECK(kernel.run(nullptr, test::untouched_args(), 3) == Status::ok);
    const std::multiset<std::string> images = machine.images();
    CHECK(images.size() == std::set(images.begin(), images.end()).size());
    CHECK(images.size() == runtime.counters().compiles);
    CHECK(static_cast<std::size_t>(machine->fakes().live("module")) == images.size());
    CHECK(machine.processes().size() >= 2);
    CHECK_FALSE(has_children());
}

TEST_CASE("the parts of an operator are compiled together") {
    if (one_core()) return;
    CompilingMachine machine;
    Runtime runtime(machine->options());
    const FusedFfn ffn{.hidden = 256, .intermediate = 512, .max_tokens = 1};  // an image each
    static_cast<void>(runtime.prepare(ffn));
    REQUIRE(machine.compiles().size() == 2);
    machine.script("meet=4");  // the first two lines are there
    static_cast<void>(runtime.prepare(FusedFfn{.hidden = 256, .intermediate = 768, .max_tokens = 1}));
    CHECK(machine.compiles().size() == 4);
}

TEST_CASE("a winner that does not compile gives way to its fallback, which nobody compiled before") {
    CompilingMachine machine;
    const std::vector<Candidate> winners = machine.store_winners(5);
    std::string rules = "sleep_us=1";
    for (const Candidate& winner : winners) {
        rules += ";compile:match=source=" + std::string(winner.variant->source);
        for (std::size_t i = 0; i < winner.variant->tunables.size(); ++i)
            rules += fmt::format(",{}={}", winner.variant->tunables[i].name, winner.config[i]);
        rules += ":fail";
    }
    machine.script(rules);
    Runtime runtime(machine->options());
    RmsNormKernel norm;
    {
        const std::jthread other([&] { static_cast<void>(runtime.prepare(small_norm)); });
        norm = runtime.prepare(small_norm);
    }
    const PrepareReport report = norm.reports().front();
    for (const BucketReport& bucket : report.buckets) CHECK(bucket.origin == Origin::fallback);
    CHECK(machine->warnings.size() == 5);
    CHECK(norm.run(nullptr, test::untouched_args(), 4) == Status::ok);

    const std::size_t compiles = machine.compiles().size();
    static_cast<void>(runtime.prepare(small_norm));
    CHECK(machine.compiles().size() == compiles);
}

TEST_CASE("what a winner's fallback would be is not compiled while the winner works") {
    CompilingMachine machine;
    machine.store_winners(5);
    Runtime runtime(machine->options());
    static_cast<void>(runtime.prepare(small_norm));
    CHECK(machine.compiles().size() == 5);
}

TEST_CASE("without a program that works, all is compiled here, with one warning for all prepares") {
    if (one_core()) return;
    CompilingMachine machine("sleep_us=50000", "/nowhere/at/all");
    machine.store_winners(5);
    Runtime runtime(machine->options());
    const RmsNormKernel norm = runtime.prepare(small_norm);
    CHECK(norm.run(nullptr, test::untouched_args(), 16) == Status::ok);
    static_cast<void>(runtime.prepare(RmsNorm{.hidden = 2048, .max_rows = 4096}));
    CHECK(machine.processes() == std::set{getpid()});
    REQUIRE(machine->warnings.size() == 1);
    CHECK(machine->warnings[0].find("/nowhere/at/all") != std::string::npos);
}

TEST_CASE("a runtime that may not compile starts no process") {
    CompilingMachine machine("", "/nowhere/at/all");
    machine.store_winners(5);
    RuntimeOptions options = machine->options();
    options.allow_compile = false;
    Runtime frozen(options);
    CHECK_THROWS_AS(static_cast<void>(frozen.prepare(small_norm)), Error);
    CHECK(machine.compiles().empty());
    CHECK(machine->warnings.size() == 0);
    CHECK_FALSE(has_children());
}

}  // namespace
}  // namespace hone::runtime
