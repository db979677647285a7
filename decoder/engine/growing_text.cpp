#include "decoder/engine/growing_text.h"

#include <mutex>
#include <utility>

#include "decoder/error.h"
#include "runtime/system/steady_condition.h"

namespace hone::decoder {

using End = TextPiece::End;

struct GrowingText::Box {
    std::mutex mutex;
    runtime::SteadyCondition filled;
    std::vector<NewToken> news;
    std::vector<TokenChances> chances;  ///< of these, where they are asked for
    std::optional<std::vector<TokenChances>> of_prompt;
    std::string failure;
    bool cancelled = false;

    [[nodiscard]] bool has_news() const { return cancelled || !news.empty() || !failure.empty(); }
};

GrowingText::GrowingText(TokenEngine& engine, const Tokenizer& tokenizer, TextRequest request,
                         std::vector<std::string> stops)
    : engine_(engine), box_(std::make_shared<Box>()), output_(tokenizer, std::move(stops)) {
    Listener listener{.on_token =
                          [box = box_](const NewToken& token) {
                              const std::lock_guard lock(box->mutex);
                              if (token.chances != nullptr) box->chances.push_back(*token.chances);
                              box->news.push_back(token);
                              box->filled.notify_one();
                          },
                      .on_failure =
                          [box = box_](const std::string& why) {
                              const std::lock_guard lock(box->mutex);
                              note_failure(box->failure, why);
                              box->filled.notify_one();
                          },
                      .on_prompt =
                          [box = box_](std::vector<TokenChances> chances) {
                              const std::lock_guard lock(box->mutex);
                              box->of_prompt = std::move(chances);
                          }};
    id_ = engine_.submit(std::move(request), std::move(listener));
}

GrowingText::~GrowingText() { engine_.cancel(id_); }

TextPiece GrowingText::next(std::chrono::milliseconds wait) {
    if (end_ != End::none) return {.end = end_};
    try {
        std::vector<NewToken> news;
        std::vector<TokenChances> chances;
        std::optional<std::vector<TokenChances>> of_prompt;
        {
            std::unique_lock lock(box_->mutex);
            box_->filled.wait_for(lock, wait, [&] { return box_->has_news(); });
            if (box_->cancelled) return {.end = end_ = End::cancelled};
            if (box_->news.empty() && !box_->failure.empty()) throw EngineFailure(box_->failure);
            news = std::exchange(box_->news, {});
            chances = std::exchange(box_->chances, {});
            of_prompt = std::exchange(box_->of_prompt, {});
        }
        TextPiece piece = piece_of(news, std::move(chances));
        piece.of_prompt = std::move(of_prompt);
        return piece;
    } catch (...) {
        engine_.cancel(id_);
        end_ = End::cancelled;
        throw;
    }
}

void GrowingText::cancel() {
    engine_.cancel(id_);
    const std::lock_guard lock(box_->mutex);
    box_->cancelled = true;
    box_->filled.notify_one();
}

TextPiece GrowingText::piece_of(const std::vector<NewToken>& news, std::vector<TokenChances> chances) {
    TextPiece piece;
    piece.chances = std::move(chances);
    for (const NewToken& token : news) {
        piece.ids.push_back(token.token);
        if (token.end == NewToken::End::end_id) piece.end = End::end_id;
        if (token.end == NewToken::End::length) piece.end = End::length;
        if (piece.end != End::end_id) piece.text += output_.push(token.token);
        if (piece.end != End::none || output_.stopped()) break;
    }
    if (piece.end != End::none) piece.text += output_.finish();
    if (output_.stopped()) {
        piece.end = End::stop;
        engine_.cancel(id_);
    }
    if (piece.chances.size() > piece.ids.size()) piece.chances.resize(piece.ids.size());
    end_ = piece.end;
    return piece;
}

}  // namespace hone::decoder
