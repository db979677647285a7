// Every variant of every family on a real GPU, at sizes that compute-sanitizer can bear: whole outputs
// against the reference, guard zones, ten launches that agree. The kernels run in this process, so that its
// tools see them. HONE_TEST_CACHE names a cache that keeps the images from one tool to the next;
// HONE_TEST_WITHOUT variants that are left out, by their sources, with commas between them:
// quantized_linear/ring/kernel.cu; HONE_TEST_PART=2/6 takes every sixth family, from the second one on.
// In 6 parts
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <sstream>
#include <string>

#include "kernel_templates/catalog.h"
#include "kernel_templates/space.h"
#include "tests/support/drawn_problem.h"
#include "tests/support/scratch.h"
#include "tuner/compile/compile_pool.h"
#include "tuner/gpu/verifier.h"
#include "tuner/measure/gpu_measurer.h"

using namespace hone;
using namespace hone::tuner;

namespace {

constexpr double most_bytes = 4e5;
constexpr double most_flops = 2e7;

/// A problem and what is tried on it.
struct Trial {
    Problem problem;
    std::vector<Candidate> candidates;
};

/// `times` as large at most. Tables and caches are larger than what a call touches of them.
bool is_small(const Problem& problem, double times) {
    const Work work = problem.family->work(problem);
    double bytes = 0;
    for (const Argument& argument : problem.family->arguments(problem)) {
        if (argument.present) bytes += static_cast<double>(argument.elements() * size_bytes(argument.dtype));
    }
    return std::max(work.bytes, bytes) <= times * most_bytes && work.flops <= times * most_flops;
}

/// What a variant still has to show: the config that it falls back to, and drawn ones, each on another
/// problem.
struct Wanted {
    int fallbacks = 1;
    int drawn = 3;
};

std::vector<Candidate> take(const Problem& problem, const Variant& variant, Wanted& wanted,
                            const DeviceTraits& traits, std::mt19937& random) {
    std::vector<Candidate> taken;
    const std::optional<Config> fallback = variant.fallback(problem, traits);
    if (wanted.fallbacks > 0 && fallback && allowed(problem, {&variant, *fallback}, traits)) {
        taken.push_back({&variant, *fallback});
        --wanted.fallbacks;
    }
    if (wanted.drawn == 0) return taken;
    const std::vector<Config> configs = enumerate(problem, variant, traits);
    if (configs.empty()) return taken;
    taken.push_back({&variant, configs[random() % configs.size()]});
    --wanted.drawn;
    return taken;
}

/// Small problems until every variant that runs here has had its turn; the same in every run.
std::vector<Trial> trials_of(const Family& family, const DeviceTraits& traits) {
    std::vector<Trial> trials;
    std::mt19937 random(20240611);
    std::map<const Variant*, Wanted> wanted;
    for (const Variant* variant : family.variants) {
        if (runs_on(*variant, traits)) wanted[variant] = {};
    }
    const auto was_tried = [](const auto& one) { return one.second.drawn < Wanted().drawn; };
    // Tiles of some variants must fill a round of all multiprocessors: larger problems are for those alone.
    for (const double times : {1.0, 100.0}) {
        for (const Problem& problem : test::drawn_problems(family, wanted.empty() ? 0 : 20'000)) {
            if (!is_small(problem, times)) continue;
            Trial trial{.problem = problem, .candidates = {}};
            for (auto& [variant, open] : wanted) {
                const std::vector<Candidate> taken = take(problem, *variant, open, traits, random);
                trial.candidates.insert(trial.candidates.end(), taken.begin(), taken.end());
            }
            if (!trial.candidates.empty()) trials.push_back(std::move(trial));
        }
        std::erase_if(wanted, was_tried);
    }
    for (const auto& [variant, open] : wanted) FAIL_CHECK(variant->source << " was not tried");
    return trials;
}

std::filesystem::path cache_file(const test::Scratch& scratch) {
    const char* kept = std::getenv("HONE_TEST_CACHE");
    return kept == nullptr ? scratch.path("cache.db") : std::filesystem::path(kept);
}

bool is_left_out(const Variant& variant) {
    const char* without = std::getenv("HONE_TEST_WITHOUT");
    if (without == nullptr) return false;
    bool found = false;
    std::istringstream sources(without);
    for (std::string source; std::getline(sources, source, ',');) {
        REQUIRE_MESSAGE(find_source(source) != nullptr, source << " is no source of a variant");
        found = found || variant.source == source;
    }
    return found;
}

bool is_in_this_part(std::size_t family) {
    const char* asked = std::getenv("HONE_TEST_PART");
    std::size_t part = 1;
    std::size_t parts = 1;
    if (asked != nullptr) REQUIRE(std::sscanf(asked, "%zu/%zu", &part, &parts) == 2);
    REQUIRE((1 <= part && part <= parts));
    return family % parts == part - 1;
}

class Gpu {
  public:
    [[nodiscard]] const DeviceTraits& traits() const { return device_.info().traits; }
    void prefetch(const Trial& trial) { images_.prefetch(trial.problem, trial.candidates); }

    void check(const Trial& trial) {
        const ProblemSetup setup = setup_of(trial.problem);
        const ImageSource::Result reference = images_.reference(trial.problem);
        REQUIRE(reference.detail == "");
        const runtime::LoadedPlan loaded(device_.driver(), reference.image.cubin, setup.reference_plan);
        sets_.prepare(setup);
        REQUIRE(verifier_.begin(loaded, setup.reference_plan, deadline()).detail == "");
        for (const Candidate& candidate : trial.candidates) {
            if (!is_left_out(*candidate.variant)) check(trial.problem, candidate);
        }
    }

  private:
    static Clock::time_point deadline() { return Clock::now() + std::chrono::minutes(5); }

    void check(const Problem& problem, const Candidate& candidate) {
        const std::string what = to_string(problem) + ": " + to_string(candidate);
        CAPTURE(what);
        const ImageSource::Result image = images_.get(problem, candidate);
        REQUIRE(image.detail == "");
        const Plan plan = candidate.variant->plan(problem, candidate.config, traits());
        const std::optional<runtime::LoadedPlan> loaded = load(image.image, plan);
        if (loaded) CHECK(verifier_.verify(*loaded, plan, deadline()).detail == "");
        std::printf("%s %s: %s\n", loaded ? "ran" : "refused by the driver", to_string(problem).c_str(),
                    to_string(candidate).c_str());
    }

    /// Nothing where the driver refuses a launch, which a tuning run takes for an answer, too: the compiler
    /// gave a drawn config more registers than a block of its size may have.
    [[nodiscard]] std::optional<runtime::LoadedPlan> load(const cache::Image& image, const Plan& plan) const {
        try {
            return runtime::LoadedPlan(device_.driver(), image.cubin, plan);
        } catch (const runtime::CudaError& error) {
            REQUIRE_FALSE(error.sticky());
            return std::nullopt;
        }
    }

    test::Scratch scratch_;
    cache::Cache cache_ = cache::Cache::open(cache_file(scratch_));
    DeviceContext device_{0};
    CompilePool pool_{cache_,
                      {.arch = device_.info().traits.arch(),
                       .nvrtc = runtime::Nvrtc::load()->version(),
                       .time_limit = std::chrono::minutes(5)}};
    CompilePool::Share images_{pool_};
    Harness harness_{device_.driver(), images_.harness().image.cubin, device_.stream(),
                     device_.info().traits.sm_count};
    InputSets sets_{device_, harness_};
    Verifier verifier_{device_, harness_, sets_};
};

}  // namespace

// A subcase each, so that families may run side by side: --subcase=NAME.
TEST_CASE("small problems of every family are right with every variant") {
    for (std::size_t i = 0; i < families().size(); ++i) {
        if (!is_in_this_part(i)) continue;
        const Family& family = *families()[i];
        SUBCASE(family.name.data()) {
            Gpu gpu;
            const std::vector<Trial> trials = trials_of(family, gpu.traits());
            for (const Trial& trial : trials) gpu.prefetch(trial);
            for (const Trial& trial : trials) gpu.check(trial);
        }
    }
}
