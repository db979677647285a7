// Every variant of quantized_expert_linear on the GPU against double arithmetic on the host, over the whole
// output: all formats, groups and zero points, gathered and combined rows, gates and biases, routings with
// and without favourites, odd sizes; and starts and rows that are wrong.
#include <doctest/doctest.h>

#include <algorithm>
#include <string_view>

#include "kernel_templates/quantized_expert_linear/quantized_expert_linear.h"
#include "tests/runtime/expert_case.h"

using namespace hone;
using namespace hone::test;

namespace {

using quantized_expert_linear::QuantizedExpertProblem;

class CodedExperts : public ExpertCase {
  public:
    explicit CodedExperts(const std::string& text, Spread spread = Spread::random, std::int64_t padding = 0)
        : CodedExperts(*parse_problem("quantized_expert_linear " + text), spread, padding) {}

  private:
    CodedExperts(const Problem& problem, Spread spread, std::int64_t padding)
        : ExpertCase(problem, QuantizedExpertProblem(problem), spread, padding), p_(problem) {
        if (spread != Spread::wrong)
            expect(multiplied_x(), values("weight"), p_.gated ? values("up") : std::vector<double>{});
    }

    /// Element `index` of an expert's part of a tensor, as bits where it is int8.
    [[nodiscard]] double part(std::string_view name, std::int64_t expert, std::int64_t count,
                              std::int64_t index) const {
        const std::int64_t columns = argument(name).shape[3];
        const std::int64_t at = expert * count + index;
        return number(name, at / columns, at % columns);
    }

    /// (code - zero point) * scale.
    [[nodiscard]] double value(std::string_view codes, std::int64_t expert, std::int64_t row,
                               std::int64_t column) const {
        using namespace quantized_linear;
        const std::string_view scales_of = codes == "weight" ? "scales" : "up_scales";
        const std::string_view zeros_of = codes == "weight" ? "zeros" : "up_zeros";
        const std::int64_t scale_count = p_.scale_rows() * p_.scale_columns();
        const std::int64_t code_count = p_.code_rows() * p_.row_bytes();
        const auto code_at = [&](std::int64_t index) { return part(codes, expert, code_count, index); };
        if (p_.format == QuantFormat::w4a16) {
            const CodePlace place = place_w4(row, column, p_.in);
            const int code = static_cast<int>(code_at(place.byte)) >> place.bit & 15;
            const std::int64_t at =
                scale_place(row, p_.group == 0 ? 0 : column / p_.group, groups_of(p_.in, p_.group));
            const double zero = p_.zeros ? part(zeros_of, expert, scale_count, at) : 8.0;
            return (code - zero) * part(scales_of, expert, scale_count, at);
        }
        if (p_.format == QuantFormat::w8a16)
            return code_at(place_w8(row, column, p_.in).byte) * part(scales_of, expert, scale_count, row);
        const std::int64_t at = p_.has_blocks() ? row / 128 * (p_.in / 128) + column / 128 : row;
        return code_at(row * p_.in + column) * part(scales_of, expert, scale_count, at);
    }
    [[nodiscard]] std::vector<double> values(std::string_view codes) const {
        std::vector<double> all;
        for (std::int64_t expert = 0; expert < p_.experts; ++expert) {
            for (std::int64_t r = 0; r < p_.out; ++r) {
                for (std::int64_t c = 0; c < p_.in; ++c) all.push_back(value(codes, expert, r, c));
            }
        }
        return all;
    }
    /// Rows of x as they are multiplied: through codes, where codes are multiplied, in the kernels' float32
    /// steps.
    [[nodiscard]] std::vector<double> multiplied_x() const {
        std::vector<double> all;
        const std::int64_t width = p_.has_blocks() ? 128 : p_.in;
        const bool is_fp8 = p_.format == QuantFormat::fp8;
        for (std::int64_t r = 0; r < p_.x_rows(); ++r) {
            for (std::int64_t c = 0; c < p_.in; ++c) {
                const double x = number("x", r, c);
                if (p_.is_packed()) {
                    all.push_back(x);
                    continue;
                }
                float largest = 0;
                for (std::int64_t i = c / width * width; i < c / width * width + width; ++i)
                    largest = std::max(largest, std::abs(static_cast<float>(number("x", r, i))));
                const float scale = std::max(largest, 0x1p-100f) * (1.0f / (is_fp8 ? 448.0f : 127.0f));
                const float scaled = static_cast<float>(x) * (1.0f / scale);
                const double code = is_fp8 ? rounded(scaled, fp8_format) : std::nearbyint(scaled);
                all.push_back(code * scale);
            }
        }
        return all;
    }

    QuantizedExpertProblem p_;
};

constexpr const char* formats[] = {"format=w4a16 group=128 ",
                                   "format=w4a16 group=32 zeros=yes ",
                                   "format=w4a16 ",
                                   "format=w8a16 ",
                                   "format=fp8 group=128 ",
                                   "format=fp8 ",
                                   "format=w8a8 "};
constexpr const char* options[] = {"gather=yes ", "combine=yes ", "gated=yes activation=silu gather=yes ",
                                   "gated=yes activation=gelu_erf bias=yes gather=yes combine=yes "};

/// Few rows an expert with every option, and many.
void check_format(const char* format) {
    for (const char* option : options)
        check_candidates(CodedExperts(std::string("dtype=fp16 ") + format + option +
                                      "experts=5 top_k=2 in=256 out=208 tokens=7"),
                         1);
    for (const char* option : {options[1], options[2]})
        check_candidates(CodedExperts(std::string("dtype=bf16 ") + format + option +
                                      "experts=4 top_k=2 in=640 out=144 tokens=150"),
                         1);
}

}  // namespace

// Compiling takes most of the time: about 20 images a case, so that all cases together take as long as one.

// Small enough to run under a sanitizer (tests/run_gpu_tests.py --sanitize).
TEST_CASE("small calls of experts with quantized weights are right") {
    for (const char* format : {formats[1], formats[3], formats[4], formats[6]}) {
        const std::string lead = std::string("dtype=bf16 ") + format;
        check_candidates(
            CodedExperts(lead +
                         "gather=yes gated=yes activation=silu experts=3 top_k=2 in=128 out=80 tokens=5"),
            1);
        check_candidates(CodedExperts(lead + "combine=yes experts=3 top_k=1 in=256 out=64 tokens=60"), 1);
    }
}

TEST_CASE("experts of 4 bits in groups of 128 are right with every option") { check_format(formats[0]); }
TEST_CASE("experts of 4 bits with zero points are right with every option") { check_format(formats[1]); }
TEST_CASE("experts of 4 bits with a scale a row are right with every option") { check_format(formats[2]); }
TEST_CASE("experts of 8 bits under 16-bit x are right with every option") { check_format(formats[3]); }
TEST_CASE("experts of fp8 in blocks are right with every option") { check_format(formats[4]); }
TEST_CASE("experts of fp8 with a scale a row are right with every option") { check_format(formats[5]); }
TEST_CASE("experts of int8 codes are right with every option") { check_format(formats[6]); }

TEST_CASE("small gates of gpt-oss with quantized weights are right") {
    for (const char* format : {formats[0], formats[4], formats[6]}) {
        const std::string lead =
            std::string("dtype=bf16 ") + format + "gated=yes activation=swiglu_oai bias=yes gather=yes ";
        check_candidates(CodedExperts(lead + "experts=4 top_k=2 in=256 out=144 tokens=5"), 1);
        check_candidates(CodedExperts(lead + "experts=4 top_k=2 in=256 out=144 tokens=60"), 1);
    }
}

TEST_CASE("experts with quantized weights are right at odd sizes") {
    for (const char* format : {"format=w4a16 ", "format=w8a16 ", "format=w8a8 ", "format=fp8 "}) {
        const std::string lead = std::string("dtype=bf16 ") + format;
        check_candidates(
            CodedExperts(lead +
                         "gated=yes activation=silu gather=yes experts=3 top_k=1 in=33 out=77 tokens=9"),
            1);
        check_candidates(CodedExperts(lead + "combine=yes experts=4 top_k=3 in=72 out=1 tokens=5"), 1);
        check_candidates(CodedExperts(lead + "combine=yes experts=2 top_k=1 in=144 out=36 tokens=40"), 1);
    }
}

TEST_CASE("with quantized weights one expert may have everything") {
    for (const char* format : {formats[0], formats[4]}) {
        const std::string lead = std::string("dtype=bf16 ") + format;
        check_candidates(
            CodedExperts(lead + "combine=yes experts=8 top_k=2 in=256 out=320 tokens=3", Spread::one_expert),
            1);
        check_candidates(
            CodedExperts(
                lead + "gated=yes activation=silu gather=yes experts=8 top_k=2 in=256 out=320 tokens=150",
                Spread::one_expert),
            1);
    }
}

TEST_CASE("with quantized weights many experts may have nothing") {
    for (const char* format : {formats[0], formats[4]}) {
        const std::string lead = std::string("dtype=bf16 ") + format;
        check_candidates(
            CodedExperts(lead + "combine=yes experts=8 top_k=2 in=256 out=320 tokens=150", Spread::last_half),
            1);
        check_candidates(
            CodedExperts(
                lead + "gated=yes activation=silu gather=yes experts=32 top_k=8 in=128 out=192 tokens=33",
                Spread::last_half),
            1);
    }
}

TEST_CASE("rows that are copied in front of products of packed codes are right") {
    for (const char* format : {formats[0], formats[3]}) {
        for (const char* option : {options[0], options[2], options[3]}) {
            const CodedExperts experts(std::string("dtype=bf16 ") + format + option +
                                       "experts=4 top_k=2 in=256 out=144 tokens=150");
            if (!runs_on(*find_variant(*experts.problem().family, "wgmma_w16"), Bench::get().traits)) return;
            const std::vector<Candidate> copied =
                sample_with(experts.problem(), {.name = "copied_x", .least = 1, .most = 1}, 2);
            CHECK(!copied.empty());
            for (const Candidate& candidate : copied) {
                INFO(format << option << to_string(candidate));
                CHECK(experts.fault_of(experts.run(candidate, 2)) == "");
            }
        }
    }
}

TEST_CASE("tiles of 144 rows are right where results are combined, and where one expert has everything") {
    for (const Spread spread : {Spread::random, Spread::one_expert}) {
        const CodedExperts experts(std::string("dtype=bf16 ") + formats[0] + options[1] +
                                       "experts=4 top_k=2 in=256 out=144 tokens=150",
                                   spread);
        if (!runs_on(*find_variant(*experts.problem().family, "wgmma_w16"), Bench::get().traits)) return;
        const std::vector<Candidate> tall =
            sample_with(experts.problem(), {.name = "tile_n", .least = 144, .most = 144}, 3);
        CHECK(!tall.empty());
        for (const Candidate& candidate : tall) {
            INFO(to_string(candidate));
            CHECK(experts.fault_of(experts.run(candidate, 2)) == "");
        }
    }
}

// Narrow tiles have the last rows of an expert, of all rows too, whose boxes begin early.
TEST_CASE("few last rows of an expert in narrow tiles are right") {
    for (const char* format : {formats[0], formats[2], formats[3]}) {
        for (const char* option : {options[0], options[1], options[2]}) {
            for (const char* tokens : {"150", "350"}) {
                const CodedExperts experts(std::string("dtype=bf16 ") + format + option +
                                           "experts=4 top_k=2 in=256 out=144 tokens=" + tokens);
                if (!runs_on(*find_variant(*experts.problem().family, "wgmma_w16"), Bench::get().traits))
                    return;
                const std::vector<Candidate> narrow =
                    sample_with(experts.problem(), {.name = "narrow_n", .least = 32, .most = 64}, 1);
                CHECK(!narrow.empty());
                for (const Candidate& candidate : narrow) {
                    INFO(to_string(experts.problem()) << " | " << to_string(candidate));
                    CHECK(experts.fault_of(experts.run(candidate, 2)) == "");
                }
            }
        }
    }
}

TEST_CASE("small calls of quantized experts whose starts and rows are wrong write behind no row") {
    for (const char* format : {formats[0], formats[4], formats[6]}) {
        for (const char* option : {options[2], options[3]}) {
            check_gaps(CodedExperts(std::string("dtype=bf16 ") + format + option +
                                        "experts=6 top_k=2 in=128 out=64 tokens=19",
                                    Spread::wrong, 8),
                       1);
        }
    }
}

TEST_CASE("rows of experts with quantized weights may have a stride") {
    for (const char* format : {formats[0], formats[4]}) {
        for (const char* option : {options[1], options[2]})
            check_candidates(CodedExperts(std::string("dtype=bf16 ") + format + option +
                                              "experts=6 top_k=2 in=128 out=160 tokens=50",
                                          Spread::random, 16),
                             1);
    }
}

TEST_CASE(
    "products of packed codes without a pause are right for experts, with rows that are gathered, too") {
    for (const char* format : {formats[0], formats[2], formats[3]}) {
        for (const char* option : {options[0], options[1], options[2]}) {
            const CodedExperts experts(std::string("dtype=bf16 ") + format + option +
                                       "experts=4 top_k=2 in=256 out=144 tokens=150");
            if (!runs_on(*find_variant(*experts.problem().family, "wgmma_w16"), Bench::get().traits)) return;
            const std::vector<Candidate> steady =
                sample_with(experts.problem(), {.name = "stages_together", .least = 0, .most = 0}, 2);
            CHECK(!steady.empty());
            for (const Candidate& candidate : steady) {
                INFO(to_string(experts.problem()) << " | " << to_string(candidate));
                CHECK(experts.fault_of(experts.run(candidate, 2)) == "");
            }
        }
    }
}
