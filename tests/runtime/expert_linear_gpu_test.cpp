// Every variant of expert_linear on the GPU against double arithmetic on the host: balanced routings, one
// expert with everything, many with nothing, odd sizes, few columns, gathered and combined rows, gates,
// biases; and starts and rows that are wrong.
//
// Compiling takes most of the time, two seconds an image: sizes and options are paired so that each meets
// each other one somewhere, not all of them everywhere.
#include <doctest/doctest.h>

#include "kernel_templates/expert_linear/variants.h"
#include "kernel_templates/expert_linear/wgmma/plan.h"
#include "kernel_templates/kit/tunables.h"
#include "tests/runtime/expert_case.h"

using namespace hone;
using namespace hone::test;

namespace {

class Experts : public ExpertCase {
  public:
    explicit Experts(const std::string& text, Spread spread = Spread::random, std::int64_t padding = 0)
        : Experts(*parse_problem("expert_linear " + text), spread, padding) {}

  private:
    Experts(const Problem& problem, Spread spread, std::int64_t padding)
        : ExpertCase(problem, expert_linear::ExpertProblem(problem), spread, padding) {
        const std::int64_t rows = sizes().experts * sizes().out;
        if (spread != Spread::wrong)
            expect(matrix("x", sizes().x_rows()), matrix("weight", rows),
                   matrix("up", sizes().gated ? rows : 0));
    }
};

constexpr const char* options[] = {"",
                                   "gather=yes ",
                                   "combine=yes ",
                                   "bias=yes activation=relu ",
                                   "gated=yes activation=silu gather=yes ",
                                   "gated=yes activation=gelu_tanh bias=yes ",
                                   "gated=yes activation=gelu_erf bias=yes gather=yes combine=yes ",
                                   "gated=yes activation=swiglu_oai bias=yes gather=yes "};
/// Options that between them take every way of rows and results.
constexpr const char* ways[] = {"combine=yes ", "gated=yes activation=silu gather=yes bias=yes "};

}  // namespace

TEST_CASE("small layers of experts are right with every option") {
    for (const char* option : options) {
        const std::string lead = std::string("dtype=bf16 ") + option;
        check_candidates(Experts(lead + "experts=5 top_k=2 in=64 out=48 tokens=7"), 1);
    }
}

TEST_CASE("small layers of experts are right in fp32 and fp16, and of one token") {
    for (const char* option : ways) {
        for (const char* dtype : {"dtype=fp32 ", "dtype=fp16 "})
            check_candidates(Experts(dtype + std::string(option) + "experts=5 top_k=2 in=64 out=48 tokens=7"),
                             1);
        check_candidates(
            Experts(std::string("dtype=bf16 ") + option + "experts=5 top_k=2 in=64 out=48 tokens=1"), 1);
    }
}

TEST_CASE("small layers of odd sizes are right") {
    for (const char* option : {options[2], options[6]}) {
        const std::string lead = std::string("dtype=bf16 ") + option;
        check_candidates(Experts(lead + "experts=3 top_k=1 in=33 out=77 tokens=9"), 1);
        check_candidates(Experts(lead + "experts=4 top_k=3 in=72 out=1 tokens=5"), 1);
        check_candidates(Experts(lead + "experts=4 top_k=4 in=1 out=24 tokens=5"), 1);
        check_candidates(Experts(lead + "experts=2 top_k=1 in=136 out=36 tokens=40"), 1);
    }
}

TEST_CASE("small layers whose starts and rows are wrong touch nothing outside and write behind no row") {
    for (const char* option : {options[1], options[2], options[6]}) {
        const std::string lead = std::string("dtype=bf16 ") + option;
        check_gaps(Experts(lead + "experts=6 top_k=2 in=64 out=64 tokens=9", Spread::wrong, 8), 1);
        check_gaps(Experts(lead + "experts=70 top_k=8 in=64 out=64 tokens=40", Spread::wrong, 8), 1);
    }
}

TEST_CASE("one expert may have everything, and many nothing") {
    for (const Spread spread : {Spread::one_expert, Spread::last_half}) {
        for (const char* option : ways) {
            const std::string lead = std::string("dtype=bf16 ") + option;
            check_candidates(Experts(lead + "experts=8 top_k=2 in=256 out=320 tokens=3", spread), 1);
            check_candidates(Experts(lead + "experts=8 top_k=2 in=256 out=320 tokens=150", spread), 2);
            check_candidates(Experts(lead + "experts=128 top_k=8 in=128 out=192 tokens=33", spread), 1);
        }
    }
}

// More tiles than multiprocessors, and a last round that leaves most of these idle; launches follow one
// another, so what one leaves in the workspace must not disturb the next.
TEST_CASE("tiles of a last round are right that all blocks share") {
    for (const char* option : ways) {
        const Experts experts(std::string("dtype=bf16 ") + option +
                              "experts=8 top_k=2 in=1024 out=1288 tokens=700");
        if (!runs_on(*find_variant(*experts.problem().family, "wgmma"), Bench::get().traits)) return;
        const std::vector<Candidate> shared =
            sample_with(experts.problem(), {.name = "tail_split", .least = 1, .most = 1}, 4);
        CHECK(!shared.empty());
        for (const Candidate& candidate : shared) {
            INFO(option << to_string(candidate));
            CHECK(experts.fault_of(experts.run(candidate, 3)) == "");
        }
    }
}

// More tiles than blocks, fewer, and none of an expert; launches follow one another, so the count that one
// leaves in the workspace must not disturb the next. Starts may be wrong: calls end all the same, and write
// behind no row.
TEST_CASE("tiles that blocks draw are right, and drawn anew by each call") {
    const DeviceTraits& traits = Bench::get().traits;
    const Variant& variant = expert_linear::drawn_tiles;
    if (!runs_on(variant, traits)) return;
    const auto each = [&](const Experts& experts, std::size_t count, const auto& check) {
        for (const Candidate& candidate : sample_variant(experts.problem(), variant, count)) {
            INFO(to_string(experts.problem()) << " | " << to_string(candidate));
            check(candidate);
        }
    };
    for (const char* option : ways) {
        const std::string lead = std::string("dtype=bf16 ") + option;
        for (const Spread spread : {Spread::random, Spread::one_expert, Spread::last_half}) {
            const Experts few(lead + "experts=8 top_k=2 in=1032 out=272 tokens=9", spread, 8);
            each(few, 2, [&](const Candidate& c) {
                const std::vector<HostTensor> results = few.run(c, 3);
                CHECK(few.fault_of(results) == "");
                CHECK(few.gaps_untouched(results));
            });
        }
        const Experts many(lead + "experts=12 top_k=3 in=776 out=1096 tokens=64");
        each(many, 4, [&](const Candidate& c) { CHECK(many.fault_of(many.run(c, 3)) == ""); });
        const Experts wrong(lead + "experts=6 top_k=2 in=1024 out=64 tokens=24", Spread::wrong, 8);
        each(wrong, 2, [&](const Candidate& c) { CHECK(wrong.gaps_untouched(wrong.run(c, 2))); });
    }
}

// Beside results that are combined and parts of sums in the workspace.
TEST_CASE("rows that are copied in front are right") {
    for (const char* option : {options[1], options[6], options[7]}) {
        const Experts experts(std::string("dtype=bf16 ") + option +
                              "experts=4 top_k=2 in=200 out=328 tokens=150");
        if (!runs_on(*find_variant(*experts.problem().family, "wgmma"), Bench::get().traits)) return;
        const std::vector<Candidate> copied =
            sample_with(experts.problem(), {.name = "copied_x", .least = 1, .most = 1}, 5);
        CHECK(!copied.empty());
        for (const Candidate& candidate : copied) {
            INFO(option << to_string(candidate));
            CHECK(experts.fault_of(experts.run(candidate, 2)) == "");
        }
    }
}

// Of the weight as the left operand, where experts have more rows than a tile, as many or fewer.
TEST_CASE("small layers are right in tiles of 144 and 152 rows of x") {
    for (const char* option : {options[1], options[2], options[7]}) {
        const Experts experts(std::string("dtype=bf16 ") + option +
                              "experts=3 top_k=2 in=136 out=200 tokens=218");
        if (!runs_on(*find_variant(*experts.problem().family, "wgmma"), Bench::get().traits)) return;
        const std::vector<Candidate> wide =
            sample_with(experts.problem(), {.name = "tile_n", .least = 144, .most = 152}, 5);
        CHECK(!wide.empty());
        for (const Candidate& candidate : wide) {
            INFO(option << to_string(candidate));
            CHECK(experts.fault_of(experts.run(candidate, 2)) == "");
        }
    }
}

TEST_CASE("layers are right for any number of experts a token") {
    for (const char* top_k : {"1", "3", "5", "8", "32"}) {
        for (const char* option : {"gather=yes ", "combine=yes "}) {
            check_candidates(Experts(std::string("dtype=bf16 ") + option +
                                     "experts=40 in=128 out=96 tokens=21 top_k=" + top_k),
                             0);
        }
    }
}

TEST_CASE("layers are right for one token and for many") {
    for (const char* tokens : {"1", "4", "16", "31", "130", "500"}) {
        const std::string sizes = std::string("experts=8 top_k=2 in=512 out=384 tokens=") + tokens;
        check_candidates(Experts("dtype=bf16 gated=yes activation=silu gather=yes " + sizes), 1);
        check_candidates(Experts("dtype=fp16 combine=yes " + sizes), 1);
    }
    check_candidates(
        Experts(
            "dtype=bf16 gated=yes activation=silu gather=yes experts=512 top_k=10 in=256 out=128 tokens=70"),
        1);
}

TEST_CASE("rows with a stride are right, and what stands between the rows is not touched") {
    for (const char* option : {options[0], options[2], options[6]}) {
        const std::string text =
            std::string("dtype=bf16 ") + option + "experts=6 top_k=2 in=128 out=160 tokens=50";
        check_candidates(Experts(text, Spread::random, option == options[0] ? 64 : 8), 1);
    }
}
