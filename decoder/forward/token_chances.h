// What a model thinks of tokens, from a row of its logits on the host: log probabilities, before temperatures
// and filters. Knows no GPU. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "decoder/model/description.h"

namespace hone::decoder {

/// Likeliest tokens that may be asked for, at most.
inline constexpr int most_likeliest = 20;

/// A natural logarithm; NaN where one of the row's logits is NaN or infinite.
struct TokenChance {
    int token = 0;
    double log_probability = 0;
};

/// Of a token, and of the likeliest in its place.
struct TokenChances {
    double log_probability = 0;            ///< as TokenChance's
    std::vector<TokenChance> likeliest{};  ///< in this order; as likely ones in that of their ids
};

/// A row of logits, as the model's head writes them, and what is asked about it.
struct AskedRow {
    std::span<const std::byte> logits;  ///< [vocabulary] of the model's dtype
    int token = 0;
    int likeliest = 0;  ///< so many, or as many as there are
};

class RowReader {
  public:
    /// The model has to live as long.
    explicit RowReader(const Description& model) : model_(&model) {}

    [[nodiscard]] TokenChances chances(const AskedRow& asked);

  private:
    [[nodiscard]] double logit(float x) const;
    [[nodiscard]] TokenChances of_16_bits(const AskedRow& asked);
    [[nodiscard]] TokenChances of_floats(const AskedRow& asked);

    const Description* model_;
    std::vector<std::uint32_t> counts_{};  ///< of a row's numbers of 16 bits, by their order
    std::vector<double> logits_{};         ///< of a row of floats
};

/// In the order of the rows; on several threads where these are many.
[[nodiscard]] std::vector<TokenChances> chances_of(const Description& model, std::span<const AskedRow> rows);

}  // namespace hone::decoder
