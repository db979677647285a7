#include "decoder/serve/texts.h"

#include <mutex>
#include <utility>

#include "runtime/system/steady_condition.h"

namespace hone::decoder {

struct Texts::Box {
    std::mutex mutex;
    runtime::SteadyCondition filled;
    std::vector<TextNews> news;
    std::string failure;
};

namespace {

/// Of one text; the engine's thread alone has it.
struct Stopwatch {
    std::shared_ptr<Metrics> metrics;
    Texts::Clock::time_point last;
    bool is_first = true;
    std::vector<TokenChances> of_prompt{};

    void token() {
        const auto now = Texts::Clock::now();
        const double seconds = std::chrono::duration<double>(now - std::exchange(last, now)).count();
        (std::exchange(is_first, false) ? metrics->to_first_token : metrics->between_tokens).add(seconds);
    }
};

}  // namespace

Texts::Texts(TokenEngine& engine, std::shared_ptr<Metrics> metrics, Clock::time_point arrived)
    : engine_(engine), metrics_(std::move(metrics)), box_(std::make_shared<Box>()), arrived_(arrived) {}

Texts::~Texts() {
    for (const RequestId id : ids_) engine_.cancel(id);
}

Listener Texts::listener(std::size_t text) const {
    const auto watch = std::make_shared<Stopwatch>(Stopwatch{metrics_, arrived_});
    return {
        .on_token =
            [box = box_, watch, text](const NewToken& token) {
                watch->token();
                TextNews news{text, token.token, token.end};
                if (token.chances != nullptr)
                    news.chances =
                        std::make_unique<TextChances>(*token.chances, std::exchange(watch->of_prompt, {}));
                {
                    const std::lock_guard lock(box->mutex);
                    box->news.push_back(std::move(news));
                }
                box->filled.notify_one();  // who wakes finds the mutex free
            },
        .on_failure =
            [box = box_](const std::string& why) {
                const std::lock_guard lock(box->mutex);
                note_failure(box->failure, why);
                box->filled.notify_one();
            },
        .on_prompt = [watch](std::vector<TokenChances> chances) { watch->of_prompt = std::move(chances); }};
}

void Texts::add(TextRequest request) {
    ids_.reserve(ids_.size() + 1);
    ids_.push_back(engine_.submit(std::move(request), listener(ids_.size())));
}

std::vector<TextNews> Texts::take(std::chrono::milliseconds wait) {
    std::unique_lock lock(box_->mutex);
    box_->filled.wait_for(lock, wait, [&] { return !box_->news.empty() || !box_->failure.empty(); });
    return std::exchange(box_->news, {});
}

std::string Texts::failure() const {
    const std::lock_guard lock(box_->mutex);
    return box_->failure;
}

void Texts::cancel(std::size_t text) { engine_.cancel(ids_[text]); }

}  // namespace hone::decoder
