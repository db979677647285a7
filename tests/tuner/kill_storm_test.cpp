// SIGKILL at random moments, to tuners and to measuring workers: what was committed stays, and no cache needs
// repair.
#include <doctest/doctest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/support/scale.h"
#include "tests/support/scratch.h"
#include "tests/tuner/fake_gpu.h"
#include "tests/tuner/made_up_measurer.h"

using namespace hone;
using namespace hone::tuner;
using namespace hone::test;

namespace {

Workload workload() { return norm_workload({1, 8, 64, 512}); }

void say(int fd, const std::string& line) {
    const std::string text = line + '\n';
    if (write(fd, text.data(), text.size()) < 0) _exit(9);
}

/// Passes everything on and says what must be in the cache by now: when a candidate is verified, the one
/// before it has its trial.
class Acknowledging final : public Measurer {
  public:
    Acknowledging(Measurer& measurer, int fd) : measurer_(measurer), fd_(fd) {}
    [[nodiscard]] const DeviceInfo& device() const override { return measurer_.device(); }
    [[nodiscard]] cache::Provenance provenance() const override { return measurer_.provenance(); }
    [[nodiscard]] bool needs_images() const override { return measurer_.needs_images(); }
    [[nodiscard]] Verdict begin_problem(const Problem& problem) override {
        problem_ = dynamic_text(problem);
        return measurer_.begin_problem(problem);
    }
    [[nodiscard]] Verdict verify(const CandidateImage& candidate) override {
        if (!previous_.empty()) say(fd_, previous_);
        previous_ = problem_ + '|' + to_string(candidate.candidate);
        return measurer_.verify(candidate);
    }
    [[nodiscard]] Samples time(const CandidateImage& candidate, int replays) override {
        return measurer_.time(candidate, replays);
    }
    [[nodiscard]] std::vector<Samples> interleave(const std::vector<CandidateImage>& candidates,
                                                  int rounds) override {
        return measurer_.interleave(candidates, rounds);
    }
    void end_problem() override { measurer_.end_problem(); }

  private:
    Measurer& measurer_;
    int fd_;
    std::string problem_;
    std::string previous_;
};

void tune_made_up(const std::filesystem::path& file, int fd) {
    auto cache = cache::Cache::open(file);
    MadeUpMeasurer measurer;
    Acknowledging acknowledging(measurer, fd);
    NoImages images;
    (void)tune(workload(), {.effort = Effort::quick, .budget = {}, .retune = true}, acknowledging, images,
               cache, {}, never);
}

void tune_on_fake_gpu(const std::filesystem::path& file, int fd) {
    auto cache = cache::Cache::open(file);
    GpuSession session =
        open_gpu(cache, first_gpu(), quick_limits(), {.arch = {}, .nvrtc = {}, .workers = 1});
    (void)session.measurer->begin_problem(norm_problem(64));
    say(fd, "worker " + std::to_string(session.measurer->worker_pid()));
    Acknowledging acknowledging(*session.measurer, fd);
    (void)tune(workload(), {.effort = Effort::quick, .budget = {}, .retune = true}, acknowledging,
               *session.images, cache, {}, never);
}

struct Child {
    pid_t pid = -1;
    UniqueFd acknowledgements;
};

template <class Body>
Child start(Body body) {
    std::array<int, 2> fds{};
    REQUIRE(pipe2(fds.data(), O_CLOEXEC) == 0);
    const pid_t pid = fork();
    if (pid == 0) {
        body(fds[1]);
        _exit(0);
    }
    close(fds[1]);
    return {pid, UniqueFd(fds[0])};
}

std::string read_all(int fd) {
    std::string text;
    std::array<char, 4096> buffer{};
    for (ssize_t got = 0; (got = read(fd, buffer.data(), buffer.size())) > 0;) {
        text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return text;
}

/// Kills the child and says how many lines it had acknowledged that the cache does not hold.
int kill_and_count_lost(Child& child, const std::filesystem::path& file, pid_t* worker = nullptr) {
    kill(child.pid, SIGKILL);
    waitpid(child.pid, nullptr, 0);
    std::istringstream lines(read_all(child.acknowledgements.get()));
    auto cache = cache::Cache::open(file);
    CHECK(cache.verify().ok);
    std::set<std::string> stored;
    for (const cache::Trial& trial : cache.trials())
        stored.insert(trial.key.dynamic_fields + '|' + trial.candidate);
    int lost = 0;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("worker ") && worker != nullptr) *worker = std::atoi(line.c_str() + 7);
        if (!line.starts_with("worker ")) lost += !stored.contains(line);
    }
    return lost;
}

/// A zombie is gone: whoever adopted it only has to notice.
bool gone(pid_t pid) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string number;
    std::string name;
    std::string state;
    return !(stat >> number >> name >> state) || state == "Z";
}

bool gone_soon(pid_t pid) {
    for (int i = 0; i < 300; ++i) {
        if (gone(pid)) return true;
        usleep(10'000);
    }
    return false;
}

}  // namespace

TEST_CASE("tuners killed at random moments lose nothing and leave no cache that needs repair") {
    std::mt19937 random(11);
    int lost = 0;
    std::optional<Scratch> scratch;
    for (int i = 0; i < scaled(420); ++i) {
        if (i % 20 == 0) scratch.emplace();
        const auto file = scratch->path("cache.db");
        Child child = start([&](int fd) { tune_made_up(file, fd); });
        usleep(static_cast<useconds_t>(random() % 120'000));
        lost += kill_and_count_lost(child, file);
    }
    CHECK(lost == 0);
}

TEST_CASE("workers and tuners killed at random moments lose nothing, and no worker outlives its tuner") {
    const FakeMachine fakes;
    std::mt19937 random(13);
    int lost = 0;
    std::optional<Scratch> scratch;
    for (int i = 0; i < scaled(80); ++i) {
        if (i % 20 == 0) scratch.emplace();
        const auto file = scratch->path("cache.db");
        Child child = start([&](int fd) { tune_on_fake_gpu(file, fd); });
        usleep(static_cast<useconds_t>(random() % 300'000));
        pid_t worker = -1;
        lost += kill_and_count_lost(child, file, &worker);
        if (worker > 0) CHECK(gone_soon(worker));
    }
    CHECK(lost == 0);
}

TEST_CASE("a measuring worker killed at random moments costs the run nothing") {
    const FakeMachine fakes;
    const Scratch scratch;
    auto cache = scratch.cache();
    GpuSession session =
        open_gpu(cache, first_gpu(), quick_limits(), {.arch = {}, .nvrtc = {}, .workers = 1});
    std::atomic<bool> over{false};
    std::atomic<pid_t> target{-1};
    std::thread killer([&] {
        std::mt19937 random(17);
        while (!over) {
            usleep(static_cast<useconds_t>(40'000 + random() % 200'000));
            if (const pid_t pid = target.exchange(-1); pid > 0) kill(pid, SIGKILL);
        }
    });
    const auto watch = [&](const Progress&) { target = session.measurer->worker_pid(); };
    const TuneResult result = tune(workload(), {.effort = Effort::quick, .budget = {}}, *session.measurer,
                                   *session.images, cache, watch, never);
    over = true;
    killer.join();
    CHECK(result.stopped == StopReason::finished);
    for (const ProblemResult& problem : result.problems) CHECK(problem.winner);
}
