// A layer's attention as an engine runs it, on the GPU: the prompt's keys and values into the cache, its
// attention, and then token after token from a captured graph; against double arithmetic over all tokens, and
// beside one attention over all of them.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "hone/hone.h"
#include "hone/rope_table.h"
#include "tests/runtime/device_indices.h"
#include "tests/runtime/gpu_run.h"
#include "tests/runtime/paged_attention_call.h"

using namespace hone;
using namespace hone::test;

namespace {

constexpr std::int64_t heads = 8;
constexpr std::int64_t kv_heads = 2;
constexpr std::int64_t head_dim = 64;
constexpr std::int64_t prompt = 1024;
constexpr std::int64_t steps = 100;
constexpr std::int64_t tokens = prompt + steps;
constexpr std::int64_t token_heads = heads + 2 * kv_heads;  // of q, k, v, which lie side by side
constexpr std::int64_t token_elements = token_heads * head_dim;
constexpr std::int64_t out_elements = heads * head_dim;
constexpr std::int64_t bytes_each = 2;
constexpr double limit = 4e-3;  // relative, of bf16

using Bytes = DeviceBytes;

Bytes poisoned(std::int64_t elements) {
    return on_device(
        std::vector<std::byte>(static_cast<std::size_t>(elements * bytes_each), std::byte{0xff}));
}
std::byte* at(const Bytes& buffer, std::int64_t element) { return buffer.data() + element * bytes_each; }

/// Rotated as the model does it, and rounded: what q and the cache hold.
std::vector<double> turned(const HostTensor& qkv, const std::vector<float>& table) {
    std::vector<double> result;
    constexpr std::int64_t half = head_dim / 2;
    for (std::int64_t t = 0; t < tokens; ++t) {
        for (std::int64_t h = 0; h < token_heads; ++h) {
            for (std::int64_t c = 0; c < head_dim; ++c) {
                const double x = qkv.at(t * token_heads + h, c);
                const double partner = qkv.at(t * token_heads + h, (c + half) % head_dim);
                const auto angle = static_cast<std::size_t>(t * half + c % half);
                const double cos = double{table[angle]};
                const double sin = double{table[angle + static_cast<std::size_t>(tokens * half)]};
                const bool turns = h < heads + kv_heads;
                const double y = turns ? x * cos + (c < half ? -partner : partner) * sin : x;
                result.push_back(round_to(Dtype::bf16, y));
            }
        }
    }
    return result;
}

/// One head's row of the result, of token `t` and all before it.
std::vector<double> expected_row(const std::vector<double>& qkv, std::int64_t t, std::int64_t head) {
    const auto row = [&](std::int64_t token, std::int64_t of) {
        return qkv.data() + token * token_elements + of * head_dim;
    };
    const std::int64_t kv_head = head / (heads / kv_heads);
    std::vector<double> sums(head_dim, 0.0);
    double total = 0;
    for (std::int64_t j = 0; j <= t; ++j) {
        const double* key = row(j, heads + kv_head);
        const double* value = row(j, heads + kv_heads + kv_head);
        const double score = std::inner_product(key, key + head_dim, row(t, head), 0.0) / std::sqrt(head_dim);
        const double weight = std::exp(score);
        total += weight;
        for (std::int64_t c = 0; c < head_dim; ++c) sums[static_cast<std::size_t>(c)] += weight * value[c];
    }
    for (double& sum : sums) sum /= total;
    return sums;
}

/// Relative error over the rows of tokens from `first` on, `stride` apart.
double error_of(const Bytes& out, const std::vector<double>& qkv, std::int64_t first, std::int64_t last,
                std::int64_t stride) {
    HostTensor results(Dtype::bf16, tokens * heads, head_dim, head_dim);
    results.bytes = runtime::download(*Bench::get().driver, out.span());
    double difference = 0;
    double total = 0;
    for (std::int64_t t = first; t < last; t += stride) {
        for (std::int64_t h = 0; h < heads; ++h) {
            const std::vector<double> row = expected_row(qkv, t, h);
            for (std::int64_t c = 0; c < head_dim; ++c) {
                const double want = row[static_cast<std::size_t>(c)];
                difference += std::pow(results.at(t * heads + h, c) - want, 2);
                total += want * want;
            }
        }
    }
    return std::sqrt(difference / total);
}

class Layer {
  public:
    explicit Layer(std::int64_t page_size) : page_size_(page_size) {
        std::normal_distribution<double> normal;
        for (std::int64_t r = 0; r < tokens * token_heads; ++r) {
            for (std::int64_t c = 0; c < head_dim; ++c) host_.set(r, c, normal(random_));
        }
        qkv_ = on_device(host_.bytes);
        runtime::upload(driver_, table_.span(), host_table_);
    }

    [[nodiscard]] std::vector<double> numbers() const { return turned(host_, host_table_); }

    /// Appends tokens of the prompt, and leaves their rotated queries in `q`.
    void append(const RopeKvAppendKernel& rope, const void* qkv, std::int64_t count, const Bytes& q,
                const std::int32_t* lengths) const {
        const std::byte* const rows = static_cast<const std::byte*>(qkv);
        const AttentionStrides strides{.token = token_elements};
        const RopeKvAppendArgs args{.q = rows,
                                    .k = rows + heads * head_dim * bytes_each,
                                    .v = rows + (heads + kv_heads) * head_dim * bytes_each,
                                    .out = q.data(),
                                    .k_cache = k_cache_.data(),
                                    .v_cache = v_cache_.data(),
                                    .cos = table_.data(),
                                    .sin = table_.data() + tokens * head_dim / 2,
                                    .kv_lengths = lengths,
                                    .page_table = pages_.data(),
                                    .q_strides = strides,
                                    .k_strides = strides,
                                    .v_strides = strides,
                                    .q_len = count,
                                    .kv_len = tokens,
                                    .pool_pages = page_size_ == 0 ? 0 : pool_pages(),
                                    .table_rows = tokens};
        REQUIRE(rope.run(stream_.get(), args, count) == Status::ok);
    }

    /// All tokens' attention in one call, of a contiguous cache.
    Bytes attend_to_all(const AttentionKernel& attention, const Bytes& q, std::int64_t count) const {
        Bytes out = poisoned(tokens * out_elements);
        const DeviceIndices starts(driver_, {0, static_cast<std::int32_t>(count)});
        const AttentionSizes sizes{.batch = 1, .q_len = count, .kv_len = count};
        const Bytes workspace(driver_, static_cast<std::size_t>(attention.workspace_bytes(sizes)));
        const AttentionArgs args{.q = q.data(),
                                 .k = k_cache_.data(),
                                 .v = v_cache_.data(),
                                 .out = out.data(),
                                 .q_starts = starts.data(),
                                 .kv_starts = starts.data(),
                                 .workspace = workspace.data(),
                                 .q_tokens = count,
                                 .kv_tokens = count};
        REQUIRE(attention.run(stream_.get(), args, sizes) == Status::ok);
        wait();
        return out;
    }

    /// What a replay of a graph of packed queries works on.
    struct Turn {
        std::vector<std::int32_t> starts;
        std::vector<std::int32_t> lengths;
        std::int64_t first = 0;  ///< token whose query is the first
    };
    /// One graph of three packed sequences, which share the pages; replayed for each turn, each time from the
    /// queries of other tokens. Returns the results of all tokens, by their place.
    Bytes attend_in_turns(const AttentionKernel& attention, const Bytes& q, const std::vector<Turn>& turns,
                          std::int64_t most) const {
        const Bytes chunk = poisoned(most * out_elements);
        const Bytes out = poisoned(most * out_elements);
        const AttentionSizes sizes{.batch = 3, .q_len = most, .kv_len = tokens};
        const PagedAttentionCall call(attention, sizes, {{0, 0, 0, 0}, {0, 0, 0}, repeated_pages(3)},
                                      pool_pages());
        const AttentionArgs args = call.args(chunk, k_cache_, v_cache_, out, most);
        const runtime::GraphExec graph = runtime::capture_graph(driver_, stream_.get(), [&] {
            REQUIRE(attention.run(stream_.get(), args, sizes) == Status::ok);
        });
        Bytes all = poisoned(tokens * out_elements);
        for (const Turn& turn : turns) {
            const DeviceIndices next_starts(driver_, turn.starts);
            const DeviceIndices next_lengths(driver_, turn.lengths);
            copy(call.q_starts.data(), next_starts.data(), 4 * sizeof(std::int32_t));
            copy(call.kv_lengths.data(), next_lengths.data(), 3 * sizeof(std::int32_t));
            const std::int64_t bytes = turn.starts.back() * out_elements * bytes_each;
            copy(chunk.data(), at(q, turn.first * out_elements), bytes);
            REQUIRE(driver_.cuGraphLaunch(graph.get(), stream_.get()) == CUDA_SUCCESS);
            copy(at(all, turn.first * out_elements), out.data(), bytes);
            wait();
        }
        return all;
    }

    /// One graph, replayed for each token from `prompt` on.
    Bytes step(const RopeKvAppendKernel& rope, const AttentionKernel& attention) const {
        const Bytes out = poisoned(out_elements);
        const Bytes q = poisoned(out_elements);
        const Bytes token = poisoned(token_elements);
        const DeviceIndices length(driver_, {0});
        const AttentionSizes sizes{.batch = 1, .q_len = 1, .kv_len = tokens};
        const Bytes workspace(driver_, static_cast<std::size_t>(attention.workspace_bytes(sizes)));
        const AttentionArgs args{.q = q.data(),
                                 .k = k_cache_.data(),
                                 .v = v_cache_.data(),
                                 .out = out.data(),
                                 .kv_lengths = length.data(),
                                 .page_table = pages_.data(),
                                 .workspace = workspace.data(),
                                 .pool_pages = pool_pages()};
        const runtime::GraphExec graph = runtime::capture_graph(driver_, stream_.get(), [&] {
            append(rope, token.data(), 1, q, length.data());
            REQUIRE(attention.run(stream_.get(), args, sizes) == Status::ok);
        });
        Bytes all = poisoned(tokens * out_elements);
        for (std::int64_t t = prompt; t < tokens; ++t) {
            copy(length.data(), lengths_.data() + t, sizeof(std::int32_t));
            copy(token.data(), at(qkv_, t * token_elements), token_elements * bytes_each);
            REQUIRE(driver_.cuGraphLaunch(graph.get(), stream_.get()) == CUDA_SUCCESS);
            copy(at(all, t * out_elements), out.data(), out_elements * bytes_each);
        }
        wait();
        return all;
    }

    [[nodiscard]] const Bytes& qkv() const { return qkv_; }
    /// On the device: the length t + 1 of a sequence whose last token is `t`.
    [[nodiscard]] const std::int32_t* length_at(std::int64_t t) const { return lengths_.data() + t; }

  private:
    [[nodiscard]] std::int64_t pool_pages() const { return page_size_ == 0 ? 1 : tokens / page_size_ + 4; }
    [[nodiscard]] std::vector<std::int32_t> dealt_pages() {
        std::vector<std::int32_t> pages(static_cast<std::size_t>(pool_pages()));
        std::iota(pages.begin(), pages.end(), 0);
        std::shuffle(pages.begin(), pages.end(), random_);
        return pages;
    }
    /// The one sequence's pages as a table of several rows.
    [[nodiscard]] std::vector<std::int32_t> repeated_pages(int rows) const {
        std::vector<std::int32_t> all;
        for (int i = 0; i < rows; ++i) all.insert(all.end(), host_pages_.begin(), host_pages_.end());
        return all;
    }
    [[nodiscard]] static std::vector<std::int32_t> all_lengths() {
        std::vector<std::int32_t> lengths(static_cast<std::size_t>(tokens));
        std::iota(lengths.begin(), lengths.end(), 1);
        return lengths;
    }
    void copy(const void* to, const void* from, std::int64_t bytes) const {
        REQUIRE(driver_.cuMemcpyDtoDAsync(reinterpret_cast<CUdeviceptr>(to),
                                          reinterpret_cast<CUdeviceptr>(from),
                                          static_cast<std::size_t>(bytes), stream_.get()) == CUDA_SUCCESS);
    }
    void wait() const { REQUIRE(driver_.cuStreamSynchronize(stream_.get()) == CUDA_SUCCESS); }

    const runtime::Driver& driver_ = *Bench::get().driver;
    runtime::Stream stream_ = runtime::create_stream(driver_);
    std::int64_t page_size_;
    std::mt19937_64 random_{7};
    HostTensor host_{Dtype::bf16, tokens* token_heads, head_dim, head_dim};
    std::vector<float> host_table_ = rope_table(head_dim, 500000, tokens);
    Bytes qkv_;
    Bytes k_cache_ = poisoned((tokens + 4 * page_size_) * kv_heads * head_dim);
    Bytes v_cache_ = poisoned((tokens + 4 * page_size_) * kv_heads * head_dim);
    runtime::DeviceBuffer<float> table_{driver_, host_table_.size()};
    std::vector<std::int32_t> host_pages_ = dealt_pages();
    DeviceIndices<> pages_{driver_, host_pages_};
    DeviceIndices<> lengths_{driver_, all_lengths()};
};

RopeKvAppend described_append(std::int64_t max_tokens, std::int64_t page_size) {
    return {.heads = heads,
            .kv_heads = kv_heads,
            .head_dim = head_dim,
            .max_tokens = max_tokens,
            .page_size = page_size};
}

Attention described_attention(std::int64_t max_q_len) {
    return {.heads = heads,
            .kv_heads = kv_heads,
            .head_dim = head_dim,
            .max_batch = 1,
            .max_q_len = max_q_len,
            .max_kv_len = tokens};
}

}  // namespace

TEST_CASE("a prompt and 100 tokens through the cache are as exact as one attention over all of them") {
    Runtime engine({.use_cache = false});
    Attention whole = described_attention(tokens);
    whole.packed = true;
    const AttentionKernel all_at_once = engine.prepare(whole);
    for (const std::int64_t page_size : {0, 16}) {
        CAPTURE(page_size);
        Attention single = described_attention(1);
        single.lengths = true;
        single.page_size = page_size;
        const AttentionKernel one_by_one = engine.prepare(single);
        const RopeKvAppendKernel rope = engine.prepare(described_append(tokens, page_size));
        const Layer layer(page_size);
        const std::vector<double> numbers = layer.numbers();
        const Bytes q = poisoned(tokens * out_elements);
        layer.append(rope, layer.qkv().data(), prompt, q, layer.length_at(prompt - 1));
        if (page_size == 0) {
            const Bytes prefilled = layer.attend_to_all(all_at_once, q, prompt);
            CHECK(error_of(prefilled, numbers, 0, prompt, 16) <= limit);
        }
        CHECK(error_of(layer.step(rope, one_by_one), numbers, prompt, tokens, 1) <= limit);
        if (page_size == 0) {
            layer.append(rope, layer.qkv().data(), tokens, q, layer.length_at(tokens - 1));
            const Bytes whole_out = layer.attend_to_all(all_at_once, q, tokens);
            CHECK(error_of(whole_out, numbers, prompt, tokens, 1) <= limit);
        }
    }
}

TEST_CASE("chunks of a prompt over pages, replayed from one graph, are as exact as the prompt at once") {
    Runtime engine({.use_cache = false});
    for (const std::int64_t page_size : {1, 16, 64, 256}) {
        CAPTURE(page_size);
        Attention chunks = described_attention(300);
        chunks.max_batch = 3;
        chunks.packed = true;
        chunks.page_size = page_size;
        const AttentionKernel attention = engine.prepare(chunks);
        const RopeKvAppendKernel rope = engine.prepare(described_append(tokens, page_size));
        const Layer layer(page_size);
        const std::vector<double> numbers = layer.numbers();
        const Bytes q = poisoned(tokens * out_elements);
        layer.append(rope, layer.qkv().data(), tokens, q, layer.length_at(tokens - 1));
        // Each chunk is two sequences of the same pages, the second one behind a longer prefix; one has a
        // single query, one none.
        const Bytes out = layer.attend_in_turns(attention, q,
                                                {{{0, 200, 300, 300}, {200, 300, 0}, 0},
                                                 {{0, 1, 1, 300}, {301, 0, 600}, 300},
                                                 {{0, 0, 300, 300}, {0, 900, 1000}, 600},
                                                 {{0, 224, 224, 224}, {1124, 0, 0}, 900}},
                                                300);
        CHECK(error_of(out, numbers, 0, tokens, 7) <= limit);
    }
}
