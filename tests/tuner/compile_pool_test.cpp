#include "tuner/compile/compile_pool.h"

#include <doctest/doctest.h>

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "runtime/nvrtc/nvrtc.h"
#include "tests/tuner/fake_gpu.h"
#include "tests/tuner/planted.h"

using namespace hone;
using namespace hone::tuner;
using namespace hone::test;
using cache::TrialStatus;

namespace {

CompilePoolOptions options(std::chrono::seconds time_limit = std::chrono::seconds(60)) {
    return {.arch = {9, 0, true}, .nvrtc = "13.0", .workers = 2, .time_limit = time_limit};
}

/// The first candidates of which no two share an image.
std::vector<Candidate> with_own_images(std::size_t count) {
    std::vector<Candidate> candidates;
    std::set<std::string> images;
    for (std::size_t i = 0; candidates.size() < count; ++i) {
        const Candidate candidate = ranked_candidate(i);
        if (images.insert(to_string(image_candidate(candidate, {9, 0, true}))).second)
            candidates.push_back(candidate);
    }
    return candidates;
}

std::vector<std::string> lines_in(const std::filesystem::path& file) {
    std::vector<std::string> lines;
    std::ifstream stream(file);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

/// Whether a line of the fake compiler's log is this candidate's image.
bool names_all(const std::string& line, const Candidate& candidate) {
    const Candidate image = image_candidate(candidate, {9, 0, true});
    const std::string words = line + ' ';
    bool all = words.find(std::string(image.variant->source)) != std::string::npos;
    for (std::size_t i = 0; i < image.variant->tunables.size(); ++i) {
        const std::string word =
            ' ' + std::string(image.variant->tunables[i].name) + '=' + std::to_string(image.config[i]) + ' ';
        all = all && words.find(word) != std::string::npos;
    }
    return all;
}

}  // namespace

TEST_CASE("an image is compiled once, then comes from the cache") {
    const FakeMachine fakes;
    const Scratch scratch;
    auto cache = scratch.cache();
    const Candidate candidate = ranked_candidate(0);
    {
        CompilePool pool(cache, options());
        CompilePool::Share images(pool);
        images.prefetch(norm_problem(1), {candidate, ranked_candidate(1)});
        CHECK(images.get(norm_problem(1), candidate).status == TrialStatus::ok);
        CHECK(images.get(norm_problem(512), candidate).status ==
              TrialStatus::ok);  // rows are no part of an image
        CHECK(images.get(norm_problem(1), ranked_candidate(1)).status == TrialStatus::ok);
        CHECK(images.compiled() == 2);
    }
    CompilePool pool(cache, options());
    CompilePool::Share again(pool);
    const ImageSource::Result result = again.get(norm_problem(1), candidate);
    CHECK(result.from_cache);
    CHECK(result.image.cubin.size() > 0);
    CHECK(again.compiled() == 0);
}

TEST_CASE("shares of a pool make no image twice, and each counts what it asked for first") {
    const FakeMachine fakes("compile:sleep_us=100000");
    const Scratch scratch;
    auto cache = scratch.cache();
    CompilePool pool(cache, options());
    CompilePool::Share first(pool);
    CompilePool::Share second(pool);
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < 6; ++i) candidates.push_back(ranked_candidate(i));
    first.prefetch(norm_problem(1), {candidates.begin(), candidates.begin() + 4});
    const auto get_all = [&](CompilePool::Share& share) {
        for (const Candidate& candidate : candidates)
            CHECK(share.get(norm_problem(1), candidate).status == TrialStatus::ok);
    };
    {
        const std::jthread other([&] { get_all(second); });
        get_all(first);
    }
    CHECK(first.compiled() >= 4);
    CHECK(first.compiled() + second.compiled() == 6);
    CHECK(first.waited() >= std::chrono::milliseconds(100));
    CHECK(second.waited() >= std::chrono::milliseconds(100));
}

TEST_CASE("what the cache has for an answer is waited for, too") {
    const FakeMachine fakes;
    const Scratch scratch;
    auto cache = scratch.cache();
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < 12; ++i) candidates.push_back(ranked_candidate(i));
    const auto get_all = [&] {
        CompilePool pool(cache, options());
        CompilePool::Share images(pool);
        int counted = 0;  // times that were waited for the most part
        for (const Candidate& candidate : candidates) {
            const std::chrono::nanoseconds before = images.waited();
            const Clock::time_point start = Clock::now();
            CHECK(images.get(norm_problem(1), candidate).status == TrialStatus::ok);
            counted += 2 * (images.waited() - before) > Clock::now() - start ? 1 : 0;
        }
        return counted;
    };
    CHECK(get_all() > 6);
    CHECK(get_all() > 6);
}

/// A pool of one compiler, whose first image takes a while, and what it has begun.
class InTurn {
  public:
    InTurn(std::size_t count, int first_us)
        : candidates_(with_own_images(count)),
          fakes_("compile:log=" + log_.string() + "; compile:match=" + words_of(candidates_[0]) +
                 ":sleep_us=" + std::to_string(first_us)) {}

    void prefetch(std::size_t i, std::chrono::seconds until) {
        images.prefetch(norm_problem(1), {candidates_[i]}, until);
    }
    /// While it is compiled others can be asked for.
    void begin_first(std::chrono::seconds until) {
        prefetch(0, until);
        while (lines_in(log_).empty()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    /// Waits for all in this order, and looks at the order in which they were begun.
    void check_order(const std::vector<std::size_t>& waited, const std::vector<std::size_t>& begun) {
        for (const std::size_t i : waited)
            CHECK(images.get(norm_problem(1), candidates_[i]).status == TrialStatus::ok);
        const std::vector<std::string> lines = lines_in(log_);
        REQUIRE(lines.size() == begun.size());
        for (std::size_t place = 0; place < begun.size(); ++place) {
            CAPTURE(place);
            CHECK(names_all(lines[place], candidates_[begun[place]]));
        }
    }

  private:
    static CompilePoolOptions one_worker() {
        CompilePoolOptions one = options();
        one.workers = 1;
        return one;
    }

    const std::vector<Candidate> candidates_;
    const Scratch scratch_;
    const std::filesystem::path log_ = scratch_.path("compiles");
    const FakeMachine fakes_;
    cache::Cache cache_ = scratch_.cache();
    CompilePool pool_{cache_, one_worker()};

  public:
    CompilePool::Share images{pool_};
};

TEST_CASE("images are begun in the order in which they are needed, those that are waited for first") {
    InTurn turn(6, 2'000'000);
    CHECK(turn.images.is_short_of_work());
    turn.begin_first(std::chrono::seconds(300));
    turn.prefetch(1, std::chrono::seconds(200));
    turn.prefetch(2, std::chrono::seconds(250));
    turn.prefetch(3, std::chrono::seconds(100));
    turn.prefetch(4, std::chrono::seconds(400));
    CHECK_FALSE(turn.images.is_short_of_work());
    turn.prefetch(2, std::chrono::seconds(50));  // somebody needs it earlier
    turn.check_order({5, 0, 2, 3, 1, 4}, {0, 5, 2, 3, 1, 4});
}

TEST_CASE(
    "of images that are late those are begun first that are needed first, whenever they were asked for") {
    InTurn turn(4, 1'000'000);
    turn.begin_first(std::chrono::seconds(0));
    turn.prefetch(1, std::chrono::seconds(300));  // not late
    turn.prefetch(2, std::chrono::seconds(-10));
    turn.prefetch(3, std::chrono::seconds(-20));
    turn.check_order({0, 3, 2, 1}, {0, 3, 2, 1});
}

TEST_CASE("a harness that is asked for ahead is begun at once, and made once") {
    const Scratch scratch;
    const std::filesystem::path log = scratch.path("compiles");
    const FakeMachine fakes("compile:log=" + log.string());
    auto cache = scratch.cache();
    CompilePool pool(cache, options());
    CompilePool::Share images(pool);
    images.prefetch_harness();
    for (int i = 0; i < 5000 && lines_in(log).empty(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    REQUIRE(lines_in(log).size() == 1);
    images.prefetch_harness();
    CHECK(images.harness().status == TrialStatus::ok);
    const std::vector<std::string> begun = lines_in(log);
    REQUIRE(begun.size() == 1);
    CHECK(begun[0].find("harness/harness.cu") != std::string::npos);
}

TEST_CASE("a problem is ready when all of its images are there, and some were asked for") {
    const std::vector<Candidate> candidates = with_own_images(2);
    const Scratch scratch;
    const FakeMachine fakes("compile:match=" + words_of(candidates[1]) + ":sleep_us=500000");
    auto cache = scratch.cache();
    CompilePool pool(cache, options());
    CompilePool::Share images(pool);
    CHECK_FALSE(images.is_ready(norm_problem(1)));
    images.prefetch(norm_problem(1), candidates);
    CHECK(images.get(norm_problem(1), candidates[0]).status == TrialStatus::ok);
    CHECK_FALSE(images.is_ready(norm_problem(1)));
    CHECK_FALSE(images.is_ready(norm_problem(2)));
    CHECK(images.get(norm_problem(1), candidates[1]).status == TrialStatus::ok);
    CHECK(images.is_ready(norm_problem(1)));
    images.prefetch(norm_problem(2), {candidates[1]});  // the same image
    CHECK(images.is_ready(norm_problem(2)));
}

TEST_CASE("images leave room once they have been had, or no problem needs them any more") {
    const FakeMachine fakes;
    const Scratch scratch;
    auto cache = scratch.cache();
    CompilePoolOptions small = options();
    small.image_bytes = 1;
    CompilePool pool(cache, small);
    CompilePool::Share images(pool);
    const std::vector<Candidate> candidates = with_own_images(3);
    CHECK(images.has_room());
    CHECK(images.get(norm_problem(1), candidates[0]).status == TrialStatus::ok);
    CHECK(images.has_room());
    images.prefetch(norm_problem(1), {candidates[1], candidates[2]}, std::chrono::seconds(100));
    do {
        images.prefetch(norm_problem(512), {candidates[2]}, std::chrono::seconds(100));
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    } while (images.compiled() < 3);
    CHECK_FALSE(images.has_room());
    CHECK(images.get(norm_problem(1), candidates[1]).status == TrialStatus::ok);
    CHECK_FALSE(images.has_room());  // the third
    images.release(norm_problem(1));
    CHECK_FALSE(images.has_room());
    images.release(norm_problem(512));
    CHECK(images.has_room());
    images.release(norm_problem(512));
    for (const Candidate& candidate : candidates) {
        const ImageSource::Result again = images.get(norm_problem(1), candidate);
        CHECK(again.status == TrialStatus::ok);
        CHECK(again.from_cache);
    }
    CHECK(images.compiled() == 3);
}

TEST_CASE("what no problem needs any more is not compiled, but for who waits for it") {
    const std::vector<Candidate> candidates = with_own_images(4);
    const Scratch scratch;
    const std::filesystem::path log = scratch.path("compiles");
    const FakeMachine fakes("compile:log=" + log.string() + "; compile:match=" + words_of(candidates[0]) +
                            ":sleep_us=1000000");
    auto cache = scratch.cache();
    CompilePoolOptions one = options();
    one.workers = 1;
    CompilePool pool(cache, one);
    CompilePool::Share images(pool);
    images.prefetch(norm_problem(1), {candidates[0]}, std::chrono::seconds(10));
    while (lines_in(log).empty()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    images.prefetch(norm_problem(1), {candidates[1], candidates[2]}, std::chrono::seconds(100));
    images.prefetch(norm_problem(512), {candidates[3]}, std::chrono::seconds(200));
    CompilePool::Share other(pool);
    std::jthread waiting([&] { CHECK(other.get(norm_problem(1), candidates[2]).status == TrialStatus::ok); });
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    images.release(norm_problem(1));
    waiting.join();
    CHECK(images.get(norm_problem(512), candidates[3]).status == TrialStatus::ok);
    const std::vector<std::string> begun = lines_in(log);
    const std::vector<std::size_t> order{0, 2, 3};
    REQUIRE(begun.size() == order.size());
    for (std::size_t place = 0; place < order.size(); ++place)
        CHECK(names_all(begun[place], candidates[order[place]]));
}

TEST_CASE("compilers leave the cores to others") {
    const Scratch scratch;
    const std::filesystem::path log = scratch.path("compiles");
    const FakeMachine fakes("compile:log=" + log.string());
    auto cache = scratch.cache();
    CompilePool pool(cache, options());
    CompilePool::Share images(pool);
    CHECK(images.get(norm_problem(1), ranked_candidate(0)).status == TrialStatus::ok);
    const auto compiler =
        static_cast<id_t>(std::stoi(lines_in(log).at(0)));  // the line begins with its number
    CHECK(getpriority(PRIO_PROCESS, compiler) == std::min(19, getpriority(PRIO_PROCESS, 0) + 10));
}

TEST_CASE("a compile that takes too long is killed, and the next one works") {
    const FakeMachine fakes("compile:match=" + words_of(ranked_candidate(0)) + ":hang");
    const Scratch scratch;
    auto cache = scratch.cache();
    CompilePool pool(cache, options(std::chrono::seconds(3)));
    CompilePool::Share images(pool);
    const ImageSource::Result result = images.get(norm_problem(1), ranked_candidate(0));
    CHECK(result.status == TrialStatus::compile_failed);
    CHECK(result.detail == "took longer than 3 s");
    CHECK(images.get(norm_problem(1), ranked_candidate(1)).status == TrialStatus::ok);
}

TEST_CASE("a compile that takes too long without a core says nothing about its candidate") {
    const FakeMachine fakes("compile:hang");  // it sleeps
    const Scratch scratch;
    auto cache = scratch.cache();
    CompilePool pool(cache, options(std::chrono::seconds(1)));
    CompilePool::Share images(pool);
    const ImageSource::Result result = images.get(norm_problem(1), ranked_candidate(0));
    CHECK(result.detail == "took longer than 1 s");
    CHECK(result.is_accident);
}

TEST_CASE("a compiler that dies or refuses costs one candidate") {
    for (const std::string how : {"signal=11", "exit=1", "fail"}) {
        const FakeMachine fakes("compile:match=" + words_of(ranked_candidate(0)) + ":" + how);
        const Scratch scratch;
        auto cache = scratch.cache();
        CompilePool pool(cache, options());
        CompilePool::Share images(pool);
        images.prefetch(norm_problem(1), {ranked_candidate(0), ranked_candidate(1), ranked_candidate(2)});
        CHECK(images.get(norm_problem(1), ranked_candidate(0)).status == TrialStatus::compile_failed);
        CHECK(images.get(norm_problem(1), ranked_candidate(1)).status == TrialStatus::ok);
        CHECK(images.get(norm_problem(1), ranked_candidate(2)).status == TrialStatus::ok);
    }
}

TEST_CASE("a pool that is taken down in the middle leaves at once") {
    const FakeMachine fakes("compile:hang");
    const Scratch scratch;
    auto cache = scratch.cache();
    const Clock::time_point start = Clock::now();
    {
        CompilePool pool(cache, options());
        CompilePool::Share images(pool);
        images.prefetch(norm_problem(1), {ranked_candidate(0), ranked_candidate(1), ranked_candidate(2)});
    }
    CHECK(Clock::now() - start < std::chrono::seconds(20));  // on a busy machine; a compile has 60
}

TEST_CASE(
    "nobody waits for a compile that hangs once a stop is asked for, and what is there is still given") {
    const FakeMachine fakes("compile:match=" + words_of(ranked_candidate(0)) + ":hang");
    const Scratch scratch;
    auto cache = scratch.cache();
    std::atomic<bool> stop = false;
    CompilePoolOptions stoppable = options();
    stoppable.stop = &stop;
    CompilePool pool(cache, stoppable);
    CompilePool::Share images(pool);
    CHECK(images.get(norm_problem(1), ranked_candidate(1)).status == TrialStatus::ok);
    const std::jthread asks([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        stop = true;
    });
    const Clock::time_point start = Clock::now();
    const ImageSource::Result given_up = images.get(norm_problem(1), ranked_candidate(0));
    CHECK(given_up.status == TrialStatus::compile_failed);
    CHECK(given_up.detail == "stopped");
    CHECK(Clock::now() - start < std::chrono::seconds(20));  // on a busy machine; a compile has 60
    CHECK(images.get(norm_problem(1), ranked_candidate(1)).status == TrialStatus::ok);
}

TEST_CASE("the real compiler makes the harness for every architecture, and its memory limit lets it") {
    const Scratch scratch;
    auto cache = scratch.cache();
    std::shared_ptr<const runtime::Nvrtc> nvrtc;
    try {
        nvrtc = runtime::Nvrtc::load();
    } catch (const runtime::LibraryError& error) {
        MESSAGE("skipped: " << error.what());
        return;
    }
    for (const Arch arch : supported_archs()) {
        CAPTURE(to_string(arch));
        CompilePool pool(cache, {.arch = arch, .nvrtc = nvrtc->version(), .workers = 1});
        CompilePool::Share images(pool);
        const ImageSource::Result harness = images.harness();
        CHECK(harness.detail == "");
        CHECK(harness.image.resources.spill_bytes == 0);
        CHECK(images.reference(norm_problem(1)).detail == "");
    }
}

TEST_CASE("a compile bomb is killed, a syntax error is reported, and the next image compiles") {
    const Scratch scratch;
    auto cache = scratch.cache();
    try {
        (void)runtime::Nvrtc::load();
    } catch (const runtime::LibraryError& error) {
        MESSAGE("skipped: " << error.what());
        return;
    }
    CompilePool pool(
        cache,
        {.arch = {9, 0, true}, .nvrtc = "13.0", .workers = 1, .time_limit = std::chrono::milliseconds(4000)});
    CompilePool::Share images(pool);
    const Problem problem = planted_problem(4);
    CHECK(images.get(problem, planted("compile_bomb")).detail == "took longer than 4 s");
    const ImageSource::Result refused = images.get(problem, planted("does_not_compile"));
    CHECK(refused.status == TrialStatus::compile_failed);
    CHECK(refused.detail.find("error") != std::string::npos);
    for (const char* variant :
         {"good", "fault", "fault_at_seventh", "endless", "out_of_bounds", "before_bounds", "wrong",
          "unwritten", "changes_input", "disagrees", "slow"}) {
        CAPTURE(variant);
        CHECK(images.get(problem, planted(variant)).detail == "");
    }
}
