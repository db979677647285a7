// One new token of each of 16 sequences of an 8B Llama in bf16, whose caches are pages of 16 tokens:
// rotation, append and attention in one launch. Some heads of the result and of the cache are checked.
//   build/release/examples/attention_append
// Exit codes: example.h.
#include <algorithm>

#include "example.h"

namespace {

constexpr std::size_t sequences = 16;
constexpr std::size_t heads = 32;
constexpr std::size_t kv_heads = 8;
constexpr std::size_t head_dim = 128;
constexpr std::size_t capacity = 512;
constexpr std::size_t page_size = 16;
constexpr std::size_t pages = capacity / page_size;  // of a sequence
constexpr std::size_t half = head_dim / 2;
constexpr std::size_t row = (heads + 2 * kv_heads) * head_dim;  // queries, keys and values of a token
constexpr hone::AttentionAppend operation{.heads = heads,
                                          .kv_heads = kv_heads,
                                          .head_dim = head_dim,
                                          .max_batch = sequences,
                                          .max_kv_len = capacity,
                                          .page_size = page_size};
using Values = std::vector<examples::Bf16>;

std::size_t length_of(std::size_t sequence) { return 1 + sequence * 31; }
/// Pages of sequences take turns.
std::size_t page_of(std::size_t sequence, std::size_t page) { return page * sequences + sequence; }
std::size_t place_of(std::size_t sequence, std::size_t token, std::size_t kv_head) {
    return ((page_of(sequence, token / page_size) * page_size + token % page_size) * kv_heads + kv_head) *
           head_dim;
}

/// One head at a position: elements i and i + half turn together, by the angle position * 500000^(-i / half).
std::vector<double> turned(const examples::Bf16* x, std::size_t position) {
    std::vector<double> y(head_dim);
    for (std::size_t i = 0; i < half; ++i) {
        const double angle =
            static_cast<double>(position) * std::pow(500000.0, -static_cast<double>(i) / half);
        const double first = static_cast<double>(x[i]);
        const double second = static_cast<double>(x[i + half]);
        y[i] = first * std::cos(angle) - second * std::sin(angle);
        y[i + half] = second * std::cos(angle) + first * std::sin(angle);
    }
    return y;
}

/// Softmax over the keys of a sequence, of which the cache has all by now.
void compare_attention(examples::Comparison& results, const examples::Bf16* out, const std::vector<double>& q,
                       const Values& keys, const Values& values, std::size_t sequence, std::size_t kv_head) {
    std::vector<double> sums(head_dim);
    double total = 0;
    for (std::size_t token = 0; token < length_of(sequence); ++token) {
        const std::size_t at = place_of(sequence, token, kv_head);
        double score = 0;
        for (std::size_t d = 0; d < head_dim; ++d) score += q[d] * static_cast<double>(keys[at + d]);
        const double weight = std::exp(score / std::sqrt(static_cast<double>(head_dim)));
        total += weight;
        for (std::size_t d = 0; d < head_dim; ++d) sums[d] += weight * static_cast<double>(values[at + d]);
    }
    for (std::size_t d = 0; d < head_dim; ++d) results.add(out[d], sums[d] / total);
}

int example() {
    hone::Runtime runtime;
    const hone::AttentionAppendKernel attention = runtime.prepare(operation);

    const Values qkv = examples::random_values(sequences * row, 1);
    const std::size_t cache_size = sequences * pages * page_size * kv_heads * head_dim;
    std::vector<std::int32_t> lengths(sequences);
    std::vector<std::int32_t> table(sequences * pages);
    for (std::size_t i = 0; i < sequences; ++i) {
        lengths[i] = static_cast<std::int32_t>(length_of(i));
        for (std::size_t page = 0; page < pages; ++page)
            table[i * pages + page] = static_cast<std::int32_t>(page_of(i, page));
    }
    const examples::DeviceArray device_qkv(qkv);
    const examples::DeviceArray device_lengths(lengths);
    const examples::DeviceArray device_table(table);
    const examples::DeviceArray angles(hone::rope_table(head_dim, 500000, capacity));  // cos, then sin
    const examples::DeviceArray<examples::Bf16> out(sequences * heads * head_dim);
    const examples::DeviceArray k_cache(examples::random_values(cache_size, 2));
    const examples::DeviceArray v_cache(examples::random_values(cache_size, 3));
    const auto workspace = examples::workspace(attention.workspace_bytes({sequences, capacity}));

    constexpr hone::AttentionStrides strides{.token = row};
    const hone::AttentionAppendArgs args{.q = device_qkv.get(),
                                         .k = device_qkv.get() + heads * head_dim,
                                         .v = device_qkv.get() + (heads + kv_heads) * head_dim,
                                         .out = out.get(),
                                         .k_cache = k_cache.get(),
                                         .v_cache = v_cache.get(),
                                         .cos = angles.get(),
                                         .sin = angles.get() + capacity * half,
                                         .kv_lengths = device_lengths.get(),
                                         .page_table = device_table.get(),
                                         .workspace = workspace.get(),
                                         .q_strides = strides,
                                         .k_strides = strides,
                                         .v_strides = strides,
                                         .pool_pages = sequences * pages,
                                         .table_rows = capacity};
    constexpr hone::AttentionAppendSizes sizes{.batch = sequences, .kv_len = capacity};
    examples::must_run(runtime, attention.run(nullptr, args, sizes), attention.refusal(args, sizes));

    const Values found = out.to_host();
    const Values keys = k_cache.to_host();
    const Values values = v_cache.to_host();
    examples::Comparison results;
    for (std::size_t i = 0; i < sequences; ++i) {
        const std::size_t position = length_of(i) - 1;
        const std::size_t kv_head = i % kv_heads;
        const std::size_t head = kv_head * (heads / kv_heads) + i % (heads / kv_heads);
        const examples::Bf16* const token = &qkv[i * row];
        const std::vector<double> key = turned(token + (heads + kv_head) * head_dim, position);
        const examples::Bf16* const value = token + (heads + kv_heads + kv_head) * head_dim;
        for (std::size_t d = 0; d < head_dim; ++d) {
            results.add(keys[place_of(i, position, kv_head) + d], key[d]);
            results.add(values[place_of(i, position, kv_head) + d], static_cast<double>(value[d]));
        }
        compare_attention(results, &found[(i * heads + head) * head_dim],
                          turned(token + head * head_dim, position), keys, values, i, kv_head);
    }
    examples::print_kernel(runtime.explain(operation, sizes));
    return examples::conclude(runtime, results, 1e-2);
}

}  // namespace

int main() { return examples::run(example); }
