#include "decoder/scheduling/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "decoder/require.h"

namespace hone::decoder {
namespace {

/// In place of one that is being drawn; nothing reads it.
constexpr int unknown_token = -1;

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options)
    : options_(options), pool_(options.pages, options.page_size) {
    require(options.max_sequences >= 1, "max_sequences", options.max_sequences, "from 1");
    require(options.max_step_tokens >= options.max_sequences, "max_step_tokens", options.max_step_tokens,
            fmt::format("from max_sequences, {}", options.max_sequences));
    require(options.step_prompt_tokens >= 0, "step_prompt_tokens", options.step_prompt_tokens, "from 0");
    require(options.step_stretch == 0 || options.step_stretch >= 1, "step_stretch", options.step_stretch,
            "from 1, or 0");
    require(options.max_step_stretch >= 0, "max_step_stretch", options.max_step_stretch, "from 0");
    require(options.least_prompt_tokens >= 1, "least_prompt_tokens", options.least_prompt_tokens, "from 1");
    require(options.full_stretch >= 0, "full_stretch", options.full_stretch, "from 0");
    require(options.most_saving_steps >= 0, "most_saving_steps", options.most_saving_steps, "from 0");
    require(options.most_waiting_share >= 0, "most_waiting_share", options.most_waiting_share, "from 0");
    require(options.least_prompt_part >= 1, "least_prompt_part", options.least_prompt_part, "from 1");
    require(options.max_context >= 2, "max_context", options.max_context, "from 2");
}

void Scheduler::check(const Request& request) const {
    const auto prompt = static_cast<std::int64_t>(request.prompt.size());
    const std::int64_t room =
        std::int64_t{pool_.size()} * pool_.page_size() + 1;  // the last token is not computed
    require(prompt >= 1, "the prompt's number of tokens", prompt, "from 1");
    require(request.max_new_tokens >= 1, "max_new_tokens", request.max_new_tokens, "from 1");
    const std::int64_t whole = prompt + request.max_new_tokens;
    require(whole <= options_.max_context, "prompt and max_new_tokens together", whole,
            fmt::format("up to the context, {}", options_.max_context));
    require(whole <= room, "prompt and max_new_tokens together", whole,
            fmt::format("up to {}, what the KV cache of {} pages has room for", room, pool_.size()));
}

RequestId Scheduler::add(Request request) {
    check(request);
    const int scored = request.scores_prompt ? static_cast<int>(request.prompt.size()) : 0;
    waiting_.emplace(++last_id_, Sequence{.tokens = std::move(request.prompt),
                                          .pages = {},
                                          .end_ids = std::move(request.end_ids),
                                          .new_tokens_left = request.max_new_tokens,
                                          .scored_end = scored});
    return last_id_;
}

bool Scheduler::cancel(RequestId id) {
    for (Sequences* texts : {&waiting_, &running_, &left_}) {
        const auto found = texts->find(id);
        if (found == texts->end()) continue;
        if (std::exchange(found->second.is_silent, true)) return false;
        if (texts != &left_) leave(*texts, found);
        return true;
    }
    return false;
}

/// Its place and its pages are free. Steps that have a part of it write to these before whoever gets them.
void Scheduler::leave(Sequences& texts, Sequences::iterator text) {
    Sequence& sequence = text->second;
    pool_.release(sequence.pages);
    sequence.pages.clear();
    if (sequence.steps > 0) {
        left_.insert(texts.extract(text));
    } else {
        texts.erase(text);
    }
}

/// Unless it has left before.
void Scheduler::leave(RequestId id) {
    for (Sequences* texts : {&running_, &waiting_}) {
        if (const auto found = texts->find(id); found != texts->end()) return leave(*texts, found);
    }
}

const std::vector<StepPart>& Scheduler::next() {
    if (!step_.is_planned) plan(step_);
    return step_.parts;
}

const std::vector<StepPart>& Scheduler::next_ahead() {
    if (!ahead_.is_planned && step_.has_begun) {
        await_tokens();
        plan(ahead_);
    }
    return ahead_.parts;
}

void Scheduler::drop_ahead() { forget(ahead_); }

void Scheduler::plan(Step& step) {
    plan_running(step);
    admit_waiting(step);
    step.is_planned = !step.parts.empty();
}

/// It has been computed, or never will be.
void Scheduler::forget(Step& step) {
    for (std::size_t i = 0; i < step.parts.size(); ++i) {
        Sequence& sequence = *step.sequences[i];
        if (--sequence.steps == 0) left_.erase(step.parts[i].request);
    }
    step.parts.clear();
    step.sequences.clear();
    step.load = {};
    step.is_planned = step.has_begun = step.is_awaited = false;
}

// In the order in which they came. Who gives way is younger than whom it gives way to, and so not planned
// yet; the oldest gets what it needs, so that every text comes to its end.
void Scheduler::plan_running(Step& step) {
    const StepLoad decoding = load_of_decoding();
    prompts_to_come_ = running() - decoding.sequences;
    if (has_pages_for_next())
        prompts_to_come_ += std::min<std::int64_t>(waiting(), options_.max_sequences - running());
    prompt_budget_ = budget_of_prompts(decoding);
    for (auto one = running_.begin(); one != running_.end(); ++one) {
        Sequence& sequence = one->second;
        const int tokens = sequence.decodes() ? 1 : prompt_tokens(sequence.left());
        if (tokens > 0 && find_pages(one, tokens)) add_part(step, one->first, sequence, tokens);
    }
}

/// For all of its tokens and the next one.
int Scheduler::pages_of(const Sequence& sequence) const {
    return pool_.pages_for(static_cast<int>(sequence.tokens.size()) + 1);
}

/// Whether the text that has waited longest may start, whatever others have computed of it.
bool Scheduler::has_pages_for_next() const {
    if (waiting_.empty()) return false;
    return running_.empty() || pages_of(waiting_.begin()->second) <= pool_.available();
}

bool Scheduler::has_room_for_next() const {
    return running() < options_.max_sequences && has_pages_for_next();
}

/// Of the sequences that decode, and where the first prompt that has begun goes on.
StepLoad Scheduler::load_of_decoding() const {
    StepLoad load;
    for (const auto& [id, sequence] : running_) {
        if (sequence.decodes()) {
            load.add_text(sequence.computed + 1);
        } else if (load.prompt_begin == 0) {
            load.prompt_begin = sequence.computed;
        }
    }
    return load;
}

int Scheduler::budget_of_prompts(const StepLoad& decoding) {
    std::int64_t budget = options_.max_step_tokens - decoding.sequences;
    if (decoding.sequences == 0) return static_cast<int>(budget);
    if (options_.step_prompt_tokens > 0) budget = std::min<std::int64_t>(budget, options_.step_prompt_tokens);
    if (options_.step_stretch == 0 || !options_.cost) return static_cast<int>(budget);
    const std::int64_t within = options_.cost->prompt_tokens_within(stretch(decoding), decoding,
                                                                    options_.least_prompt_tokens, budget);
    return static_cast<int>(is_full(decoding) ? budget_of_full(decoding, within, budget) : within);
}

/// Nearly all places are taken, also by texts that wait for their prompts alone.
bool Scheduler::is_full(const StepLoad& decoding) const {
    constexpr double nearly = 0.95;
    const std::int64_t present = prompts_to_come_ + decoding.sequences;
    return static_cast<double>(present) >= nearly * static_cast<double>(texts_at_once(present));
}

/// Of the sequences of prompts_to_come_.
std::int64_t Scheduler::prompt_tokens_to_come() const {
    std::int64_t tokens = 0;
    std::int64_t prompts = prompts_to_come_;
    for (const auto& [id, sequence] : running_) {
        if (sequence.decodes()) continue;
        tokens += sequence.left();
        --prompts;
    }
    for (auto one = waiting_.begin(); one != waiting_.end() && prompts > 0; ++one, --prompts)
        tokens += one->second.left();
    return tokens;
}

/// The oldest text goes on in every step.
std::int64_t Scheduler::budget_of_full(const StepLoad& decoding, std::int64_t least, std::int64_t most) {
    const double stretch =
        std::max(std::min(options_.full_stretch, options_.max_step_stretch), options_.step_stretch);
    const std::int64_t waiting = prompt_tokens_to_come();
    const std::int64_t cheapest = options_.cost->cheapest_prompt_tokens(stretch, decoding, waiting, most);
    const bool are_few = static_cast<double>(prompts_to_come_) <=
                         options_.most_waiting_share * static_cast<double>(decoding.sequences);
    const bool may_wait = are_few && running_.begin()->second.decodes();
    if (0 < waiting && waiting < cheapest && may_wait && saving_steps_ < options_.most_saving_steps) {
        ++saving_steps_;
        return 0;
    }
    saving_steps_ = 0;
    return std::max(least, cheapest);
}

/// What a step may take over one without prompts.
double Scheduler::stretch(const StepLoad& decoding) const {
    constexpr double share_for_all = 0.25;
    constexpr double share_of_burst = 0.5;
    const double share = static_cast<double>(prompts_to_come_) /
                         static_cast<double>(texts_at_once(prompts_to_come_ + decoding.sequences));
    const double more = std::max(options_.max_step_stretch - options_.step_stretch, 0.0);
    const double usual = options_.step_stretch + more * std::min(share / share_for_all, 1.0);
    return more > 0 && share >= share_of_burst ? std::max(usual, stretch_of_burst(decoding)) : usual;
}

/// Over the step as it is, with texts that are all as long as those at work.
double Scheduler::stretch_of_burst(const StepLoad& decoding) const {
    StepLoad now = decoding;
    now.prompt_tokens = 0;
    StepLoad all = now;
    all.sequences += prompts_to_come_;
    all.keys = now.keys / now.sequences * all.sequences;
    const double now_s = options_.cost->of(now);
    return now_s > 0 ? options_.full_stretch * options_.cost->of(all) / now_s : 0;
}

/// How many texts there is room for, `present` or more: not for the next one where that waits for pages,
/// else as many as have pages if all hold as many as those at work.
std::int64_t Scheduler::texts_at_once(std::int64_t present) const {
    if (!waiting_.empty() && !has_pages_for_next()) return present;
    const std::int64_t used = pool_.size() - pool_.available();
    const std::int64_t most = std::max<std::int64_t>(present, options_.max_sequences);
    return used == 0 ? most : std::clamp(std::int64_t{running()} * pool_.size() / used, present, most);
}

/// A prompt takes what the step has left, or half of it, in whole parts, where others follow.
int Scheduler::prompt_tokens(int left) {
    --prompts_to_come_;
    const int part = options_.least_prompt_part;
    const int half = std::max((prompt_budget_ + 1) / 2 / part, 1) * part;
    return std::min({left, prompt_budget_, prompts_to_come_ > 0 ? half : prompt_budget_});
}

void Scheduler::add_part(Step& step, RequestId id, Sequence& sequence, int tokens) {
    const bool samples = tokens == sequence.left();
    if (sequence.decodes()) {
        step.load.add_text(sequence.computed + 1);
    } else {
        prompt_budget_ -= tokens;
        step.load.add_prompt(tokens, sequence.computed);
    }
    step.parts.push_back({.request = id,
                          .begin = sequence.computed,
                          .tokens = std::span(sequence.tokens)
                                        .subspan(static_cast<std::size_t>(sequence.computed),
                                                 static_cast<std::size_t>(tokens)),
                          .pages = sequence.pages,
                          .samples = samples,
                          .drawn = sequence.drawn,
                          .awaited = samples ? sequence.awaited : -1,
                          .scores = sequence.computed + 1 < sequence.scored_end});
    step.sequences.push_back(&sequence);
    ++sequence.steps;
}

/// Pages for so many tokens more. False: only older sequences have any to give.
bool Scheduler::find_pages(Sequences::iterator sequence, int tokens) {
    std::vector<int>& pages = sequence->second.pages;
    const int wanted = pool_.pages_for(sequence->second.computed + tokens);
    while (static_cast<int>(pages.size()) < wanted) {
        if (const std::optional<int> page = pool_.take()) {
            pages.push_back(*page);
        } else if (const auto youngest = std::prev(running_.end()); youngest != sequence) {
            preempt(youngest);
        } else {
            return false;
        }
    }
    return true;
}

/// Its pages are free, though what they hold may still be found; it waits to start() again.
void Scheduler::preempt(Sequences::iterator victim) {
    pool_.release(victim->second.pages);
    victim->second.pages.clear();
    victim->second.computed = 0;
    waiting_.insert(running_.extract(victim));
    ++counters_.preemptions;
}

void Scheduler::admit_waiting(Step& step) {
    while (!waiting_.empty() && running() < options_.max_sequences) {
        const auto first = waiting_.begin();
        Sequence& sequence = first->second;
        if (prompt_budget_ == 0 || !start(sequence)) return;
        const int tokens = prompt_tokens(sequence.left());
        const auto started = running_.insert(waiting_.extract(first)).position;
        if (!find_pages(started, tokens)) return;  // it has started, and goes on in a later step
        if (started->second.decodes()) --prompt_budget_;
        add_part(step, started->first, started->second, tokens);
    }
}

/// Finds what others have computed of it. False, and nothing is taken, while there is no room for all of it.
bool Scheduler::start(Sequence& sequence) {
    const std::span<const int> tokens(sequence.tokens);
    std::vector<int> known;
    if (sequence.scored_end == 0)
        known = pool_.take_known(tokens.first(tokens.size() - 1));  // the last one has to be computed
    const int missing = pages_of(sequence) - static_cast<int>(known.size());
    if (missing > pool_.available() && !running_.empty()) {
        pool_.release(known);
        return false;
    }
    sequence.published = pool_.published(known);
    sequence.pages = std::move(known);
    sequence.computed = static_cast<int>(sequence.pages.size()) * pool_.page_size();
    counters_.shared_tokens += static_cast<std::uint64_t>(sequence.computed);
    return true;
}

void Scheduler::note_begun() {
    if (!step_.is_planned || step_.has_begun) return;
    for (std::size_t i = 0; i < step_.parts.size(); ++i)
        advance(*step_.sequences[i], static_cast<int>(step_.parts[i].tokens.size()));
    step_.has_begun = true;
}

/// Each text has a place for the token that the step under way draws, which is not known yet. That may be all
/// that it still needs.
void Scheduler::await_tokens() {
    if (std::exchange(step_.is_awaited, true)) return;
    int number = 0;
    for (std::size_t i = 0; i < step_.parts.size(); ++i) {
        if (!step_.parts[i].samples) continue;
        Sequence& sequence = *step_.sequences[i];
        sequence.tokens.push_back(unknown_token);
        sequence.awaited = number++;
        ++sequence.drawn;
        if (--sequence.new_tokens_left == 0) leave(step_.parts[i].request);
    }
}

std::vector<NewToken> Scheduler::complete(std::span<const int> drawn) {
    const auto samples = std::ranges::count_if(step_.parts, &StepPart::samples);
    require(std::ssize(drawn) == samples, "the number of drawn tokens", std::ssize(drawn),
            fmt::format("{}, one for each part of the step that samples", samples));
    note_begun();
    await_tokens();
    std::vector<NewToken> made;
    int row = 0;
    for (std::size_t i = 0; i < step_.parts.size(); ++i) {
        const StepPart& part = step_.parts[i];
        Sequence& sequence = *step_.sequences[i];
        if (!part.samples) continue;
        const NewToken token = draw(part.request, sequence, drawn[static_cast<std::size_t>(row)], row);
        ++row;
        if (sequence.is_silent) continue;
        made.push_back(token);
        if (token.end == NewToken::End::none) continue;
        sequence.is_silent = true;
        leave(part.request);
    }
    counters_.steps += step_.parts.empty() ? 0 : 1;
    counters_.mixed_steps += step_.load.is_mixed() ? 1 : 0;
    counters_.prompt_tokens += static_cast<std::uint64_t>(step_.load.prompt_tokens);
    forget(step_);
    std::swap(step_, ahead_);
    return made;
}

void Scheduler::note_time(double seconds) {
    if (options_.cost) options_.cost->note({load(), seconds});
}

void Scheduler::advance(Sequence& sequence, int tokens) {
    const int full_before = sequence.computed / pool_.page_size();
    sequence.computed += tokens;
    counters_.computed_tokens += static_cast<std::uint64_t>(tokens);
    if (sequence.computed / pool_.page_size() == full_before) return;
    pool_.publish(sequence.pages,
                  std::span(sequence.tokens).first(static_cast<std::size_t>(sequence.computed)),
                  sequence.published);
}

NewToken Scheduler::draw(RequestId id, Sequence& sequence, int token, int row) {
    sequence.tokens.back() = token;
    sequence.awaited = -1;
    const bool ends = std::ranges::find(sequence.end_ids, token) != sequence.end_ids.end();
    return {.request = id,
            .token = token,
            .end = ends                            ? NewToken::End::end_id
                   : sequence.new_tokens_left == 0 ? NewToken::End::length
                                                   : NewToken::End::none,
            .is_first = sequence.drawn == 1,
            .row = row};
}

}  // namespace hone::decoder
