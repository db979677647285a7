#include "kernel_templates/attention_append/attention_append.h"

#include <doctest/doctest.h>

#include <string>

#include "kernel_templates/catalog.h"
#include "kernel_templates/space.h"
#include "tests/kernel_templates/drawn_cases.h"

using namespace hone;

namespace {

Problem problem_of(const std::string& text) { return *parse_problem("attention_append " + text); }
std::string refused(const std::string& text) {
    std::string error;
    return parse_problem("attention_append " + text, &error) ? "" : error;
}

const std::string llama = "page_size=16 heads=32 kv_heads=8 head_dim=128 rotary_dim=128 batch=8 kv_len=1024";

}  // namespace

TEST_CASE("the fields of attention_append stand in their order, with their defaults") {
    CHECK(to_string(problem_of("heads=4 kv_heads=2 head_dim=64 rotary_dim=64 batch=1 kv_len=9 dtype=bf16 "
                               "norm=no")) ==
          "attention_append dtype=bf16 style=half norm=no window=0 softcap=no page_size=0 heads=4 kv_heads=2 "
          "head_dim=64 rotary_dim=64 batch=1 kv_len=9");
    CHECK(to_string(problem_of("heads=4 kv_heads=2 head_dim=64 rotary_dim=64 batch=1 kv_len=9 dtype=bf16 "
                               "norm=yes unit_offset=yes"))
              .starts_with("attention_append dtype=bf16 style=half norm=yes unit_offset=yes window=0"));
}

TEST_CASE("attention_append refuses what it cannot mean, in words") {
    const std::string rest = " dtype=bf16 norm=no softcap=no batch=1 kv_len=9";
    CHECK(refused("heads=4 kv_heads=2 head_dim=64 rotary_dim=63" + rest).find("rotary_dim is 63") !=
          std::string::npos);
    CHECK(refused("heads=4 kv_heads=2 head_dim=64 rotary_dim=66" + rest).find("at most head_dim, 64") !=
          std::string::npos);
    CHECK(refused("heads=4 kv_heads=3 head_dim=64 rotary_dim=64" + rest).find("kv_heads=3") !=
          std::string::npos);
    CHECK(refused("heads=4 kv_heads=2 head_dim=64 rotary_dim=64 unit_offset=yes" + rest)
              .find("unit_offset is yes; allowed without a norm: no") != std::string::npos);
}

TEST_CASE("what attention_append leaves to attention_decode is a problem of that family") {
    CHECK(to_string(attention_append::decode_problem(
              problem_of("dtype=fp16 norm=yes softcap=yes window=40 " + llama))) ==
          "attention_decode dtype=fp16 kv_dtype=same causal=yes window=40 softcap=yes lse=no lengths=yes "
          "page_size=16 heads=32 kv_heads=8 head_dim=128 q_tokens=1 batch=8 kv_len=1024 q_len=1");
    CHECK(to_string(attention_append::decode_problem(problem_of("dtype=bf16 norm=no softcap=no " + llama)))
              .starts_with("attention_decode dtype=bf16 kv_dtype=same causal=no window=0 softcap=no"));
}

TEST_CASE("attention_append's ring has the space of attention_decode's where rotations fit its lanes") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    const Family& decode = *find_family("attention_decode");
    const Problem problem = problem_of("dtype=bf16 norm=no softcap=no " + llama);
    const auto count = [&](const Problem& of, const Family& family) {
        return enumerate(of, *find_variant(family, "ring"), h100).size();
    };
    CHECK(count(problem, *problem.family) == count(attention_append::decode_problem(problem), decode));
    CHECK(count(problem, *problem.family) > 0);
    CHECK(count(problem_of("dtype=bf16 norm=no softcap=no heads=32 kv_heads=32 head_dim=80 rotary_dim=20 "
                           "batch=1 kv_len=1024"),
                *problem.family) == 0);
}

TEST_CASE("the fallback of attention_append has pages brought by warps of their own, in units of 32 tokens") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    const auto chosen = [&](const std::string& text) {
        const Problem problem = problem_of("dtype=bf16 norm=no softcap=no " + text);
        const Candidate found = fallback(problem, h100).value();
        CHECK(allowed(problem, found, h100));
        return to_string(found);
    };
    const std::string sizes = "page_size=16 head_dim=128 rotary_dim=128 kv_len=1024 heads=";
    for (const char* heads : {"32 kv_heads=8 batch=1", "32 kv_heads=8 batch=8", "12 kv_heads=2 batch=8"}) {
        CAPTURE(heads);
        const std::string found = chosen(sizes + heads);
        CHECK(found.starts_with("ring rows=8 warps=4 unit=32 "));
        CHECK(found.find(" producers=4 ") != std::string::npos);
    }
    for (const char* other :
         {"page_size=16 heads=8 kv_heads=4 head_dim=256 rotary_dim=256 batch=4 kv_len=300",
          "heads=8 kv_heads=4 head_dim=128 rotary_dim=128 batch=4 kv_len=300"})
        CHECK(chosen(other).starts_with("ring "));
    CHECK(chosen("page_size=16 heads=8 kv_heads=4 head_dim=64 rotary_dim=8 batch=4 kv_len=300")
              .starts_with("plain "));
}

TEST_CASE("winners of attention_decode's ring serve attention_append's, those of others do not") {
    const Problem of_eight = problem_of("dtype=bf16 norm=no softcap=no " + llama);
    const Problem problem =
        with(of_eight, static_cast<std::size_t>(field_index(*of_eight.family, "batch")), 1);
    const DeviceTraits h100 = *representative_device({9, 0, true});
    const Problem kin = problem.family->kin(problem).value();
    const auto ours = [&](const std::string& config) {
        const Candidate theirs = parse_candidate(*kin.family, "ring rows=8 " + config).value();
        REQUIRE(allowed(kin, theirs, h100));
        const Candidate taken = problem.family->from_kin(problem, theirs);
        CHECK(allowed(problem, taken, h100));
        return to_string(taken);
    };
    const auto clusters = [](int size) {
        return " cluster=" + std::to_string(size) + " join=0 side_by_side=0 blocks_per_sm=1 ahead=0";
    };
    for (const std::string& same : {"warps=4 unit=32 stages=4 producers=4" + clusters(8),
                                    "warps=4 unit=32 stages=12 producers=4" + clusters(4),
                                    "warps=4 unit=32 stages=12 producers=4" + clusters(2),
                                    std::string("warps=4 unit=16 stages=12 producers=4 cluster=1 join=1 "
                                                "side_by_side=1 blocks_per_sm=1 ahead=0")})
        CHECK(ours(same) == "ring rows=8 " + same);
    // Rings of large clusters have 64 KB at most, so that other kernels' blocks find room beside them.
    CHECK(ours("warps=4 unit=32 stages=12 producers=4" + clusters(8)) ==
          "ring rows=8 warps=4 unit=32 stages=4 producers=4" + clusters(8));
    CHECK(ours("warps=4 unit=16 stages=12 producers=0" + clusters(8)) ==
          "ring rows=8 warps=4 unit=16 stages=8 producers=0" + clusters(8));
    // A stage has a warp of each kind: six that compute and four that copy have twelve stages at least.
    CHECK(ours("warps=6 unit=16 stages=12 producers=4" + clusters(8)) ==
          "ring rows=8 warps=6 unit=16 stages=6 producers=0" + clusters(8));
    const Candidate other{find_variant(*kin.family, "registers"), {}};
    CHECK(problem.family->from_kin(problem, other) == other);  // which is none of the family's
}
