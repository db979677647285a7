#include "decoder/scheduling/scheduler.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "decoder/error.h"

using namespace hone::decoder;

namespace {

constexpr int vocabulary = 5;

/// Stands for all of a text up to a token: what a page has to hold at its place.
std::uint64_t with(std::uint64_t before, int token) {
    std::uint64_t mixed = (before ^ static_cast<std::uint64_t>(token + 1)) * 0x9E3779B97F4A7C15U;
    return mixed ^ (mixed >> 29);
}

/// A model whose next token depends on the whole text.
int next_token(std::uint64_t text) { return static_cast<int>((text >> 7) % vocabulary); }

std::vector<int> generated_alone(const Request& request) {
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
    explicit Machine(const SchedulerOptions& options)
        : scheduler(options),
          options_(options),
          cells_(static_cast<std::size_t>(options.pages * options.page_size)) {}

    RequestId add(const Request& request) {
        const RequestId id = scheduler.add(request);
        texts_[id] = request.prompt;
        most_[id] = request.max_new_tokens;
        live_.insert(id);
        return id;
    }
    bool cancel(RequestId id) {
        live_.erase(id);
        return scheduler.cancel(id);
    }
    /// Whether nothing was wrong. `meanwhile` is called several times while the step is under way.
    [[nodiscard]] bool step(Ahead ahead, const std::function<void()>& meanwhile) {
        const bool was_ahead = !ahead_.empty();
        const std::uint64_t preemptions = scheduler.counters().preemptions;
        const std::vector<StepPart>& parts = scheduler.next();
        if (was_ahead ? !are_as_planned(parts) : !is_right(parts, preemptions)) return false;
        if (!parts.empty()) scheduler.note_time(1e-3 * static_cast<double>(1 + (parts.size() * 7919) % 13));
        std::vector<int> drawn;
        for (const StepPart& part : parts) {
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
        for (const NewToken& token : scheduler.complete(drawn)) {
            if (!live_.contains(token.request)) return false;  // it was cancelled, or has ended
            texts_[token.request].push_back(token.token);
            made[token.request].push_back(token.token);
            if (token.end == NewToken::End::none) continue;
            ended.insert(token.request);
            live_.erase(token.request);
            decoding_.erase(token.request);
        }
        return true;
    }

    Scheduler scheduler;
    std::map<RequestId, std::vector<int>> made;
    std::set<RequestId> ended;
    int parts_for_nobody = 0;
    int bounded_steps = 0;

  private:
    /// A part as it was planned: what is written down of it before the step before has ended.
    struct Written {
        StepPart part;
        std::vector<int> tokens;
        std::vector<int> pages;
    };

    [[nodiscard]] std::uint64_t text_of(RequestId id, std::size_t length) {
        std::uint64_t text = 0;
        for (std::size_t i = 0; i < length; ++i) text = with(text, texts_[id][i]);
        return text;
    }
    [[nodiscard]] std::uint64_t& cell(const StepPart& part, int place) {
        const int page = part.pages[static_cast<std::size_t>(place / options_.page_size)];
        return cells_[static_cast<std::size_t>(page * options_.page_size + place % options_.page_size)];
    }
    /// Of what was just planned.
    [[nodiscard]] bool is_right(const std::vector<StepPart>& parts, std::uint64_t preemptions) {
        if (!is_within_limits(parts) || !has_oldest(parts)) return false;
        return is_within_stretch(parts) || scheduler.counters().preemptions != preemptions;
    }
    /// Texts whose last token is under way have no part in it.
    [[nodiscard]] bool plan_ahead(const std::vector<StepPart>& under_way) {
        for (const StepPart& part : under_way) {
            if (!part.samples || part.drawn + 1 < most_[part.request]) continue;
            coming_to_end_.insert(part.request);
            decoding_.erase(part.request);
        }
        const std::uint64_t preemptions = scheduler.counters().preemptions;
        const std::vector<StepPart>& parts = scheduler.next_ahead();
        if (&parts != &scheduler.next_ahead()) return false;
        for (const StepPart& part : parts)
            ahead_.push_back(
                {part, {part.tokens.begin(), part.tokens.end()}, {part.pages.begin(), part.pages.end()}});
        const bool fine = is_right(parts, preemptions);
        coming_to_end_.clear();
        return fine;
    }
    /// Of whoever is still there: tokens that were not known are those that were drawn meanwhile.
    [[nodiscard]] bool are_as_planned(const std::vector<StepPart>& parts) {
        const std::vector<Written> written = std::exchange(ahead_, {});
        if (written.size() != parts.size()) return false;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            const StepPart& part = parts[i];
            Written then = written[i];
            if (part.request != then.part.request || part.begin != then.part.begin) return false;
            if (then.part.awaited >= 0) then.tokens.back() = awaited_.at(std::size_t(then.part.awaited));
            if (!live_.contains(part.request)) continue;
            if (!std::ranges::equal(part.tokens, then.tokens)) return false;
            if (!std::ranges::equal(part.pages, then.pages)) return false;
        }
        return true;
    }
    [[nodiscard]] bool is_within_limits(const std::vector<StepPart>& parts) const {
        std::set<RequestId> requests;
        std::size_t tokens = 0;
        for (const StepPart& part : parts) {
            requests.insert(part.request);
            tokens += part.tokens.size();
            if (part.tokens.empty()) return false;
        }
        const bool has_nothing = scheduler.running() + scheduler.waiting() == 0;
        return requests.size() == parts.size() && static_cast<int>(parts.size()) <= options_.max_sequences &&
               static_cast<int>(tokens) <= options_.max_step_tokens && (parts.empty() == has_nothing);
    }
    /// The request that came first goes on in every step, so that each comes to its end.
    [[nodiscard]] bool has_oldest(const std::vector<StepPart>& parts) const {
        const auto oldest =
            std::ranges::find_if(live_, [&](RequestId id) { return !coming_to_end_.contains(id); });
        return oldest == live_.end() || std::ranges::find(parts, *oldest, &StepPart::request) != parts.end();
    }
    [[nodiscard]] static StepLoad load_of(const std::vector<StepPart>& parts) {
        StepLoad load;
        for (const StepPart& part : parts) {
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
    [[nodiscard]] bool is_within_stretch(const std::vector<StepPart>& parts) {
        const StepLoad load = load_of(parts);
        const std::set<RequestId> before = std::exchange(decoding_, {});
        std::set<RequestId> left_out = before;
        bool starts_decoding = false;
        for (const StepPart& part : parts) {
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
    [[nodiscard]] double longest_s(StepLoad load) const {
        load.prompt_tokens = 0;
        const double stretch = std::max(options_.step_stretch, options_.max_step_stretch);
        double most_s = stretch * scheduler.expected_s(load);
        const std::int64_t present =
            std::min<std::int64_t>(scheduler.running() + scheduler.waiting(), options_.max_sequences);
        for (std::int64_t all = 2 * load.sequences; all <= present; ++all) {
            StepLoad step = load;
            step.sequences = all;
            step.keys = load.keys / load.sequences * all;
            most_s = std::max(most_s, options_.full_stretch * scheduler.expected_s(step));
        }
        return most_s;
    }
    /// Writes the part's places, which nobody else may see, and reads all before them.
    [[nodiscard]] bool compute(const StepPart& part) {
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
    [[nodiscard]] bool compute_for_nobody(const StepPart& part) {
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

    SchedulerOptions options_;
    std::vector<std::uint64_t> cells_;
    std::map<RequestId, std::vector<int>> texts_;
    std::map<RequestId, int> most_;      ///< new tokens
    std::set<RequestId> live_;           ///< requests that have neither ended nor been cancelled
    std::set<RequestId> coming_to_end_;  ///< with the step under way, by their lengths
    std::set<RequestId> decoding_;       ///< requests that got a token in the last step and have not ended
    std::vector<Written> ahead_;         ///< the next step
    std::vector<int> awaited_;           ///< the last step's tokens
};

using Random = std::minstd_rand;

int between(Random& random, int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
}

Request random_request(Random& random) {
    Request request{.prompt = std::vector<int>(static_cast<std::size_t>(between(random, 1, 14))),
                    .max_new_tokens = between(random, 1, 8)};
    for (int& token : request.prompt) token = between(random, 0, 1);  // many begin alike
    if (random() % 2 == 0) request.end_ids = {between(random, 0, vocabulary - 1)};
    return request;
}

/// Of steps without prompts, and of prompts.
StepCost random_cost(Random& random) {
    std::vector<StepTime> times;
    for (const std::int64_t sequences : {1, 3, 5}) {
        for (const std::int64_t keys : {1, 10})
            times.push_back(
                {{.sequences = sequences, .keys = sequences * keys}, 1e-3 * between(random, 1, 9)});
    }
    for (const std::int64_t rows : {2, 4, 8, 14})
        times.push_back({{.prompt_tokens = rows}, 1e-3 * between(random, 1, 9)});
    return StepCost(std::move(times));
}

SchedulerOptions random_options(Random& random) {
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

/// What happened in many traces.
struct Seen {
    std::uint64_t preemptions = 0;
    std::uint64_t shared_tokens = 0;
    int parts_for_nobody = 0;
    int bounded_steps = 0;  ///< whose time the scheduler was held to
};

/// A trace: requests come and are cancelled between steps and while one is under way, and steps are planned
/// behind the one before or while it is computed. What went wrong; empty: nothing.
std::string run_trace(unsigned seed, Seen& seen) {
    Random random(seed + 1);
    const int plans_ahead = between(random, 0, 4);  // of four steps
    Machine machine(random_options(random));
    std::map<RequestId, std::vector<int>> expected;
    int left = between(random, 1, 9);
    const auto come = [&] {
        const Request request = random_request(random);
        expected[machine.add(request)] = generated_alone(request);
        --left;
    };
    const auto leave = [&] {
        const auto id =
            static_cast<RequestId>(between(random, 1, static_cast<int>(expected.rbegin()->first)));
        if (machine.cancel(id)) expected.erase(id);
    };
    const auto meanwhile = [&] {
        if (left > 0 && random() % 4 == 0) come();
        if (!expected.empty() && random() % 16 == 0) leave();
    };
    for (int step = 0; left > 0 || !machine.scheduler.idle(); ++step) {
        if (step > 2000) return "it does not end";
        while (left > 0 && random() % 3 != 0) come();
        if (!expected.empty() && random() % 16 == 0) {
            leave();
            if (expected.empty() && left == 0 && machine.scheduler.idle()) break;
        }
        const Ahead ahead = between(random, 1, 4) > plans_ahead ? Ahead::no
                            : random() % 8 == 0                 ? Ahead::dropped
                                                                : Ahead::yes;
        if (!machine.step(ahead, meanwhile)) return "a step is wrong";
    }
    for (const auto& [id, tokens] : expected) {
        if (machine.made[id] != tokens) return "a text is not as it would be alone";
        if (!machine.ended.contains(id)) return "an end is not told";
    }
    if (machine.scheduler.pool().available() != machine.scheduler.pool().size()) return "pages are lost";
    seen.preemptions += machine.scheduler.counters().preemptions;
    seen.shared_tokens += machine.scheduler.counters().shared_tokens;
    seen.parts_for_nobody += machine.parts_for_nobody;
    seen.bounded_steps += machine.bounded_steps;
    return "";
}

const SchedulerOptions usual{.pages = 64,
                             .page_size = 4,
                             .max_sequences = 8,
                             .max_step_tokens = 16,
                             .least_prompt_part = 1,
                             .max_context = 200};

Request request_of(int prompt, int more, int first = 0) {
    Request request{.prompt = {}, .max_new_tokens = more};
    for (int i = 0; i < prompt; ++i) request.prompt.push_back(first + i);
    return request;
}

/// Steps of one text and of eight take so long, prompts a millisecond a row.
StepCost cost_of_a_millisecond_a_row(double one_s, double eight_s) {
    std::vector<StepTime> times{{{.sequences = 1, .keys = 1}, one_s}, {{.sequences = 8, .keys = 8}, eight_s}};
    for (int rows = 1; rows <= 108; ++rows) times.push_back({{.prompt_tokens = rows}, 1e-3 * rows});
    return StepCost(times);
}

/// What a step computes of prompts of 60 tokens, of which so many wait, beside texts that decode.
std::int64_t prompt_tokens_beside(const SchedulerOptions& options, int decoding, int waiting) {
    Scheduler scheduler(options);
    for (int i = 0; i < decoding; ++i) static_cast<void>(scheduler.add(request_of(1, 50, 10 * i)));
    static_cast<void>(scheduler.next());
    static_cast<void>(scheduler.complete(std::vector<int>(static_cast<std::size_t>(decoding), 1)));
    for (int i = 0; i < waiting; ++i) static_cast<void>(scheduler.add(request_of(60, 1, 1000 * i)));
    static_cast<void>(scheduler.next());
    CHECK(scheduler.load().sequences == decoding);
    return scheduler.load().prompt_tokens;
}

}  // namespace

TEST_CASE(
    "a hundred thousand random traces: texts are as they would be alone, and no page is lost or shared "
    "wrongly") {
    Seen seen;
    for (unsigned seed = 0; seed < 100'000; ++seed) {
        const std::string wrong = run_trace(seed, seen);
        REQUIRE_MESSAGE(wrong.empty(), "seed ", seed, ": ", wrong);
    }
    CHECK(seen.preemptions > 10'000);
    CHECK(seen.shared_tokens > 100'000);
    CHECK(seen.parts_for_nobody > 10'000);
    CHECK(seen.bounded_steps > 10'000);
}

TEST_CASE(
    "steps planned while the one before is computed are those planned behind it, where lengths end texts") {
    std::uint64_t preemptions = 0;
    for (unsigned seed = 0; seed < 10'000; ++seed) {
        CAPTURE(seed);
        Random random(seed + 1);
        const SchedulerOptions options = random_options(random);
        Scheduler ahead(options);
        Scheduler behind(options);
        int left = between(random, 1, 9);
        const auto come = [&] {
            for (; left > 0 && random() % 3 != 0; --left) {
                Request request = random_request(random);
                request.end_ids.clear();
                static_cast<void>(ahead.add(request));
                static_cast<void>(behind.add(request));
            }
        };
        const auto is_same = [](const StepPart& a, const StepPart& b) {
            return a.request == b.request && a.begin == b.begin && a.drawn == b.drawn &&
                   a.samples == b.samples && a.tokens.size() == b.tokens.size() &&
                   std::ranges::equal(a.pages, b.pages);
        };
        come();
        while (left > 0 || !behind.idle()) {
            REQUIRE(std::ranges::equal(ahead.next(), behind.next(), is_same));
            std::vector<int> drawn;
            for (const StepPart& part : behind.next()) {
                if (part.samples) drawn.push_back(between(random, 0, vocabulary - 1));
            }
            for (Scheduler* one : {&ahead, &behind}) {
                one->note_time(1e-3 * static_cast<double>(1 + drawn.size()));
                one->note_begun();
            }
            if (seed % 2 == 0) come();
            static_cast<void>(ahead.next_ahead());
            CHECK(ahead.complete(drawn).size() == behind.complete(drawn).size());
            if (behind.idle()) come();
        }
        CHECK(ahead.idle());
        preemptions += ahead.counters().preemptions;
        REQUIRE(ahead.counters().preemptions == behind.counters().preemptions);
    }
    CHECK(preemptions > 1'000);
}

TEST_CASE("decoding goes on beside a long prompt, which takes what the step has left") {
    Scheduler scheduler(usual);
    const RequestId first = scheduler.add(request_of(3, 5));
    CHECK(scheduler.next().size() == 1);
    static_cast<void>(scheduler.complete(std::vector{1}));
    const RequestId second = scheduler.add(request_of(40, 1, 100));
    int computed = 0;
    for (int step = 0; step < 2; ++step) {
        const std::vector<StepPart>& parts = scheduler.next();
        REQUIRE(parts.size() == 2);
        CHECK((parts[0].request == first && parts[0].tokens.size() == 1 && parts[0].samples));
        CHECK((parts[1].request == second && parts[1].tokens.size() == 15 && parts[1].begin == computed));
        CHECK_FALSE(parts[1].samples);
        computed += 15;
        CHECK(scheduler.complete(std::vector{2}).size() == 1);
    }
    CHECK(scheduler.next()[1].samples);
    CHECK(scheduler.counters().prompt_tokens == 3 + 2 * 15);
    CHECK(scheduler.counters().computed_tokens == 3 + 2 * 16);
}

TEST_CASE("beside a sequence that decodes, prompts take no more than they may; alone, all there is") {
    SchedulerOptions options = usual;
    options.step_prompt_tokens = 6;
    Scheduler scheduler(options);
    static_cast<void>(scheduler.add(request_of(16, 5)));
    CHECK(scheduler.next().at(0).tokens.size() == 16);
    static_cast<void>(scheduler.complete(std::vector{1}));
    static_cast<void>(scheduler.add(request_of(9, 1, 100)));
    static_cast<void>(scheduler.add(request_of(9, 1, 200)));
    const std::vector<StepPart>& parts = scheduler.next();
    REQUIRE(parts.size() == 3);
    CHECK(parts[0].tokens.size() == 1);
    CHECK(parts[1].tokens.size() == 3);
    CHECK(parts[2].tokens.size() == 3);
}

TEST_CASE(
    "beside a sequence that decodes, prompts take no longer than they may; alone, as long as it takes") {
    SchedulerOptions options = usual;
    options.step_stretch = 1.5;
    options.max_step_stretch = 1.5;
    options.least_prompt_tokens = 2;
    options.cost = StepCost({{{.sequences = 1, .keys = 1}, 10e-3},
                             {{.sequences = 8, .keys = 8}, 10e-3},
                             {{.prompt_tokens = 1}, 10e-3},
                             {{.prompt_tokens = 5}, 14e-3},
                             {{.prompt_tokens = 16}, 30e-3}});
    Scheduler scheduler(options);
    static_cast<void>(scheduler.add(request_of(16, 9)));
    CHECK(scheduler.next().at(0).tokens.size() == 16);
    static_cast<void>(scheduler.complete(std::vector{1}));
    static_cast<void>(scheduler.add(request_of(9, 1, 100)));
    CHECK(scheduler.next().at(1).tokens.size() == 4);
    CHECK(scheduler.load() == StepLoad{.sequences = 1, .keys = 17, .prompt_tokens = 4});
    CHECK(scheduler.expected_s() == doctest::Approx(14e-3));
    for (int step = 0; step < 100; ++step)
        scheduler.note_time(28e-3);  // the prompt takes longer than was measured
    static_cast<void>(scheduler.complete(std::vector{2}));
    CHECK(scheduler.counters().mixed_steps == 1);
    CHECK(scheduler.next().at(1).tokens.size() == 2);
    CHECK(scheduler.load() == StepLoad{.sequences = 1, .keys = 18, .prompt_tokens = 2, .prompt_begin = 4});
}

TEST_CASE("the more of the texts wait for their prompts, the longer a step may take") {
    SchedulerOptions options = usual;
    options.max_step_tokens = 100;
    options.step_stretch = 1;
    options.max_step_stretch = 5;
    options.least_prompt_tokens = 1;
    options.cost = cost_of_a_millisecond_a_row(10e-3, 10e-3);
    const auto prompt_tokens = [&](int decoding, int waiting) {
        return prompt_tokens_beside(options, decoding, waiting);
    };
    CHECK(prompt_tokens(2, 4) == 40);  // half of the texts that there is room for: all of the stretch
    CHECK(prompt_tokens(6, 2) == 40);  // a quarter of them
    CHECK(prompt_tokens(7, 1) == 20);  // an eighth
    CHECK(prompt_tokens(1, 1) == 20);  // the same
    CHECK(prompt_tokens(7, 5) == 20);  // there is room for one
    options.max_step_stretch = 0;
    options.step_stretch = 1.5;
    CHECK(prompt_tokens(6, 2) == 5);
}

TEST_CASE(
    "where all places are taken, prompts come in the parts that cost the least, and wait until they make "
    "one") {
    SchedulerOptions options = usual;
    options.pages = 256;
    options.max_step_tokens = 100;
    options.step_stretch = 1.2;
    options.max_step_stretch = 3;
    options.least_prompt_tokens = 1;
    options.most_waiting_share = 0.25;
    options.most_saving_steps = 3;
    std::vector<StepTime> times{{{.sequences = 1, .keys = 1}, 10e-3}, {{.sequences = 8, .keys = 8}, 10e-3}};
    // 12 tokens take as long as 1: the tiles of products have so many rows.
    for (const auto& [rows, ms] : {std::pair{7, 10.0}, {19, 15.0}, {31, 19.9}, {43, 35.0}})
        times.push_back({{.prompt_tokens = rows}, 1e-3 * ms});
    options.cost = StepCost(times);
    const auto grown = [&](int texts) {
        Scheduler scheduler(options);
        for (int i = 0; i < texts; ++i) static_cast<void>(scheduler.add(request_of(1, 50, 10 * i)));
        static_cast<void>(scheduler.next());
        static_cast<void>(scheduler.complete(std::vector<int>(static_cast<std::size_t>(texts), 1)));
        return scheduler;
    };
    const auto step = [](Scheduler& scheduler) {
        std::vector<int> drawn;
        for (const StepPart& part : scheduler.next()) {
            if (part.samples) drawn.push_back(1);
        }
        const std::int64_t tokens = scheduler.load().prompt_tokens;
        static_cast<void>(scheduler.complete(drawn));
        return tokens;
    };
    Scheduler full = grown(7);
    static_cast<void>(full.add(request_of(30, 9, 1000)));
    CHECK(step(full) == 24);  // as many as wait for the largest of the cheapest
    CHECK(step(full) == 0);   // 6 are left
    CHECK(step(full) == 0);
    CHECK(step(full) == 0);
    CHECK(step(full) == 6);
    Scheduler saving = grown(7);
    static_cast<void>(saving.add(request_of(9, 9, 1000)));
    CHECK(step(saving) == 0);
    CHECK(saving.waiting() == 1);
    Scheduler free = grown(4);
    static_cast<void>(free.add(request_of(9, 9, 1000)));
    CHECK(step(free) > 0);
    options.most_waiting_share = 0.1;  // a place that is empty counts for more
    Scheduler few = grown(7);
    static_cast<void>(few.add(request_of(9, 9, 1000)));
    CHECK(step(few) == 9);
    options.most_waiting_share = 0.25;
    options.max_step_stretch = 1.5;
    Scheduler even = grown(7);
    static_cast<void>(even.add(request_of(30, 9, 1000)));
    CHECK(step(even) == 12);
    options.most_saving_steps = 0;
    Scheduler at_once = grown(7);
    static_cast<void>(at_once.add(request_of(9, 9, 1000)));
    CHECK(step(at_once) == 9);
}

TEST_CASE("the oldest text's prompt goes on though few of its tokens wait") {
    SchedulerOptions options = usual;
    options.pages = 256;
    options.max_step_tokens = 40;
    options.step_stretch = 1.2;
    options.max_step_stretch = 3;
    options.most_waiting_share = 1;
    std::vector<StepTime> times{{{.sequences = 1, .keys = 1}, 10e-3}, {{.sequences = 8, .keys = 8}, 10e-3}};
    for (const auto& [rows, ms] : {std::pair{8, 10.0}, {44, 15.0}})
        times.push_back({{.prompt_tokens = rows}, 1e-3 * ms});
    options.cost = StepCost(times);
    Scheduler scheduler(options);
    static_cast<void>(scheduler.add(request_of(50, 9, 1000)));
    for (int i = 0; i < 7; ++i) static_cast<void>(scheduler.add(request_of(1, 50, 10 * i)));
    static_cast<void>(scheduler.next());
    std::vector<int> drawn(7, 1);
    REQUIRE(scheduler.load().prompt_tokens > 7);
    static_cast<void>(scheduler.complete(drawn));
    static_cast<void>(scheduler.next());
    CHECK(scheduler.load().sequences == 7);
    CHECK(scheduler.load().prompt_tokens > 0);
}

TEST_CASE("where half of the places wait for prompts, a step may take as long as one of all will") {
    SchedulerOptions options = usual;
    options.pages = 256;
    options.max_step_tokens = 100;
    options.step_stretch = 1;
    options.max_step_stretch = 3;
    options.full_stretch = 2;
    options.least_prompt_tokens = 1;
    options.cost = cost_of_a_millisecond_a_row(2e-3, 16e-3);
    const auto prompt_tokens = [&](int decoding, int waiting) {
        return prompt_tokens_beside(options, decoding, waiting);
    };
    CHECK(prompt_tokens(2, 6) == 28);  // 4 ms without, 32 with: twice what eight take
    CHECK(prompt_tokens(2, 20) == 28);
    CHECK(prompt_tokens(5, 3) == 20);  // three times the 10 ms without: fewer wait
    options.max_step_stretch = 0;
    CHECK(prompt_tokens(2, 6) == 1);
}

TEST_CASE("texts for which the cache has no room leave a step to the prompt that has begun") {
    SchedulerOptions options = usual;
    const PagePool pool(1, options.page_size);
    options.max_step_tokens = 100;
    options.step_stretch = 1;
    options.max_step_stretch = 5;
    options.least_prompt_tokens = 1;
    options.pages = 3 * pool.pages_for(4) + pool.pages_for(20) + pool.pages_for(101) - 1;
    options.cost = cost_of_a_millisecond_a_row(10e-3, 10e-3);
    Scheduler scheduler(options);
    for (int i = 0; i < 3; ++i) static_cast<void>(scheduler.add(request_of(1, 6, 10 * i)));
    static_cast<void>(scheduler.next());
    static_cast<void>(scheduler.complete(std::vector{1, 1, 1}));
    for (int i = 0; i < 4; ++i) static_cast<void>(scheduler.add(request_of(100, 1, 1000 * i)));
    static_cast<void>(scheduler.next());
    CHECK(scheduler.load().prompt_tokens == 20);  // half of the stretch: others seemed to follow
    static_cast<void>(scheduler.complete(std::vector{1, 1, 1}));
    static_cast<void>(scheduler.next());
    CHECK(scheduler.waiting() == 3);
    CHECK(scheduler.load().prompt_tokens == 40);
}

TEST_CASE("prompts that wait together share a step") {
    Scheduler scheduler(usual);
    for (const int first : {0, 100, 200}) static_cast<void>(scheduler.add(request_of(40, 1, first)));
    const std::vector<StepPart>& parts = scheduler.next();
    REQUIRE(parts.size() == 3);
    CHECK(parts[0].tokens.size() == 8);
    CHECK(parts[1].tokens.size() == 4);
    CHECK(parts[2].tokens.size() == 4);
    SchedulerOptions options = usual;
    options.least_prompt_part = 10;
    Scheduler in_larger_parts(options);
    for (const int first : {0, 100}) static_cast<void>(in_larger_parts.add(request_of(40, 1, first)));
    REQUIRE(in_larger_parts.next().size() == 2);
    CHECK(in_larger_parts.next()[0].tokens.size() == 10);
    CHECK(in_larger_parts.next()[1].tokens.size() == 6);
}

TEST_CASE("a prompt that begins as another one is computed from where they part") {
    Scheduler scheduler(usual);
    static_cast<void>(scheduler.add(request_of(10, 1)));
    static_cast<void>(scheduler.next());
    static_cast<void>(scheduler.complete(std::vector{7}));
    CHECK(scheduler.idle());
    static_cast<void>(scheduler.add(request_of(12, 1)));
    const StepPart& part = scheduler.next().at(0);
    CHECK(part.begin == 8);
    CHECK(part.tokens.size() == 4);
    CHECK(part.samples);
    CHECK(scheduler.counters().shared_tokens == 8);
}

TEST_CASE("a prompt that is known to its end is computed for its last token alone") {
    Scheduler scheduler(usual);
    for (int round = 0; round < 2; ++round) {
        static_cast<void>(scheduler.add(request_of(9, 1)));
        CHECK(scheduler.next().at(0).begin == 8 * round);
        static_cast<void>(scheduler.complete(std::vector{7}));
    }
}

TEST_CASE("where pages run out the youngest gives way, and the oldest never does") {
    SchedulerOptions small = usual;
    small.pages = 4;
    Scheduler scheduler(small);
    const RequestId old = scheduler.add(request_of(6, 11));
    const RequestId young = scheduler.add(request_of(6, 11, 50));
    std::map<RequestId, int> made;
    while (!scheduler.idle()) {
        std::vector<int> drawn;
        for (const StepPart& part : scheduler.next()) {
            if (part.samples) drawn.push_back(static_cast<int>(part.request) * 1000 + made[part.request]);
        }
        for (const NewToken& token : scheduler.complete(drawn)) {
            ++made[token.request];
            if (token.request == young && token.end != NewToken::End::none) CHECK(made[old] == 11);
        }
    }
    CHECK(made[old] == 11);
    CHECK(made[young] == 11);
    CHECK(scheduler.counters().preemptions >= 1);
}

TEST_CASE("a text that does not fit beside the others waits for them, and those behind it wait, too") {
    SchedulerOptions small = usual;
    small.pages = 4;
    Scheduler scheduler(small);
    static_cast<void>(scheduler.add(request_of(6, 2)));
    static_cast<void>(scheduler.add(request_of(9, 1, 50)));
    static_cast<void>(scheduler.add(request_of(1, 1, 90)));
    for (int step = 0; step < 2; ++step) {
        CHECK(scheduler.next().size() == 1);
        static_cast<void>(scheduler.complete(std::vector{1}));
    }
    CHECK(scheduler.next().size() == 2);
    CHECK(scheduler.counters().preemptions == 0);
}

TEST_CASE("a text ends with one of its end ids, or with its length") {
    Scheduler scheduler(usual);
    Request request = request_of(2, 3);
    request.end_ids = {9};
    const RequestId id = scheduler.add(request);
    static_cast<void>(scheduler.next());
    CHECK(scheduler.complete(std::vector{4})[0].end == NewToken::End::none);
    static_cast<void>(scheduler.next());
    const NewToken last = scheduler.complete(std::vector{9})[0];
    CHECK((last.request == id && last.token == 9 && last.end == NewToken::End::end_id));
    CHECK(scheduler.idle());
    static_cast<void>(scheduler.add(request_of(2, 1)));
    static_cast<void>(scheduler.next());
    CHECK(scheduler.complete(std::vector{4})[0].end == NewToken::End::length);
}

TEST_CASE("who leaves frees pages, also while a step is under way") {
    Scheduler scheduler(usual);
    const RequestId waiting_one = scheduler.add(request_of(4, 4));
    CHECK(scheduler.cancel(waiting_one));
    CHECK_FALSE(scheduler.cancel(waiting_one));
    CHECK(scheduler.idle());
    CHECK(scheduler.next().empty());
    const RequestId id = scheduler.add(request_of(4, 4));
    CHECK(scheduler.next().size() == 1);
    CHECK(&scheduler.next() == &scheduler.next());
    CHECK(scheduler.cancel(id));
    CHECK_FALSE(scheduler.cancel(id));
    CHECK(scheduler.pool().available() == 64);
    CHECK_FALSE(scheduler.idle());
    CHECK(scheduler.complete(std::vector{1}).empty());
    CHECK(scheduler.idle());
}

TEST_CASE("a step planned ahead waits for tokens, and has nobody in it whose length ends with one of them") {
    Scheduler scheduler(usual);
    const RequestId first = scheduler.add(request_of(3, 2));
    const RequestId second = scheduler.add(request_of(2, 9, 50));
    const RequestId third = scheduler.add(request_of(20, 9, 100));
    CHECK(scheduler.next_ahead().empty());
    CHECK(scheduler.next().size() == 3);
    CHECK(scheduler.next_ahead().empty());  // it has not begun
    scheduler.note_begun();
    REQUIRE(scheduler.next_ahead().size() == 3);
    CHECK((scheduler.next_ahead()[0].awaited == 0 && scheduler.next_ahead()[1].awaited == 1));
    CHECK((scheduler.next_ahead()[2].awaited == -1 && scheduler.next_ahead()[2].begin == 11));
    CHECK(scheduler.next_ahead()[0].drawn == 1);
    CHECK(scheduler.complete(std::vector{7, 8}).size() == 2);
    CHECK(scheduler.next()[0].tokens.front() == 7);
    CHECK(scheduler.next()[1].tokens.front() == 8);
    scheduler.note_begun();
    const std::vector<StepPart>& ahead = scheduler.next_ahead();
    REQUIRE(ahead.size() == 2);
    CHECK((ahead[0].request == second && ahead[0].awaited == 1));
    CHECK((ahead[1].request == third && ahead[1].awaited == 2));
    CHECK(scheduler.running() == 2);
    const std::vector<NewToken> made = scheduler.complete(std::vector{1, 2, 3});
    REQUIRE(made.size() == 3);
    CHECK((made[0].request == first && made[0].end == NewToken::End::length));
    CHECK((made[2].is_first && made[2].token == 3));
}

TEST_CASE("a text that ends by its end id while its next step is planned is computed once more, for nobody") {
    Scheduler scheduler(usual);
    Request request = request_of(4, 9);
    request.end_ids = {7};
    const RequestId ends = scheduler.add(request);
    const RequestId stays = scheduler.add(request_of(2, 9, 50));
    static_cast<void>(scheduler.next());
    scheduler.note_begun();
    CHECK(scheduler.next_ahead().size() == 2);
    const std::vector<NewToken> made = scheduler.complete(std::vector{7, 1});
    REQUIRE(made.size() == 2);
    CHECK((made[0].request == ends && made[0].end == NewToken::End::end_id));
    CHECK(scheduler.pool().size() - scheduler.pool().available() == 1);
    CHECK_FALSE(scheduler.cancel(ends));
    CHECK(scheduler.next().size() == 2);
    scheduler.note_begun();
    CHECK(scheduler.next_ahead().size() == 1);
    const std::vector<NewToken> more = scheduler.complete(std::vector{7, 2});
    REQUIRE(more.size() == 1);
    CHECK((more[0].request == stays && more[0].token == 2));
}

TEST_CASE("who is cancelled when the next step is planned hears nothing of either, and his place is free") {
    SchedulerOptions options = usual;
    options.max_sequences = 2;
    Scheduler scheduler(options);
    const RequestId leaves = scheduler.add(request_of(4, 2));
    const RequestId stays = scheduler.add(request_of(2, 9, 50));
    const RequestId comes = scheduler.add(request_of(2, 9, 70));
    static_cast<void>(scheduler.next());
    scheduler.note_begun();
    CHECK(scheduler.next_ahead().size() == 2);
    CHECK(scheduler.cancel(leaves));
    CHECK_FALSE(scheduler.cancel(leaves));
    CHECK(scheduler.has_room_for_next());
    REQUIRE(scheduler.complete(std::vector{1, 2}).size() == 1);
    scheduler.note_begun();
    REQUIRE(scheduler.next_ahead().size() == 2);
    CHECK((scheduler.next_ahead()[0].request == stays && scheduler.next_ahead()[1].request == comes));
    const std::vector<NewToken> made = scheduler.complete(std::vector{3, 4});
    REQUIRE(made.size() == 1);
    CHECK((made[0].request == stays && made[0].token == 4));
}

TEST_CASE("a step that was planned ahead and is dropped is planned anew, with who came since") {
    Scheduler scheduler(usual);
    const RequestId first = scheduler.add(request_of(3, 9));
    static_cast<void>(scheduler.next());
    scheduler.note_begun();
    CHECK(scheduler.next_ahead().size() == 1);
    CHECK_FALSE(scheduler.has_room_for_next());
    const RequestId second = scheduler.add(request_of(2, 9, 50));
    CHECK(scheduler.has_room_for_next());
    scheduler.drop_ahead();
    CHECK(scheduler.complete(std::vector{5}).size() == 1);
    const std::vector<StepPart>& parts = scheduler.next();
    REQUIRE(parts.size() == 2);
    CHECK((parts[0].request == first && parts[0].tokens.front() == 5 && parts[0].awaited == -1));
    CHECK(parts[1].request == second);
}

TEST_CASE("what cannot be is refused by name and value") {
    SchedulerOptions options = usual;
    options.max_step_tokens = 7;
    CHECK_THROWS_WITH_AS(Scheduler{options}, "max_step_tokens is 7; allowed: from max_sequences, 8",
                         DecoderError);
    options = usual;
    options.max_context = 0;
    CHECK_THROWS_AS(Scheduler{options}, DecoderError);
    Scheduler scheduler(usual);
    CHECK_THROWS_WITH_AS(static_cast<void>(scheduler.add(request_of(0, 1))),
                         "the prompt's number of tokens is 0; allowed: from 1", DecoderError);
    CHECK_THROWS_AS(static_cast<void>(scheduler.add(request_of(1, 0))), DecoderError);
    CHECK_THROWS_WITH_AS(static_cast<void>(scheduler.add(request_of(150, 51))),
                         "prompt and max_new_tokens together is 201; allowed: up to the context, 200",
                         DecoderError);
    options = usual;
    options.pages = 8;
    Scheduler small(options);
    CHECK_THROWS_WITH_AS(static_cast<void>(small.add(request_of(30, 4))), doctest::Contains("up to 33"),
                         DecoderError);
    CHECK_NOTHROW(static_cast<void>(small.add(request_of(30, 3))));
    static_cast<void>(small.next());
    CHECK_THROWS_WITH_AS(static_cast<void>(small.complete(std::vector{1, 2})),
                         doctest::Contains("drawn tokens is 2"), DecoderError);
    CHECK(small.idle() == false);
}
