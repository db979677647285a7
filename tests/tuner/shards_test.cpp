#include "tuner/models/shards.h"
#include "tuner/models/known_models.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>

using namespace hone;
using namespace hone::tuner;

namespace {

constexpr std::int64_t images_ms = 500;  // shards.cpp's: once a static part

Workload workload_of(const std::string& model, const std::vector<std::int64_t>& tokens = {}) {
    return model_workload(read_model(model), {.tokens = tokens, .dtype = {}});
}

/// Static parts that the problems are of.
std::size_t parts_of(const std::vector<Problem>& problems) {
    std::set<std::string> parts;
    for (const Problem& problem : problems) parts.insert(to_string(static_part(problem)));
    return parts.size();
}

/// What a share takes, as shards_of() counts it.
std::int64_t ms_of(const std::vector<Problem>& problems) {
    auto ms = static_cast<std::int64_t>(parts_of(problems)) * images_ms;
    for (const Problem& problem : problems) ms += tuning_time(problem).count();
    return ms;
}

std::int64_t longest_ms(const std::vector<Workload>& shards) {
    std::int64_t longest = 0;
    for (const Workload& shard : shards) longest = std::max(longest, ms_of(shard.problems));
    return longest;
}

/// The shortest that the longest of `count` runs of neighbours can be, the slow way: every first cut.
std::int64_t least_longest_ms(const std::vector<Problem>& problems, std::size_t count) {
    if (problems.empty() || count == 1) return ms_of(problems);
    std::int64_t least = ms_of(problems);
    for (std::size_t cut = 1; cut < problems.size(); ++cut) {
        const auto middle = problems.begin() + static_cast<std::ptrdiff_t>(cut);
        const std::int64_t first = ms_of({problems.begin(), middle});
        if (first < least)
            least = std::min(least, std::max(first, least_longest_ms({middle, problems.end()}, count - 1)));
    }
    return least;
}

}  // namespace

TEST_CASE("shards are a partition of the problems, in their order, whatever their number") {
    const std::vector<std::string> models = known_models();
    CHECK(rc::check([&] {
        const std::string model = *rc::gen::elementOf(models);
        const auto tokens = *rc::gen::nonEmpty(
            rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(1, 8193)));
        const auto count = *rc::gen::inRange<std::size_t>(1, 40);
        const Workload workload = workload_of(
            model, {tokens.begin(),
                    tokens.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(tokens.size(), 4))});
        const std::vector<Workload> shards = shards_of(workload, count);
        RC_ASSERT(shards.size() == count);
        std::vector<Problem> together;
        std::size_t operators = 0;
        std::size_t parts = 0;
        for (const Workload& shard : shards) {
            together.insert(together.end(), shard.problems.begin(), shard.problems.end());
            operators += shard.tuned.size();
            parts += parts_of(shard.problems);
            for (const TunedOperator& op : shard.tuned)
                RC_ASSERT(std::ranges::find(shard.problems, op.problem) != shard.problems.end());
        }
        RC_ASSERT(together == workload.problems);
        RC_ASSERT(operators == workload.tuned.size());
        RC_ASSERT(parts < parts_of(workload.problems) + count);
    }));
}

TEST_CASE("no cut of the problems has a shorter longest share") {
    const Workload workload = workload_of("llama-3-8b", {1, 64, 4096});
    for (const std::size_t first : {0U, 5U, 11U, 17U}) {
        Workload few = workload;
        few.tuned.clear();
        few.problems.assign(workload.problems.begin() + static_cast<std::ptrdiff_t>(first),
                            workload.problems.begin() + static_cast<std::ptrdiff_t>(first + 9));
        for (const std::size_t count : {1U, 2U, 3U, 4U, 12U})
            CHECK(longest_ms(shards_of(few, count)) == least_longest_ms(few.problems, count));
    }
}

TEST_CASE("eight shards of a model take about as long as each other") {
    for (const char* model : {"llama-3-8b", "llama-3-70b", "gemma-2-9b", "gpt2"}) {
        const Workload workload = workload_of(model);
        const std::vector<Workload> shards = shards_of(workload, 8);
        CAPTURE(model);
        CHECK(8 * longest_ms(shards) < 1.25 * static_cast<double>(ms_of(workload.problems)));
    }
}

TEST_CASE("longer calls and larger references take longer to tune") {
    const auto time = [](const char* text) { return tuning_time(*parse_problem(text)).count(); };
    CHECK(time("rmsnorm dtype=bf16 hidden=4096 rows=1") <
          time("linear dtype=bf16 in=4096 out=4096 tokens=1"));
    CHECK(time("linear dtype=bf16 in=4096 out=4096 tokens=1") <
          time("linear dtype=bf16 in=4096 out=28672 tokens=1"));
    CHECK(time("linear dtype=bf16 in=4096 out=4096 tokens=512") <
          time("linear dtype=bf16 in=4096 out=4096 tokens=8192"));
}
