// Every variant of rmsnorm_backward on the GPU against double arithmetic on the host: odd sizes, long rows,
// strides, one row and many, dx in place.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

#include "kernel_templates/rmsnorm_backward/backward.h"
#include "tests/runtime/gpu_run.h"

using namespace hone;
using namespace hone::test;

namespace {

using rmsnorm_backward::Pointer;

constexpr float epsilon = 1e-5F;

/// Relative L2 errors of the two outputs; infinity where one is not finite or padding was written.
struct Errors {
    double dx = 0;
    double dweight = 0;
};

class BackwardCase {
  public:
    /// `padding`: elements between rows.
    BackwardCase(const std::string& text, std::int64_t padding)
        : problem_(*parse_problem(text)), norm_(problem_) {
        stride_ = norm_.hidden + padding;
        std::mt19937_64 random(static_cast<std::uint64_t>(norm_.hidden * 7919 + norm_.rows));
        std::normal_distribution<double> normal(0.0, 1.0);
        std::normal_distribution<double> parameter(1.0, 0.5);
        for (const Argument& argument : problem_.family->arguments(problem_)) {
            const bool vector = argument.name == "weight" || argument.name == "dweight";
            const bool absent = !argument.present || argument.role == Role::workspace;
            HostTensor tensor(argument.dtype, absent ? 0 : argument.shape[2], argument.shape[3],
                              vector ? norm_.hidden : stride_);
            const bool filled = !absent && argument.role != Role::output;
            for (std::int64_t r = 0; filled && r < argument.shape[2]; ++r) {
                for (std::int64_t c = 0; c < argument.shape[3]; ++c)
                    tensor.set(r, c, vector ? parameter(random) : normal(random));
            }
            host_.push_back(std::move(tensor));
        }
        expect();
    }

    [[nodiscard]] const Problem& problem() const { return problem_; }
    [[nodiscard]] double limit() const {
        return norm_.dtype == Dtype::fp32 ? 2e-6 : norm_.dtype == Dtype::fp16 ? 1e-3 : 5e-3;
    }

    using InPlace = std::optional<std::pair<std::size_t, std::size_t>>;

    [[nodiscard]] std::vector<HostTensor> run(const Candidate& candidate, InPlace in_place = {}) const {
        const Scalar stride = Scalar::of(stride_);
        return run_on_gpu(problem_, candidate, host_,
                          {Scalar::of(norm_.rows), stride, stride, stride, stride, Scalar::of(epsilon)},
                          in_place);
    }

    [[nodiscard]] Errors errors_of(const std::vector<HostTensor>& results) const {
        Errors errors{.dx = error(results[Pointer::dx], dx_, norm_.rows),
                      .dweight = error(results[Pointer::dweight], dweight_, 1)};
        for (std::int64_t r = 0; r < norm_.rows; ++r) {
            if (!results[Pointer::dx].padding_untouched(r))
                errors.dx = std::numeric_limits<double>::infinity();
        }
        return errors;
    }

  private:
    void expect() {
        dweight_.assign(static_cast<std::size_t>(norm_.hidden), 0.0);
        for (std::int64_t r = 0; r < norm_.rows; ++r) {
            double squares = 0;
            double products = 0;
            for (std::int64_t c = 0; c < norm_.hidden; ++c) {
                const double x = host_[Pointer::x].at(r, c);
                squares += x * x;
                products += host_[Pointer::dy].at(r, c) * host_[Pointer::weight].at(0, c) * x;
            }
            const double columns = static_cast<double>(norm_.hidden);
            const double factor = 1 / std::sqrt(squares / columns + static_cast<double>(epsilon));
            for (std::int64_t c = 0; c < norm_.hidden; ++c) {
                const double x = host_[Pointer::x].at(r, c);
                const double dy = host_[Pointer::dy].at(r, c);
                const double g = dy * host_[Pointer::weight].at(0, c);
                const double dsum = norm_.residual ? host_[Pointer::dsum].at(r, c) : 0.0;
                dx_.push_back(factor * (g - x * factor * factor * products / columns) + dsum);
                dweight_[static_cast<std::size_t>(c)] += dy * x * factor;
            }
        }
    }

    /// The largest relative L2 error of a row, or infinity where a single element is too far off.
    [[nodiscard]] double error(const HostTensor& got, const std::vector<double>& want,
                               std::int64_t rows) const {
        double worst = 0;
        for (std::int64_t r = 0; r < rows; ++r) {
            const double* row = want.data() + r * norm_.hidden;
            double largest = 1;
            for (std::int64_t c = 0; c < norm_.hidden; ++c) largest = std::max(largest, std::abs(row[c]));
            double difference = 0;
            double total = 0;
            for (std::int64_t c = 0; c < norm_.hidden; ++c) {
                const double off = std::abs(got.at(r, c) - row[c]);
                if (!(off <= limit() * (2 * std::abs(row[c]) + 0.5 * largest)))  // or NaN
                    return std::numeric_limits<double>::infinity();
                difference += off * off;
                total += row[c] * row[c];
            }
            // Relative to the terms, which are about 1: with hidden = 1 their difference, dx, is next to
            // nothing.
            const double terms = std::max(static_cast<double>(norm_.hidden) * 0.1, 1.0);
            worst = std::max(worst, std::sqrt(difference / std::max(total, terms)));
        }
        return worst;
    }

    Problem problem_;
    rmsnorm_backward::BackwardProblem norm_;
    std::int64_t stride_ = 0;
    std::vector<HostTensor> host_;
    std::vector<double> dx_;
    std::vector<double> dweight_;
};

void check_problem(const std::string& text, std::size_t each, std::int64_t padding = 0) {
    const BackwardCase backward(text, padding);
    const auto suits = [&](const Candidate& candidate) {
        return padding % candidate.variant->access_elements(backward.problem(), candidate.config) == 0;
    };
    for (const Candidate& candidate : sample(backward.problem(), each, suits)) {
        const Errors errors = backward.errors_of(backward.run(candidate));
        INFO(text << " | " << to_string(candidate));
        CHECK(errors.dx <= backward.limit());
        CHECK(errors.dweight <= backward.limit());
    }
}

}  // namespace

TEST_CASE("gradients are right at usual, odd, short and long hidden sizes in every dtype") {
    for (const char* hidden : {"1", "32", "33", "127", "768", "1000", "4096", "4097", "16384", "65536"}) {
        for (const char* dtype : {"bf16", "fp16", "fp32"}) {
            check_problem(std::string("rmsnorm_backward dtype=") + dtype + " hidden=" + hidden + " rows=7",
                          1);
        }
    }
}

TEST_CASE("gradients are right for one row, many rows, and with the gradient of a sum") {
    for (const char* rows : {"1", "2", "131", "1000", "20011"}) {
        check_problem(std::string("rmsnorm_backward dtype=bf16 hidden=64 rows=") + rows, 3);
        check_problem(std::string("rmsnorm_backward dtype=fp32 hidden=264 residual=yes rows=") + rows, 3);
    }
    check_problem("rmsnorm_backward dtype=fp16 hidden=4096 residual=yes rows=1500", 6);
}

TEST_CASE("gradients of rows with a stride are right, and what stands between the rows is not touched") {
    for (const std::int64_t padding : {8, 64})
        check_problem("rmsnorm_backward dtype=bf16 residual=yes hidden=4096 rows=9", 3, padding);
    for (const std::int64_t padding : {8, 64, 1})  // 1: rows that single elements alone reach
        check_problem("rmsnorm_backward dtype=fp32 hidden=333 rows=40", 3, padding);
}

TEST_CASE("dx may be dy or dsum itself") {
    for (const char* sizes :
         {"hidden=264 rows=1", "hidden=264 rows=700", "hidden=16384 rows=40", "hidden=65536 rows=9"}) {
        const BackwardCase backward(std::string("rmsnorm_backward dtype=bf16 residual=yes ") + sizes, 0);
        for (const Candidate& candidate : sample(backward.problem(), 3)) {
            const std::vector<HostTensor> wanted = backward.run(candidate);
            for (const std::size_t written_over : {std::size_t{Pointer::dy}, std::size_t{Pointer::dsum}}) {
                INFO(sizes << " | " << to_string(candidate) << " | over argument " << written_over);
                const std::vector<HostTensor> found =
                    backward.run(candidate, {{std::size_t{Pointer::dx}, written_over}});
                CHECK(found[Pointer::dx].bytes == wanted[Pointer::dx].bytes);
                CHECK(found[Pointer::dweight].bytes == wanted[Pointer::dweight].bytes);
            }
        }
    }
}

TEST_CASE("two runs give the same bits") {
    const BackwardCase backward("rmsnorm_backward dtype=fp32 hidden=1024 residual=yes rows=3000", 0);
    for (const Candidate& candidate : sample(backward.problem(), 3)) {
        INFO(to_string(candidate));
        const std::vector<HostTensor> first = backward.run(candidate);
        const std::vector<HostTensor> second = backward.run(candidate);
        CHECK(first[Pointer::dx].bytes == second[Pointer::dx].bytes);
        CHECK(first[Pointer::dweight].bytes == second[Pointer::dweight].bytes);
    }
}
