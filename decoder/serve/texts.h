// The texts of one request in the making: the engine's thread puts their tokens into a box and never waits;
// the connection's thread takes them out when it likes. A client that reads slowly holds as much memory as
// its texts have tokens, and what it asks for beside these.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "decoder/engine/engine.h"
#include "decoder/serve/metrics.h"

namespace hone::decoder {

/// What a model thinks of a token, and, with the first one, of the prompt's but the first.
struct TextChances {
    TokenChances of_token;
    std::vector<TokenChances> of_prompt{};
};

struct TextNews {
    std::size_t text = 0;  ///< in the order of add()
    int token = 0;
    NewToken::End end = NewToken::End::none;
    std::unique_ptr<TextChances> chances{};  ///< where they are asked for
};

class Texts {
  public:
    using Clock = std::chrono::steady_clock;

    /// `arrived` is when the request came. The engine must outlive it.
    Texts(TokenEngine& engine, std::shared_ptr<Metrics> metrics, Clock::time_point arrived);
    Texts(const Texts&) = delete;
    Texts& operator=(const Texts&) = delete;
    /// Cancels what has not ended: its pages are free again.
    ~Texts();

    /// Throws what TokenEngine::submit() does.
    void add(TextRequest request);
    /// Waits for news, for so long at the most.
    [[nodiscard]] std::vector<TextNews> take(std::chrono::milliseconds wait);
    /// Why no token comes any more; empty: they do.
    [[nodiscard]] std::string failure() const;
    void cancel(std::size_t text);

  private:
    struct Box;
    [[nodiscard]] Listener listener(std::size_t text) const;

    TokenEngine& engine_;
    std::shared_ptr<Metrics> metrics_;
    std::shared_ptr<Box> box_;  ///< a token may still come in while a request is cancelled
    Clock::time_point arrived_;
    std::vector<RequestId> ids_;
};

}  // namespace hone::decoder
