// What the server counts, and the text of it in Prometheus' form (exposition format 0.0.4). Any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "decoder/engine/engine.h"

namespace hone::decoder {

/// What became of a request.
enum class RequestEnd : std::uint8_t {
    completed,
    refused,    ///< 4xx but for the next
    too_many,   ///< 429
    left,       ///< the client went away
    cancelled,  ///< the server stopped
    failed,     ///< 5xx
};
inline constexpr std::size_t request_ends = 6;

/// Seconds, by their upper limits.
class TimeHistogram {
  public:
    void add(double seconds);
    void append_to(std::string& text, const char* name, const char* help) const;

  private:
    static constexpr std::array<double, 18> limits{0.001, 0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.03,
                                                   0.05,  0.1,   0.2,   0.5,   1,     2,    5,     10,   60};
    std::array<std::atomic<std::uint64_t>, limits.size() + 1> counts_{};
    std::atomic<double> sum_{0};
};

class Metrics {
  public:
    void end_request(RequestEnd end) { ++ends_[static_cast<std::size_t>(end)]; }
    void add_prompt(std::size_t tokens) { prompt_tokens_ += tokens; }

    TimeHistogram to_first_token;
    TimeHistogram between_tokens;

    /// With what the engine says of itself, and how many requests are answered now.
    [[nodiscard]] std::string text(const EngineState& engine, int requests) const;

  private:
    std::array<std::atomic<std::uint64_t>, request_ends> ends_{};
    std::atomic<std::uint64_t> prompt_tokens_{0};
};

}  // namespace hone::decoder
