// What an engine tells of one request.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "decoder/engine/engine.h"

namespace hone::test {

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
