// One new token of each of 16 sequences of an 8B Llama in bf16: queries and keys turn, keys and values go to
// the KV cache, in one launch. Some of all three are checked.
//   build/release/examples/rope_kv_append
// Exit codes: example.h.
#include "example.h"

namespace {

constexpr std::size_t tokens = 16;  // one of each sequence
constexpr std::size_t heads = 32;
constexpr std::size_t kv_heads = 8;
constexpr std::size_t head_dim = 128;
constexpr std::size_t capacity = 512;
constexpr std::size_t half = head_dim / 2;
constexpr hone::RopeKvAppend operation{
    .heads = heads, .kv_heads = kv_heads, .head_dim = head_dim, .max_tokens = 64};
using Values = std::vector<examples::Bf16>;

std::int32_t length_of(std::size_t sequence) { return static_cast<std::int32_t>(1 + sequence * 31); }

/// One head at a position: elements i and i + half turn together, by the angle position * 500000^(-i / half).
void compare_turned(examples::Comparison& results, const examples::Bf16* y, const examples::Bf16* x,
                    double position) {
    for (std::size_t i = 0; i < half; ++i) {
        const double angle = position * std::pow(500000.0, -static_cast<double>(i) / half);
        const double first = static_cast<double>(x[i]);
        const double second = static_cast<double>(x[i + half]);
        results.add(y[i], first * std::cos(angle) - second * std::sin(angle));
        results.add(y[i + half], second * std::cos(angle) + first * std::sin(angle));
    }
}

int example() {
    hone::Runtime runtime;
    const hone::RopeKvAppendKernel append = runtime.prepare(operation);

    const Values q = examples::random_values(tokens * heads * head_dim, 1);
    const Values k = examples::random_values(tokens * kv_heads * head_dim, 2);
    const Values v = examples::random_values(tokens * kv_heads * head_dim, 3);
    std::vector<std::int32_t> lengths(tokens);
    for (std::size_t i = 0; i < tokens; ++i) lengths[i] = length_of(i);
    const examples::DeviceArray device_q(q);
    const examples::DeviceArray device_k(k);
    const examples::DeviceArray device_v(v);
    const examples::DeviceArray device_lengths(lengths);
    const examples::DeviceArray table(hone::rope_table(head_dim, 500000, capacity));  // cos, then sin
    const examples::DeviceArray<examples::Bf16> turned(q.size());
    const examples::DeviceArray k_cache(Values(tokens * capacity * kv_heads * head_dim));
    const examples::DeviceArray v_cache(Values(tokens * capacity * kv_heads * head_dim));

    const hone::RopeKvAppendArgs args{.q = device_q.get(),
                                      .k = device_k.get(),
                                      .v = device_v.get(),
                                      .out = turned.get(),
                                      .k_cache = k_cache.get(),
                                      .v_cache = v_cache.get(),
                                      .cos = table.get(),
                                      .sin = table.get() + capacity * half,
                                      .kv_lengths = device_lengths.get(),
                                      .kv_len = capacity,
                                      .table_rows = capacity};
    examples::must_run(runtime, append.run(nullptr, args, tokens), append.refusal(args, tokens));

    const Values out = turned.to_host();
    const Values keys = k_cache.to_host();
    const Values values = v_cache.to_host();
    examples::Comparison results;
    for (std::size_t i = 0; i < tokens; ++i) {
        const std::size_t place = static_cast<std::size_t>(length_of(i) - 1);
        const std::size_t head = i % kv_heads;
        const std::size_t from = (i * kv_heads + head) * head_dim;
        const std::size_t to = ((i * capacity + place) * kv_heads + head) * head_dim;
        const std::size_t query = (i * heads + head) * head_dim;
        compare_turned(results, &out[query], &q[query], static_cast<double>(place));
        compare_turned(results, &keys[to], &k[from], static_cast<double>(place));
        for (std::size_t d = 0; d < head_dim; ++d)
            results.add(values[to + d], static_cast<double>(v[from + d]));
    }
    examples::print_kernel(runtime.explain(operation, tokens));
    return examples::conclude(runtime, results, 4e-3);
}

}  // namespace

int main() { return examples::run(example); }
