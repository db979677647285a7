// Every norm variant on the GPU against a double reference on the host: odd sizes, long rows, strides, large
// and tiny values, constant rows, quantized outputs.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <string_view>

#include "kernel_templates/kit/accesses.h"
#include "kernel_templates/norm/norm.h"
#include "tests/runtime/gpu_run.h"

using namespace hone;
using namespace hone::test;

namespace {

struct Values {
    double scale = 1;
    double offset = 0;
    float epsilon = 1e-5F;
    std::int64_t padding = 0;  ///< elements between rows
};

double limit_of(const norm::NormProblem& norm) {
    switch (norm.out_dtype()) {
        case Dtype::fp32: return 2e-6;
        case Dtype::fp16: return 1e-3;
        case Dtype::bf16: return 5e-3;
        case Dtype::int8: return 2e-2;      // half a step of max|y| / 127
        case Dtype::fp8_e4m3: return 4e-2;  // 3 mantissa bits
    }
    return 0;
}

class NormCase {
  public:
    NormCase(const Problem& problem, const Values& values)
        : problem_(problem), norm_(problem), values_(values) {
        stride_ = norm_.hidden + values.padding;
        std::mt19937_64 random(norm_.hidden * 7919 + norm_.rows);
        std::normal_distribution<double> normal(values.offset, values.scale);
        for (const Argument& argument : problem.family->arguments(problem)) {
            const bool matrix = argument.shape[2] == norm_.rows && argument.shape[3] == norm_.hidden &&
                                norm_.rows > 0 && argument.name != "weight" && argument.name != "bias";
            HostTensor tensor(argument.dtype, argument.present ? argument.shape[2] : 0, argument.shape[3],
                              matrix ? stride_ : argument.shape[3]);
            if (argument.present && argument.role != Role::output) {
                std::normal_distribution<double> parameter(1.0, 0.5);
                for (std::int64_t r = 0; r < argument.shape[2]; ++r) {
                    for (std::int64_t c = 0; c < argument.shape[3]; ++c) {
                        tensor.set(r, c, argument.role == Role::weight ? parameter(random) : normal(random));
                    }
                }
            }
            host_.push_back(std::move(tensor));
        }
    }

    /// Runs the candidate; the largest relative L2 error of a row, or infinity where a sum or a single
    /// element is too far off: of all rows together, a wrong one among thousands would hardly be seen.
    double error_of(const Candidate& candidate) {
        const Scalar stride = Scalar::of(stride_);
        const std::vector<HostTensor> results =
            run_on_gpu(problem_, candidate, host_,
                       {Scalar::of(norm_.rows), stride, stride, stride, stride, Scalar::of(values_.epsilon)});
        return compare(results);
    }

    [[nodiscard]] double limit() const { return limit_of(norm_); }

  private:
    struct RowResult {
        std::vector<double> row;
        std::vector<double> y;
    };

    [[nodiscard]] RowResult expected(std::int64_t r) const {
        RowResult result;
        const auto columns = static_cast<std::size_t>(norm_.hidden);
        result.row.resize(columns);
        for (std::size_t c = 0; c < columns; ++c) {
            const double x = host_[norm::x].at(r, static_cast<std::int64_t>(c));
            result.row[c] =
                norm_.residual
                    ? round_to(norm_.dtype, static_cast<float>(x + host_[norm::residual].at(
                                                                       r, static_cast<std::int64_t>(c))))
                    : x;
        }
        double mean = 0;
        if (norm_.layernorm) {
            for (const double value : result.row) mean += value / static_cast<double>(columns);
        }
        double square = 0;
        for (const double value : result.row)
            square += (value - mean) * (value - mean) / static_cast<double>(columns);
        const double factor = 1 / std::sqrt(square + static_cast<double>(values_.epsilon));
        for (std::size_t c = 0; c < columns; ++c) {
            const auto column = static_cast<std::int64_t>(c);
            const double bias = norm_.bias ? host_[norm::bias].at(0, column) : 0.0;
            const double weight = host_[norm::weight].at(0, column) + (norm_.unit_offset ? 1.0 : 0.0);
            result.y.push_back((result.row[c] - mean) * factor * weight + bias);
        }
        return result;
    }

    [[nodiscard]] double compare(const std::vector<HostTensor>& results) const {
        double worst = 0;
        for (std::int64_t r = 0; r < norm_.rows; ++r) {
            const RowResult want = expected(r);
            const double largest =
                std::abs(*std::ranges::max_element(want.y, {}, [](double value) { return std::abs(value); }));
            double difference = 0;
            double total = 0;
            if (!results[norm::out].padding_untouched(r) ||
                (norm_.residual && !results[norm::sum].padding_untouched(r)))
                return std::numeric_limits<double>::infinity();
            const double scale = norm_.quantized() ? results[norm::scale].at(r, 0) : 1.0;
            for (std::int64_t c = 0; c < norm_.hidden; ++c) {
                const auto i = static_cast<std::size_t>(c);
                const double got = results[norm::out].at(r, c) * scale;
                if (!std::isfinite(got)) return std::numeric_limits<double>::infinity();
                if (norm_.residual && results[norm::sum].at(r, c) != want.row[i])
                    return std::numeric_limits<double>::infinity();
                const double off = std::abs(got - want.y[i]);
                if (off > limit() * (2 * std::abs(want.y[i]) + 0.5 * largest))
                    return std::numeric_limits<double>::infinity();
                difference += off * off;
                total += want.y[i] * want.y[i];
            }
            worst = std::max(worst, total > 0 ? std::sqrt(difference / total) : std::sqrt(difference));
        }
        return worst;
    }

    Problem problem_;
    norm::NormProblem norm_;
    Values values_;
    std::int64_t stride_ = 0;
    std::vector<HostTensor> host_;
};

/// `only`: the variants to try; all of them where it is empty.
void check_problem(const std::string& text, const Values& values, std::size_t each = 2,
                   std::span<const std::string_view> only = {}) {
    const Problem problem = *parse_problem(text);
    NormCase norm_case(problem, values);
    const auto suits = [&](const Candidate& candidate) {
        return (only.empty() || std::ranges::find(only, candidate.variant->name) != only.end()) &&
               values.padding % candidate.variant->access_elements(problem, candidate.config) == 0;
    };
    for (const Candidate& candidate : sample(problem, each, suits)) {
        const double error = norm_case.error_of(candidate);
        INFO(text << " | " << to_string(candidate) << " | scale " << values.scale);
        CHECK(error <= norm_case.limit());
    }
}

/// Variant group_rows of both norms in accesses as wide as rows allow, in each of the configs that is
/// allowed.
void check_group_rows(const std::string& rest, std::span<const std::string> configs) {
    for (const char* family : {"rmsnorm", "layernorm"}) {
        const std::string text = std::string(family) + " " + rest;
        const Problem problem = *parse_problem(text);
        const norm::NormProblem norm(problem);
        const std::string vector = std::to_string(widest_vector(norm.hidden, norm.element_bytes()));
        NormCase norm_case(problem, {});
        for (const std::string& config : configs) {
            const std::string written = "group_rows vector=" + vector + " " + config;
            const Candidate candidate = parse_candidate(*problem.family, written).value();
            if (!allowed(problem, candidate, Bench::get().traits)) continue;
            INFO(text << " | " << written);
            CHECK(norm_case.error_of(candidate) <= norm_case.limit());
        }
    }
}

}  // namespace

TEST_CASE("every variant is right at usual, odd, short and long hidden sizes in every dtype") {
    std::size_t turn = 0;  // the 16-bit dtypes, which differ in conversions alone, take turns
    for (const char* hidden :
         {"1", "32", "33", "127", "768", "1000", "4096", "4097", "5120", "16384", "65536"}) {
        for (const char* family : {"rmsnorm", "layernorm"}) {
            for (const char* dtype : {++turn % 4 < 2 ? "bf16" : "fp16", "fp32"}) {
                check_problem(std::string(family) + " dtype=" + dtype + " hidden=" + hidden + " rows=3", {},
                              1);
            }
        }
    }
}

TEST_CASE("residual and quantized outputs are right in every combination") {
    for (const char* family : {"rmsnorm", "layernorm"}) {
        for (const char* output : {"same", "int8", "fp8"}) {
            for (const char* residual : {"no", "yes"}) {
                for (const char* rest : {" dtype=bf16 hidden=4096 rows=5", " dtype=fp32 hidden=1000 rows=17",
                                         " dtype=fp16 hidden=513 rows=2"}) {
                    check_problem(std::string(family) + " output=" + output + " residual=" + residual + rest,
                                  {}, 1);
                }
            }
        }
    }
}

TEST_CASE("a weight that counts as 1 + weight is not rounded") {
    for (const char* family : {"rmsnorm", "layernorm"}) {
        for (const char* rest :
             {" dtype=bf16 hidden=3584 rows=5", " dtype=fp16 hidden=513 residual=yes rows=17",
              " dtype=fp32 hidden=1000 rows=3", " dtype=bf16 output=fp8 hidden=4096 rows=2"}) {
            check_problem(std::string(family) + " unit_offset=yes" + rest, {});
        }
    }
}

TEST_CASE("one row, many rows, and row counts that do not fill a block are right") {
    for (const char* rows : {"1", "2", "131", "1000", "65536"}) {
        check_problem(std::string("rmsnorm dtype=bf16 hidden=64 rows=") + rows, {}, 3);
        check_problem(std::string("layernorm dtype=fp16 hidden=96 residual=yes rows=") + rows, {}, 2);
    }
}

TEST_CASE("resident groups are right over several laps of their rings") {
    constexpr std::string_view resident[] = {"persistent_rows"};
    for (const char* family : {"rmsnorm", "layernorm"}) {
        for (const char* output : {"same", "fp8"}) {
            for (const char* residual : {"no", "yes"}) {
                check_problem(std::string(family) + " output=" + output + " residual=" + residual +
                                  " dtype=bf16 hidden=264 rows=701",
                              {.padding = 8}, 2, resident);
            }
        }
    }
    check_problem("layernorm dtype=fp32 hidden=1000 rows=300", {}, 3, resident);
    check_problem("rmsnorm dtype=bf16 residual=yes hidden=8192 rows=1000", {}, 3, resident);
}

TEST_CASE("rows are right whatever the caches are told of them, in accesses of every width") {
    for (const char* rest :
         {"dtype=bf16 hidden=257", "dtype=fp16 hidden=258", "dtype=bf16 residual=yes hidden=260",
          "dtype=fp32 hidden=1024", "dtype=bf16 output=fp8 residual=yes hidden=4096"}) {
        std::vector<std::string> configs;
        for (const char* hint : {"0", "2", "3", "4"})
            configs.push_back("threads=128 lanes=128 rows=1 early_weights=1 load_hint=" + std::string(hint) +
                              " store_hint=0 programmatic=0");
        check_group_rows(std::string("rows=131 ") + rest, configs);
    }
}

TEST_CASE("rows that level 2 is asked for ahead of the wait are right, in accesses of every width") {
    for (const char* rest :
         {"dtype=bf16 hidden=257 rows=40003", "dtype=fp16 residual=yes hidden=260 rows=20001",
          "dtype=bf16 hidden=1032 rows=10001", "dtype=fp32 hidden=1024 rows=5001"}) {
        std::vector<std::string> configs;
        for (const char* rows : {"1", "2"})
            configs.push_back("threads=256 lanes=128 rows=" + std::string(rows) +
                              " early_weights=1 load_hint=4 store_hint=0 programmatic=2");
        check_group_rows(rest, configs);
    }
}

TEST_CASE("rows with a stride are right, and what stands between them is not touched") {
    for (const std::int64_t padding : {8, 64})
        check_problem("rmsnorm dtype=bf16 residual=yes hidden=4096 rows=9", {.padding = padding}, 3);
    for (const std::int64_t padding : {8, 64, 1})  // 1: rows that single elements alone reach
        check_problem("layernorm dtype=fp32 hidden=333 rows=4", {.padding = padding}, 3);
}

TEST_CASE("large, tiny and constant values are right, whatever epsilon is") {
    for (const char* family : {"rmsnorm", "layernorm"}) {
        const std::string name(family);
        check_problem(name + " dtype=fp16 hidden=1024 rows=4", {.scale = 10000});
        check_problem(name + " dtype=bf16 hidden=1024 rows=4", {.scale = 1e15});
        check_problem(name + " dtype=fp32 hidden=1024 rows=4", {.scale = 1e17});
        check_problem(name + " dtype=fp16 hidden=1024 rows=4",
                      {.scale = 1e-6, .epsilon = 1e-12F});  // subnormals
        check_problem(name + " dtype=bf16 hidden=1024 rows=4",
                      {.scale = 1e-39, .epsilon = 1e-30F});  // subnormals
        check_problem(name + " dtype=fp32 hidden=1024 rows=4", {.scale = 1e-12, .epsilon = 1e-24F});
        check_problem(name + " dtype=fp32 hidden=4096 rows=4", {.scale = 1, .epsilon = 0.5F});
    }
    check_problem("layernorm dtype=fp32 hidden=4096 rows=4", {.scale = 1, .offset = 100});  // no cancellation
    check_problem("rmsnorm dtype=bf16 output=int8 hidden=256 rows=3", {.scale = 0});        // a row of zeros
    check_problem("rmsnorm dtype=bf16 output=fp8 hidden=256 rows=3", {.scale = 0});
}
