// Attention of an 8B Llama in bf16: a prompt of 512 tokens, then one more token of 4 sequences over a KV
// cache, whose lengths are on the device. One operator serves both; some queries' results are checked.
//   build/release/examples/attention
// Exit codes: example.h.
#include <algorithm>

#include "example.h"

namespace {

constexpr std::size_t heads = 32;
constexpr std::size_t kv_heads = 8;
constexpr std::size_t head_dim = 128;
constexpr std::size_t capacity = 512;  // tokens that a sequence has room for
using Values = std::vector<examples::Bf16>;

/// The result of one query [head_dim], which sees `seen` keys [tokens, kv_heads, head_dim].
void compare(examples::Comparison& results, const examples::Bf16* y, const examples::Bf16* q,
             const examples::Bf16* k, const examples::Bf16* v, std::size_t seen) {
    std::vector<double> weights(seen);
    double sum = 0;
    for (std::size_t i = 0; i < seen; ++i) {
        weights[i] = std::exp(examples::dot(q, k + i * kv_heads * head_dim, head_dim) / std::sqrt(head_dim));
        sum += weights[i];
    }
    for (std::size_t d = 0; d < head_dim; ++d) {
        double wanted = 0;
        for (std::size_t i = 0; i < seen; ++i)
            wanted += weights[i] / sum * static_cast<double>(v[i * kv_heads * head_dim + d]);
        results.add(y[d], wanted);
    }
}

/// One call; a few of its queries are checked. `lengths`: keys of each sequence.
void attend(hone::Runtime& runtime, examples::Comparison& results, const std::vector<std::int32_t>& lengths,
            std::size_t q_len) {
    const std::size_t batch = lengths.size();
    const hone::Attention operation{.heads = heads,
                                    .kv_heads = kv_heads,
                                    .head_dim = head_dim,
                                    .max_batch = 4,
                                    .max_q_len = capacity,
                                    .max_kv_len = capacity,
                                    .lengths = true};
    const hone::AttentionKernel attention = runtime.prepare(operation);
    const hone::AttentionSizes sizes{.batch = static_cast<std::int64_t>(batch),
                                     .q_len = static_cast<std::int64_t>(q_len),
                                     .kv_len = capacity};

    const Values q = examples::random_values(batch * q_len * heads * head_dim, 1);
    const Values k = examples::random_values(batch * capacity * kv_heads * head_dim, 2);
    const Values v = examples::random_values(batch * capacity * kv_heads * head_dim, 3);
    const examples::DeviceArray device_q(q);
    const examples::DeviceArray device_k(k);
    const examples::DeviceArray device_v(v);
    const examples::DeviceArray device_lengths(lengths);
    const examples::DeviceArray<examples::Bf16> out(q.size());
    const auto workspace = examples::workspace(attention.workspace_bytes(sizes));
    const hone::AttentionArgs args{.q = device_q.get(),
                                   .k = device_k.get(),
                                   .v = device_v.get(),
                                   .out = out.get(),
                                   .kv_lengths = device_lengths.get(),
                                   .workspace = workspace.get()};
    examples::must_run(runtime, attention.run(nullptr, args, sizes), attention.refusal(args, sizes));

    const Values y = out.to_host();
    for (std::size_t b = 0; b < batch; ++b) {
        const std::size_t length = static_cast<std::size_t>(lengths[b]);
        for (std::size_t i = q_len - 1; i < q_len; i -= std::max<std::size_t>(q_len / 4, 1)) {
            const std::size_t head = (7 * i + 5) % heads;
            const std::size_t at = ((b * q_len + i) * heads + head) * head_dim;
            const std::size_t keys = (b * capacity * kv_heads + head * kv_heads / heads) * head_dim;
            compare(results, &y[at], &q[at], &k[keys], &v[keys], length - q_len + i + 1);
        }
    }
    examples::print_kernel(runtime.explain(operation, sizes));
}

int example() {
    hone::Runtime runtime;
    examples::Comparison results;
    attend(runtime, results, {capacity}, capacity);
    attend(runtime, results, {300, 17, 512, 1}, 1);
    return examples::conclude(runtime, results, 1e-2);
}

}  // namespace

int main() { return examples::run(example); }
