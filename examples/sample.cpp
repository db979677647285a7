// Tokens of 16 rows of Llama 3's logits in fp32: the first 8 rows are greedy, and have to take the likeliest
// token; the others draw one of the 50 likeliest. The log-probabilities of all are checked.
//   build/release/examples/sample
// Exit codes: example.h.
#include <algorithm>

#include "example.h"

namespace {

constexpr std::size_t rows = 16;
constexpr std::size_t greedy_rows = 8;
constexpr std::size_t vocabulary = 128256;
constexpr hone::Sample operation{.vocabulary = vocabulary,
                                 .max_rows = 64,
                                 .dtype = hone::Dtype::fp32,
                                 .filters = true,
                                 .log_probability = true};

/// Whether the token is one of the row's `most` likeliest.
bool may_be_chosen(const float* logits, std::int32_t token, std::ptrdiff_t most) {
    if (token < 0 || token >= static_cast<std::int32_t>(vocabulary)) return false;
    const auto likelier = [&](float logit) { return logit > logits[token]; };
    return std::count_if(logits, logits + vocabulary, likelier) < most;
}

double log_probability_of(const float* logits, std::int32_t token) {
    double sum = 0;
    for (std::size_t i = 0; i < vocabulary; ++i) sum += std::exp(double{logits[i]});
    return double{logits[token]} - std::log(sum);
}

int example() {
    hone::Runtime runtime;
    const hone::SampleKernel sample = runtime.prepare(operation);

    const auto logits = examples::random_values<float>(rows * vocabulary, 1, 4);
    std::vector<float> temperature(rows, 0.8F);
    std::fill_n(temperature.begin(), greedy_rows, 0.0F);
    const examples::DeviceArray device_logits(logits);
    const examples::DeviceArray device_temperature(temperature);
    const examples::DeviceArray top_k(std::vector<std::int32_t>(rows, 50));
    const examples::DeviceArray top_p(std::vector<float>(rows, 1));
    const examples::DeviceArray min_p(std::vector<float>(rows, 0));
    const examples::DeviceArray seed(std::vector<std::int64_t>(rows, 42));
    const examples::DeviceArray counter(std::vector<std::int64_t>(rows, 1));
    const examples::DeviceArray out(std::vector<std::int32_t>(rows, -1));
    const examples::DeviceArray<float> log_probability(rows);

    const hone::SampleArgs args{.logits = device_logits.get(),
                                .temperature = device_temperature.get(),
                                .top_k = top_k.get(),
                                .top_p = top_p.get(),
                                .min_p = min_p.get(),
                                .seed = seed.get(),
                                .counter = counter.get(),
                                .out = out.get(),
                                .log_probability = log_probability.get()};
    examples::must_run(runtime, sample.run(nullptr, args, rows), sample.refusal(args, rows));

    examples::print_kernel(runtime.explain(operation, rows));
    const auto tokens = out.to_host();
    const auto found = log_probability.to_host();
    examples::Comparison results;
    for (std::size_t row = 0; row < rows; ++row) {
        const float* mine = &logits[row * vocabulary];
        if (!may_be_chosen(mine, tokens[row], row < greedy_rows ? 1 : 50)) {
            std::printf("row %zu: token %d may not be chosen: WRONG\n", row, tokens[row]);
            return 4;
        }
        results.add(found[row], log_probability_of(mine, tokens[row]));
    }
    return examples::conclude(runtime, results, 1e-5);
}

}  // namespace

int main() { return examples::run(example); }
