// What a test of the campaign reached, for tests/campaign.sh: lines of JSON in the file
// HONE_CAMPAIGN_RESULTS. Without it nothing is written.
#pragma once

#include <cstdint>
#include <string>

namespace hone::campaign {

/// The promise's number in docs/reliability.md, words for what is counted, the count, and how many there
/// would be; 0: that is no fixed number.
void report(int promise, const std::string& test, const std::string& what, std::int64_t count,
            std::int64_t total = 0);

/// True inside the campaign: tests do all that they promise, not a sample.
[[nodiscard]] bool is_campaign();
/// `sample` times HONE_TEST_SCALE (default 1), at least 1; inside the campaign `full`.
[[nodiscard]] int scaled(int sample, int full);

}  // namespace hone::campaign
