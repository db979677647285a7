// The text of a request as it grows: ids to characters, and where it stops.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "decoder/tokenizer/tokenizer.h"

namespace hone::decoder {

class TextOutput {
  public:
    /// The text ends before the first of `stops` that appears in it; empty ones are never found.
    TextOutput(const Tokenizer& tokenizer, std::vector<std::string> stops);

    /// What may be shown now: less than what is known where that may be the beginning of a stop.
    [[nodiscard]] std::string push(int id);
    /// The rest, after the last token.
    [[nodiscard]] std::string finish();
    /// What is known and may not be shown yet.
    [[nodiscard]] const std::string& pending() const { return pending_; }
    /// The text goes on behind these tokens, of which nothing is shown.
    void begin_behind(std::span<const int> ids);
    /// One of the stops was found: nothing follows.
    [[nodiscard]] bool stopped() const { return stopped_; }

  private:
    [[nodiscard]] std::string shown(std::string more);
    [[nodiscard]] std::size_t held_back() const;

    TextStream stream_;
    std::vector<std::string> stops_;
    std::string pending_;  ///< known and not yet shown
    bool stopped_ = false;
};

}  // namespace hone::decoder
