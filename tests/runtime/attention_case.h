// One call of attention_prefill or attention_decode for tests on the GPU: random sequences, tensors in any
// layout, NaN wherever nobody may look (behind sequences, in pages of no sequence, between rows), and what
// has to come out, in double.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>

#include "tests/runtime/gpu_run.h"

namespace hone::test {

struct AttentionLayout {
    std::int64_t padding = 0;  ///< elements between rows of head_dim elements
    bool heads_first = false;  ///< [batch, heads, tokens, head_dim], else tokens before heads
    /// Queries of heads 1, 2 and 3 of each 4 are 2^6, 2^-30 and 2^-60 times as large as those of head 0.
    bool uneven_queries = false;
    std::int64_t least_queries = 1;  ///< sequences with fewer are left alone, where prefill's are packed
};

class AttentionCase {
  public:
    explicit AttentionCase(const std::string& text, AttentionLayout layout = {})
        : problem_(*parse_problem(text)), layout_(layout), random_(std::hash<std::string>{}(text)) {
        cut_sequences();
        fill_tensors();
        expect();
    }

    [[nodiscard]] const Problem& problem() const { return problem_; }

    /// Whether the layout fits the candidate's accesses.
    [[nodiscard]] bool suits(const Candidate& candidate) const {
        const std::int64_t access = candidate.variant->access_elements(problem_, candidate.config);
        return row_stride() % access == 0;
    }

    [[nodiscard]] std::vector<HostTensor> run(const Candidate& candidate, bool in_place = false) const {
        using InPlace = std::optional<std::pair<std::size_t, std::size_t>>;
        std::vector<HostTensor> host;
        for (const Argument& argument : arguments_) host.push_back(tensors_.at(std::string(argument.name)));
        return run_on_gpu(problem_, candidate, host, scalars(),
                          in_place ? InPlace({index_of("out"), index_of("q")}) : InPlace());
    }

    /// What is wrong with the results, or empty.
    [[nodiscard]] std::string fault_of(const std::vector<HostTensor>& results) const {
        for (const std::int64_t row : rows_of_others_) {
            if (!results[index_of("out")].row_untouched(row))
                return "wrote row " + std::to_string(row) + ", of a sequence that is left alone";
        }
        const std::string fault = fault_in("out", results, out_);
        return fault.empty() && value("lse") != 0 ? fault_in("lse", results, lse_) : fault;
    }

    /// Whether a bit of the results of one run is another in the other.
    [[nodiscard]] bool differs(const std::vector<HostTensor>& a, const std::vector<HostTensor>& b) const {
        const auto other = [&](const char* name) {
            return arguments_[index_of(name)].present && a[index_of(name)].bytes != b[index_of(name)].bytes;
        };
        return other("out") || other("lse");
    }

  private:
    struct Sequence {
        std::int64_t q_len = 0;
        std::int64_t kv_len = 0;
        std::int64_t q_start = 0;  ///< first token in a packed tensor
        std::int64_t kv_start = 0;
        std::vector<std::int32_t> pages;
    };

    /// The value of a field; 0 where the family has none of the name.
    [[nodiscard]] std::int64_t value(std::string_view field) const {
        const int index = field_index(*problem_.family, field);
        return index < 0 ? 0 : problem_[static_cast<std::size_t>(index)];
    }
    [[nodiscard]] bool decodes() const { return problem_.family->name == "attention_decode"; }
    [[nodiscard]] bool packs_keys() const { return !decodes() && value("lengths") == 2; }
    [[nodiscard]] bool packs_singles() const { return decodes() && value("lengths") == 2; }
    [[nodiscard]] bool packs_queries_alone() const { return packs_singles() || value("lengths") == 3; }
    /// Whether the kernel has anything to do with a sequence.
    [[nodiscard]] bool serves(const Sequence& sequence) const {
        if (packs_singles()) return sequence.q_len == 1;
        return !packs_queries_alone() || sequence.q_len >= layout_.least_queries;
    }
    [[nodiscard]] bool packed() const { return packs_keys() || packs_queries_alone(); }
    [[nodiscard]] std::int64_t page_size() const { return value("page_size"); }
    [[nodiscard]] std::int64_t row_stride() const { return value("head_dim") + layout_.padding; }
    [[nodiscard]] std::size_t index_of(std::string_view name) const {
        return static_cast<std::size_t>(std::ranges::find(arguments_, name, &Argument::name) -
                                        arguments_.begin());
    }
    [[nodiscard]] std::int64_t draw(std::int64_t most) {
        return std::uniform_int_distribution<std::int64_t>(0, most)(random_);
    }

    // The first sequence is empty and the second full, where lengths are free. Over pages the third has a
    // single query, the fourth and the last none, and the others mostly a prefix before their queries.
    void cut_sequences() {
        for (std::int64_t b = 0; b < value("batch"); ++b) {
            Sequence sequence{.q_len = value("q_len"),
                              .kv_len = value("kv_len"),
                              .q_start = q_tokens_,
                              .kv_start = kv_tokens_,
                              .pages = {}};
            const auto cut = [&](std::int64_t full) { return b == 0 ? 0 : b == 1 ? full : draw(full); };
            if (value("lengths") != 0) sequence.kv_len = cut(sequence.kv_len);
            if (packed()) sequence.q_len = b == 0 ? draw(sequence.q_len) : cut(sequence.q_len);
            if (packs_singles()) sequence.q_len = b <= 1 || draw(2) > 0 ? 1 : 2 + draw(4);
            if (packs_queries_alone() && b == 2) sequence.q_len = 1;
            if (packs_queries_alone() && (b == 3 || (b > 3 && b + 1 == value("batch")))) sequence.q_len = 0;
            q_tokens_ += sequence.q_len;
            kv_tokens_ += sequence.kv_len;
            sequences_.push_back(sequence);
        }
        if (packed()) {  // tokens of nobody
            q_tokens_ += 3;
            kv_tokens_ += 5;
        }
        if (page_size() != 0) deal_pages();
    }
    /// Pages in no order, and some that belong to nobody.
    void deal_pages() {
        const std::int64_t each = pages_each();
        pool_pages_ = static_cast<std::int64_t>(sequences_.size()) * each + 3;
        std::vector<std::int32_t> pages(static_cast<std::size_t>(pool_pages_));
        std::iota(pages.begin(), pages.end(), 0);
        std::shuffle(pages.begin(), pages.end(), random_);
        for (Sequence& sequence : sequences_) {
            const std::int64_t used = (sequence.kv_len + page_size() - 1) / page_size();
            sequence.pages.assign(pages.end() - used, pages.end());
            pages.resize(pages.size() - static_cast<std::size_t>(used));
        }
    }
    [[nodiscard]] std::int64_t pages_each() const {
        return page_size() == 0 ? 0 : (value("kv_len") + page_size() - 1) / page_size();
    }

    [[nodiscard]] std::int64_t row(std::int64_t outer, std::int64_t tokens, std::int64_t heads,
                                   std::int64_t token, std::int64_t head) const {
        if (layout_.heads_first && !packed()) return (outer * heads + head) * tokens + token;
        return (outer * tokens + token) * heads + head;
    }
    [[nodiscard]] std::int64_t q_row(std::size_t b, std::int64_t i, std::int64_t head) const {
        if (packed()) return row(0, q_tokens_, value("heads"), sequences_[b].q_start + i, head);
        return row(static_cast<std::int64_t>(b), value("q_len"), value("heads"), i, head);
    }
    [[nodiscard]] std::int64_t kv_row(std::size_t b, std::int64_t j, std::int64_t head) const {
        const Sequence& sequence = sequences_[b];
        const std::int64_t heads = value("kv_heads");
        if (packs_keys()) return row(0, kv_tokens_, heads, sequence.kv_start + j, head);
        if (page_size() == 0) return row(static_cast<std::int64_t>(b), value("kv_len"), heads, j, head);
        const std::int64_t page = sequence.pages[static_cast<std::size_t>(j / page_size())];
        return row(page, page_size(), heads, j % page_size(), head);
    }
    [[nodiscard]] std::int64_t lse_row(std::size_t b, std::int64_t i, std::int64_t head) const {
        if (packed()) return head * q_tokens_ + sequences_[b].q_start + i;
        return (static_cast<std::int64_t>(b) * value("heads") + head) * value("q_len") + i;
    }

    void fill_tensors() {
        const auto batch = static_cast<std::int64_t>(sequences_.size());
        const std::int64_t q_rows = (packed() ? q_tokens_ : batch * value("q_len")) * value("heads");
        std::int64_t kv_rows = batch * value("kv_len");
        if (packs_keys()) kv_rows = kv_tokens_;
        if (page_size() != 0) kv_rows = pool_pages_ * page_size();
        const std::map<std::string_view, std::int64_t> rows{{"q", q_rows},
                                                            {"out", q_rows},
                                                            {"lse", q_rows},
                                                            {"q_starts", batch + 1},
                                                            {"kv_starts", batch + 1},
                                                            {"kv_lengths", batch},
                                                            {"page_table", batch * pages_each()},
                                                            {"k_scale", value("kv_heads")},
                                                            {"v_scale", value("kv_heads")},
                                                            {"sinks", value("heads")},
                                                            {"workspace", 0}};
        for (const Argument& argument : arguments_) {
            const bool is_row = argument.name == "q" || argument.name == "out" || is_keys(argument.name);
            const std::int64_t count =
                is_keys(argument.name) ? kv_rows * value("kv_heads") : rows.at(argument.name);
            tensors_.emplace(argument.name,
                             HostTensor(argument.dtype, argument.present ? count : 0,
                                        is_row ? value("head_dim") : 1, is_row ? row_stride() : 1));
        }
        fill_indices();
        for (std::int64_t h = 0; value("kv_dtype") != 0 && h < value("kv_heads"); ++h) {
            tensors_.at("k_scale").set(h, 0, 0.02 + 0.003 * static_cast<double>(h));
            tensors_.at("v_scale").set(h, 0, 0.03 - 0.001 * static_cast<double>(h));
        }
        // From far below the scores to above them; the last counts nothing.
        for (std::int64_t h = 0; value("sinks") != 0 && h < value("heads"); ++h)
            tensors_.at("sinks").set(h, 0, sink(h));
        fill_rows();
    }
    [[nodiscard]] double sink(std::int64_t head) const {
        if (head > 0 && head + 1 == value("heads")) return -std::numeric_limits<double>::infinity();
        return head == 2 ? 7.0 : -4.0 + 3.0 * static_cast<double>(head);
    }
    [[nodiscard]] static bool is_keys(std::string_view name) {
        return name == "k" || name == "v" || name == "k_cache" || name == "v_cache";
    }
    void fill_indices() {
        const auto set = [&](const char* name, std::int64_t at, std::int64_t number) {
            if (tensors_.contains(name) && arguments_[index_of(name)].present)
                tensors_.at(name).set_index(at, static_cast<std::int32_t>(number));
        };
        for (std::int64_t b = 0; const Sequence& sequence : sequences_) {
            set("kv_lengths", b, sequence.kv_len);
            for (std::int64_t p = 0; p < pages_each(); ++p) {
                const bool used = p < static_cast<std::int64_t>(sequence.pages.size());
                set("page_table", b * pages_each() + p,
                    used ? sequence.pages[static_cast<std::size_t>(p)] : 123456789);
            }
            ++b;
            if (!packed()) continue;
            set("q_starts", b - 1, sequence.q_start);
            set("kv_starts", b - 1, sequence.kv_start);
            set("q_starts", b, sequence.q_start + sequence.q_len);
            set("kv_starts", b, sequence.kv_start + sequence.kv_len);
        }
    }
    void fill_rows() {
        const auto draw_row = [&](HostTensor& tensor, std::int64_t at, double unit) {
            std::normal_distribution<double> normal;
            for (std::int64_t c = 0; c < value("head_dim"); ++c) tensor.set(at, c, normal(random_) / unit);
        };
        for (std::size_t b = 0; b < sequences_.size(); ++b) {
            for (std::int64_t i = 0; i < sequences_[b].q_len; ++i) {
                for (std::int64_t h = 0; h < value("heads"); ++h)
                    draw_row(tensors_.at("q"), q_row(b, i, h), query_unit(h));
            }
            for (std::int64_t j = 0; j < sequences_[b].kv_len; ++j) {
                for (std::int64_t h = 0; h < value("kv_heads"); ++h) {
                    draw_row(keys(), kv_row(b, j, h), scale_of("k_scale", h));
                    draw_row(values(), kv_row(b, j, h), scale_of("v_scale", h));
                }
            }
        }
    }
    [[nodiscard]] HostTensor& keys() { return tensors_.at(decodes() ? "k_cache" : "k"); }
    [[nodiscard]] HostTensor& values() { return tensors_.at(decodes() ? "v_cache" : "v"); }
    [[nodiscard]] double query_unit(std::int64_t head) const {
        constexpr std::array units{1.0, 0x1p-6, 0x1p30, 0x1p60};
        return layout_.uneven_queries ? units[static_cast<std::size_t>(head) % units.size()] : 1.0;
    }
    [[nodiscard]] double scale_of(const char* name, std::int64_t head) const {
        return value("kv_dtype") != 0 ? tensors_.at(name).at(head, 0) : 1.0;
    }

    [[nodiscard]] std::array<Scalar, max_call_scalars> scalars() const {
        const std::int64_t row_elements = row_stride();
        std::map<std::string, Scalar> known{{"q_tokens", Scalar::of(q_tokens_)},
                                            {"q_rows", Scalar::of(q_tokens_)},
                                            {"least_queries", Scalar::of(layout_.least_queries)},
                                            {"kv_tokens", Scalar::of(kv_tokens_)},
                                            {"page_table_stride", Scalar::of(pages_each())},
                                            {"pool_pages", Scalar::of(std::max(pool_pages_, value("batch")))},
                                            {"scale", Scalar::of(scale_)},
                                            {"softcap", Scalar::of(softcap_)}};
        for (const char* name : {"batch", "q_len", "kv_len"}) known[name] = Scalar::of(value(name));
        const auto strides = [&](const std::string& name, const std::string& outer, std::int64_t tokens,
                                 std::int64_t heads) {
            const bool heads_first = layout_.heads_first && !packed();
            known[name + outer] = Scalar::of(tokens * heads * row_elements);
            known[name + "_token_stride"] = Scalar::of((heads_first ? 1 : heads) * row_elements);
            known[name + "_head_stride"] = Scalar::of((heads_first ? tokens : 1) * row_elements);
        };
        const std::int64_t queries = packed() ? q_tokens_ : value("q_len");
        std::int64_t keys_each = packs_keys() ? kv_tokens_ : value("kv_len");
        if (page_size() != 0) keys_each = page_size();
        for (const char* name : {"q", "out"}) strides(name, "_batch_stride", queries, value("heads"));
        for (const char* name : {"k", "v"}) strides(name, "_batch_stride", keys_each, value("kv_heads"));
        strides("cache", "_stride", keys_each, value("kv_heads"));
        std::array<Scalar, max_call_scalars> scalars{};
        for (std::size_t i = 0; const ScalarArgument& scalar : problem_.family->scalars(problem_))
            scalars[i++] = known.at(std::string(scalar.name));
        return scalars;
    }

    /// All rows of a tensor as numbers, one after the other.
    [[nodiscard]] std::vector<double> numbers(const HostTensor& tensor, std::int64_t row_count) const {
        std::vector<double> result;
        for (std::int64_t r = 0; r < row_count; ++r) {
            for (std::int64_t c = 0; c < value("head_dim"); ++c) result.push_back(tensor.at(r, c));
        }
        return result;
    }
    [[nodiscard]] std::int64_t rows_of(const HostTensor& tensor, Dtype dtype) const {
        return static_cast<std::int64_t>(tensor.bytes.size()) / (row_stride() * size_bytes(dtype));
    }
    void expect() {
        const Dtype kv_dtype = arguments_[index_of(decodes() ? "k_cache" : "k")].dtype;
        const HostTensor& q = tensors_.at("q");
        const std::vector<double> q_numbers = numbers(q, rows_of(q, arguments_[index_of("q")].dtype));
        const std::vector<double> k_numbers = numbers(keys(), rows_of(keys(), kv_dtype));
        const std::vector<double> v_numbers = numbers(values(), rows_of(values(), kv_dtype));
        for (std::size_t b = 0; b < sequences_.size(); ++b) {
            for (std::int64_t h = 0; h < value("heads"); ++h) {
                for (std::int64_t i = 0; i < sequences_[b].q_len; ++i) {
                    if (serves(sequences_[b])) {
                        expect_row(b, i, h, q_numbers, k_numbers, v_numbers);
                    } else {
                        rows_of_others_.push_back(q_row(b, i, h));
                    }
                }
            }
        }
    }
    /// Keys [first, second) that a query sees.
    [[nodiscard]] std::pair<std::int64_t, std::int64_t> visible(const Sequence& sequence,
                                                                std::int64_t i) const {
        const std::int64_t own = i + sequence.kv_len - sequence.q_len;
        const std::int64_t end = value("causal") != 0 ? std::min(own + 1, sequence.kv_len) : sequence.kv_len;
        const std::int64_t begin = value("window") != 0 ? own + 1 - value("window") : 0;
        return {std::max<std::int64_t>(begin, 0), end};
    }
    [[nodiscard]] double score(const double* query, const double* key, std::int64_t kv_head) const {
        const double product = std::inner_product(query, query + value("head_dim"), key, 0.0);
        const double scaled = product * scale_of("k_scale", kv_head) * double{scale_};
        return value("softcap") != 0 ? softcap_ * std::tanh(scaled / softcap_) : scaled;
    }
    void expect_row(std::size_t b, std::int64_t i, std::int64_t h, const std::vector<double>& q,
                    const std::vector<double>& k, const std::vector<double>& v) {
        const std::int64_t dim = value("head_dim");
        const std::int64_t kv_head = h / (value("heads") / value("kv_heads"));
        const auto [begin, end] = visible(sequences_[b], i);
        std::vector<double> scores;
        for (std::int64_t j = begin; j < end; ++j) {
            scores.push_back(
                score(q.data() + q_row(b, i, h) * dim, k.data() + kv_row(b, j, kv_head) * dim, kv_head));
        }
        double total = 0;
        for (const double one : scores) total += std::exp(one);
        if (value("sinks") != 0) total += std::exp(sink(h));
        ExpectedRow& out = out_.emplace_back(q_row(b, i, h), dim);
        for (std::int64_t j = begin; j < end; ++j) {
            const double weight = std::exp(scores[static_cast<std::size_t>(j - begin)]) / total;
            const double* row_values = v.data() + kv_row(b, j, kv_head) * dim;
            out.add(weight * scale_of("v_scale", kv_head), row_values);
        }
        lse_.emplace_back(lse_row(b, i, h), 1).numbers[0] = std::log(total);
    }

    struct ExpectedRow {
        ExpectedRow(std::int64_t at, std::int64_t columns)
            : row(at), numbers(static_cast<std::size_t>(columns), 0.0), sizes(numbers) {}
        void add(double weight, const double* addends) {
            for (std::size_t c = 0; c < numbers.size(); ++c) {
                numbers[c] += weight * addends[c];
                sizes[c] += std::abs(weight * addends[c]);
            }
        }
        std::int64_t row = 0;
        std::vector<double> numbers;
        std::vector<double> sizes;  ///< sums of absolute values
    };
    /// An element may be off by eight of the errors that the family allows on average, of what it is made of.
    [[nodiscard]] std::string fault_in(const char* name, const std::vector<HostTensor>& results,
                                       const std::vector<ExpectedRow>& expected) const {
        const std::size_t index = index_of(name);
        const double allowed = problem_.family->tolerance(problem_, static_cast<int>(index)).relative_l2;
        double difference = 0;
        double total = 0;
        for (const ExpectedRow& row : expected) {
            if (!results[index].padding_untouched(row.row)) return "wrote behind a row";
            for (std::size_t c = 0; c < row.numbers.size(); ++c) {
                const double want = row.numbers[c];
                const double got = results[index].at(row.row, static_cast<std::int64_t>(c));
                if (std::isinf(want) && got == want) continue;
                const double off = std::abs(got - want);
                const double most = std::max(std::abs(want), row.sizes[c]);
                if (!(off <= 8 * allowed * (name == std::string("lse") ? 1 + most : most))) {
                    return std::string(name) + " row " + std::to_string(row.row) + " column " +
                           std::to_string(c) + ": " + std::to_string(got) + " for " + std::to_string(want);
                }
                difference += off * off;
                total += want * want;
            }
        }
        const double error = std::sqrt(difference / std::max(total, 1e-30));
        return error <= allowed ? "" : std::string(name) + " error " + std::to_string(error);
    }

    static constexpr float scale_ = 0.11F;
    static constexpr float softcap_ = 1.5F;
    Problem problem_;
    AttentionLayout layout_;
    std::mt19937_64 random_;
    std::vector<Argument> arguments_ = problem_.family->arguments(problem_);
    std::vector<Sequence> sequences_;
    std::int64_t q_tokens_ = 0;  ///< tokens of all sequences
    std::int64_t kv_tokens_ = 0;
    std::int64_t pool_pages_ = 0;
    std::map<std::string, HostTensor, std::less<>> tensors_;
    std::vector<ExpectedRow> out_;
    std::vector<ExpectedRow> lse_;
    std::vector<std::int64_t> rows_of_others_;  ///< of out: of sequences that the kernel leaves alone
};

}  // namespace hone::test
