// A machine that runs the steps of a scheduler, with a model whose next token depends on the whole text, and
// holds each step to what it may be; and random requests and options for it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "decoder/scheduling/scheduler.h"

namespace hone::test::scheduling {

inline constexpr int vocabulary = 5;

/// Stands for all of a text up to a token: what a page has to hold at its place.
inline std::uint64_t with(std::uint64_t before, int token) {
    std::uint64_t mixed = (before ^ static_cast<std::uint64_t>(token + 1)) * 0x9E3779B97F4A7C15U;
    return mixed ^ (mixed >> 29);
}

/// A model whose next token depends on the whole text.
inline int next_token(std::uint64_t text) { return static_cast<int>((text >> 7) % vocabulary); }

inline std::vector<int> generated_alone(const decoder::Request& request) {
    std::uint64_t text = 0;
    for (const int token : request.prompt) text = with(text, token);
    std::vector<int> made;
    while (static_cast<int>(made.size()) < request.max_new_tokens) {
        made.push_back(next_token(text));
        text = with(text, made.back());
        if (std::ranges::count(request.end_ids, made.back()) > 0) break;
    }
    return made;
}

/// What a scheduler is asked for while a step is computed: nothing, or the next one before its tokens are
/// known.
enum class Ahead : std::uint8_t { no, yes, dropped };

/// Runs the steps of a scheduler with such a model on made pages, and checks each step on the way.
class Machine {
  public:
    explicit Machine(const decoder::SchedulerOptions& options)
        : scheduler(options),
          options_(options),
          cells_(static_cast<std::size_t>(options.pages * options.page_size)) {}

    decoder::RequestId add(const decoder::Request& request) {
        const decoder::RequestId id = scheduler.add(request);
        texts_[id] = request.prompt;
        most_[id] = request.max_new_tokens;
        live_.insert(id);
        return id;
    }
    bool cancel(decoder::RequestId id) {
        live_.erase(id);
        return scheduler.cancel(id);
    }
    /// Whether nothing was wrong. `meanwhile` is called several times while the step is under way.
    [[nodiscard]] bool step(Ahead ahead, const std::function<void()>& meanwhile) {
        const bool was_ahead = !ahead_.empty();
        const std::uint64_t preemptions = scheduler.counters().preemptions;
        const std::vector<decoder::StepPart>& parts = scheduler.next();
        if (was_ahead ? !are_as_planned(parts) : !is_right(parts, preemptions)) return false;
        if (!parts.empty()) scheduler.note_time(1e-3 * static_cast<double>(1 + (parts.size() * 7919) % 13));
        std::vector<int> drawn;
        for (const decoder::StepPart& part : parts) {
            const bool is_for_somebody = live_.contains(part.request);
            if (!(is_for_somebody ? compute(part) : compute_for_nobody(part))) return false;
            if (part.samples) drawn.push_back(next_token(text_of(part.request, texts_[part.request].size())));
        }
        meanwhile();
        if (scheduler.counters().steps % 2 == 0 || ahead != Ahead::no) {
            scheduler.note_begun();
            meanwhile();
        }
        if (ahead != Ahead::no && !parts.empty() && !plan_ahead(parts)) return false;
        meanwhile();
        if (ahead == Ahead::dropped) {
            scheduler.drop_ahead();
            ahead_.clear();
            meanwhile();
        }
        awaited_ = drawn;
        for (const decoder::NewToken& token : scheduler.complete(drawn)) {
            if (!live_.contains(token.request)) return false;  // it was cancelled, or has ended
            texts_[token.request].push_back(token.token);
            made[token.request].push_back(token.token);
            if (token.end == decoder::NewToken::End::none) continue;
            ended.insert(token.request);
            live_.erase(token.request);
            decoding_.erase(token.request);
        }
        return true;
    }

    decoder::Scheduler scheduler;
    std::map<decoder::RequestId, std::vector<int>> made;
    std::set<decoder::RequestId> ended;
    int parts_for_nobody = 0;
    int bounded_steps = 0;

  private:
    /// A part as it was planned: what is written down of it before the step before has ended.
    struct Written {
        decoder::StepPart part;
        std::vector<int> tokens;
        std::vector<int> pages;
    };

    [[nodiscard]] std::uint64_t text_of(decoder::RequestId id, std::size_t length) {
        std::uint64_t text = 0;
        for (std::size_t i = 0; i < length; ++i) text = with(text, texts_[id][i]);
        return text;
    }
    [[nodiscard]] std::uint64_t& cell(const decoder::StepPart& part, int place) {
        const int page = part.pages[static_cast<std::size_t>(place / options_.page_size)];
        return cells_[static_cast<std::size_t>(page * options_.page_size + place % options_.page_size)];
    }
    /// Of what was just planned.
    [[nodiscard]] bool is_right(const std::vector<decoder::StepPart>& parts, std::uint64_t preemptions) {
        if (!is_within_limits(parts) || !has_oldest(parts)) return false;
        return is_within_stretch(parts) || scheduler.counters().preemptions != preemptions;
    }
    /// Texts whose last token is under way have no part in it.
    [[nodiscard]] bool plan_ahead(const std::vector<decoder::StepPart>& under_way) {
        for (const decoder::StepPart& part : under_way) {
            if (!part.samples || part.drawn + 1 < most_[part.request]) continue;
            coming_to_end_.insert(part.request);
            decoding_.erase(part.request);
        }
        const std::uint64_t preemptions = scheduler.counters().preemptions;
        const std::vector<decoder::StepPart>& parts = scheduler.next_ahead();
        if (&parts != &scheduler.next_ahead()) return false;
        for (const decoder::StepPart& part : parts)
            ahead_.push_back(
                {part, {part.tokens.begin(), part.tokens.end()}, {part.pages.begin(), part.pages.end()}});
        const bool fine = is_right(parts, preemptions);
        coming_to_end_.clear();
        return fine;
    }
    /// Of whoever is still there: tokens that were not known are those that were drawn meanwhile.
    [[nodiscard]] bool are_as_planned(const std::vector<decoder::StepPart>& parts) {
        const std::vector<Written> written = std::exchange(ahead_, {});
        if (written.size() != parts.size()) return false;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            const decoder::StepPart& part = parts[i];
            Written then = written[i];
            if (part.request != then.part.request || part.begin != then.part.begin) return false;
            if (then.part.awaited >= 0) then.tokens.back() = awaited_.at(std::size_t(then.part.awaited));
            if (!live_.contains(part.request)) continue;
            if (!std::ranges::equal(part.tokens, then.tokens)) return false;
            if (!std::ranges::equal(part.pages, then.pages)) return false;
        }
        return true;
    }
    [[nodiscard]] bool is_within_limits(const std::vector<decoder::StepPart>& parts) const {
        std::set<decoder::RequestId> requests;
        std::size_t tokens = 0;
        for (const decoder::StepPart& part : parts) {
            requests.insert(part.request);
            tokens += part.tokens.size();
            if (part.tokens.empty()) return false;
        }
        const bool has_nothing = scheduler.running() + scheduler.waiting() == 0;
        return requests.size() == parts.size() && static_cast<int>(parts.size()) <= options_.max_sequences &&
               static_cast<int>(tokens) <= options_.max_step_tokens && (parts.empty() == has_nothing);
    }
    /// The request that came first goes on in every step, so that each comes to its end.
    [[nodiscard]] bool has_oldest(const std::vector<decoder::StepPart>& parts) const {
        const auto oldest =
            std::ranges::find_if(live_, [&](decoder::RequestId id) { return !coming_to_end_.contains(id); });
        return oldest == live_.end() ||
               std::ranges::find(parts, *oldest, &decoder::StepPart::request) != parts.end();
    }
    [[nodiscard]] static decoder::StepLoad load_of(const std::vector<decoder::StepPart>& parts) {
        decoder::StepLoad load;
        for (const decoder::StepPart& part : parts) {
            if (part.samples && part.tokens.size() == 1) {
                load.add_text(part.begin + 1);
            } else {
                load.add_prompt(std::ssize(part.tokens), part.begin);
            }
        }
        return load;
    }
    /// Or as few tokens of prompts as are computed whatever they take. Steps do not count whose sequences are
    /// others than those that decoded before: one found no page, was cancelled, or started with one token
    /// left.
    [[nodiscard]] bool is_within_stretch(const std::vector<decoder::StepPart>& parts) {
        const decoder::StepLoad load = load_of(parts);
        const std::set<decoder::RequestId> before = std::exchange(decoding_, {});
        std::set<decoder::RequestId> left_out = before;
        bool starts_decoding = false;
        for (const decoder::StepPart& part : parts) {
            left_out.erase(part.request);
            if (part.samples) decoding_.insert(part.request);
            starts_decoding |= part.tokens.size() == 1 && part.samples && !before.contains(part.request);
        }
        const bool all_have_pages =
            scheduler.running() == std::ssize(parts) || scheduler.pool().available() > 0;
        if (starts_decoding || !left_out.empty() || !all_have_pages) return true;
        if (options_.step_stretch == 0 || !load.is_mixed()) return true;
        if (load.prompt_tokens <= options_.least_prompt_tokens) return true;
        ++bounded_steps;
        return scheduler.expected_s(load) <= longest_s(load) * (1 + 1e-9);
    }
    /// What a step with prompts beside these texts may take. Where half of the places and more wait, as after
    /// a start, that goes by a step of all, however many these are.
    [[nodiscard]] double longest_s(decoder::StepLoad load) const {
        load.prompt_tokens = 0;
        const double stretch = std::max(options_.step_stretch, options_.max_step_stretch);
        double most_s = stretch * scheduler.expected_s(load);
        const std::int64_t present =
            std::min<std::int64_t>(scheduler.running() + scheduler.waiting(), options_.max_sequences);
        for (std::int64_t all = 2 * load.sequences; all <= present; ++all) {
            decoder::StepLoad step = load;
            step.sequences = all;
            step.keys = load.keys / load.sequences * all;
            most_s = std::max(most_s, options_.full_stretch * scheduler.expected_s(step));
        }
        return most_s;
    }
    /// Writes the part's places, which nobody else may see, and reads all before them.
    [[nodiscard]] bool compute(const decoder::StepPart& part) {
        const std::vector<int>& text = texts_[part.request];
        const int end = part.begin + static_cast<int>(part.tokens.size());
        if (end > static_cast<int>(text.size()) || part.samples != (end == static_cast<int>(text.size())))
            return false;
        if (static_cast<int>(part.pages.size()) < scheduler.pool().pages_for(end)) return false;
        std::uint64_t so_far = 0;
        for (int place = 0; place < end; ++place) {
            so_far = with(so_far, text[static_cast<std::size_t>(place)]);
            if (place < part.begin) {
                if (cell(part, place) != so_far) return false;
                continue;
            }
            const int page = part.pages[static_cast<std::size_t>(place / options_.page_size)];
            if (scheduler.pool().users(page) != 1 || scheduler.pool().is_known(page)) return false;
            cell(part, place) = so_far;
        }
        return std::ranges::equal(
            part.tokens, std::span(text).subspan(static_cast<std::size_t>(part.begin), part.tokens.size()));
    }
    /// Its text has ended or was cancelled since it was planned: what it writes nobody may read.
    [[nodiscard]] bool compute_for_nobody(const decoder::StepPart& part) {
        constexpr std::uint64_t nothing = 0xDEAD;
        ++parts_for_nobody;
        const int end = part.begin + static_cast<int>(part.tokens.size());
        for (int place = part.begin; place < end; ++place) {
            const int page = part.pages[static_cast<std::size_t>(place / options_.page_size)];
            if (scheduler.pool().is_known(page)) return false;
            cell(part, place) = nothing;
        }
        return true;
    }

    decoder::SchedulerOptions options_;
    std::vector<std::uint64_t> cells_;
    std::map<decoder::RequestId, std::vector<int>> texts_;
    std::map<decoder::RequestId, int> most_;      ///< new tokens
    std::set<decoder::RequestId> live_;           ///< requests that have neither ended nor been cancelled
    std::set<decoder::RequestId> coming_to_end_;  ///< with the step under way, by their lengths
    std::set<decoder::RequestId> decoding_;       ///< got a token in the last step, and have not ended
    std::vector<Written> ahead_;                  ///< the next step
    std::vector<int> awaited_;                    ///< the last step's tokens
};

using Random = std::minstd_rand;

inline int between(Random& random, int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
}

inline decoder::Request random_request(Random& random) {
    decoder::Request request{.prompt = std::vector<int>(static_cast<std::size_t>(between(random, 1, 14))),
                             .max_new_tokens = between(random, 1, 8)};
    for (int& token : request.prompt) token = between(random, 0, 1);  // many begin alike
    if (random() % 2 == 0) request.end_ids = {between(random, 0, vocabulary - 1)};
    return request;
}

/// Of steps without prompts, and of prompts.
inline decoder::StepCost random_cost(Random& random) {
    std::vector<decoder::StepTime> times;
    for (const std::int64_t sequences : {1, 3, 5}) {
        for (const std::int64_t keys : {1, 10})
            times.push_back(
                {{.sequences = sequences, .keys = sequences * keys}, 1e-3 * between(random, 1, 9)});
    }
    for (const std::int64_t rows : {2, 4, 8, 14})
        times.push_back({{.prompt_tokens = rows}, 1e-3 * between(random, 1, 9)});
    return decoder::StepCost(std::move(times));
}

inline decoder::SchedulerOptions random_options(Random& random) {
    const int page_size = between(random, 1, 4);
    const int sequences = between(random, 1, 5);
    return {.pages = (21 + page_size - 1) / page_size + between(random, 0, 12),
            .page_size = page_size,
            .max_sequences = sequences,
            .max_step_tokens = sequences + between(random, 0, 9),
            .step_prompt_tokens = std::max(0, between(random, -3, 5)),
            .step_stretch = random() % 2 == 0 ? 0 : 0.25 * between(random, 4, 12),
            .max_step_stretch = 0.25 * between(random, 0, 16),
            .full_stretch = 0.25 * between(random, 0, 16),
            .most_saving_steps = between(random, 0, 3),
            .most_waiting_share = 0.25 * between(random, 0, 8),
            .least_prompt_tokens = between(random, 1, 3),
            .least_prompt_part = between(random, 1, 6),
            .cost = random_cost(random),
            .max_context = 22};
}

}  // namespace hone::test::scheduling
