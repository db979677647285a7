// Starts threads: the thread sanitizer runs this file, too.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>

#include "decoder/engine/running_model.h"
#include "kernel_templates/space.h"
#include "runtime/cuda/driver.h"
#include "runtime/operators/runtime_state.h"
#include "tests/decoder/small_model.h"
#include "tests/decoder/whole_model.h"
#include "tests/support/fake_machine.h"
#include "tests/support/scratch.h"

using namespace hone;
using namespace hone::decoder;

TEST_CASE("the times of a step name each part once, and their bytes are those of the step's floor") {
    const test::FakeMachine fakes;
    RunningModel model(test::small_options());
    const std::int64_t kv_len = 100;
    for (const std::int64_t sequences : {1, 4}) {
        const ChainTimes times = model.forward().chain_times(sequences, kv_len, 3);
        CHECK(times.step_us > 0);
        CHECK(times.idle_us > 0);
        CHECK(times.launches >= 3 + 6 * 2);  // of two layers, each part at least one
        CHECK(times.parts.size() == 10);     // no norms behind; attention appends
        CHECK(std::ranges::adjacent_find(times.parts, std::ranges::greater_equal{},
                                         &ChainTimes::OfPart::part) == times.parts.end());
        std::int64_t bytes = 0;
        for (const ChainTimes::OfPart& part : times.parts) {
            CAPTURE(name(part.part));
            CHECK(part.us > 0);
            CHECK(part.us < times.step_us);
            bytes += part.bytes;
        }
        CHECK(bytes == model.floor_bytes(sequences, kv_len));
        const auto network = std::ranges::find(times.parts, Part::network, &ChainTimes::OfPart::part);
        REQUIRE(network != times.parts.end());
        CHECK(network->bytes == 2LL * 2 * 3 * 256 * 512);
    }
}

namespace {

void never(std::size_t, bool, const std::string& why) { FAIL(why); }

/// Those that may take the kernel's place, without it.
std::vector<Candidate> others(const StepKernel& kernel, const RunningModel& model, std::size_t count) {
    std::vector<Candidate> found;
    for (const RankedCandidate& ranked :
         ranked_space(kernel.problem, runtime::device_traits(model.gpu().driver(), 0))) {
        if (ranked.candidate != kernel.candidate && found.size() < count) found.push_back(ranked.candidate);
    }
    REQUIRE(found.size() == count);
    return found;
}

}  // namespace

namespace {

/// Checks the kernels' problems, too.
std::vector<Part> raced_parts(const ModelOptions& options) {
    RunningModel model(options);
    std::vector<Part> parts;
    for (const StepKernel& kernel : model.forward().step_kernels({3, 100})) {
        parts.push_back(kernel.part);
        CAPTURE(to_string(kernel.problem));
        const int batch = field_index(*kernel.problem.family, kernel.part == Part::attention      ? "batch"
                                                              : kernel.part == Part::network_norm ? "rows"
                                                                                                  : "tokens");
        REQUIRE(batch >= 0);
        CHECK(kernel.problem[static_cast<std::size_t>(batch)] == 4);  // where a step of three has room
        if (kernel.part == Part::append)
            CHECK(dynamic_text(kernel.problem) == "tokens=4 q_tokens=1 kv_len=1");
        if (kernel.part != Part::attention) continue;
        const bool appends = options.kv_dtype == KvDtype::same;
        CHECK(kernel.problem.family->name == (appends ? "attention_append" : "attention_decode"));
    }
    return parts;
}

}  // namespace

TEST_CASE("a step with a prompt takes longer than one without, and each of its parts some of it") {
    const test::FakeMachine fakes;
    RunningModel model(test::small_options());
    Forward& forward = model.forward();
    const StepLoad plain{.sequences = 3, .keys = 300};
    const StepLoad mixed{.sequences = 3, .keys = 300, .prompt_tokens = 40, .prompt_begin = 20};
    const double mixed_us = forward.step_us(mixed, 3);
    CHECK(mixed_us > forward.step_us(plain, 3));
    const auto parts = forward.step_parts_us(mixed, 3);
    CHECK(parts.size() == 11);  // no norms behind; the append is a launch of its own
    for (const auto& [part, us] : parts) {
        CAPTURE(name(part));
        CHECK(us > 0);
        CHECK(us < mixed_us);
    }
    CHECK(model.runtime().counters().failed_launches == 0);
}

TEST_CASE("a step names the kernels that a tuner may choose, each with the problem that it serves") {
    const test::FakeMachine fakes;
    std::vector<Part> parts{Part::network, Part::network,   Part::head,        Part::qkv,
                            Part::output,  Part::attention, Part::network_norm};
    CHECK(raced_parts(test::small_options()) == parts);
    ModelOptions over_codes = test::small_options();
    over_codes.kv_dtype = KvDtype::fp8;
    parts.push_back(Part::append);  // a launch of its own
    CHECK(raced_parts(over_codes) == parts);
}

namespace {

std::int64_t norms_of(Forward& forward, std::int64_t sequences) {
    const ChainTimes times = forward.chain_times(sequences, 100, 2);
    return std::ranges::count_if(times.parts, [](const ChainTimes::OfPart& of) {
        return of.part == Part::attention_norm || of.part == Part::network_norm;
    });
}

}  // namespace

TEST_CASE("steps have norms and sums in their products where those have kernels that normalize on the way") {
    const test::FakeMachine fakes;
    const test::Scratch scratch;
    const ModelOptions options = test::whole_options(scratch);
    {
        cache::Cache cache = scratch.cache();  // of 4 tokens, one that can do neither
        test::store_winner(cache, "dtype=bf16 in=2048 out=4096 tokens=4", test::strips(4));
    }
    RunningModel model(options);
    Forward& forward = model.forward();
    CHECK(norms_of(forward, 1) == 0);
    CHECK(norms_of(forward, 4) == 2);
    CHECK(forward.chain_times(1, 100, 2).launches + 2 * 2 == forward.chain_times(4, 100, 2).launches);
    for (const StepKernel& kernel : forward.step_kernels({1, 100})) {
        const std::string problem = to_string(kernel.problem);
        CAPTURE(problem);
        CHECK(kernel.part != Part::network_norm);
        if (kernel.part == Part::qkv) CHECK(problem.find("norm=yes") != std::string::npos);
        if (kernel.part == Part::output) CHECK(problem.find("residual=yes") != std::string::npos);
        forward.take(kernel, kernel.candidate);
    }
    CHECK(norms_of(forward, 1) == 0);
    CHECK(model.runtime().counters().failed_launches == 0);
}

TEST_CASE("steps whose products share norms have a launch for the first norm alone") {
    const test::FakeMachine fakes;
    const test::Scratch scratch;
    {
        cache::Cache cache = scratch.cache();
        test::store_rings(cache, 4);
    }
    RunningModel model(test::sharing_options(scratch));
    Forward& forward = model.forward();
    CHECK(norms_of(forward, 4) == 1);
    CHECK(norms_of(forward, 2) == 2);
    // Of two layers each has two norms, and the network's two launches.
    CHECK(forward.chain_times(4, 100, 2).launches + 3 == forward.chain_times(2, 100, 2).launches);
    std::vector<Part> parts;
    for (const StepKernel& kernel : forward.step_kernels({4, 100})) {
        const std::string problem = to_string(kernel.problem);
        CAPTURE(problem);
        parts.push_back(kernel.part);
        if (kernel.part == Part::head || kernel.part == Part::attention) continue;
        CHECK(problem.starts_with("shared_norm_linear "));
        CHECK((problem.find(" norm=yes") != std::string::npos) ==
              (kernel.part == Part::qkv || problem.find("gated=yes") != std::string::npos));
        forward.take(kernel, kernel.candidate);
    }
    CHECK(parts == std::vector<Part>{Part::network, Part::network, Part::head, Part::qkv, Part::output,
                                     Part::attention});
    CHECK(norms_of(forward, 4) == 1);
    CHECK(model.runtime().counters().failed_launches == 0);
}

TEST_CASE("products share norms, too, whose kernels won in a step that does, whatever is chosen without") {
    const test::FakeMachine fakes;
    const auto norms_with = [](const test::Race& race) {
        const test::Scratch scratch;
        {
            cache::Cache cache = scratch.cache();
            test::store_winner(cache, "dtype=bf16 in=1280 out=2560 tokens=2", test::strips(2));
            test::store_rings(cache, 2, race);
        }
        RunningModel model(test::sharing_options(scratch));
        return norms_of(model.forward(), 2);
    };
    CHECK(norms_with({.family = "shared_norm_linear", .chain = "small tokens=2 kv=100"}) == 1);
    CHECK(norms_with({.family = "shared_norm_linear"}) == 2);  // the fastest alone
}

TEST_CASE(
    "products do not share norms that won in such a step which was longer than with launches for them") {
    const test::FakeMachine fakes;
    const auto norms_with = [](const std::string& chain) {
        const test::Scratch scratch;
        {
            cache::Cache cache = scratch.cache();
            test::store_rings(cache, 4);  // for which alone they would
            test::store_rings(cache, 4, {.family = "shared_norm_linear", .chain = chain});
        }
        RunningModel model(test::sharing_options(scratch));
        return norms_of(model.forward(), 4);
    };
    CHECK(norms_with("small tokens=4 kv=100") == 1);
    CHECK(norms_with("small tokens=4 kv=100 kept=no") == 2);
}

namespace {

/// Whose steps can be told to share norms, and may compile kernels for it.
ModelOptions told(ModelOptions options) {
    options.told_sequences = options.max_sequences;
    options.may_compile_later = true;
    return options;
}

bool shares_norms(Forward& forward, std::int64_t sequences) {
    const auto is_sharing = [](const StepKernel& kernel) {
        return kernel.problem.family->name == "shared_norm_linear";
    };
    const auto count = std::ranges::count_if(forward.step_kernels({sequences, 100}), is_sharing);
    CHECK((count == 0 || count == 4));
    return count > 0;
}

}  // namespace

TEST_CASE("steps share norms or have launches for them as they are told, whatever is chosen") {
    const test::FakeMachine fakes;
    const test::Scratch scratch;
    {
        cache::Cache cache = scratch.cache();
        test::store_rings(cache, 4);
    }
    RunningModel model(told(test::sharing_options(scratch)));
    Forward& forward = model.forward();
    for (const std::int64_t sequences : {1, 2, 3, 4}) CHECK(forward.can_share_norms(sequences));
    const double shared_us = forward.graph_us(4, 100, 2);
    CHECK(forward.chain_times(4, 100, 2).launches + 3 == forward.chain_times(2, 100, 2).launches);
    forward.share_norms(2, true);
    forward.share_norms(3, false);  // computed as one of four
    CHECK(norms_of(forward, 1) == 2);
    CHECK(norms_of(forward, 2) == 1);
    CHECK(norms_of(forward, 4) == 2);
    CHECK(shares_norms(forward, 2));
    CHECK_FALSE(shares_norms(forward, 4));
    CHECK(forward.graph_us(4, 100, 2) != shared_us);  // captured anew
    CHECK(forward.chain_times(4, 100, 2).launches == forward.chain_times(2, 100, 2).launches + 3);
    forward.share_norms(2, false);
    forward.share_norms(4, true);
    CHECK(norms_of(forward, 2) == 2);
    CHECK(norms_of(forward, 4) == 1);
    CHECK(model.runtime().counters().failed_launches == 0);
}

TEST_CASE("steps of up to 64 sequences can be told to share norms") {
    const test::FakeMachine fakes;
    ModelOptions options = test::small_options();
    options.max_sequences = 65;
    options.max_step_tokens = 65;
    RunningModel model(told(options));
    Forward& forward = model.forward();
    CHECK(forward.can_share_norms(64));
    CHECK_FALSE(forward.can_share_norms(65));
    forward.share_norms(64, true);
    CHECK(norms_of(forward, 64) == 1);
    CHECK(norms_of(forward, 65) == 2);
    CHECK(model.runtime().counters().failed_launches == 0);
}

TEST_CASE("models whose products cannot share norms, or that nobody asked to, are not told to") {
    const test::FakeMachine fakes;
    const test::Scratch scratch;
    CHECK_FALSE(RunningModel(test::sharing_options(scratch)).forward().can_share_norms(1));
    ModelOptions fp16 = told(test::sharing_options(scratch));
    fp16.made_up->dtype = Dtype::fp16;
    CHECK_FALSE(RunningModel(fp16).forward().can_share_norms(1));
}

TEST_CASE(
    "a step with norms in its products shares them in place of that where it is told or a race says so") {
    const test::FakeMachine fakes;
    const test::Scratch scratch;
    const ModelOptions options = told(test::whole_options(scratch));
    const auto store = [&](const std::string& fields, int rows, const test::Race& race) {
        cache::Cache cache = scratch.cache();
        test::store_winner(
            cache, "dtype=bf16 " + fields + " tokens=1",
            fmt::format("ring tokens=1 rows={} consumers=2 stage_columns=256 stages=8 cluster_k=1 early=2 "
                        "spread=0 programmatic=1",
                        rows),
            race);
    };
    store("in=2048 out=2048", 16, {});  // by their kernels alone all four could share
    {
        RunningModel model(options);
        Forward& forward = model.forward();
        CHECK(norms_of(forward, 1) == 0);
        forward.share_norms(1, true);
        CHECK(norms_of(forward, 1) == 1);
        CHECK(shares_norms(forward, 1));
        forward.share_norms(1, false);
        CHECK(norms_of(forward, 1) == 0);
        CHECK(model.runtime().counters().failed_launches == 0);
    }
    const test::Race in_step{.family = "shared_norm_linear", .chain = "small tokens=1 kv=100"};
    store("norm=yes in=2048 out=4096", 32, in_step);
    store("next_norm=yes residual=yes in=2048 out=2048", 16, in_step);
    store("norm=yes gated=yes activation=silu in=2048 out=2048", 16, in_step);
    CHECK(norms_of(RunningModel(options).forward(), 1) == 1);
}

TEST_CASE(
    "steps with and without shared norms are replayed beside each other, with equal and mixed lengths") {
    const test::FakeMachine fakes;
    const test::Scratch scratch;
    RunningModel model(told(test::sharing_options(scratch)));
    Forward& forward = model.forward();
    const StepSizes sizes{4, 100};
    forward.mark(sizes);
    forward.share_norms(4, true);
    for (const Lengths lengths : {Lengths::equal, Lengths::mixed}) {
        const auto us = forward.times_since_mark(sizes, lengths, 3, never);
        REQUIRE(us.size() == 2);
        CHECK(us[0].size() == 3);
        CHECK(us[1].size() == 3);
        CHECK(us[0].front() < us[1].front());  // launches that are not there
    }
}

TEST_CASE("any kernel of products that share norms can take their places") {
    const test::FakeMachine fakes;
    const test::Scratch scratch;
    RunningModel model(told(test::sharing_options(scratch)));
    Forward& forward = model.forward();
    forward.share_norms(4, true);
    for (const StepKernel& kernel : forward.step_kernels({4, 100})) {
        if (kernel.problem.family->name != "shared_norm_linear") continue;
        CAPTURE(to_string(kernel.problem));
        std::vector<Candidate> of_each;  // variant
        for (const RankedCandidate& ranked :
             ranked_space(kernel.problem, runtime::device_traits(model.gpu().driver(), 0))) {
            const Candidate& candidate = ranked.candidate;
            if (candidate != kernel.candidate &&
                std::ranges::find(of_each, candidate.variant, &Candidate::variant) == of_each.end())
                of_each.push_back(candidate);
        }
        REQUIRE(of_each.size() > 1);
        for (const std::vector<double>& us : forward.times_with(kernel, of_each, {4, 100}, 2, never))
            CHECK(us.size() == 2);
    }
}

TEST_CASE("a product with a norm in it has no time with a kernel that does not normalize on the way") {
    const test::FakeMachine fakes;
    const test::Scratch scratch;
    const ModelOptions options = test::whole_options(scratch);
    const StepSizes sizes{1, 100};
    std::vector<std::vector<Candidate>> raced;
    const auto one_of = [&](const StepKernel& kernel, bool is_gemv) {
        for (const RankedCandidate& ranked :
             ranked_space(kernel.problem, runtime::device_traits(*runtime::Driver::load(), 0))) {
            const Candidate& candidate = ranked.candidate;
            if (candidate == kernel.candidate) continue;
            if (is_gemv ? candidate.variant->name == "gemv" : candidate.variant == kernel.candidate.variant)
                return candidate;
        }
        FAIL("no such kernel");
        return kernel.candidate;
    };
    {
        // Images of both, as a tuner leaves them in the cache.
        RunningModel model(options);
        Runtime runtime(RuntimeOptions{.cache_file = scratch.path("cache.db")});
        for (const StepKernel& kernel : model.forward().step_kernels(sizes)) {
            raced.emplace_back();
            if (kernel.part != Part::qkv && kernel.part != Part::network) continue;
            raced.back() = {one_of(kernel, true), one_of(kernel, false)};
            for (const Candidate& candidate : raced.back()) {
                runtime::dispatcher_of(runtime).hold(kernel.at_edge, candidate);
                static_cast<void>(runtime::dispatcher_of(runtime).prepare(kernel.at_edge));
            }
        }
    }
    RunningModel model(options);
    const std::vector<StepKernel> kernels = model.forward().step_kernels(sizes);
    int with_norm = 0;
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        if (raced[i].empty()) continue;
        CAPTURE(to_string(kernels[i].problem));
        const bool has_norm = to_string(kernels[i].problem).find("norm=yes") != std::string::npos;
        with_norm += has_norm ? 1 : 0;
        const auto us = model.forward().times_with(kernels[i], raced[i], sizes, 2, never);
        CHECK(us[1].size() == (has_norm ? 0 : 2));
        CHECK(us[2].size() == (has_norm && raced[i][1].variant->name == "gemv" ? 0 : 2));
    }
    CHECK(with_norm == 2);
}

TEST_CASE("steps with other kernels are replayed beside the step as it is, which stays as it was") {
    const test::FakeMachine fakes;
    RunningModel model(test::small_options());
    Forward& forward = model.forward();
    const StepSizes sizes{1, 100};
    for (const StepKernel& kernel : forward.step_kernels(sizes)) {
        CAPTURE(to_string(kernel.problem));
        const std::vector<Candidate> candidates = others(kernel, model, 2);
        // Frozen, and nothing in a cache: other kernels cannot be had, which is no error.
        const auto us = forward.times_with(kernel, candidates, sizes, 3, never);
        REQUIRE(us.size() == 3);
        CHECK(us[0].size() == 3);
        CHECK(us[1].empty());
    }
    forward.mark(sizes);
    const auto since = forward.times_since_mark(sizes, Lengths::equal, 2, never);
    REQUIRE(since.size() == 2);
    CHECK(since[0].size() == 2);
    CHECK(since[1].size() == 2);
}

TEST_CASE(
    "kernels are raced with as many keys as there may be, half and a quarter, of each sequence once in three "
    "rounds") {
    for (std::int64_t round = 0; round < 6; ++round) {
        std::int64_t sum = 0;
        for (std::int64_t sequence = 0; sequence < 3; ++sequence) sum += raced_length(4096, sequence, round);
        CHECK(sum == 4096 + 2048 + 1024);
    }
    CHECK(raced_length(4096, 0, 0) == 4096);
    CHECK(raced_length(4096, 0, 1) == 2048);
    CHECK(raced_length(4096, 0, 2) == 1024);
    CHECK(raced_length(4096, 0, 3) == 4096);
    CHECK(raced_length(1, 5, 6) == 1);
}

TEST_CASE("a kernel that was taken is in the steps that follow, and in no other part") {
    const test::FakeMachine fakes;
    const test::Scratch scratch;
    ModelOptions options = test::small_options();
    options.made_up->qk_norm = true;
    options.runtime = {.cache_file = scratch.path("cache.db")};
    const StepSizes sizes{1, 100};
    std::vector<Candidate> chosen;
    {
        // Images of the others, as a tuner leaves them in the cache: this runtime is not frozen.
        RunningModel model(options);
        Runtime runtime(RuntimeOptions{.cache_file = scratch.path("cache.db")});
        for (const StepKernel& kernel : model.forward().step_kernels(sizes)) {
            chosen.push_back(others(kernel, model, 1).front());
            runtime::dispatcher_of(runtime).hold(kernel.at_edge, chosen.back());
            static_cast<void>(runtime::dispatcher_of(runtime).prepare(kernel.at_edge));
        }
    }
    RunningModel model(options);
    Forward& forward = model.forward();
    const std::vector<StepKernel> before = forward.step_kernels(sizes);
    for (std::size_t i = 0; i < before.size(); ++i) {
        CAPTURE(to_string(before[i].problem));
        const auto us = forward.times_with(before[i], std::span(&chosen[i], 1), sizes, 2, never);
        CHECK(us[1].size() == 2);
        CHECK(forward.step_kernels(sizes)[i].candidate == before[i].candidate);
        forward.take(before[i], chosen[i]);
        const std::vector<StepKernel> after = forward.step_kernels(sizes);
        for (std::size_t j = 0; j < before.size(); ++j)
            CHECK(after[j].candidate == (j <= i ? chosen[j] : before[j].candidate));
    }
    CHECK(forward.graph_us(1, 100, 2) > 0);
}
