// What an engine tells of one request, and what it should tell where the fake GPU's tokens are seeded.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <string>
#include <vector>

#include "decoder/engine/engine.h"

namespace hone::test {

/// A token of the fake GPU's `sample_row:seeded` (tests/fake_driver/script.h).
inline int seeded_token(std::int64_t seed, std::int64_t counter) {
    return static_cast<int>((31 * seed + 7 * counter) % 997);
}

/// All of a request: as many as it wants, or up to the first of its end ids.
inline std::vector<int> seeded_tokens(const decoder::TextRequest& request) {
    std::vector<int> ids;
    while (std::ssize(ids) < request.max_new_tokens &&
           (ids.empty() || std::ranges::count(request.end_ids, ids.back()) == 0))
        ids.push_back(seeded_token(request.wishes.seed, std::ssize(ids)));
    return ids;
}

/// What the listener of one request heard.
class Heard {
  public:
    decoder::Listener listener() {
        return {.on_token =
                    [this](const decoder::NewToken& token) {
                        const std::lock_guard lock(mutex_);
                        tokens_.push_back(token);
                        news_.notify_all();
                    },
                .on_failure =
                    [this](const std::string& why) {
                        const std::lock_guard lock(mutex_);
                        failure_ = why;
                        news_.notify_all();
                    }};
    }
    /// Waits for the end.
    std::vector<decoder::NewToken> tokens() {
        std::unique_lock lock(mutex_);
        news_.wait(lock, [&] {
            return !failure_.empty() ||
                   (!tokens_.empty() && tokens_.back().end != decoder::NewToken::End::none);
        });
        return tokens_;
    }
    /// The same, only the tokens' ids.
    std::vector<int> ids() {
        std::vector<int> ids;
        for (const decoder::NewToken& token : tokens()) ids.push_back(token.token);
        return ids;
    }
    std::string failure() {
        tokens();
        return failure_;
    }

  private:
    std::mutex mutex_;
    std::condition_variable news_;
    std::vector<decoder::NewToken> tokens_;
    std::string failure_;
};

}  // namespace hone::test
