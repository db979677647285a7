// Every variant of sample on the GPU against sorted masses on the host, to the last token: filters, ties,
// NaN, infinities, strides, any vocabulary; and the distribution of many draws against the exact one.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include "kernel_templates/device/random.cuh"
#include "kernel_templates/kit/tunables.h"
#include "kernel_templates/sample/numbers.cuh"
#include "kernel_templates/sample/row_plan.h"
#include "tests/runtime/gpu_run.h"

using namespace hone;
using namespace hone::test;
using hone::sample::Pointer;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// What a row asks for.
struct Asked {
    float temperature = 1;
    std::int32_t top_k = 0;
    float top_p = 1;
    float min_p = 0;
    std::int64_t seed = 0;
    std::int64_t counter = 0;
};

struct Chosen {
    std::int64_t token = 0;
    double log_probability = 0;
};

/// Not as numbers.cuh computes it. Infinities stay what they are.
double seen(float logit, std::int64_t softcap) {
    const auto exact = static_cast<double>(logit);
    const auto cap = static_cast<double>(softcap);
    return softcap == 0 || !std::isfinite(exact) ? exact : cap * std::tanh(exact / cap);
}

double log_probability_of(const std::vector<float>& logits, std::size_t token, float largest,
                          std::int64_t softcap) {
    double sum = 0;
    for (const float logit : logits) {
        if (!std::isnan(logit)) sum += std::exp(seen(logit, softcap) - seen(largest, softcap));
    }
    return seen(logits[token], softcap) - seen(largest, softcap) - std::log(sum);
}

std::uint64_t sum_of(const std::vector<unsigned>& masses, unsigned least) {
    std::uint64_t sum = 0;
    for (const unsigned mass : masses) sum += mass >= least ? mass : 0;
    return sum;
}

/// The least mass that stays, by sorting.
unsigned threshold(std::vector<unsigned> masses, const Asked& asked) {
    std::erase(masses, 0U);
    std::sort(masses.begin(), masses.end(), std::greater<>());
    unsigned least = std::max(1U, hone::sample::mass_from(std::min(asked.min_p, 1.0F)));
    if (asked.top_k > 0 && static_cast<std::size_t>(asked.top_k) < masses.size()) {
        const unsigned last = masses[static_cast<std::size_t>(asked.top_k) - 1];
        least = std::max(least, last);
        std::erase_if(masses, [&](unsigned mass) { return mass < last; });
    }
    if (asked.top_p >= 1) return least;
    const std::uint64_t wanted = hone::sample::part_of(sum_of(masses, 0), asked.top_p);
    std::uint64_t sum = 0;
    for (const unsigned mass : masses) {
        sum += mass;
        if (sum >= wanted) return std::max(least, mass);
    }
    return least;
}

template <int softcap>
std::vector<unsigned> masses_of(const std::vector<float>& logits, float largest, float temperature) {
    using Capped = hone::sample::Seen<softcap>;
    const auto scaling = Capped::scaling(largest, temperature);
    std::vector<unsigned> masses;
    for (const float logit : logits) masses.push_back(Capped::mass(logit, scaling));
    return masses;
}

/// With those of the caps that the cases below have.
std::size_t drawn(const std::vector<float>& logits, float largest, const Asked& asked, std::int64_t softcap) {
    const std::vector<unsigned> masses = softcap == 0    ? masses_of<0>(logits, largest, asked.temperature)
                                         : softcap == 30 ? masses_of<30>(logits, largest, asked.temperature)
                                                         : masses_of<3>(logits, largest, asked.temperature);
    REQUIRE((softcap == 0 || softcap == 3 || softcap == 30));
    const unsigned least = threshold(masses, asked);
    const unsigned long long random =
        hone::random_bits(static_cast<std::uint64_t>(asked.seed), static_cast<std::uint64_t>(asked.counter));
    const unsigned long long total = sum_of(masses, least);
    std::uint64_t left = hone::sample::high_product(random, total);
    for (std::size_t i = 0; i < masses.size(); ++i) {
        const std::uint64_t mass = masses[i] >= least ? masses[i] : 0;
        if (left < mass) return i;
        left -= mass;
    }
    return logits.size();
}

Chosen chosen(const std::vector<float>& logits, const Asked& asked, std::int64_t softcap) {
    float largest = -std::numeric_limits<float>::infinity();
    std::size_t token = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
        if (!(logits[i] > largest)) continue;
        largest = logits[i];
        token = i;
    }
    if (std::isinf(largest)) return {static_cast<std::int64_t>(token), largest > 0 ? 0 : -infinity};
    if (asked.temperature >= hone::sample::least_temperature) token = drawn(logits, largest, asked, softcap);
    return {static_cast<std::int64_t>(token), log_probability_of(logits, token, largest, softcap)};
}

using DrawLogits = std::function<std::vector<double>(std::size_t row, std::mt19937_64&)>;

class SampleCase {
  public:
    /// `padding`: elements between rows.
    SampleCase(const std::string& text, const std::vector<Asked>& asked, const DrawLogits& draw,
               std::int64_t padding = 0)
        : problem_(*parse_problem("sample " + text + " rows=" + std::to_string(asked.size()))),
          p_(problem_),
          asked_(asked),
          stride_(p_.vocabulary + padding) {
        std::mt19937_64 random(static_cast<std::uint64_t>(p_.vocabulary));
        for (const Argument& argument : problem_.family->arguments(problem_)) {
            const std::int64_t width = argument.shape[3];
            host_.emplace_back(argument.dtype, argument.present ? p_.rows : 0, width,
                               width == 1 ? 1 : stride_);
        }
        for (std::size_t r = 0; r < asked.size(); ++r) fill(r, draw(r, random));
    }

    [[nodiscard]] const Problem& problem() const { return problem_; }

    /// What is wrong with the first row that is, or empty.
    [[nodiscard]] std::string fault(const Candidate& candidate) const {
        const std::vector<HostTensor> results = run(candidate);
        for (std::size_t r = 0; r < asked_.size(); ++r) {
            const auto row = static_cast<std::int64_t>(r);
            const double token = results[Pointer::out].at(row, 0);
            if (token != static_cast<double>(wanted_[r].token)) {
                return "row " + std::to_string(r) + ": token " + std::to_string(token) + " for " +
                       std::to_string(wanted_[r].token);
            }
            if (!p_.log_probability) continue;
            const double got = results[Pointer::log_probability].at(row, 0);
            const double want = wanted_[r].log_probability;
            if (got != want && !(std::abs(got - want) <= 2e-5 * (1 + std::abs(want))))
                return "row " + std::to_string(r) + ": log-probability " + std::to_string(got);
        }
        return "";
    }
    [[nodiscard]] std::vector<std::int64_t> tokens(const Candidate& candidate) const {
        const std::vector<HostTensor> results = run(candidate);
        std::vector<std::int64_t> found;
        for (std::int64_t r = 0; r < p_.rows; ++r)
            found.push_back(static_cast<std::int64_t>(results[Pointer::out].at(r, 0)));
        return found;
    }

  private:
    [[nodiscard]] std::vector<HostTensor> run(const Candidate& candidate) const {
        return run_on_gpu(problem_, candidate, host_, {Scalar::of(p_.rows), Scalar::of(stride_)});
    }

    void fill(std::size_t r, const std::vector<double>& logits) {
        const auto row = static_cast<std::int64_t>(r);
        std::vector<float> rounded;
        for (std::int64_t c = 0; c < p_.vocabulary; ++c) {
            host_[Pointer::logits].set(row, c, logits[static_cast<std::size_t>(c)]);
            rounded.push_back(static_cast<float>(host_[Pointer::logits].at(row, c)));
        }
        Asked asked = asked_[r];
        host_[Pointer::temperature].set(row, 0, static_cast<double>(asked.temperature));
        host_[Pointer::seed].set_index(row, asked.seed);
        host_[Pointer::counter].set_index(row, asked.counter);
        if (p_.filters) {
            host_[Pointer::top_k].set_index(row, asked.top_k);
            host_[Pointer::top_p].set(row, 0, static_cast<double>(asked.top_p));
            host_[Pointer::min_p].set(row, 0, static_cast<double>(asked.min_p));
        } else {
            asked.top_k = 0;
            asked.top_p = 1;
            asked.min_p = 0;
        }
        wanted_.push_back(chosen(rounded, asked, p_.softcap));
    }

    Problem problem_;
    hone::sample::SampleProblem p_;
    std::vector<Asked> asked_;
    std::int64_t stride_;
    std::vector<HostTensor> host_;
    std::vector<Chosen> wanted_;
};

template <class T>
T one_of(const std::vector<T>& values, std::mt19937_64& random) {
    return values[random() % values.size()];
}

/// All kinds of filters, temperatures, seeds.
std::vector<Asked> any_asked(std::size_t rows) {
    std::mt19937_64 random(11);
    std::vector<Asked> asked;
    for (std::size_t i = 0; i < rows; ++i) {
        asked.push_back({.temperature = one_of<float>({0, 1e-6F, 0.3F, 1, 1, 2.5F, 100}, random),
                         .top_k = one_of<std::int32_t>({0, 0, 1, 5, 50, 1000, 100000, -1}, random),
                         .top_p = one_of<float>({1, 0.9F, 0.9F, 0.5F, 0.1F, 0, 0.999999F}, random),
                         .min_p = one_of<float>({0, 0, 0.05F, 0.5F, 1, 2}, random),
                         .seed = static_cast<std::int64_t>(random()),
                         .counter = static_cast<std::int64_t>(random())});
    }
    return asked;
}

/// Rows as models make them, steep and flat ones, equal logits, NaN and infinities.
std::vector<double> any_logits(std::int64_t vocabulary, std::mt19937_64& random) {
    std::normal_distribution<double> normal(0.0, one_of<double>({1, 1, 3, 8, 0.01, 0}, random));
    const auto kind = random() % 8;
    std::vector<double> logits;
    for (std::int64_t i = 0; i < vocabulary; ++i) {
        double logit = normal(random);
        if (kind == 1 && random() % 3 == 0) logit = nan;
        if (kind == 2 && random() % 2 == 0) logit = -infinity;
        if (kind == 3) logit = i % 2 == 0 ? nan : -infinity;
        if (kind == 4 && random() % static_cast<std::uint64_t>(vocabulary / 2 + 1) == 0) logit = infinity;
        logits.push_back(logit);
    }
    return logits;
}

/// Values as they are counted and such as have no slot: zeros of either sign, small ones, large ones,
/// infinities.
std::vector<double> scattered_logits(std::int64_t vocabulary, std::mt19937_64& random) {
    std::normal_distribution<double> normal;
    const double scale = one_of<double>({2, 2, 30, 1e-3, 1e6}, random);
    const double offset = one_of<double>({0, 0, 60, -60, 1e4}, random);
    const auto kind = random() % 5;
    std::vector<double> logits;
    for (std::int64_t i = 0; i < vocabulary; ++i) {
        double logit = normal(random) * scale + offset;
        if (kind == 1 && random() % 2 == 0) logit = random() % 2 == 0 ? 0.0 : -0.0;
        if (kind == 2 && random() % 2 == 0) logit = normal(random) * 1e-3;
        if (kind == 3 && random() % 10 != 0) logit = -infinity;
        if (kind == 4) logit = std::floor(logit);
        logits.push_back(logit);
    }
    return logits;
}

void check_problem(const std::string& text, std::int64_t vocabulary, std::size_t rows, std::size_t each,
                   std::int64_t padding = 0) {
    const SampleCase drawn_case(
        text + " vocabulary=" + std::to_string(vocabulary), any_asked(rows),
        [&](std::size_t, std::mt19937_64& random) { return any_logits(vocabulary, random); }, padding);
    const auto suits = [&](const Candidate& candidate) {
        return padding % candidate.variant->access_elements(drawn_case.problem(), candidate.config) == 0;
    };
    for (const Candidate& candidate : test::sample(drawn_case.problem(), each, suits)) {
        INFO(text << " vocabulary=" << vocabulary << " | " << to_string(candidate));
        CHECK(drawn_case.fault(candidate) == "");
    }
}

}  // namespace

TEST_CASE("tokens are those of sorted masses at any vocabulary, in every dtype, with and without filters") {
    constexpr const char* dtypes[] = {"dtype=fp32", "dtype=fp16", "dtype=bf16"};
    std::size_t turn = 0;  // each compiles for seconds: the dtypes take turns
    for (const std::int64_t vocabulary : {1, 50, 4097, 50257}) {  // others stand in the cases below
        check_problem(dtypes[turn % 3] + std::string(" filters=yes log_probability=yes"), vocabulary, 12, 1);
        check_problem(dtypes[++turn % 3], vocabulary, 5, 1);
    }
    check_problem("dtype=bf16 filters=yes", 128256, 12, 3);
    check_problem("dtype=bf16 filters=yes log_probability=yes", 1 << 20, 3, 1);
}

TEST_CASE(
    "tokens under a cap of logits are those of sorted capped masses, and greedy ones the largest logits") {
    constexpr const char* dtypes[] = {"dtype=bf16", "dtype=fp16", "dtype=fp32"};
    std::size_t turn = 0;
    for (const std::int64_t vocabulary : {2, 1000, 50257}) {
        const std::string dtype = dtypes[turn++];
        check_problem(dtype + " filters=yes log_probability=yes softcap=3", vocabulary, 12, 2);
        check_problem(dtype + " log_probability=yes softcap=30", vocabulary, 5, 1);
    }
    check_problem("dtype=bf16 filters=yes softcap=30", 256000, 12, 2);
}

TEST_CASE("tokens of logits that are counted by value are right, also of values without a slot") {
    if (!runs_on(hone::sample::cluster_row, Bench::get().traits)) return;
    for (const std::int64_t vocabulary : {2, 1000, 6002, 50260, 128256}) {
        const SampleCase scattered(
            "dtype=bf16 filters=yes vocabulary=" + std::to_string(vocabulary),
            any_asked(vocabulary < 10000 ? 64 : 16),
            [&](std::size_t, std::mt19937_64& random) { return scattered_logits(vocabulary, random); });
        const auto counts = [](const Candidate& candidate) {
            return values_of<hone::sample::RowConfig>(candidate.config).home == 2;
        };
        for (const Candidate& candidate :
             test::sample_variant(scattered.problem(), hone::sample::cluster_row, 4, counts)) {
            INFO("vocabulary=" << vocabulary << " | " << to_string(candidate));
            CHECK(scattered.fault(candidate) == "");
        }
    }
}

TEST_CASE("tokens of rows with a stride are right") {
    for (const std::int64_t padding : {8, 64}) check_problem("dtype=bf16 filters=yes", 4096, 9, 2, padding);
    check_problem("dtype=bf16 filters=yes", 4095, 9, 2, 1);
    for (const std::int64_t padding : {8, 64, 1})
        check_problem("dtype=fp32 log_probability=yes", 333, 9, 2, padding);
}

TEST_CASE("all tokens that are as likely as the last one that stays stay, too") {
    std::vector<Asked> asked;
    for (std::int64_t i = 0; i < 200; ++i) asked.push_back({.top_k = 2, .counter = i});
    for (std::int64_t i = 0; i < 200; ++i) asked.push_back({.top_p = 0.3F, .counter = i});
    const SampleCase ties("dtype=bf16 filters=yes vocabulary=64", asked, [](std::size_t, std::mt19937_64&) {
        std::vector<double> logits(64, 0.0);
        logits[3] = logits[17] = logits[40] = logits[63] = 2.0;
        return logits;
    });
    for (const Candidate& candidate : test::sample(ties.problem(), 2)) {
        INFO(to_string(candidate));
        const std::vector<std::int64_t> tokens = ties.tokens(candidate);
        for (const std::int64_t token : {3, 17, 40, 63}) {
            CHECK(std::count(tokens.begin(), tokens.begin() + 200, token) > 20);
            CHECK(std::count(tokens.begin() + 200, tokens.end(), token) > 20);
        }
        CHECK(std::ranges::all_of(tokens, [](auto t) { return t == 3 || t == 17 || t == 40 || t == 63; }));
    }
}

TEST_CASE("a row draws the same token wherever it stands, however many rows there are") {
    const std::int64_t vocabulary = 5000;
    const std::vector<Asked> asked(33, {.temperature = 0.8F, .top_p = 0.95F, .seed = 5, .counter = 9});
    std::mt19937_64 random(1);
    const std::vector<double> logits = any_logits(vocabulary, random);
    const auto same = [&](std::size_t, std::mt19937_64&) { return logits; };
    const std::string text = "dtype=bf16 filters=yes vocabulary=5000";
    const SampleCase many(text, asked, same);
    const SampleCase one(text, {asked[0]}, same);
    const std::vector<std::int64_t> alone = one.tokens(*fallback(one.problem(), Bench::get().traits));
    for (const Candidate& candidate : test::sample(many.problem(), 4)) {
        INFO(to_string(candidate));
        CHECK(std::ranges::all_of(many.tokens(candidate), [&](auto token) { return token == alone[0]; }));
    }
}

TEST_CASE("many draws have the exact distribution") {
    constexpr std::size_t vocabulary = 40;
    constexpr std::size_t draws = 1 << 15;
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal(0.0, 1.5);
    std::vector<double> logits(vocabulary);
    for (double& logit : logits) logit = static_cast<float>(normal(random));
    for (const Asked& filters :
         {Asked{}, Asked{.temperature = 0.7F, .top_k = 20}, Asked{.temperature = 1.3F, .top_p = 0.8F},
          Asked{.temperature = 3, .min_p = 0.3F}, Asked{.top_k = 25, .top_p = 0.9F, .min_p = 0.02F}}) {
        std::vector<Asked> asked(draws, filters);
        for (std::size_t i = 0; i < draws; ++i) asked[i].counter = static_cast<std::int64_t>(i);
        const SampleCase many("dtype=fp32 filters=yes vocabulary=40", asked,
                              [&](std::size_t, std::mt19937_64&) { return logits; });

        std::vector<std::size_t> order(vocabulary);
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::ranges::sort(order, std::greater<>(), [&](std::size_t i) { return logits[i]; });
        std::vector<double> expected(vocabulary, 0.0);
        const std::size_t count = filters.top_k == 0 ? vocabulary : static_cast<std::size_t>(filters.top_k);
        for (std::size_t i = 0; i < count; ++i) {
            const double distance = logits[order[i]] - logits[order[0]];
            expected[order[i]] = std::exp(distance / static_cast<double>(filters.temperature));
        }
        const double before = std::accumulate(expected.begin(), expected.end(), 0.0);
        double above = 0;
        for (const std::size_t token : order) {
            const bool stays = above < static_cast<double>(filters.top_p) * before;
            above += expected[token];
            if (!stays || expected[token] < static_cast<double>(filters.min_p)) expected[token] = 0;
        }
        const double total = std::accumulate(expected.begin(), expected.end(), 0.0);

        for (const Candidate& candidate : test::sample(many.problem(), 1)) {
            std::vector<double> found(vocabulary, 0.0);
            for (const std::int64_t token : many.tokens(candidate)) ++found[static_cast<std::size_t>(token)];
            double squares = 0;
            double freedom = -1;
            for (std::size_t i = 0; i < vocabulary; ++i) {
                if (expected[i] == 0) {
                    CHECK(found[i] == 0);
                    continue;
                }
                const double wanted = expected[i] / total * static_cast<double>(draws);
                squares += (found[i] - wanted) * (found[i] - wanted) / wanted;
                ++freedom;
            }
            INFO(to_string(candidate) << " | top_k " << filters.top_k << " top_p " << filters.top_p);
            CHECK(squares <= freedom + 4 * std::sqrt(2 * freedom));
        }
    }
}
