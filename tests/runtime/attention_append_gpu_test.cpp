// Every variant of attention_append on the GPU against double arithmetic on the host: heads, groups, lengths,
// pages, styles and parts of rotations, norms. The new token's rows of the cache hold NaN before, as does all
// that nobody may look at; behind the launch they hold the key and the value, and nothing else has changed.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <string>

#include "tests/runtime/gpu_run.h"

using namespace hone;
using namespace hone::test;

namespace {

constexpr double epsilon = 0.1;  // large enough to be seen
constexpr double softcap = 3.0;
constexpr std::int64_t padding = 16;  ///< elements behind all heads of a row of q, k, v and out

class AppendCase {
  public:
    AppendCase(const std::string& text, std::vector<std::int64_t> lengths)
        : problem_(*parse_problem("attention_append " + text + " batch=" + std::to_string(lengths.size()))),
          lengths_(std::move(lengths)),
          random_(std::hash<std::string>{}(text)) {
        deal_pages();
        fill();
        expect();
    }

    [[nodiscard]] const Problem& problem() const { return problem_; }

    [[nodiscard]] std::vector<HostTensor> run(const Candidate& candidate, int launches) const {
        std::vector<HostTensor> host;
        for (const Argument& argument : arguments_) host.push_back(tensors_.at(std::string(argument.name)));
        return run_on_gpu(problem_, candidate, host, scalars(), {}, launches);
    }

    /// What is wrong with the results, or empty.
    [[nodiscard]] std::string fault_of(const std::vector<HostTensor>& results) const {
        // Results of few keys are larger, and so are their errors.
        const auto kv_len = static_cast<std::size_t>(field_index(*problem_.family, "kv_len"));
        const Problem seen = with(problem_, kv_len, std::max<std::int64_t>(std::ranges::max(lengths_), 1));
        const Tolerance tolerance = problem_.family->tolerance(seen, static_cast<int>(index_of("out")));
        const std::string fault = test::fault_of(results[index_of("out")], out_, batch(),
                                                 value("heads") * value("head_dim"), tolerance);
        if (!fault.empty()) return "out: " + fault;
        for (const char* name : {"k_cache", "v_cache"}) {
            const std::string in_cache = fault_in_cache(name, results[index_of(name)]);
            if (!in_cache.empty()) return std::string(name) + ": " + in_cache;
        }
        return {};
    }

  private:
    [[nodiscard]] std::int64_t value(std::string_view field) const {
        return problem_[static_cast<std::size_t>(field_index(*problem_.family, field))];
    }
    [[nodiscard]] std::size_t index_of(std::string_view name) const {
        return static_cast<std::size_t>(std::ranges::find(arguments_, name, &Argument::name) -
                                        arguments_.begin());
    }
    [[nodiscard]] std::int64_t batch() const { return static_cast<std::int64_t>(lengths_.size()); }
    [[nodiscard]] std::int64_t room() const {
        return value("page_size") != 0 ? value("page_size") : value("kv_len");
    }
    [[nodiscard]] std::int64_t pages_each() const { return (value("kv_len") + room() - 1) / room(); }
    [[nodiscard]] std::int64_t pool_pages() const { return batch() * pages_each() + 2; }
    /// Row of the cache of one head of a token.
    [[nodiscard]] std::int64_t cache_row(std::int64_t b, std::int64_t token, std::int64_t head) const {
        const std::int64_t page = pages_[static_cast<std::size_t>(b * pages_each() + token / room())];
        return (page * room() + token % room()) * value("kv_heads") + head;
    }
    /// Of an element, relative; of float32 what sums add.
    [[nodiscard]] double rounding() const {
        return dtype() == Dtype::bf16 ? 0x1p-9 : dtype() == Dtype::fp16 ? 0x1p-12 : 0x1p-20;
    }
    [[nodiscard]] Dtype dtype() const { return static_cast<Dtype>(value("dtype")); }

    void deal_pages() {
        pages_.resize(static_cast<std::size_t>(pool_pages()));
        std::iota(pages_.begin(), pages_.end(), 0);
        if (value("page_size") != 0) std::shuffle(pages_.begin(), pages_.end(), random_);
    }

    void fill() {
        const std::int64_t d = value("head_dim");
        const std::int64_t q = value("heads") * d;
        const std::int64_t kv = value("kv_heads") * d;
        const std::int64_t half = std::max<std::int64_t>(value("rotary_dim") / 2, 1);
        const std::int64_t cache_rows = pool_pages() * room() * value("kv_heads");
        struct Shape {
            std::int64_t rows, columns, stride;
        };
        const std::map<std::string_view, Shape> shapes{{"q", {batch(), q, q + padding}},
                                                       {"k", {batch(), kv, kv + padding}},
                                                       {"v", {batch(), kv, kv + padding}},
                                                       {"out", {batch(), q, q + padding}},
                                                       {"k_cache", {cache_rows, d, d}},
                                                       {"v_cache", {cache_rows, d, d}},
                                                       {"kv_lengths", {batch(), 1, 1}},
                                                       {"page_table", {batch() * pages_each(), 1, 1}},
                                                       {"cos", {value("kv_len"), half, half}},
                                                       {"sin", {value("kv_len"), half, half}},
                                                       {"q_weight", {1, d, d}},
                                                       {"k_weight", {1, d, d}},
                                                       {"workspace", {0, 1, 1}}};
        for (const Argument& argument : arguments_) {
            const Shape shape = shapes.at(argument.name);
            tensors_.emplace(argument.name, HostTensor(argument.dtype, argument.present ? shape.rows : 0,
                                                       shape.columns, shape.stride));
        }
        std::normal_distribution<double> normal;
        const auto draw = [&](const char* name, std::int64_t row, std::int64_t columns) {
            for (std::int64_t c = 0; c < columns; ++c) tensors_.at(name).set(row, c, normal(random_));
        };
        for (std::int64_t b = 0; b < batch(); ++b) {
            const std::int64_t length = lengths_[static_cast<std::size_t>(b)];
            tensors_.at("kv_lengths").set_index(b, length);
            draw("q", b, q);
            draw("k", b, kv);
            draw("v", b, kv);
            for (std::int64_t j = 0; j + 1 < length; ++j) {
                for (std::int64_t h = 0; h < value("kv_heads"); ++h) {
                    draw("k_cache", cache_row(b, j, h), d);
                    draw("v_cache", cache_row(b, j, h), d);
                }
            }
            if (value("page_size") == 0) continue;
            for (std::int64_t p = 0; p < pages_each(); ++p)
                tensors_.at("page_table")
                    .set_index(b * pages_each() + p,
                               p * room() < length ? pages_[static_cast<std::size_t>(b * pages_each() + p)]
                                                   : 123456789);
        }
        if (value("norm") != 0) {
            draw("q_weight", 0, d);
            draw("k_weight", 0, d);
        }
        for (std::int64_t p = 0; value("rotary_dim") > 0 && p < value("kv_len"); ++p) {
            for (std::int64_t i = 0; i < half; ++i) {
                const double angle = static_cast<double>(p) * std::pow(0.7, static_cast<double>(i));
                tensors_.at("cos").set(p, i, std::cos(angle));
                tensors_.at("sin").set(p, i, std::sin(angle));
            }
        }
    }

    /// A head behind norm and rotation, rounded.
    [[nodiscard]] std::vector<double> turned(const char* name, const char* weight, std::int64_t b,
                                             std::int64_t head, std::int64_t position) const {
        const std::int64_t d = value("head_dim");
        std::vector<double> x(static_cast<std::size_t>(d));
        double squares = 0;
        for (std::int64_t c = 0; c < d; ++c) {
            x[static_cast<std::size_t>(c)] = tensors_.at(name).at(b, head * d + c);
            squares += x[static_cast<std::size_t>(c)] * x[static_cast<std::size_t>(c)];
        }
        if (value("norm") != 0) {
            const double offset = value("unit_offset") != 0 ? 1 : 0;
            for (std::int64_t c = 0; c < d; ++c)
                x[static_cast<std::size_t>(c)] *= (offset + tensors_.at(weight).at(0, c)) /
                                                  std::sqrt(squares / static_cast<double>(d) + epsilon);
        }
        const std::int64_t half = value("rotary_dim") / 2;
        for (std::int64_t i = 0; i < half; ++i) {
            const bool neighbours = value("style") != 0;
            double& first = x[static_cast<std::size_t>(neighbours ? 2 * i : i)];
            double& second = x[static_cast<std::size_t>(neighbours ? 2 * i + 1 : i + half)];
            const double cos = tensors_.at("cos").at(position, i);
            const double sin = tensors_.at("sin").at(position, i);
            const double turned_first = first * cos - second * sin;
            second = second * cos + first * sin;
            first = turned_first;
        }
        for (double& element : x) element = round_to(dtype(), element);
        return x;
    }

    void expect() {
        const std::int64_t d = value("head_dim");
        const std::int64_t group = value("heads") / value("kv_heads");
        out_.assign(static_cast<std::size_t>(batch() * value("heads") * d), 0.0);
        for (std::int64_t b = 0; b < batch(); ++b) {
            const std::int64_t length = lengths_[static_cast<std::size_t>(b)];
            if (length == 0) continue;
            std::vector<std::vector<double>> keys;
            for (std::int64_t h = 0; h < value("kv_heads"); ++h) {
                keys.push_back(turned("k", "k_weight", b, h, length - 1));
                keys_.emplace(cache_row(b, length - 1, h), keys.back());
                std::vector<double> row;
                for (std::int64_t c = 0; c < d; ++c) row.push_back(tensors_.at("v").at(b, h * d + c));
                values_.emplace(cache_row(b, length - 1, h), std::move(row));
            }
            for (std::int64_t h = 0; h < value("heads"); ++h) {
                expect_head(b, h, turned("q", "q_weight", b, h, length - 1),
                            keys[static_cast<std::size_t>(h / group)]);
            }
        }
    }
    void expect_head(std::int64_t b, std::int64_t head, const std::vector<double>& q,
                     const std::vector<double>& newest) {
        const std::int64_t d = value("head_dim");
        const std::int64_t kv_head = head / (value("heads") / value("kv_heads"));
        const std::int64_t length = lengths_[static_cast<std::size_t>(b)];
        const std::int64_t first =
            value("window") > 0 ? std::max<std::int64_t>(0, length - value("window")) : 0;
        std::vector<double> scores;
        for (std::int64_t j = first; j < length; ++j) {
            double score = 0;
            for (std::int64_t c = 0; c < d; ++c) {
                const auto at = static_cast<std::size_t>(c);
                score += q[at] * (j + 1 == length ? newest[at]
                                                  : tensors_.at("k_cache").at(cache_row(b, j, kv_head), c));
            }
            score *= scale();
            scores.push_back(value("softcap") != 0 ? softcap * std::tanh(score / softcap) : score);
        }
        const double top = *std::ranges::max_element(scores);
        double sum = 0;
        std::vector<double> row(static_cast<std::size_t>(d), 0.0);
        for (std::int64_t j = first; j < length; ++j) {
            const double weight = std::exp(scores[static_cast<std::size_t>(j - first)] - top);
            sum += weight;
            for (std::int64_t c = 0; c < d; ++c) {
                row[static_cast<std::size_t>(c)] +=
                    weight * (j + 1 == length ? tensors_.at("v").at(b, kv_head * d + c)
                                              : tensors_.at("v_cache").at(cache_row(b, j, kv_head), c));
            }
        }
        for (std::int64_t c = 0; c < d; ++c)
            out_[static_cast<std::size_t>((b * value("heads") + head) * d + c)] =
                row[static_cast<std::size_t>(c)] / sum;
    }
    [[nodiscard]] double scale() const { return 1.0 / std::sqrt(static_cast<double>(value("head_dim"))); }

    /// New rows hold what they should, within a step of the element type; all others what they held.
    [[nodiscard]] std::string fault_in_cache(const std::string& name, const HostTensor& cache) const {
        const HostTensor& before = tensors_.at(name);
        const auto& wanted = name == "k_cache" ? keys_ : values_;
        const std::int64_t d = value("head_dim");
        const double step = name == "v_cache" ? 0 : 4 * rounding();
        for (std::int64_t row = 0; row < pool_pages() * room() * value("kv_heads"); ++row) {
            const auto bytes = static_cast<std::ptrdiff_t>(row * d * size_bytes(dtype()));
            const auto found = wanted.find(row);
            if (found == wanted.end()) {
                if (!std::equal(cache.bytes.begin() + bytes,
                                cache.bytes.begin() + bytes + d * size_bytes(dtype()),
                                before.bytes.begin() + bytes))
                    return "row " + std::to_string(row) + " has changed";
                continue;
            }
            for (std::int64_t c = 0; c < d; ++c) {
                const double want = found->second[static_cast<std::size_t>(c)];
                const double got = cache.at(row, c);
                if (!(std::abs(got - want) <= step * std::abs(want) + step * 1e-3))
                    return "row " + std::to_string(row) + " column " + std::to_string(c) + ": " +
                           std::to_string(got) + " for " + std::to_string(want);
            }
        }
        return {};
    }

    [[nodiscard]] std::array<Scalar, max_call_scalars> scalars() const {
        const std::int64_t d = value("head_dim");
        const std::int64_t q_row = value("heads") * d + padding;
        const std::int64_t kv_row = value("kv_heads") * d + padding;
        const std::map<std::string_view, Scalar> known{
            {"batch", Scalar::of(batch())},
            {"kv_len", Scalar::of(value("kv_len"))},
            {"q_batch_stride", Scalar::of(q_row)},
            {"q_head_stride", Scalar::of(d)},
            {"k_batch_stride", Scalar::of(kv_row)},
            {"k_head_stride", Scalar::of(d)},
            {"v_batch_stride", Scalar::of(kv_row)},
            {"v_head_stride", Scalar::of(d)},
            {"out_batch_stride", Scalar::of(q_row)},
            {"out_head_stride", Scalar::of(d)},
            {"cache_stride", Scalar::of(room() * value("kv_heads") * d)},
            {"cache_token_stride", Scalar::of(value("kv_heads") * d)},
            {"cache_head_stride", Scalar::of(d)},
            {"page_table_stride", Scalar::of(value("page_size") != 0 ? pages_each() : std::int64_t{0})},
            {"pool_pages", Scalar::of(pool_pages())},
            {"positions", Scalar::of(value("kv_len"))},
            {"scale", Scalar::of(static_cast<float>(scale()))},
            {"softcap", Scalar::of(static_cast<float>(softcap))},
            {"epsilon", Scalar::of(static_cast<float>(epsilon))}};
        std::array<Scalar, max_call_scalars> scalars{};
        for (std::size_t i = 0; const ScalarArgument& argument : problem_.family->scalars(problem_))
            scalars[i++] = known.at(argument.name);
        return scalars;
    }

    Problem problem_;
    std::vector<std::int64_t> lengths_;
    std::mt19937_64 random_;
    std::vector<Argument> arguments_ = problem_.family->arguments(problem_);
    std::vector<std::int64_t> pages_;
    std::map<std::string, HostTensor, std::less<>> tensors_;
    std::vector<double> out_;
    std::map<std::int64_t, std::vector<double>> keys_;  ///< new ones, by row of the cache
    std::map<std::int64_t, std::vector<double>> values_;
};

void check(const std::string& text, const std::vector<std::int64_t>& lengths, std::size_t each,
           int launches = 2) {
    const AppendCase append(text, lengths);
    for (const Candidate& candidate : sample(append.problem(), each)) {
        INFO(text << " | " << to_string(candidate));
        CHECK(append.fault_of(append.run(candidate, launches)) == "");
    }
}

const std::vector<std::int64_t> short_lengths{0, 1, 2, 15, 16, 17, 100};

}  // namespace

// Small enough to run under a sanitizer (tests/run_gpu_tests.py --sanitize).
TEST_CASE("small calls that append are right in every variant") {
    const std::string rest = " heads=8 kv_heads=2 head_dim=64 rotary_dim=64 kv_len=100";
    check("dtype=bf16 page_size=16" + rest, short_lengths, 3);
    check("dtype=fp16 page_size=0 norm=yes style=interleaved" + rest, short_lengths, 3);
    check("dtype=bf16 page_size=16 norm=yes unit_offset=yes" + rest, short_lengths, 3);
    check(
        "dtype=fp32 page_size=16 norm=yes softcap=yes window=20 heads=6 kv_heads=2 head_dim=7 "
        "rotary_dim=6 kv_len=100",
        short_lengths, 2);
}

TEST_CASE("calls that append are right for every head") {
    // Each head meets both styles, with and without a norm; both styles meet both in every second head.
    constexpr std::pair<const char*, const char*> ways[] = {
        {" style=half norm=no", " style=interleaved norm=yes"},
        {" style=half norm=yes unit_offset=yes", " style=interleaved norm=no"}};
    std::size_t turn = 0;
    for (const char* head :
         {"head_dim=64 rotary_dim=64", "head_dim=80 rotary_dim=32", "head_dim=80 rotary_dim=80",
          "head_dim=96 rotary_dim=96", "head_dim=128 rotary_dim=128", "head_dim=128 rotary_dim=64",
          "head_dim=256 rotary_dim=256", "head_dim=72 rotary_dim=0"}) {
        const auto [one, other] = ways[++turn % 2];
        SUBCASE(head) {
            for (const char* way : {one, other}) {
                check(std::string("dtype=bf16 page_size=16 heads=4 kv_heads=1 kv_len=100 ") + head + way,
                      short_lengths, 1);
            }
        }
    }
}

TEST_CASE("calls that append are right for every group") {
    for (const char* heads : {"heads=3 kv_heads=3", "heads=8 kv_heads=2", "heads=16 kv_heads=2",
                              "heads=32 kv_heads=2", "heads=20 kv_heads=1"}) {
        SUBCASE(heads) {
            check(std::string("dtype=bf16 page_size=16 head_dim=128 rotary_dim=128 kv_len=100 ") + heads,
                  short_lengths, 2);
        }
    }
}

TEST_CASE("calls that append are right in every kind of cache, and at its borders") {
    const std::string rest = " heads=8 kv_heads=2 head_dim=128 rotary_dim=128 kv_len=";
    for (const char* page : {"0", "16", "64", "128", "256", "24"}) {
        SUBCASE(page) {
            check("dtype=bf16 page_size=" + std::string(page) + rest + "300",
                  {1, 16, 17, 63, 64, 65, 127, 128, 129, 256, 257, 300}, 3);
        }
    }
}

TEST_CASE("calls that append are right where sequences are long or many") {
    const std::string rest = " page_size=16 heads=8 kv_heads=2 head_dim=128 rotary_dim=128 kv_len=";
    SUBCASE("long") { check("dtype=bf16" + rest + "4096", {1000, 4096, 1, 3999, 2048}, 4); }
    SUBCASE("window") {
        check("dtype=fp16 softcap=yes window=40" + rest + "1100", {1, 39, 40, 41, 1000, 1100}, 3);
    }
    SUBCASE("alone") { check("dtype=bf16" + rest + "4096", {1074}, 4); }
    SUBCASE("short where there is room for long ones") {
        check("dtype=bf16" + rest + "8192", {3}, 4);
        check("dtype=bf16" + rest + "8192", {17, 0, 700}, 4);
    }
    SUBCASE("many") { check("dtype=bf16" + rest + "300", std::vector<std::int64_t>(70, 274), 3); }
}
