// Starts threads: the thread sanitizer runs this file, too.
#include "runtime/compile/compile_crew.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <set>
#include <thread>

#include "tests/support/fake_machine.h"
#include "tests/support/scratch.h"

namespace hone::runtime {
namespace {

/// A machine whose compiler notes what it does, and a crew on it.
class CrewUnderTest {
  public:
    /// `then` goes on a rule that holds for all compiles: "meet=2", ":fail"; more rules behind a ';'.
    explicit CrewUnderTest(const std::string& then = "", const std::string& program = "/proc/self/exe",
                           const std::string& nvrtc_version = "13.0", int most = 3)
        : log_("HONE_TEST_LOG", scratch_.path("log").string()),
          fakes_("compile:log=" + scratch_.path("log").string() + (then.empty() ? "" : ":" + then)) {
        crew_ = std::make_unique<CompileCrew>(
            Nvrtc::load(),
            CompilerProcessOptions{
                .program = program, .nvrtc_version = nvrtc_version, .time_limit = std::chrono::seconds(60)},
            most);
    }

    CompileCrew& operator*() { return *crew_; }
    CompileCrew* operator->() { return crew_.get(); }
    /// All of them.
    void finish(const std::vector<CompileCrew::JobPtr>& jobs) {
        for (const CompileCrew::JobPtr& job : jobs) crew_->finish(*job, jobs);
    }
    void end() { crew_.reset(); }

    /// Jobs for images with different constants.
    std::vector<CompileCrew::JobPtr> jobs(int count) {
        std::vector<CompileCrew::JobPtr> made;
        for (int i = 0; i < count; ++i) made.push_back(job(i));
        return made;
    }
    CompileCrew::JobPtr job(int number) {
        return crew_->add(
            key(number),
            {.source = "rmsnorm/reference.cu",
             .constants = "static constexpr long long number = " + std::to_string(number) + ";\n",
             .arch = {9, 0, true}});
    }

    static cache::ImageKey key(int number) {
        cache::ImageKey key;
        key.candidate = "number " + std::to_string(number);
        return key;
    }

    /// The process of each compile that has begun.
    [[nodiscard]] std::vector<pid_t> compiles() const {
        std::vector<pid_t> processes;
        std::ifstream log(scratch_.path("log"));
        for (std::string line; std::getline(log, line);) processes.push_back(std::stoi(line));
        return processes;
    }
    /// Its source, in the order in which they began.
    [[nodiscard]] std::vector<std::string> sources() const {
        std::vector<std::string> found;
        std::ifstream log(scratch_.path("log"));
        std::string process;
        for (std::string rest; log >> process >> found.emplace_back() && std::getline(log, rest);) {
        }
        found.pop_back();
        return found;
    }
    [[nodiscard]] std::set<pid_t> processes() const {
        const std::vector<pid_t> all = compiles();
        return {all.begin(), all.end()};
    }

  private:
    test::Scratch scratch_;
    test::ScopedVariable log_;
    test::FakeMachine fakes_;
    std::unique_ptr<CompileCrew> crew_;
};

/// A worker that runs this shell line once it has written a line into the log: "meet=2" waits for it.
class ShellWorker {
  public:
    explicit ShellWorker(const std::string& line) {
        std::ofstream(file()) << "#!/bin/sh\necho 0 started >> \"$HONE_TEST_LOG\"\n" << line << '\n';
        std::filesystem::permissions(file(), std::filesystem::perms::owner_all);
    }
    [[nodiscard]] std::string file() const { return scratch_.path("worker.sh").string(); }

  private:
    test::Scratch scratch_;
};

/// Answers a request with noise once it is there: who is gone before it is sent has only died.
constexpr const char* answers_noise =
    "until head -c 1 <&3 >/dev/null 2>&1; do :; done\nhead -c 5000 /dev/urandom >&3";

bool all_images(const std::vector<CompileCrew::JobPtr>& jobs) {
    return std::ranges::all_of(jobs,
                               [](const auto& job) { return !job->error && !job->image.cubin.empty(); });
}

bool has_children() { return waitpid(-1, nullptr, WNOHANG) >= 0; }

TEST_CASE("images are compiled side by side, here and in processes, which end with the crew") {
    CrewUnderTest crew("meet=3");  // none goes on before three have begun
    const auto jobs = crew.jobs(3);
    crew.finish(jobs);
    CHECK(all_images(jobs));
    CHECK(crew->trouble().empty());
    CHECK(crew.processes().size() == 3);
    CHECK(crew.processes().contains(getpid()));
    crew.end();
    CHECK_FALSE(has_children());
}

TEST_CASE("an image made elsewhere is the one that is made here") {
    CrewUnderTest there("meet=2");
    const auto jobs = there.jobs(2);
    there.finish(jobs);
    CrewUnderTest here("", "");
    for (int i = 0; i < 2; ++i) {
        const std::vector alone = {here.job(i)};
        here.finish(alone);
        CHECK(alone[0]->image.cubin == jobs[static_cast<std::size_t>(i)]->image.cubin);
        CHECK(alone[0]->image.resources.registers ==
              jobs[static_cast<std::size_t>(i)]->image.resources.registers);
    }
}

TEST_CASE("one image is compiled here, and starts no process") {
    CrewUnderTest crew;
    crew.finish(crew.jobs(1));
    CHECK(crew.compiles() == std::vector{getpid()});
    CHECK_FALSE(has_children());
}

TEST_CASE("the longest compiles are begun first, here and in processes, and equals as they were asked for") {
    for (const char* program : {"", "/proc/self/exe"}) {
        CAPTURE(program);
        // With a process the first two wait for each other: who is slow to start is not overtaken.
        CrewUnderTest crew(*program == 0 ? "" : "meet=2", program, "13.0", 2);
        std::vector<CompileCrew::JobPtr> jobs;
        const auto add = [&](const char* source, int number) {
            jobs.push_back(crew->add(CrewUnderTest::key(number),
                                     {.source = source, .constants = "", .arch = {9, 0, true}}));
        };
        add("embedding/reference.cu", 0);
        add("linear/wgmma/kernel.cu", 1);
        add("attention_prefill/wgmma/kernel.cu", 2);
        add("sample/row.cu", 3);  // shorter than linear's, and longer to compile
        CHECK(jobs[2]->takes > jobs[3]->takes);
        CHECK(jobs[3]->takes > jobs[1]->takes);
        CHECK(jobs[1]->takes > jobs[0]->takes);
        crew.finish(jobs);
        CHECK(all_images(jobs));
        const std::vector<std::string> sources = crew.sources();
        REQUIRE(sources.size() == 4);
        CHECK(std::set(sources.begin(), sources.begin() + 2) ==
              std::set<std::string>{"sample/row.cu", "attention_prefill/wgmma/kernel.cu"});
        if (*program == 0) {
            CHECK(sources[0] == "attention_prefill/wgmma/kernel.cu");
            CHECK(sources[2] == "linear/wgmma/kernel.cu");
        }
    }
}

TEST_CASE("there are no more compilers than allowed, and a second request finds what is known") {
    CrewUnderTest crew("", "/proc/self/exe", "13.0", 2);
    const auto jobs = crew.jobs(8);
    crew.finish(jobs);
    crew.finish(crew.jobs(8));
    CHECK(all_images(jobs));
    CHECK(crew.compiles().size() == 8);
    CHECK(crew.processes().size() <= 2);
}

TEST_CASE("callers on several threads share the crew, and an image that two want is compiled once") {
    CrewUnderTest crew("meet=3");
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 4; ++caller)
        callers.emplace_back([&crew, caller] { crew.finish(std::vector{crew.job(caller % 3)}); });
    for (std::thread& caller : callers) caller.join();
    CHECK(all_images(crew.jobs(3)));
    CHECK(crew.compiles().size() == 3);
}

TEST_CASE(
    "whatever is wrong with a process, the images are compiled here, it is said what, and no other starts") {
    struct Wrong {
        const char* line;
        const char* words;
    };
    for (const Wrong& wrong : {Wrong{"exit 7", "exit code 7"}, Wrong{"kill -SEGV $$", "signal 11"},
                               Wrong{answers_noise, "broke the protocol"}}) {
        CAPTURE(wrong.line);
        const ShellWorker worker(wrong.line);
        CrewUnderTest crew("meet=2", worker.file(), "13.0", 2);
        const auto jobs = crew.jobs(3);
        crew.finish(jobs);
        crew.finish(crew.jobs(6));
        CHECK(all_images(jobs));
        CHECK(crew->trouble().find(wrong.words) != std::string::npos);
        CHECK(crew.processes() == std::set<pid_t>{0, getpid()});
        CHECK(crew.compiles().size() == 1 + 6);
    }
}

TEST_CASE("a program that is missing or named by a relative path costs no image") {
    for (const char* missing : {"/nowhere/at/all", "worker.sh"}) {
        CrewUnderTest crew("sleep_us=100000", missing);
        const auto jobs = crew.jobs(6);
        crew.finish(jobs);
        CHECK(all_images(jobs));
        CHECK(crew->trouble().find(missing) != std::string::npos);
    }
}

TEST_CASE("a worker that finds another NVRTC is not used") {
    CrewUnderTest crew("sleep_us=100000", "/proc/self/exe", "99.1");
    const auto jobs = crew.jobs(6);
    crew.finish(jobs);
    CHECK(all_images(jobs));
    CHECK(crew->trouble() == "the worker finds NVRTC 13.0 and not 99.1");
    CHECK(crew.processes() == std::set{getpid()});
}

TEST_CASE("an image can be had while others are still compiled") {
    CrewUnderTest crew("meet=2;compile:match=source=embedding/reference.cu:hang");
    const std::vector jobs = {
        crew->add(CrewUnderTest::key(-1),
                  {.source = "embedding/reference.cu", .constants = "", .arch = {9, 0, true}}),
        crew.job(0)};
    REQUIRE(jobs[1]->takes > jobs[0]->takes);  // so it is compiled here
    crew->finish(*jobs[1], jobs);
    CHECK(all_images({jobs[1]}));
    crew.end();
    CHECK(jobs[0]->image.cubin.empty());
}

TEST_CASE("an image comes packed for the cache, wherever it was compiled") {
    CrewUnderTest crew("meet=2");
    const auto jobs = crew.jobs(2);
    crew.finish(jobs);
    CHECK(crew.processes().size() == 2);
    for (int i = 0; i < 2; ++i) {
        const CompileJob& job = *jobs[static_cast<std::size_t>(i)];
        const cache::PackedImage wanted = pack(CrewUnderTest::key(i), {job.image.cubin, job.image.resources});
        CHECK(job.packed.stored == wanted.stored);
        CHECK(job.packed.length == std::ssize(job.image.cubin));
        CHECK(job.packed.checksum == wanted.checksum);
    }
}

TEST_CASE("what does not compile is an NvrtcError with the compiler's log, wherever it was compiled") {
    CrewUnderTest crew("meet=2:fail");
    const auto jobs = crew.jobs(2);
    crew.finish(jobs);
    CHECK(crew.processes().size() == 2);
    CHECK(crew->trouble().empty());
    for (const auto& job : jobs) {
        REQUIRE(job->error);
        try {
            std::rethrow_exception(job->error);
        } catch (const NvrtcError& error) {
            CHECK(std::string(error.what()).starts_with("rmsnorm/reference.cu: "));
            CHECK(error.log().find("1 error detected") != std::string::npos);
        }
    }
}

TEST_CASE("a crew that nobody needs any more kills what still compiles") {
    CrewUnderTest crew("meet=2;compile:match=number=1:hang");
    const auto first = crew.job(0);
    const auto hanging = crew.job(1);
    crew.finish(std::vector{first});
    const Clock::time_point start = Clock::now();
    crew.end();
    CHECK(Clock::now() - start < std::chrono::seconds(5));
    CHECK_FALSE(has_children());
}

/// Sets a handler for SIGCHLD until the end of the scope.
class ChildHandler {
  public:
    explicit ChildHandler(void (*handler)(int)) {
        struct sigaction action {};
        action.sa_handler = handler;
        action.sa_flags = SA_RESTART;
        sigaction(SIGCHLD, &action, &former_);
    }
    ChildHandler(const ChildHandler&) = delete;
    ChildHandler& operator=(const ChildHandler&) = delete;
    ~ChildHandler() { sigaction(SIGCHLD, &former_, nullptr); }

  private:
    struct sigaction former_ {};
};

void reap_all(int) {
    const int before = errno;
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    errno = before;
}

TEST_CASE("an engine that ignores SIGCHLD, or waits for all children, does no harm") {
    for (void (*handler)(int) : {SIG_IGN, &reap_all}) {
        const ChildHandler while_compiling(handler);
        CrewUnderTest crew("meet=3");
        const auto jobs = crew.jobs(3);
        crew.finish(jobs);
        CHECK(all_images(jobs));
        CHECK(crew->trouble().empty());
        crew.end();
        CHECK_FALSE(has_children());

        const ShellWorker worker("exit 3");
        CrewUnderTest dying("meet=2", worker.file());
        const auto others = dying.jobs(2);
        dying.finish(others);
        CHECK(all_images(others));
        CHECK(dying->trouble().starts_with("the compiler died: "));
    }
}

TEST_CASE("a process has none of the engine's descriptors and its own group") {
    const int open = fcntl(STDERR_FILENO, F_DUPFD, 100);  // inherited by exec
    CrewUnderTest crew("meet=2");
    crew.finish(crew.jobs(2));
    std::set<pid_t> there = crew.processes();
    there.erase(getpid());
    REQUIRE(there.size() == 1);
    CHECK(getpgid(*there.begin()) == *there.begin());
    const auto table = std::filesystem::path("/proc") / std::to_string(*there.begin()) / "fd";
    CHECK(std::filesystem::exists(table / "3"));
    CHECK_FALSE(std::filesystem::exists(table / std::to_string(open)));
    close(open);
}

}  // namespace
}  // namespace hone::runtime
