// Every variant of rope_kv_append on the GPU against double arithmetic on the host: styles, partial rotation,
// norms, lengths and slots, contiguous and paged caches, codes, tokens without a place.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <random>
#include <string>

#include "tests/runtime/gpu_run.h"

using namespace hone;
using namespace hone::test;

namespace {

constexpr double epsilon = 0.1;  // large enough to be seen
constexpr std::int64_t kv_len = 40;

class RopeCase {
  public:
    explicit RopeCase(const std::string& text)
        : problem_(*parse_problem("rope_kv_append " + text)), random_(std::hash<std::string>{}(text)) {
        place_tokens();
        fill();
        expect();
    }

    [[nodiscard]] const Problem& problem() const { return problem_; }

    [[nodiscard]] std::vector<HostTensor> run(const Candidate& candidate) const {
        std::vector<HostTensor> host;
        for (const Argument& argument : arguments_) host.push_back(tensors_.at(std::string(argument.name)));
        return run_on_gpu(problem_, candidate, host, scalars());
    }

    /// What is wrong with the results, or empty.
    [[nodiscard]] std::string fault_of(const std::vector<HostTensor>& results) const {
        for (const char* name : {"q_out", "k_cache", "v_cache"}) {
            const std::string fault = fault_in(name, results);
            if (!fault.empty()) return fault;
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
    [[nodiscard]] bool quantized() const { return value("kv_dtype") != 0; }
    [[nodiscard]] std::int64_t room() const { return value("page_size") != 0 ? value("page_size") : kv_len; }
    [[nodiscard]] std::int64_t sequences() const { return value("tokens") / value("q_tokens"); }
    [[nodiscard]] std::int64_t pages_each() const { return (kv_len + room() - 1) / room(); }
    [[nodiscard]] std::int64_t pool_pages() const { return sequences() * pages_each() + 2; }

    /// Where a token stands, and where it goes: -1 for nowhere.
    struct Place {
        std::int64_t position = 0;
        std::int64_t row = -1;
    };
    // Without slots, the first sequence is shorter than what is new of it, and the last one longer than its
    // room; with slots, every fifth token has none.
    void place_tokens() {
        std::vector<std::int64_t> pages(static_cast<std::size_t>(pool_pages()));
        for (std::size_t i = 0; i < pages.size(); ++i) pages[i] = static_cast<std::int64_t>(i);
        if (value("page_size") != 0) std::shuffle(pages.begin(), pages.end(), random_);
        std::vector<std::int64_t> slots(static_cast<std::size_t>(pool_pages() * room()));
        for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<std::int64_t>(i);
        std::shuffle(slots.begin(), slots.end(), random_);
        pages_ = pages;
        for (std::int64_t t = 0; t < value("tokens"); ++t) {
            if (value("slots") != 0) {
                places_.push_back({(t * 7) % kv_len, t % 5 == 4 ? -1 : slots[static_cast<std::size_t>(t)]});
                continue;
            }
            const std::int64_t sequence = t / value("q_tokens");
            const std::int64_t position = length(sequence) - value("q_tokens") + t % value("q_tokens");
            const bool fits = position >= 0 && position < kv_len;
            const std::int64_t page =
                fits ? pages[static_cast<std::size_t>(sequence * pages_each() + position / room())] : 0;
            places_.push_back({position, fits ? page * room() + position % room() : -1});
        }
    }
    [[nodiscard]] std::int64_t length(std::int64_t sequence) const {
        if (sequence == 0) return value("q_tokens") / 2;
        if (sequence + 1 == sequences()) return kv_len + 1;
        return value("q_tokens") + (sequence * 5) % (kv_len - value("q_tokens"));
    }

    void fill() {
        const std::int64_t token_count = value("tokens");
        const std::int64_t cache_rows = pool_pages() * room() * value("kv_heads");
        const std::int64_t half = std::max<std::int64_t>(value("rotary_dim") / 2, 1);
        const std::map<std::string_view, std::pair<std::int64_t, std::int64_t>> shapes{
            {"q", {token_count * value("heads"), value("head_dim")}},
            {"q_out", {token_count * value("heads"), value("head_dim")}},
            {"k", {token_count * value("kv_heads"), value("head_dim")}},
            {"v", {token_count * value("kv_heads"), value("head_dim")}},
            {"k_cache", {cache_rows, value("head_dim")}},
            {"v_cache", {cache_rows, value("head_dim")}},
            {"cos", {table_rows_, half}},
            {"sin", {table_rows_, half}},
            {"q_weight", {1, value("head_dim")}},
            {"k_weight", {1, value("head_dim")}},
            {"k_scale", {value("kv_heads"), 1}},
            {"v_scale", {value("kv_heads"), 1}},
            {"kv_lengths", {sequences(), 1}},
            {"positions", {token_count, 1}},
            {"slots", {token_count, 1}},
            {"page_table", {sequences() * pages_each(), 1}}};
        for (const Argument& argument : arguments_) {
            const auto [rows, columns] = shapes.at(argument.name);
            HostTensor tensor(argument.dtype, argument.present ? rows : 0, columns, columns);
            for (std::int64_t r = 0; argument.present && r < rows; ++r)
                fill_row(tensor, argument, r, columns);
            tensors_.emplace(argument.name, std::move(tensor));
        }
    }
    void fill_row(HostTensor& tensor, const Argument& argument, std::int64_t row, std::int64_t columns) {
        const auto at = static_cast<std::size_t>(row);
        if (argument.name == "kv_lengths")
            return tensor.set_index(row, static_cast<std::int32_t>(length(row)));
        if (argument.name == "page_table")
            return tensor.set_index(row, static_cast<std::int32_t>(pages_[at]));
        if (argument.name == "slots")
            return tensor.set_index(row, static_cast<std::int32_t>(places_[at].row));
        if (argument.name == "positions")
            return tensor.set_index(row, static_cast<std::int32_t>(places_[at].position));
        if (argument.role == Role::output) return;
        const bool is_scale = argument.name == "k_scale" || argument.name == "v_scale";
        std::normal_distribution<double> normal;
        for (std::int64_t c = 0; c < columns; ++c) {
            const double angle = static_cast<double>(row) * std::pow(0.7, static_cast<double>(c));
            if (argument.name == "cos")
                tensor.set(row, c, std::cos(angle));
            else if (argument.name == "sin")
                tensor.set(row, c, std::sin(angle));
            else
                tensor.set(row, c, is_scale ? 0.01 + 0.001 * static_cast<double>(row) : normal(random_));
        }
    }

    [[nodiscard]] std::array<Scalar, max_call_scalars> scalars() const {
        const std::int64_t q_row = value("heads") * value("head_dim");
        const std::int64_t kv_row = value("kv_heads") * value("head_dim");
        std::map<std::string_view, std::int64_t> known{{"tokens", value("tokens")},
                                                       {"q_tokens", value("q_tokens")},
                                                       {"kv_len", kv_len},
                                                       {"q_token_stride", q_row},
                                                       {"q_out_token_stride", q_row},
                                                       {"k_token_stride", kv_row},
                                                       {"v_token_stride", kv_row},
                                                       {"cache_stride", room() * kv_row},
                                                       {"cache_token_stride", kv_row},
                                                       {"page_table_stride", pages_each()},
                                                       {"pool_pages", pool_pages()},
                                                       {"positions", table_rows_}};
        for (const char* name :
             {"q_head_stride", "k_head_stride", "v_head_stride", "q_out_head_stride", "cache_head_stride"})
            known[name] = value("head_dim");
        std::array<Scalar, max_call_scalars> scalars{};
        for (std::size_t i = 0; const ScalarArgument& scalar : problem_.family->scalars(problem_)) {
            scalars[i++] = scalar.name == "epsilon" ? Scalar::of(static_cast<float>(epsilon))
                                                    : Scalar::of(known.at(scalar.name));
        }
        return scalars;
    }

    /// A head of q or k, normalized and rotated.
    [[nodiscard]] std::vector<double> turned(const char* name, std::int64_t row,
                                             std::int64_t position) const {
        const std::int64_t dim = value("head_dim");
        std::vector<double> x;
        double squares = 0;
        for (std::int64_t c = 0; c < dim; ++c) {
            x.push_back(tensors_.at(name).at(row, c));
            squares += x.back() * x.back();
        }
        if (value("norm") != 0) {
            const HostTensor& weight = tensors_.at(name == std::string("q") ? "q_weight" : "k_weight");
            const double factor = 1 / std::sqrt(squares / static_cast<double>(dim) + epsilon);
            const double offset = value("unit_offset") != 0 ? 1 : 0;
            for (std::int64_t c = 0; c < dim; ++c)
                x[static_cast<std::size_t>(c)] *= factor * (offset + weight.at(0, c));
        }
        const std::int64_t half = value("rotary_dim") / 2;
        for (std::int64_t i = 0; i < half; ++i) {
            const bool interleaved = value("style") != 0;
            double& first = x[static_cast<std::size_t>(interleaved ? 2 * i : i)];
            double& second = x[static_cast<std::size_t>(interleaved ? 2 * i + 1 : i + half)];
            const double cos = tensors_.at("cos").at(position, i);
            const double sin = tensors_.at("sin").at(position, i);
            first = std::exchange(second, second * cos + first * sin) * -sin + first * cos;
        }
        return x;
    }
    void expect() {
        const auto put = [&](const char* name, std::int64_t row, std::vector<double> numbers, double scale) {
            for (double& number : numbers) number /= scale;
            expected_[name].emplace(row, std::move(numbers));
        };
        for (std::int64_t t = 0; t < value("tokens"); ++t) {
            const Place place = places_[static_cast<std::size_t>(t)];
            if (place.position < 0 || (value("rotary_dim") != 0 && place.position >= table_rows_)) continue;
            for (std::int64_t h = 0; h < value("heads"); ++h)
                put("q_out", t * value("heads") + h, turned("q", t * value("heads") + h, place.position), 1);
            for (std::int64_t h = 0; place.row >= 0 && h < value("kv_heads"); ++h) {
                const std::int64_t from = t * value("kv_heads") + h;
                const std::int64_t to = place.row * value("kv_heads") + h;
                std::vector<double> copied;
                for (std::int64_t c = 0; c < value("head_dim"); ++c)
                    copied.push_back(tensors_.at("v").at(from, c));
                put("k_cache", to, turned("k", from, place.position), scale("k_scale", h));
                put("v_cache", to, copied, scale("v_scale", h));
            }
        }
    }
    [[nodiscard]] double scale(const char* name, std::int64_t head) const {
        return quantized() ? tensors_.at(name).at(head, 0) : 1;
    }

    /// Rows that nothing was to be written to must be as they were.
    [[nodiscard]] std::string fault_in(const char* name, const std::vector<HostTensor>& results) const {
        const std::size_t index = index_of(name);
        const std::vector<std::byte>& bytes = results[index].bytes;
        const RowMap& expected = expected_.at(name);
        const std::int64_t row_bytes = value("head_dim") * size_bytes(arguments_[index].dtype);
        for (std::int64_t r = 0; r < static_cast<std::int64_t>(bytes.size()) / row_bytes; ++r) {
            const auto begin = bytes.begin() + r * row_bytes;
            const bool untouched =
                std::all_of(begin, begin + row_bytes, [](std::byte b) { return b == std::byte{0xff}; });
            const auto found = expected.find(r);
            const bool right =
                found == expected.end() ? untouched : is_right(results, index, r, found->second);
            if (!right) return std::string(name) + " row " + std::to_string(r);
        }
        return {};
    }
    [[nodiscard]] bool is_right(const std::vector<HostTensor>& results, std::size_t index, std::int64_t row,
                                const std::vector<double>& numbers) const {
        const Tolerance tolerance = problem_.family->tolerance(problem_, static_cast<int>(index));
        const bool codes = arguments_[index].dtype == Dtype::fp8_e4m3;
        for (std::size_t c = 0; c < numbers.size(); ++c) {
            const double want = codes ? std::clamp(numbers[c], -448.0, 448.0) : numbers[c];
            const double off = std::abs(results[index].at(row, static_cast<std::int64_t>(c)) - want);
            if (!(off <= tolerance.max_abs + tolerance.max_rel * std::abs(want))) return false;
        }
        return true;
    }

    using RowMap = std::map<std::int64_t, std::vector<double>>;
    Problem problem_;
    std::mt19937_64 random_;
    std::vector<Argument> arguments_ = problem_.family->arguments(problem_);
    std::int64_t table_rows_ = kv_len;
    std::vector<Place> places_;
    std::vector<std::int64_t> pages_;
    std::map<std::string, HostTensor> tensors_;
    std::map<std::string, RowMap> expected_;
};

void check_problem(const std::string& text, std::size_t each) {
    const RopeCase rope(text);
    for (const Candidate& candidate : sample(rope.problem(), each)) {
        INFO(text << " | " << to_string(candidate));
        CHECK(rope.fault_of(rope.run(candidate)) == "");
    }
}

}  // namespace

TEST_CASE("rope_kv_append is right in every dtype and style, for lengths and for slots") {
    for (const char* dtype : {"bf16", "fp16", "fp32"}) {
        for (const char* style : {"half", "interleaved"}) {
            for (const char* slots : {"no", "yes"}) {
                check_problem(
                    std::string("dtype=") + dtype + " style=" + style + " slots=" + slots +
                        " heads=8 kv_heads=2 head_dim=128 rotary_dim=128 tokens=20 q_tokens=4 kv_len=40",
                    1);
            }
        }
    }
}

TEST_CASE("rope_kv_append is right with norms, pages and codes") {
    for (const char* page_size : {"0", "8", "16", "7"}) {
        for (const char* slots : {"no", "yes"}) {
            const std::string sizes =
                std::string(" heads=4 kv_heads=4 head_dim=64 tokens=21 q_tokens=3 kv_len=40 ") +
                "page_size=" + page_size + " slots=" + slots;
            check_problem("dtype=bf16 norm=yes rotary_dim=64" + sizes, 1);
            check_problem("dtype=bf16 norm=yes unit_offset=yes rotary_dim=64" + sizes, 1);
            check_problem("dtype=bf16 kv_dtype=fp8_e4m3 rotary_dim=64" + sizes, 1);
        }
    }
}

TEST_CASE("rope_kv_append is right for any head dimension, and for any part of it that rotates") {
    const std::string sizes = " heads=3 kv_heads=1 tokens=10 q_tokens=2 kv_len=40";
    for (const char* dims :
         {"head_dim=64 rotary_dim=0", "head_dim=64 rotary_dim=32", "head_dim=96 rotary_dim=96",
          "head_dim=80 rotary_dim=20", "head_dim=256 rotary_dim=256", "head_dim=7 rotary_dim=6",
          "head_dim=192 rotary_dim=64"}) {
        check_problem(std::string("dtype=bf16 norm=yes ") + dims + sizes, 1);
        check_problem(std::string("dtype=fp32 style=interleaved ") + dims + sizes, 1);
    }
}
