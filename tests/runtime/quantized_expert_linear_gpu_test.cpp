// Every variant of quantized_expert_linear on the GPU against double arithmetic on the host, over the whole
// output: all formats, groups and zero points, gathered and combined rows, gates and biases, routings with
// and without favourites, odd sizes; and starts and rows that are wrong.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "kernel_templates/quantized_expert_linear/quantized_expert_linear.h"
#include "tests/runtime/activation.h"
#include "tests/runtime/expert_routes.h"
#include "tests/runtime/gpu_run.h"

using namespace hone;
using namespace hone::test;

namespace {

using quantized_expert_linear::QuantizedExpertProblem;
namespace family = quantized_expert_linear;

class CodedExperts {
  public:
    CodedExperts(const std::string& text, Spread spread, std::int64_t padding)
        : problem_(*parse_problem("quantized_expert_linear " + text)),
          p_(problem_),
          padding_(padding),
          random_(static_cast<std::uint64_t>(p_.in * 7919 + p_.out * 31 + p_.tokens * 5 + p_.experts)),
          routes_(spread, p_.places(), p_.experts, random_) {
        for (const Argument& argument : problem_.family->arguments(problem_)) host_.push_back(made(argument));
        if (spread != Spread::wrong) expect();
    }

    [[nodiscard]] const Problem& problem() const { return problem_; }
    [[nodiscard]] bool suits(const Candidate& candidate) const {
        const std::int64_t access =
            std::min<std::int64_t>(candidate.variant->access_elements(problem_, candidate.config), 8);
        return (p_.in + padding_) % access == 0 &&
               (p_.out % access != 0 || (p_.out + padding_) % access == 0);
    }
    [[nodiscard]] std::vector<HostTensor> run(const Candidate& candidate) const {
        return run_on_gpu(problem_, candidate, host_,
                          {Scalar::of(p_.tokens), Scalar::of(p_.in + padding(p_.x_rows())),
                           Scalar::of(p_.out + padding(p_.out_rows()))});
    }
    [[nodiscard]] std::string fault_of(const std::vector<HostTensor>& results) const {
        return test::fault_of(results[family::out], wanted_, p_.out_rows(), p_.out,
                              problem_.family->tolerance(problem_, family::out));
    }
    /// Whether nothing was written behind any row of out.
    [[nodiscard]] bool gaps_untouched(const std::vector<HostTensor>& results) const {
        for (std::int64_t row = 0; row < p_.out_rows(); ++row) {
            if (!results[family::out].padding_untouched(row)) return false;
        }
        return true;
    }

  private:
    [[nodiscard]] std::int64_t padding(std::int64_t rows) const { return rows == 1 ? 0 : padding_; }

    /// Codes of 4 bits are two a byte, any byte; of w8a16 and w8a8 -127 to 127; the rest as tuning draws it.
    HostTensor made(const Argument& argument) {
        const bool absent = !argument.present || argument.role == Role::workspace;
        const std::int64_t rows = absent ? 0 : argument.shape[0] * argument.shape[1] * argument.shape[2];
        const std::int64_t columns = argument.shape[3];
        const bool padded = argument.name == "x" || argument.name == "out";
        HostTensor tensor(argument.dtype, rows, columns, columns + (padded ? padding(rows) : 0));
        if (absent || argument.role == Role::output) return tensor;
        const std::vector<std::int64_t>* const indices = argument.name == "starts" ? &routes_.starts
                                                         : argument.name == "rows" ? &routes_.rows
                                                                                   : nullptr;
        std::normal_distribution<double> normal(argument.fill_offset, argument.fill_scale);
        std::uniform_real_distribution<double> uniform(argument.fill_offset - argument.fill_scale,
                                                       argument.fill_offset + argument.fill_scale);
        for (std::int64_t r = 0; r < rows; ++r) {
            if (indices != nullptr) {
                tensor.set_index(r, (*indices)[static_cast<std::size_t>(r)]);
                continue;
            }
            for (std::int64_t c = 0; c < columns; ++c) {
                double value = argument.fill == Fill::uniform ? uniform(random_) : normal(random_);
                if (argument.dtype == Dtype::int8) value = std::nearbyint(value);
                tensor.set(r, c, value);
            }
        }
        return tensor;
    }

    [[nodiscard]] double number(int pointer, std::int64_t row, std::int64_t column) const {
        return host_[static_cast<std::size_t>(pointer)].at(row, column);
    }
    /// Element `index` of an expert's part of a tensor, as bits where it is int8.
    [[nodiscard]] double part(int pointer, std::int64_t expert, std::int64_t count,
                              std::int64_t index) const {
        const std::int64_t columns =
            problem_.family->arguments(problem_)[static_cast<std::size_t>(pointer)].shape[3];
        const std::int64_t at = expert * count + index;
        return number(pointer, at / columns, at % columns);
    }

    /// (code - zero point) * scale.
    [[nodiscard]] double value(int codes, std::int64_t expert, std::int64_t row, std::int64_t column) const {
        using namespace quantized_linear;
        const int scales_of = codes == family::weight ? family::scales : family::up_scales;
        const int zeros_of = codes == family::weight ? family::zeros : family::up_zeros;
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
    [[nodiscard]] std::vector<double> values(int codes) const {
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
                const double x = number(family::x, r, c);
                if (p_.is_packed()) {
                    all.push_back(x);
                    continue;
                }
                float largest = 0;
                for (std::int64_t i = c / width * width; i < c / width * width + width; ++i)
                    largest = std::max(largest, std::abs(static_cast<float>(number(family::x, r, i))));
                const float scale = std::max(largest, 0x1p-100f) * (1.0f / (is_fp8 ? 448.0f : 127.0f));
                const float scaled = static_cast<float>(x) * (1.0f / scale);
                const double code = is_fp8 ? rounded(scaled, fp8_format) : std::nearbyint(scaled);
                all.push_back(code * scale);
            }
        }
        return all;
    }
    [[nodiscard]] double dot(const std::vector<double>& x, std::int64_t row,
                             const std::vector<double>& weight, std::int64_t weight_row) const {
        return std::inner_product(x.begin() + row * p_.in, x.begin() + (row + 1) * p_.in,
                                  weight.begin() + weight_row * p_.in, 0.0);
    }
    void expect() {
        const std::vector<double> x = multiplied_x();
        const std::vector<double> weight = values(family::weight);
        const std::vector<double> up = p_.gated ? values(family::up) : std::vector<double>{};
        wanted_.assign(static_cast<std::size_t>(p_.out_rows() * p_.out), 0.0);
        for (std::int64_t place = 0; place < p_.places(); ++place) {
            const std::int64_t pair = routes_.rows[static_cast<std::size_t>(place)];
            const std::int64_t expert = routes_.experts[static_cast<std::size_t>(pair)];
            for (std::int64_t c = 0; c < p_.out; ++c) {
                const std::int64_t row = p_.gather ? pair / p_.top_k : place;
                double result = dot(x, row, weight, expert * p_.out + c);
                if (p_.bias) result += number(family::bias, expert, c);
                result = activate(p_.activation, result);
                double second = p_.gated ? dot(x, row, up, expert * p_.out + c) : 1.0;
                if (p_.gated_bias()) second += number(family::up_bias, expert, c);
                add(place, pair, c, result * second);
            }
        }
    }
    void add(std::int64_t place, std::int64_t pair, std::int64_t column, double result) {
        if (!p_.combine) {
            wanted_[static_cast<std::size_t>(place * p_.out + column)] = result;
            return;
        }
        const double share = number(family::routing_weights, pair / p_.top_k, pair % p_.top_k);
        wanted_[static_cast<std::size_t>(pair / p_.top_k * p_.out + column)] += share * result;
    }

    Problem problem_;
    QuantizedExpertProblem p_;
    std::int64_t padding_;
    std::mt19937_64 random_;
    ExpertRoutes routes_;
    std::vector<HostTensor> host_;
    std::vector<double> wanted_;
};

void check_problem(const std::string& text, std::size_t each, Spread spread = Spread::random,
                   std::int64_t padding = 0) {
    const CodedExperts experts(text, spread, padding);
    for (const Candidate& candidate : sample(experts.problem(), each)) {
        if (!experts.suits(candidate)) continue;
        INFO(text << " | " << to_string(candidate));
        CHECK(experts.fault_of(experts.run(candidate)) == "");
    }
}

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
        check_problem(
            std::string("dtype=fp16 ") + format + option + "experts=5 top_k=2 in=256 out=208 tokens=7", 1);
    check_problem(
        std::string("dtype=bf16 ") + format + options[1] + "experts=4 top_k=2 in=640 out=144 tokens=150", 3);
    check_problem(
        std::string("dtype=bf16 ") + format + options[2] + "experts=4 top_k=2 in=640 out=144 tokens=150", 3);
}

}  // namespace

// Compiling takes most of the time: about 20 images a case, so that all cases together take as long as one.

// Small enough to run under a sanitizer (tests/run_gpu_tests.sh --sanitize).
TEST_CASE("small calls of experts with quantized weights are right") {
    for (const char* format : {formats[1], formats[3], formats[4], formats[6]}) {
        const std::string lead = std::string("dtype=bf16 ") + format;
        check_problem(lead + "gather=yes gated=yes activation=silu experts=3 top_k=2 in=128 out=80 tokens=5",
                      1);
        check_problem(lead + "combine=yes experts=3 top_k=1 in=256 out=64 tokens=60", 1);
    }
}

TEST_CASE("experts of 4 bits in groups of 128 are right with every option") { check_format(formats[0]); }
TEST_CASE("experts of 4 bits with zero points are right with every option") { check_format(formats[1]); }
TEST_CASE("experts of 4 bits with a scale a row are right with every option") { check_format(formats[2]); }
TEST_CASE("experts of 8 bits under 16-bit x are right with every option") { check_format(formats[3]); }
TEST_CASE("experts of fp8 in blocks are right with every option") { check_format(formats[4]); }
TEST_CASE("experts of fp8 with a scale a row are right with every option") { check_format(formats[5]); }
TEST_CASE("experts of int8 codes are right with every option") { check_format(formats[6]); }

TEST_CASE("experts with quantized weights are right at odd sizes") {
    for (const char* format : {"format=w4a16 ", "format=w8a16 ", "format=w8a8 ", "format=fp8 "}) {
        const std::string lead = std::string("dtype=bf16 ") + format;
        check_problem(lead + "gated=yes activation=silu gather=yes experts=3 top_k=1 in=33 out=77 tokens=9",
                      1);
        check_problem(lead + "combine=yes experts=4 top_k=3 in=72 out=1 tokens=5", 1);
        check_problem(lead + "combine=yes experts=2 top_k=1 in=144 out=36 tokens=40", 1);
    }
}

TEST_CASE("with quantized weights one expert may have everything") {
    for (const char* format : {formats[0], formats[4]}) {
        const std::string lead = std::string("dtype=bf16 ") + format;
        check_problem(lead + "combine=yes experts=8 top_k=2 in=256 out=320 tokens=3", 2, Spread::one_expert);
        check_problem(
            lead + "gated=yes activation=silu gather=yes experts=8 top_k=2 in=256 out=320 tokens=150", 3,
            Spread::one_expert);
    }
}

TEST_CASE("with quantized weights many experts may have nothing") {
    for (const char* format : {formats[0], formats[4]}) {
        const std::string lead = std::string("dtype=bf16 ") + format;
        check_problem(lead + "combine=yes experts=8 top_k=2 in=256 out=320 tokens=150", 3, Spread::last_half);
        check_problem(
            lead + "gated=yes activation=silu gather=yes experts=32 top_k=8 in=128 out=192 tokens=33", 2,
            Spread::last_half);
    }
}

TEST_CASE("small calls of quantized experts whose starts and rows are wrong write behind no row") {
    for (const char* format : {formats[0], formats[4], formats[6]}) {
        for (const char* option : {options[2], options[3]}) {
            const CodedExperts experts(
                std::string("dtype=bf16 ") + format + option + "experts=6 top_k=2 in=128 out=64 tokens=19",
                Spread::wrong, 8);
            for (const Candidate& candidate : sample(experts.problem(), 1)) {
                if (!experts.suits(candidate)) continue;
                INFO(format << option << " | " << to_string(candidate));
                CHECK(experts.gaps_untouched(experts.run(candidate)));
            }
        }
    }
}

TEST_CASE("rows of experts with quantized weights may have a stride") {
    for (const char* format : {formats[0], formats[4]}) {
        for (const char* option : {options[1], options[2]})
            check_problem(
                std::string("dtype=bf16 ") + format + option + "experts=6 top_k=2 in=128 out=160 tokens=50",
                2, Spread::random, 16);
    }
}
