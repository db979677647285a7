#include "kernel_templates/kin.h"

#include <doctest/doctest.h>

#include <span>
#include <string>
#include <vector>

#include "kernel_templates/catalog.h"
#include "kernel_templates/names.h"

using namespace hone;

namespace {

Problem problem_of(const std::string& text) {
    const auto problem = parse_problem(text);
    REQUIRE(problem);
    return *problem;
}

const std::string append = "attention_append dtype=bf16 page_size=16 heads=32 kv_heads=8 head_dim=128 ";
const std::string decode_ring =
    "ring rows=8 warps=4 unit=16 stages=12 producers=4 cluster=8 join=0 side_by_side=0 blocks_per_sm=1 ahead=0";

}  // namespace

TEST_CASE("a problem's kin are followed one after the other, into other families") {
    const std::vector<Problem> line =
        with_kin(problem_of(append + "norm=yes style=interleaved rotary_dim=64 batch=2 kv_len=4096"));
    REQUIRE(line.size() >= 5);
    const std::string sizes = " batch=2 kv_len=4096";
    CHECK(line[1] == problem_of(append + "norm=no style=interleaved rotary_dim=64" + sizes));
    CHECK(line[2] == problem_of(append + "norm=no style=half rotary_dim=64" + sizes));
    CHECK(line[3] == problem_of(append + "norm=no style=half rotary_dim=128" + sizes));
    CHECK(line[4].family->name == "attention_decode");
}

TEST_CASE("a problem without kin is a line of its own, and its candidates stay what they are") {
    const Problem plain = problem_of("linear dtype=bf16 in=4096 out=4096 tokens=1");
    const std::vector<Problem> line = with_kin(plain);
    REQUIRE(line.size() == 1);
    CHECK(line.front() == plain);
    const Candidate strips{find_variant(*plain.family, "strips"), {}};
    CHECK(from_kin(line, strips) == strips);
}

TEST_CASE("what serves a kin's kin is changed by each problem on the way, the plainest one's first") {
    const std::vector<Problem> all =
        with_kin(problem_of(append + "norm=yes style=half rotary_dim=64 batch=1 kv_len=4096"));
    REQUIRE(all.size() >= 4);
    const std::span<const Problem> line = std::span(all).first(4);
    const Candidate theirs = parse_candidate(*line.back().family, decode_ring).value();
    Candidate expected = theirs;
    for (const int i : {2, 1, 0}) {
        const Problem& problem = line[static_cast<std::size_t>(i)];
        expected = problem.family->from_kin(problem, expected);
    }
    REQUIRE(expected.variant == find_variant(*line.front().family, "ring"));
    CHECK(from_kin(line, theirs) == expected);
}

TEST_CASE("a kin's variants that the problem's family has not serve nothing") {
    const Problem sharing = problem_of("shared_norm_linear dtype=bf16 norm=yes in=4096 out=4096 tokens=1");
    const std::vector<Problem> all = with_kin(sharing);
    REQUIRE(all.size() >= 2);
    const std::span<const Problem> line = std::span(all).first(2);
    CHECK_FALSE(from_kin(line, {find_variant(*line[1].family, "mma"), {}}));
    const auto strips = from_kin(line, {find_variant(*line[1].family, "strips"), {}});
    REQUIRE(strips);
    CHECK(strips->variant == find_variant(*sharing.family, "strips"));
    CHECK(strips->variant != find_variant(*line[1].family, "strips"));
}
