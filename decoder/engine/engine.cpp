#include "decoder/engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "decoder/error.h"

namespace hone::decoder {
namespace {

SchedulerOptions scheduler_options(const Capacity& capacity, EngineOptions options) {
    return {.pages = static_cast<int>(capacity.pages),
            .page_size = static_cast<int>(capacity.page_size),
            .max_sequences = static_cast<int>(capacity.sequences),
            .max_step_tokens = static_cast<int>(capacity.step_tokens),
            .step_prompt_tokens = static_cast<int>(options.step_prompt_tokens),
            .step_stretch = options.step_stretch,
            .max_step_stretch = options.max_step_stretch,
            .cost = StepCost(std::move(options.step_times)),
            .max_context = static_cast<int>(capacity.context)};
}

}  // namespace

Engine::Engine(RunningModel& model, EngineOptions options)
    : model_(model),
      scheduler_(scheduler_options(model.capacity(), std::move(options))),
      thread_([this](const std::stop_token& stop) { run(stop); }) {
    started_.wait(false);
}

Engine::~Engine() = default;

RequestId Engine::submit(TextRequest request, Listener listener) {
    for (const int id : request.prompt) {
        if (id >= 0 && id < model_.description().model.vocab_size) continue;
        throw DecoderError(fmt::format("the prompt has the token {}; the model knows 0 to {}", id,
                                       model_.description().model.vocab_size - 1));
    }
    Running running{request.wishes, std::make_shared<const Listener>(std::move(listener))};
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) throw EngineFailure(failure_);
    const RequestId id = scheduler_.add({.prompt = std::move(request.prompt),
                                         .max_new_tokens = request.max_new_tokens,
                                         .end_ids = std::move(request.end_ids)});
    try {
        requests_.emplace(id, std::move(running));
    } catch (...) {
        scheduler_.cancel(id);  // nobody would hear of it
        throw;
    }
    work_.notify_all();
    return id;
}

void Engine::cancel(RequestId id) {
    const std::lock_guard lock(mutex_);
    if (requests_.erase(id) > 0) scheduler_.cancel(id);
    std::erase_if(news_, [&](const auto& one) { return one.second.request == id; });
}

EngineState Engine::state() const {
    const std::lock_guard lock(mutex_);
    const PagePool& pool = scheduler_.pool();
    return {.running = scheduler_.running(),
            .waiting = scheduler_.waiting(),
            .pages = pool.size(),
            .pages_used = pool.size() - pool.available(),
            .counters = scheduler_.counters(),
            .new_tokens = new_tokens_,
            .times = times_,
            .failure = failure_};
}

int Engine::max_context() const { return static_cast<int>(model_.capacity().context); }

void Engine::run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    try {
        const runtime::CurrentContext current(model_.gpu().driver(), model_.gpu().context());
        say_started();
        while (work_.wait(lock, stop, [&] { return !scheduler_.idle(); })) {
            if (stop.stop_requested()) return;
            compute_step(lock);
        }
    } catch (const std::exception& error) {
        if (!lock.owns_lock()) lock.lock();
        fail(error.what(), lock);
        say_started();
    }
}

void Engine::say_started() {
    started_ = true;
    started_.notify_all();
}

/// Requests may come and be cancelled while the GPU computes.
void Engine::compute_step(std::unique_lock<std::mutex>& lock) {
    const std::vector<StepPart>& parts = scheduler_.next();
    if (parts.empty()) {
        note_drawn();
        return hand_out(lock);
    }
    std::vector<Draw> draws;
    for (const StepPart& part : parts) {
        if (!part.samples) continue;
        const auto found = requests_.find(part.request);
        draws.push_back(found == requests_.end() ? Draw{} : Draw{found->second.wishes, part.drawn});
    }
    lock.unlock();
    const Clock::time_point begun = Clock::now();
    model_.forward().start(parts, draws);
    lock.lock();
    note_drawn();
    hand_out(lock);
    scheduler_.note_begun();
    lock.unlock();
    const std::vector<int> drawn = model_.forward().finish();
    const Clock::time_point ended = Clock::now();
    lock.lock();
    note_times(begun, ended);
    drawn_ = scheduler_.complete(drawn);
    hand_out_first(lock);
    if (scheduler_.idle()) {
        last_end_.reset();
        note_drawn();
        hand_out(lock);
    }
}

void Engine::note_times(Clock::time_point begun, Clock::time_point ended) {
    const auto seconds = [](Clock::duration time) { return std::chrono::duration<double>(time).count(); };
    const double step_s = seconds(ended - begun);
    times_.steps_s += step_s;
    if (scheduler_.load().is_mixed()) {
        times_.mixed_steps_s += step_s;
        times_.expected_mixed_s += scheduler_.expected_s();
    }
    if (last_end_) times_.between_steps_s += seconds(begun - *last_end_);
    last_end_ = ended;
    scheduler_.note_time(step_s);
}

void Engine::note(const NewToken& token) {
    const auto found = requests_.find(token.request);
    if (found == requests_.end()) return;
    ++new_tokens_;
    news_.emplace_back(found->second.listener, token);
    if (token.end != NewToken::End::none) requests_.erase(found);
}

/// While the GPU computes: what is looked up of each token stands all over the memory.
void Engine::note_drawn() {
    for (const NewToken& token : std::exchange(drawn_, {})) note(token);
}

/// Before the next step begins, whose graph takes half a millisecond to launch the first time. Few texts of a
/// step have their first token there.
void Engine::hand_out_first(std::unique_lock<std::mutex>& lock) {
    const auto others =
        std::ranges::stable_partition(drawn_, [](const NewToken& token) { return token.is_first; });
    const std::vector<NewToken> first(drawn_.begin(), others.begin());
    if (first.empty()) return;
    drawn_.erase(drawn_.begin(), others.begin());
    for (const NewToken& token : first) note(token);
    hand_out(lock);
}

void Engine::hand_out(std::unique_lock<std::mutex>& lock) {
    auto news = std::exchange(news_, {});
    lock.unlock();
    auto next = news.begin();
    try {
        for (; next != news.end(); ++next) next->first->on_token(next->second);
    } catch (...) {
        lock.lock();
        news.erase(news.begin(), next);
        news_ = std::move(news);
        throw;
    }
    lock.lock();
}

/// Nobody is to wait for what does not come.
void Engine::fail(const char* why, std::unique_lock<std::mutex>& lock) noexcept {
    note_failure(failure_, why);
    try {
        note_drawn();
        hand_out(lock);
    } catch (...) {
        for (const auto& [listener, token] : news_) {
            if (!requests_.contains(token.request) && listener->on_failure) listener->on_failure(failure_);
        }
        news_.clear();
    }
    for (const auto& [id, request] : requests_) {
        if (request.listener->on_failure) request.listener->on_failure(failure_);
    }
    requests_.clear();
}

}  // namespace hone::decoder
