#include "decoder/forward/token_chances.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <numeric>
#include <system_error>
#include <thread>
#include <utility>

#include "decoder/forward/log_softmax.h"
#include "runtime/quantize/small_floats.h"

namespace hone::decoder {
namespace {

/// A row takes half a millisecond: fewer are not worth a thread's start.
constexpr std::size_t rows_a_thread = 4;
constexpr std::size_t most_threads = 16;

constexpr std::size_t numbers_of_16_bits = 1U << 16;
constexpr unsigned sign = 0x8000;

/// Places of numbers of 16 bits in the order of their values: infinities, and NaN beyond them, at both ends.
std::size_t place_of(unsigned bits) { return (bits & sign) != 0 ? ~bits & 0xFFFF : bits | sign; }
std::uint16_t bits_at(std::size_t place) {
    return static_cast<std::uint16_t>((place & sign) != 0 ? place ^ sign : ~place);
}

template <class T>
T number(std::span<const std::byte> row, std::size_t index) {
    T value{};
    std::memcpy(&value, row.data() + index * sizeof value, sizeof value);
    return value;
}

TokenChances no_chances() { return {.log_probability = std::nan("")}; }

/// Calls `work` with each index once, each thread with a state of its own.
template <class State, class Work>
void side_by_side(std::size_t count, const State& fresh, const Work& work) {
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::exception_ptr failure;
    const auto go_on = [&] {
        try {
            State state = fresh;
            for (std::size_t i = next++; i < count; i = next++) work(state, i);
        } catch (...) {
            const std::lock_guard lock(mutex);
            failure = std::current_exception();
        }
    };
    const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
    const std::size_t wanted = std::min({count / rows_a_thread, cores, most_threads});
    {
        std::vector<std::jthread> others;
        try {
            while (others.size() + 1 < wanted) others.emplace_back(go_on);
        } catch (const std::system_error&) {  // those that there are do it
        }
        go_on();
    }
    if (failure) std::rethrow_exception(failure);
}

}  // namespace

double RowReader::logit(float x) const {
    const double logit = x / model_->logit_divisor();
    const double cap = model_->model.logit_cap;
    return cap > 0 ? cap * std::tanh(logit / cap) : logit;
}

TokenChances RowReader::chances(const AskedRow& asked) {
    return model_->model.dtype == Dtype::fp32 ? of_floats(asked) : of_16_bits(asked);
}

/// Such rows have far fewer numbers than tokens: each is taken to its exponential once.
TokenChances RowReader::of_16_bits(const AskedRow& asked) {
    const bool is_bf16 = model_->model.dtype == Dtype::bf16;
    const unsigned infinite = is_bf16 ? 0x7F80 : 0x7C00;
    const auto logit_at = [&](std::size_t place) {
        const std::uint16_t bits = bits_at(place);
        return logit(is_bf16 ? runtime::decode_bf16(bits) : runtime::decode_half(bits));
    };
    const auto place = [&](std::size_t token) {
        return place_of(number<std::uint16_t>(asked.logits, token));
    };
    const std::size_t tokens = asked.logits.size() / sizeof(std::uint16_t);
    const std::size_t wanted = std::min(static_cast<std::size_t>(asked.likeliest), tokens);
    counts_.assign(numbers_of_16_bits, 0);
    for (std::size_t token = 0; token < tokens; ++token) ++counts_[place(token)];

    double largest = 0;
    double sum = 0;
    std::size_t counted = 0;
    std::size_t least = numbers_of_16_bits;  // the place of the last of the likeliest
    std::size_t above = 0;                   // tokens that are likelier than that
    for (std::size_t at = place_of(infinite); --at > place_of(infinite | sign);) {
        if (counts_[at] == 0) continue;
        if (counted == 0) largest = logit_at(at);
        if (counted < wanted) {
            least = at;
            above = counted;
        }
        counted += counts_[at];
        sum += counts_[at] * std::exp(logit_at(at) - largest);
    }
    if (counted < tokens) return no_chances();
    const auto chance = [&](std::size_t at) { return logit_at(at) - largest - std::log(sum); };

    TokenChances found{.log_probability = chance(place(static_cast<std::size_t>(asked.token)))};
    std::size_t as_least = wanted - above;
    std::vector<std::pair<std::size_t, std::size_t>> likeliest;  // places and tokens
    for (std::size_t token = 0; token < tokens && likeliest.size() < wanted; ++token) {
        const std::size_t at = place(token);
        if (at < least || (at == least && as_least == 0)) continue;
        if (at == least) --as_least;
        likeliest.emplace_back(at, token);
    }
    std::ranges::stable_sort(likeliest, std::greater(), &std::pair<std::size_t, std::size_t>::first);
    for (const auto& [at, token] : likeliest)
        found.likeliest.push_back({static_cast<int>(token), chance(at)});
    return found;
}

TokenChances RowReader::of_floats(const AskedRow& asked) {
    logits_.resize(asked.logits.size() / sizeof(float));
    for (std::size_t token = 0; token < logits_.size(); ++token)
        logits_[token] = logit(number<float>(asked.logits, token));
    const auto chosen = static_cast<std::size_t>(asked.token);
    TokenChances found{.log_probability = log_softmax(logits_, chosen)};
    if (std::isnan(found.log_probability)) return no_chances();
    std::vector<int> order(logits_.size());
    std::iota(order.begin(), order.end(), 0);
    const auto wanted = std::min<std::ptrdiff_t>(asked.likeliest, std::ssize(order));
    const auto logit_of = [&](int token) { return logits_[static_cast<std::size_t>(token)]; };
    std::partial_sort(order.begin(), order.begin() + wanted, order.end(), [&](int a, int b) {
        return logit_of(a) != logit_of(b) ? logit_of(a) > logit_of(b) : a < b;
    });
    for (const int token : std::span(order).first(static_cast<std::size_t>(wanted)))
        found.likeliest.push_back({token, logit_of(token) - logits_[chosen] + found.log_probability});
    return found;
}

std::vector<TokenChances> chances_of(const Description& model, std::span<const AskedRow> rows) {
    std::vector<TokenChances> found(rows.size());
    side_by_side(rows.size(), RowReader(model),
                 [&](RowReader& reader, std::size_t i) { found[i] = reader.chances(rows[i]); });
    return found;
}

}  // namespace hone::decoder
