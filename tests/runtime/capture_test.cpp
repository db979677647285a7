// Starts threads: the thread sanitizer runs this file, too.
#include "runtime/dispatch/capture.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "hone/hone.h"
#include "runtime/dispatch/capture_file.h"
#include "runtime/system/atomic_file.h"
#include "runtime/system/file_lock.h"
#include "runtime/system/input_error.h"
#include "runtime/system/text_file.h"
#include "runtime/system/write_error.h"
#include "tests/runtime/operator_under_test.h"
#include "tests/support/fake_machine.h"
#include "tests/support/scratch.h"

namespace hone::runtime {
namespace {

namespace fs = std::filesystem;
using test::ScopedVariable;
using test::Scratch;

constexpr RmsNorm small_norm{.hidden = 4096, .max_rows = 16};
constexpr std::size_t longest = 1 << 20;

/// Calls by problem, of all GPUs.
std::map<std::string, std::uint64_t> calls_in(const fs::path& file) {
    std::map<std::string, std::uint64_t> calls;
    for (const CapturedProblem& one : read_capture(file)) calls[one.problem] += one.calls;
    return calls;
}

std::string norm_of(int rows) {
    return "rmsnorm dtype=bf16 output=same residual=no hidden=4096 rows=" + std::to_string(rows);
}

/// A child process that ends as `body` makes it, or with 1 where that throws. Forked from one thread alone:
/// what another one held, the child would wait for without end.
template <class Body>
pid_t fork_child(Body&& body) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    try {
        body();
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        ::_exit(1);
    }
    ::_exit(0);
}

int exit_code(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

template <class Body>
int in_child(Body&& body) {
    return exit_code(fork_child(std::forward<Body>(body)));
}

}  // namespace

TEST_CASE("calls add up in the file, by GPU and problem") {
    const Scratch scratch;
    const fs::path file = scratch.path("calls.json");
    add_to_capture(file, std::vector<CapturedProblem>{{"H200", "b", 3}, {"H200", "a", 1}});
    add_to_capture(file, std::vector<CapturedProblem>{{"H100", "b", 5}, {"H200", "a", 2}});
    add_to_capture(file, {});
    const std::vector<CapturedProblem> found = read_capture(file);
    REQUIRE(found.size() == 3);
    CHECK((found[0].gpu == "H100" && found[0].problem == "b" && found[0].calls == 5));
    CHECK((found[1].gpu == "H200" && found[1].problem == "a" && found[1].calls == 3));
    CHECK((found[2].gpu == "H200" && found[2].problem == "b" && found[2].calls == 3));
    constexpr std::uint64_t most = std::uint64_t{1} << 53;
    add_to_capture(file, std::vector<CapturedProblem>{{"H100", "b", ~std::uint64_t{0}}});
    CHECK(read_capture(file)[0].calls == most);
}

TEST_CASE("what is no capture is refused by its name and stays as it is") {
    const Scratch scratch;
    const fs::path file = scratch.path("notes.json");
    const std::string good = R"({"schema": "hone.capture/1", "problems": [)";
    const std::vector<std::pair<std::string, std::string>> cases{
        {"shopping list", "notes.json"},
        {"{}", "has no 'schema'"},
        {R"({"schema": "hone.tuned/2", "problems": []})", "its schema is not \"hone.capture/1\""},
        {R"({"schema": 1, "problems": []})", "its schema is not"},
        {R"({"schema": "hone.capture/1", "problems": {}})", "problems is no array"},
        {R"({"schema": "hone.capture/1", "problems": [], "more": 1})", "has the unknown member 'more'"},
        {good + "7]}", "problem 1: is no object"},
        {good + R"({"gpu": "a", "problem": "b"}]})", "problem 1: has no 'calls'"},
        {good + R"({"calls": -1, "gpu": "a", "problem": "b"}]})", "calls is no whole number from 0 to 2^53"},
        {good + R"({"calls": 1.5, "gpu": "a", "problem": "b"}]})", "calls is no whole number"},
        {good + R"({"calls": 9007199254740993, "gpu": "a", "problem": "b"}]})", "calls is no whole number"},
        {good + R"({"calls": 1, "gpu": 2, "problem": "b"}]})", "gpu or problem is no text"}};
    for (const auto& [text, refusal] : cases) {
        CAPTURE(text);
        write_file(file, text);
        CHECK_THROWS_WITH_AS(add_to_capture(file, {}), doctest::Contains(refusal.c_str()), InputError);
        CHECK(read_text_file(file, longest) == text);
    }
    CHECK_THROWS_AS(add_to_capture(scratch.path("no folder/calls.json"), {}), InputError);
    CHECK_THROWS_AS(add_to_capture("/dev/full", {}), InputError);
}

TEST_CASE("many processes that add to one file lose nothing") {
    const Scratch scratch;
    const fs::path file = scratch.path("calls.json");
    constexpr int processes = 8;
    constexpr int rounds = 25;
    std::vector<pid_t> children;
    for (int process = 0; process < processes; ++process) {
        children.push_back(fork_child([&] {
            const std::vector<CapturedProblem> mine{{"gpu", "all", 1}, {"gpu", std::to_string(process), 2}};
            for (int round = 0; round < rounds; ++round) add_to_capture(file, mine, std::chrono::minutes(5));
        }));
    }
    for (const pid_t child : children) CHECK(exit_code(child) == 0);
    const auto calls = calls_in(file);
    CHECK(calls.size() == processes + 1);
    CHECK(calls.at("all") == processes * rounds);
    CHECK(calls.at("3") == 2 * rounds);
    CHECK(std::distance(fs::directory_iterator(file.parent_path()), {}) == 1);
}

TEST_CASE("a lock is of the name, whatever file has it, and is not waited for without end") {
    const Scratch scratch;
    const fs::path file = scratch.path("locked");
    constexpr std::chrono::milliseconds moment(20);
    {
        const FileLock lock(file, moment);
        CHECK_THROWS_WITH_AS(FileLock(file, moment), doctest::Contains("is held by another process"),
                             WriteError);
        write_file(file, "another file of this name");
        CHECK_NOTHROW(FileLock(file, moment));
    }
    CHECK_NOTHROW(FileLock(file, moment));
    ::mkfifo(scratch.path("pipe").c_str(), 0600);
    CHECK_THROWS_AS(FileLock(scratch.path("pipe"), moment), InputError);
    fs::create_symlink(file, scratch.path("link"));
    CHECK_THROWS_AS(FileLock(scratch.path("link"), moment), InputError);
}

TEST_CASE("a runtime counts calls by problem at the edges of its buckets, and runs add up") {
    const test::FakeMachine machine;
    const Scratch scratch;
    const RuntimeOptions options{.use_cache = false, .capture_file = scratch.path("calls.json")};
    for (int run = 1; run <= 2; ++run) {
        Runtime runtime(options);
        const RmsNormKernel norm = runtime.prepare(small_norm);
        const RmsNormKernel same = runtime.prepare(small_norm);
        for (const std::int64_t rows : {1, 1, 5, 8, 16, 0}) {
            CHECK(norm.run(nullptr, test::untouched_args(), rows) == Status::ok);
        }
        CHECK(same.run(nullptr, test::untouched_args(), 1) == Status::ok);
        CHECK(norm.run(nullptr, {}, 1) == Status::null_pointer);  // no call
        CHECK(runtime.counters().runs_fallback == 6);
        CHECK(runtime.counters().runs_exact == 0);
    }
    CHECK(calls_in(options.capture_file) ==
          std::map<std::string, std::uint64_t>{{norm_of(1), 6}, {norm_of(8), 4}, {norm_of(16), 2}});
    CHECK(read_capture(options.capture_file)[0].gpu == "NVIDIA H100 80GB HBM3");
}

TEST_CASE("calls in a CUDA graph are counted as often as it was launched") {
    const test::FakeMachine machine;
    const Scratch scratch;
    const RuntimeOptions options{.use_cache = false, .capture_file = scratch.path("calls.json")};
    for (int run = 1; run <= 2; ++run) {
        Runtime runtime(options);
        const RmsNormKernel norm = runtime.prepare(small_norm);
        const auto call = [&](std::int64_t rows) {
            CHECK(norm.run(nullptr, test::untouched_args(), rows) == Status::ok);
        };
        call(1);
        const GraphCalls often = runtime.record_graph([&] {
            call(1);
            call(1);
            call(8);
        });
        const GraphCalls never = runtime.record_graph([&] { call(16); });
        static_cast<void>(never);
        for (int i = 0; i < 100; ++i) often.launched();
        call(8);
        CHECK_THROWS_AS(static_cast<void>(runtime.record_graph([] { throw std::runtime_error("no"); })),
                        std::runtime_error);
    }
    CHECK(calls_in(options.capture_file) ==
          std::map<std::string, std::uint64_t>{{norm_of(1), 2 * 201}, {norm_of(8), 2 * 101}});
    Runtime uncaptured({.use_cache = false});
    int called = 0;
    uncaptured.record_graph([&] { ++called; }).launched();
    CHECK(called == 1);
}

TEST_CASE("HONE_CAPTURE names the file, unless the options do") {
    const test::FakeMachine machine;
    const Scratch scratch;
    const ScopedVariable variable("HONE_CAPTURE", scratch.path("named").string());
    for (const fs::path& file : {fs::path(), scratch.path("chosen")}) {
        Runtime runtime({.use_cache = false, .capture_file = file});
        CHECK(runtime.prepare(small_norm).run(nullptr, test::untouched_args(), 2) == Status::ok);
    }
    CHECK(calls_in(scratch.path("named")) == std::map<std::string, std::uint64_t>{{norm_of(2), 1}});
    CHECK(calls_in(scratch.path("chosen")) == std::map<std::string, std::uint64_t>{{norm_of(2), 1}});
}

TEST_CASE("kernels that outlive their runtime are counted to their end") {
    const test::FakeMachine machine;
    const Scratch scratch;
    std::optional<Runtime> runtime(RuntimeOptions{.use_cache = false, .capture_file = scratch.path("calls")});
    std::optional<RmsNormKernel> norm(runtime->prepare(small_norm));
    runtime.reset();
    CHECK(norm->run(nullptr, test::untouched_args(), 4) == Status::ok);
    norm.reset();
    CHECK(calls_in(scratch.path("calls")) == std::map<std::string, std::uint64_t>{{norm_of(4), 1}});
}

TEST_CASE("a process that ends with handles left has its calls written") {
    const test::FakeMachine machine;
    const Scratch scratch;
    const auto end_of_process = [&](auto end) {
        return in_child([&] {
            // static: what is left at the end is left on purpose
            static auto* const runtime =
                new Runtime({.use_cache = false, .capture_file = scratch.path("calls")});
            static auto* const norm = new RmsNormKernel(runtime->prepare(small_norm));
            if (norm->run(nullptr, test::untouched_args(), 4) != Status::ok) ::_exit(1);
            end();
        });
    };
    CHECK(end_of_process([] { std::exit(0); }) == 0);
    CHECK(calls_in(scratch.path("calls")) == std::map<std::string, std::uint64_t>{{norm_of(4), 1}});
    CHECK(end_of_process([] { ::_exit(0); }) == 0);  // a kill: what the last seconds counted is lost, no more
    CHECK(calls_in(scratch.path("calls")) == std::map<std::string, std::uint64_t>{{norm_of(4), 1}});
}

TEST_CASE("at the end of a process nobody is called: what cannot be written is said on stderr") {
    const test::FakeMachine machine;
    const Scratch scratch;
    CHECK(in_child([&] {
              const int file = ::open(scratch.path("stderr").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
              ::dup2(file, STDERR_FILENO);
              fs::create_directory(scratch.path("folder"));
              static auto* const runtime = new Runtime({.use_cache = false,
                                                        .capture_file = scratch.path("folder/calls"),
                                                        .on_warning = [](std::string_view) { ::_exit(2); }});
              static auto* const norm = new RmsNormKernel(runtime->prepare(small_norm));
              if (norm->run(nullptr, test::untouched_args(), 4) != Status::ok) ::_exit(1);
              fs::remove_all(scratch.path("folder"));
              std::exit(0);
          }) == 0);
    CHECK(read_text_file(scratch.path("stderr"), longest)
              .starts_with("hone: warning: captured calls wait to be written: "));
}

TEST_CASE("a forked child writes nothing of its parent's, and ends") {
    const test::FakeMachine machine;
    const Scratch scratch;
    auto runtime =
        std::make_unique<Runtime>(RuntimeOptions{.use_cache = false, .capture_file = scratch.path("calls")});
    CHECK(runtime->prepare(small_norm).run(nullptr, test::untouched_args(), 4) == Status::ok);
    CHECK(in_child([] { std::exit(0); }) == 0);
    CHECK(calls_in(scratch.path("calls")).empty());
    runtime.reset();
    CHECK(calls_in(scratch.path("calls")) == std::map<std::string, std::uint64_t>{{norm_of(4), 1}});
}

TEST_CASE("a warning on stderr is of one line, short, and steers no terminal, whatever it names") {
    const test::FakeMachine machine;
    const Scratch scratch;
    const std::string evil = "no folder/\x1b[31m\x07" + std::string(100'000, 'x');
    CHECK(in_child([&] {
              const int file = ::open(scratch.path("stderr").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
              ::dup2(file, STDERR_FILENO);
              const Runtime runtime({.use_cache = false, .capture_file = scratch.path(evil)});
          }) == 0);
    const std::string printed = read_text_file(scratch.path("stderr"), longest);
    CHECK(printed.starts_with("hone: warning: calls are not captured: "));
    CHECK(printed.size() < 1000);
    CHECK(printed.find('\x1b') == std::string::npos);
    CHECK(printed.find('\x07') == std::string::npos);
    CHECK(printed.find('\n') == printed.size() - 1);
}

TEST_CASE("files that may not grow on cost warnings, and the process nothing") {
    const test::FakeMachine machine;
    const Scratch scratch;
    CHECK(in_child([&] {
              const rlimit none{.rlim_cur = 0, .rlim_max = RLIM_INFINITY};
              if (::setrlimit(RLIMIT_FSIZE, &none) != 0) throw std::runtime_error("setrlimit");
              std::vector<std::string> warnings;
              Runtime runtime({.cache_file = scratch.path("cache.db"),
                               .capture_file = scratch.path("calls"),
                               .on_warning = [&](std::string_view text) { warnings.emplace_back(text); }});
              const Status status = runtime.prepare(small_norm).run(nullptr, test::untouched_args(), 2);
              if (status != Status::ok || warnings.empty()) throw std::runtime_error("no warning");
          }) == 0);
}

TEST_CASE("a name in a working folder that is gone costs a warning in words of ours") {
    const test::FakeMachine machine;
    const Scratch scratch;
    CHECK(in_child([&] {
              fs::create_directory(scratch.path("gone"));
              fs::current_path(scratch.path("gone"));
              fs::remove(scratch.path("gone"));
              std::string warning;
              const Runtime runtime({.use_cache = false,
                                     .capture_file = "calls",
                                     .on_warning = [&](std::string_view text) { warning = text; }});
              const std::string expected = "calls are not captured: calls: cannot be written: No such file";
              if (!warning.starts_with(expected)) throw std::runtime_error(warning);
          }) == 0);
}

TEST_CASE("a file that cannot be a capture costs a warning and nothing else") {
    const test::FakeMachine machine;
    const Scratch scratch;
    write_file(scratch.path("notes"), "shopping list");
    std::vector<std::string> warnings;
    for (const fs::path& file :
         {scratch.path("notes"), scratch.path("no folder/calls"), fs::path("/dev/null")}) {
        warnings.clear();
        Runtime runtime({.use_cache = false, .capture_file = file, .on_warning = [&](std::string_view text) {
                             warnings.emplace_back(text);
                         }});
        CHECK(runtime.prepare(small_norm).run(nullptr, test::untouched_args(), 2) == Status::ok);
        CHECK(runtime.counters().runs_fallback == 1);
        REQUIRE(warnings.size() == 1);
        CHECK(warnings[0].find("calls are not captured: ") == 0);
        CHECK(warnings[0].find(file.string()) != std::string::npos);
    }
    CHECK(read_text_file(scratch.path("notes"), longest) == "shopping list");
}

TEST_CASE("calls that could not be written are written with the next") {
    const Scratch scratch;
    const fs::path file = scratch.path("calls");
    std::vector<std::string> warnings;
    Capture capture(file, "gpu", [&](const std::string& text) { warnings.push_back(text); });
    RunCounter& counter = capture.counter(*parse_problem(norm_of(1)), Origin::exact);
    CHECK(&capture.counter(*parse_problem(norm_of(1)), Origin::exact) == &counter);
    counter.add();
    write_file(file, "shopping list");
    capture.write();
    capture.write();
    CHECK(warnings.size() == 1);
    fs::remove(file);
    counter.add();
    capture.write();
    capture.write();
    CHECK(calls_in(file) == std::map<std::string, std::uint64_t>{{norm_of(1), 2}});
    CHECK(capture.runs(Origin::exact) == 2);
    CHECK(capture.runs(Origin::fallback) == 0);
}

}  // namespace hone::runtime
