#include "decoder/engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <span>
#include <utility>

#include "decoder/error.h"

namespace hone::decoder {
namespace {

/// Sequences of a step with prompts during which the next one is prepared. Where fewer are in front of their
/// first token that is handed out before the next step begins.
constexpr std::size_t least_beside_prompts = 8;
/// The next step is prepared so much sooner than the one under way will end at the soonest: such a share of
/// what that takes, and so many times what preparing and launching lately took at most.
constexpr double early_share = 0.03;
constexpr double preparing_times = 2;
/// How fast it is forgotten that a step was quicker than expected, or took longer to prepare.
constexpr double forgotten = 1.0 / 16;

double seconds(std::chrono::steady_clock::duration time) {
    return std::chrono::duration<double>(time).count();
}

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
    Running running{.wishes = request.wishes,
                    .listener = std::make_shared<const Listener>(std::move(listener)),
                    .likeliest = request.likeliest};
    if (request.scores_prompt) running.scored = request.prompt;
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) throw EngineFailure(failure_);
    const RequestId id = scheduler_.add({.prompt = std::move(request.prompt),
                                         .max_new_tokens = request.max_new_tokens,
                                         .end_ids = std::move(request.end_ids),
                                         .scores_prompt = request.scores_prompt});
    try {
        requests_.emplace(id, std::move(running));
    } catch (...) {
        scheduler_.cancel(id);  // nobody would hear of it
        throw;
    }
    if (scheduler_.has_room_for_next()) is_outdated_ = true;
    work_.notify_all();
    return id;
}

void Engine::cancel(RequestId id) {
    const std::lock_guard lock(mutex_);
    if (requests_.erase(id) > 0) scheduler_.cancel(id);
    std::erase_if(news_, [&](const News& one) { return one.token.request == id; });
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
            compute_steps(lock, stop);
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

/// Until one has to be planned behind the end of the one before.
void Engine::compute_steps(std::unique_lock<std::mutex>& lock, const std::stop_token& stop) {
    const std::vector<StepPart>& parts = scheduler_.next();
    if (parts.empty()) {
        note_drawn();
        return hand_out(lock);
    }
    prepare(parts, lock);
    lock.unlock();
    launch({});
    asked_ = std::exchange(asked_ahead_, {});
    lock.lock();
    while (finish_step(lock, stop)) {
    }
    hand_out_first(lock);
    if (scheduler_.idle()) {
        last_end_.reset();
        note_drawn();
        hand_out(lock);
    }
}

/// The step that has been launched. Requests may come and be cancelled while the GPU computes. Returns
/// whether the next one has been launched at its end.
bool Engine::finish_step(std::unique_lock<std::mutex>& lock, const std::stop_token& stop) {
    note_drawn();
    hand_out(lock);
    scheduler_.note_begun();
    const bool is_ready = !stop.stop_requested() && prepare_ahead(lock);
    lock.unlock();
    bool is_launched = false;
    std::exception_ptr failure;
    const auto try_to = [&failure](const auto& begin) {
        try {
            begin();
        } catch (...) {
            failure = std::current_exception();
        }
    };
    try_to([&] { is_launched = is_ready && launch_ahead(); });
    await_step();
    const std::vector<int> drawn = model_.forward().finish();
    const Clock::time_point begun = begun_;
    const Clock::time_point ended = Clock::now();
    try_to([&] { read_asked(drawn); });
    const bool goes_on = !failure && (is_launched || (is_ready && !is_outdated_));
    if (is_launched) {
        begun_ = ended;
    } else if (goes_on) {
        try_to([&] { launch(drawn); });
    }
    lock.lock();
    note_scored();
    asked_ = goes_on ? std::exchange(asked_ahead_, {}) : Asked{};
    note_times(begun, ended);
    times_.prepared_steps += goes_on ? 1 : 0;
    times_.ahead_steps += is_launched ? 1 : 0;
    if (!goes_on) scheduler_.drop_ahead();
    drawn_ = scheduler_.complete(drawn);
    if (failure) std::rethrow_exception(failure);
    return goes_on;
}

/// Writes down what the next launch() begins.
void Engine::prepare(const std::vector<StepPart>& parts, std::unique_lock<std::mutex>& lock) {
    std::vector<Draw> draws;
    draws.reserve(parts.size());
    asked_ahead_ = {};
    for (const StepPart& part : parts) {
        if (!part.samples && !part.scores) continue;
        const auto found = requests_.find(part.request);
        const bool is_there = found != requests_.end();
        if (is_there) {
            ask_for(part, found->second, draws.size());
        } else if (part.scores) {
            asked_ahead_.scored.emplace_back();  // for nobody
        }
        if (part.samples) draws.push_back(is_there ? Draw{found->second.wishes, part.drawn} : Draw{});
    }
    lock.unlock();
    model_.forward().prepare(parts, draws);
    lock.lock();
}

/// What of its part is asked about, in a step that is prepared.
void Engine::ask_for(const StepPart& part, const Running& request, std::size_t row) {
    if (part.samples && request.likeliest)
        asked_ahead_.rows.push_back({static_cast<std::int64_t>(row), *request.likeliest});
    if (!part.scores) return;
    const auto known = static_cast<int>(request.of_prompt.size());  // of a text that has given way
    const int first = std::max(part.begin, known);
    const int end = std::min(part.begin + static_cast<int>(part.tokens.size()),
                             static_cast<int>(request.scored.size()) - 1);
    Asked::Scored scored{.request = part.request,
                         .likeliest = request.likeliest.value_or(0),
                         .first = first - part.begin,
                         .next = {}};
    if (first < end) scored.next.assign(request.scored.begin() + first + 1, request.scored.begin() + end + 1);
    asked_ahead_.scored.push_back(std::move(scored));
}

/// Logits of the step that has ended, before another one overwrites them. What the host makes of them has
/// time until the next step is computed, as far as they are there together.
void Engine::read_asked(std::span<const int> drawn) {
    chances_.clear();
    read_.clear();  // who asked may have left before anybody was told
    read_rows_.clear();
    if (asked_.nothing()) return;
    Forward& forward = model_.forward();
    std::span<const Asked::Row> left = asked_.rows;
    while (!left.empty()) {
        find_chances();
        const auto part = left.first(std::min(left.size(), static_cast<std::size_t>(forward.logit_rows())));
        left = left.subspan(part.size());
        for (const Asked::Row& asked : part) read_rows_.push_back(asked.row);
        const Forward::HostRows logits = forward.read_logits(read_rows_);
        for (std::size_t i = 0; i < part.size(); ++i) {
            const int token = drawn[static_cast<std::size_t>(part[i].row)];
            read_.push_back({logits[i], token, part[i].likeliest});
        }
    }
    if (asked_.scored.empty()) return;
    find_chances();
    for (std::size_t number = 0; number < asked_.scored.size(); ++number) score(number);
}

/// Each token that another one of its prompt follows says how likely that one was.
void Engine::score(std::size_t number) {
    Forward& forward = model_.forward();
    Asked::Scored& part = asked_.scored[number];
    const auto count = std::ssize(part.next);
    for (std::int64_t begin = 0; begin < count; begin += forward.logit_rows()) {
        const std::int64_t rows = std::min(forward.logit_rows(), count - begin);
        std::vector<AskedRow> asked;
        for (const auto& logits : forward.score_logits(number, part.first + begin, rows))
            asked.push_back({logits, part.next[part.chances.size() + asked.size()], part.likeliest});
        std::ranges::move(chances_of(model_.description(), asked), std::back_inserter(part.chances));
    }
}

/// Of requests that are still there.
void Engine::note_scored() {
    for (Asked::Scored& part : asked_.scored) {
        const auto found = requests_.find(part.request);
        if (found == requests_.end()) continue;
        std::ranges::move(part.chances, std::back_inserter(found->second.of_prompt));
    }
}

void Engine::find_chances() {
    std::vector<TokenChances> found = chances_of(model_.description(), read_);
    for (std::size_t i = 0; i < found.size(); ++i) chances_.emplace(read_rows_[i], std::move(found[i]));
    read_.clear();
    read_rows_.clear();
}

/// The next step, while the GPU computes, and shortly before it has ended: who comes until then may have a
/// part in it. Returns whether there is one.
bool Engine::prepare_ahead(std::unique_lock<std::mutex>& lock) {
    if (!asked_.scored.empty()) return false;  // its inputs stay until its rows have been read
    const bool hands_out_first = scheduler_.load().prompt_tokens > 0;
    if (hands_out_first && scheduler_.next().size() < least_beside_prompts) return false;
    const Clock::time_point when = time_to_prepare();
    lock.unlock();
    const bool has_ended = model_.forward().wait_until(when);
    lock.lock();
    if (has_ended) return false;
    const Clock::time_point begun = Clock::now();
    is_outdated_ = false;
    const std::vector<StepPart>& parts = scheduler_.next_ahead();
    if (parts.empty()) return false;
    prepare(parts, lock);
    prepared_in_s_ = seconds(Clock::now() - begun);
    return true;
}

/// What was prepared, where the GPU finds all that it needs: it goes on at once when the step under way has
/// ended, whenever the host looks. Who comes from now on waits for it, and where all texts end by an end id
/// it is for nobody. Returns whether it is launched.
bool Engine::launch_ahead() {
    const Clock::time_point begun = Clock::now();
    const bool is_launched = !is_outdated_ && asked_.nothing() && model_.forward().launch_ahead();
    prepared_in_s_ += seconds(Clock::now() - begun);
    preparing_s_ = std::max(prepared_in_s_, preparing_s_ + forgotten * (prepared_in_s_ - preparing_s_));
    return is_launched;
}

/// The step under way, as far as is known; 0: nothing is.
double Engine::expected_s() const {
    if (scheduler_.expected_s() > 0) return scheduler_.expected_s();
    return scheduler_.load().prompt_tokens == 0 ? plain_step_s_ : other_step_s_;
}

Engine::Clock::time_point Engine::time_to_prepare() const {
    const double until_s = (1 - early_share) * least_share_ * expected_s() - preparing_times * preparing_s_;
    return begun_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(until_s));
}

void Engine::launch(std::span<const int> drawn) {
    begun_ = Clock::now();
    model_.forward().launch(drawn);
}

/// A GPU that hangs is nobody's to wait for. A process that was stopped meanwhile finds that it has ended.
void Engine::await_step() {
    Forward& forward = model_.forward();
    const Gpu& gpu = model_.gpu();
    if (!forward.wait_until(begun_ + gpu.longest_step()) && !forward.has_ended()) gpu.hang();
}

void Engine::note_times(Clock::time_point begun, Clock::time_point ended) {
    const double step_s = seconds(ended - begun);
    times_.steps_s += step_s;
    if (scheduler_.load().is_mixed()) {
        times_.mixed_steps_s += step_s;
        times_.expected_mixed_s += scheduler_.expected_s();
    }
    if (last_end_) times_.between_steps_s += seconds(begun - *last_end_);
    last_end_ = ended;
    if (expected_s() > 0) {
        const double share = std::min(step_s / expected_s(), 1.0);
        least_share_ = std::min(share, least_share_ + forgotten * (share - least_share_));
    }
    (scheduler_.load().prompt_tokens == 0 ? plain_step_s_ : other_step_s_) = step_s;
    scheduler_.note_time(step_s);
}

void Engine::note(const NewToken& token) {
    const auto found = requests_.find(token.request);
    if (found == requests_.end()) return;
    ++new_tokens_;
    Running& request = found->second;
    news_.push_back({.listener = request.listener, .token = token, .asks = request.likeliest.has_value()});
    if (token.is_first && !request.scored.empty()) {
        news_.back().of_prompt = std::move(request.of_prompt);
        request.scored.clear();  // where it gives way, it is computed again, and not scored
    }
    if (token.end != NewToken::End::none) requests_.erase(found);
}

/// While the GPU computes: what is looked up of each token stands all over the memory.
void Engine::note_drawn() {
    for (const NewToken& token : std::exchange(drawn_, {})) note(token);
}

/// Before the next step is planned and begun. Few texts of a step have their first token there.
void Engine::hand_out_first(std::unique_lock<std::mutex>& lock) {
    const auto others =
        std::ranges::stable_partition(drawn_, [](const NewToken& token) { return token.is_first; });
    const std::vector<NewToken> first(drawn_.begin(), others.begin());
    if (first.empty()) return;
    drawn_.erase(drawn_.begin(), others.begin());
    for (const NewToken& token : first) note(token);
    hand_out(lock);
}

/// Who asks for no chances waits for none.
void Engine::hand_out(std::unique_lock<std::mutex>& lock) {
    auto news = std::exchange(news_, {});
    lock.unlock();
    auto next = news.begin();
    try {
        const auto asking = std::stable_partition(std::ranges::find_if(news, &News::asks), news.end(),
                                                  [](const News& one) { return !one.asks; });
        for (; next != news.end(); ++next) {
            if (next == asking) find_chances();
            tell(*next);
        }
    } catch (...) {
        lock.lock();
        news.erase(news.begin(), next);
        news_ = std::move(news);
        throw;
    }
    lock.lock();
}

void Engine::tell(News& one) {
    if (one.of_prompt && one.listener->on_prompt) one.listener->on_prompt(*std::move(one.of_prompt));
    const auto found = one.asks ? chances_.find(one.token.row) : chances_.end();
    if (found != chances_.end()) one.token.chances = &found->second;
    one.listener->on_token(one.token);
}

/// Nobody is to wait for what does not come.
void Engine::fail(const char* why, std::unique_lock<std::mutex>& lock) noexcept {
    note_failure(failure_, why);
    try {
        note_drawn();
        hand_out(lock);
    } catch (...) {
        for (const News& one : news_) {
            if (!requests_.contains(one.token.request) && one.listener->on_failure)
                one.listener->on_failure(failure_);
        }
        news_.clear();
    }
    for (const auto& [id, request] : requests_) {
        if (request.listener->on_failure) request.listener->on_failure(failure_);
    }
    requests_.clear();
}

}  // namespace hone::decoder
