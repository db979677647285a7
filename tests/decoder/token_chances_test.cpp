// Starts threads: the thread sanitizer runs this file, too.
#include "decoder/forward/token_chances.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "runtime/quantize/small_floats.h"

using namespace hone;
using namespace hone::decoder;

namespace {

Description model_of(Dtype dtype, double cap = 0, double divisor = 0) {
    Description made;
    made.model.dtype = dtype;
    made.model.logit_cap = cap;
    made.model.logit_divisor = divisor;
    return made;
}

/// Logits as bytes of the dtype, and what these are as numbers.
struct Row {
    std::vector<std::byte> bytes;
    std::vector<double> numbers;
};

Row row_of(Dtype dtype, const std::vector<float>& logits) {
    Row row;
    const auto append = [&](const auto& value) {
        const auto* begin = reinterpret_cast<const std::byte*>(&value);
        row.bytes.insert(row.bytes.end(), begin, begin + sizeof value);
    };
    for (const float logit : logits) {
        if (dtype == Dtype::fp32) {
            append(logit);
            row.numbers.push_back(logit);
        } else if (dtype == Dtype::bf16) {
            append(runtime::encode_bf16(logit));
            row.numbers.push_back(runtime::decode_bf16(runtime::encode_bf16(logit)));
        } else {
            append(static_cast<std::uint16_t>(runtime::Half::encode(logit)));
            row.numbers.push_back(
                runtime::decode_half(static_cast<std::uint16_t>(runtime::Half::encode(logit))));
        }
    }
    return row;
}

std::vector<float> drawn(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, 4);
    std::vector<float> logits(count);
    for (float& logit : logits) logit = normal(random);
    return logits;
}

/// Of the whole row, slowly.
std::vector<double> oracle(std::vector<double> logits, double cap, double divisor) {
    long double sum = 0;
    for (double& logit : logits) {
        logit /= divisor > 0 ? divisor : 1;
        if (cap > 0) logit = cap * std::tanh(logit / cap);
    }
    const double largest = *std::ranges::max_element(logits);
    for (const double logit : logits) sum += std::exp(static_cast<long double>(logit - largest));
    for (double& logit : logits) logit = static_cast<double>(logit - largest - std::log(sum));
    return logits;
}

}  // namespace

TEST_CASE("chances are a softmax's of all logits, with caps and divisors, whatever the dtype") {
    for (const Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::fp32}) {
        for (const auto& [cap, divisor] : {std::pair{0.0, 0.0}, {30.0, 0.0}, {0.0, 8.0}}) {
            const Row row = row_of(dtype, drawn(5000, 7));
            const Description model = model_of(dtype, cap, divisor);
            const std::vector<double> expected = oracle(row.numbers, cap, divisor);
            std::vector<int> order(expected.size());
            std::iota(order.begin(), order.end(), 0);
            std::ranges::stable_sort(order, [&](int a, int b) {
                return row.numbers[static_cast<std::size_t>(a)] > row.numbers[static_cast<std::size_t>(b)];
            });
            RowReader reader(model);
            for (const int token : {0, 17, 4999}) {
                const TokenChances found =
                    reader.chances({.logits = row.bytes, .token = token, .likeliest = 20});
                CHECK(found.log_probability ==
                      doctest::Approx(expected[static_cast<std::size_t>(token)]).epsilon(1e-12));
                REQUIRE(found.likeliest.size() == 20);
                for (std::size_t i = 0; i < 20; ++i) {
                    CHECK(found.likeliest[i].token == order[i]);
                    CHECK(found.likeliest[i].log_probability ==
                          doctest::Approx(expected[static_cast<std::size_t>(order[i])]).epsilon(1e-12));
                }
            }
            const int best = order.front();
            const TokenChances of_best = reader.chances({row.bytes, best, 1});
            CHECK(of_best.log_probability == of_best.likeliest.front().log_probability);  // to the bit
        }
    }
}

TEST_CASE("tokens that are as likely come in the order of their ids, and no more than there are") {
    for (const Dtype dtype : {Dtype::bf16, Dtype::fp32}) {
        const Description model = model_of(dtype);
        const Row row = row_of(dtype, {1, 3, 1, 3, 1});
        RowReader reader(model);
        const auto tokens = [&](int likeliest) {
            std::vector<int> found;
            for (const TokenChance& one : reader.chances({row.bytes, 0, likeliest}).likeliest)
                found.push_back(one.token);
            return found;
        };
        CHECK(tokens(0).empty());
        CHECK(tokens(1) == std::vector{1});
        CHECK(tokens(3) == std::vector{1, 3, 0});
        CHECK(tokens(4) == std::vector{1, 3, 0, 2});
        CHECK(tokens(9) == std::vector{1, 3, 0, 2, 4});
    }
}

TEST_CASE("a row with a logit that is no number, or infinite, has no chances") {
    for (const Dtype dtype : {Dtype::bf16, Dtype::fp32}) {
        const Description model = model_of(dtype);
        RowReader reader(model);
        for (const float bad :
             {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
              std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN()}) {
            const TokenChances found = reader.chances({row_of(dtype, {0, bad, 1}).bytes, 0, 2});
            CHECK(std::isnan(found.log_probability));
            CHECK(found.likeliest.empty());
        }
        CHECK(reader.chances({row_of(dtype, {-0.0F, 0.0F}).bytes, 0, 0}).log_probability ==
              doctest::Approx(-std::log(2)));
    }
}

TEST_CASE("many rows are read side by side, each as by itself") {
    const Description model = model_of(Dtype::bf16);
    std::vector<Row> rows;
    for (unsigned i = 0; i < 100; ++i) rows.push_back(row_of(Dtype::bf16, drawn(300, i)));
    std::vector<AskedRow> asked;
    for (std::size_t i = 0; i < rows.size(); ++i)
        asked.push_back({rows[i].bytes, static_cast<int>(i), static_cast<int>(i % 3)});
    const std::vector<TokenChances> found = chances_of(model, asked);
    REQUIRE(found.size() == rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        CHECK(found[i].log_probability == doctest::Approx(oracle(rows[i].numbers, 0, 0)[i]));
        CHECK(found[i].likeliest.size() == i % 3);
    }
    CHECK(chances_of(model, {}).empty());
}
