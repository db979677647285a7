// Rows of Llama 2's table for 512 tokens by int32 ids on the device, in bf16; every element has to be the
// very one of the table.
//   build/release/examples/embedding
// Exit codes: example.h.
#include "example.h"

namespace {

constexpr std::size_t tokens = 512;
constexpr std::size_t hidden = 4096;
constexpr std::size_t vocabulary = 32000;
constexpr hone::Embedding operation{.hidden = hidden, .max_tokens = 512};

int example() {
    hone::Runtime runtime;
    const hone::EmbeddingKernel embedding = runtime.prepare(operation);

    const auto table = examples::random_values(vocabulary * hidden, 1);
    std::vector<std::int32_t> ids(tokens);
    for (std::size_t i = 0; i < tokens; ++i) ids[i] = static_cast<std::int32_t>(i * 7919 % vocabulary);
    const examples::DeviceArray device_table(table);
    const examples::DeviceArray device_ids(ids);
    const examples::DeviceArray<examples::Bf16> out(tokens * hidden);

    const hone::EmbeddingArgs args{
        .ids = device_ids.get(), .table = device_table.get(), .out = out.get(), .vocabulary = vocabulary};
    examples::must_run(runtime, embedding.run(nullptr, args, tokens), embedding.refusal(args, tokens));

    const auto y = out.to_host();
    examples::Comparison results;
    for (std::size_t i = 0; i < y.size(); ++i) {
        const std::size_t row = static_cast<std::size_t>(ids[i / hidden]);
        results.add(y[i], static_cast<double>(table[row * hidden + i % hidden]));
    }
    examples::print_kernel(runtime.explain(operation, tokens));
    return examples::conclude(runtime, results, 0);
}

}  // namespace

int main() { return examples::run(example); }
