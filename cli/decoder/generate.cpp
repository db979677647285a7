// hone generate: the text that a model continues a prompt with.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <climits>
#include <mutex>
#include <utility>

#include <unistd.h>

#include "cli/command_list.h"
#include "cli/decoder/chat.h"
#include "cli/decoder/loaded_model.h"
#include "cli/decoder/step_condition.h"
#include "cli/decoder/weight_format.h"
#include "cli/interrupt.h"
#include "cli/targets.h"
#include "decoder/engine/engine.h"
#include "decoder/engine/text_output.h"
#include "decoder/error.h"
#include "kernel_templates/text.h"
#include "runtime/system/steady_condition.h"
#include "runtime/system/text_file.h"
#include "tuner/models/known_models.h"

namespace hone::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
    std::string model;
    std::string prompt;
    std::string prompt_file;
    WeightFormatOptions format;
    KvCacheOption kv_cache;
    std::vector<std::string> stops;
    std::string prompt_ids;
    std::int64_t prompt_tokens = 0;
    int new_tokens = 0;  ///< 0: as is usual
    int sequences = 1;
    int device = 0;
    std::int64_t context = 0;
    std::int64_t seed = 0;
    std::int64_t top_k = 0;
    double temperature = 0;
    double top_p = 1;
    double min_p = 0;
    bool made_up = false;
    bool stats = false;
    bool ignore_end = false;
    bool chat = false;
    bool no_thinking = false;
    std::string system;
};

[[noreturn]] void refuse(const std::string& what, const std::string& hint) {
    throw Failure::usage("bad_option", what, hint);
}

/// What happened when, in the words of those who serve models.
struct Times {
    Clock::time_point asked;
    std::vector<Clock::time_point> tokens;

    [[nodiscard]] double ms_to_first() const { return ms(asked, tokens.front()); }
    /// Between a token and the next.
    [[nodiscard]] std::vector<double> ms_between() const {
        std::vector<double> between;
        for (std::size_t i = 1; i < tokens.size(); ++i) between.push_back(ms(tokens[i - 1], tokens[i]));
        std::ranges::sort(between);
        return between;
    }
    static double ms(Clock::time_point from, Clock::time_point to) {
        return std::chrono::duration<double, std::milli>(to - from).count();
    }
};

/// A text in the making, between the engine's thread and the command's.
struct Growing {
    std::mutex mutex;
    runtime::SteadyCondition news;
    std::vector<int> tokens;
    Times times;
    std::string failure;
    bool ended = false;

    decoder::Listener listener() {
        return {.on_token =
                    [this](const decoder::NewToken& token) {
                        const std::lock_guard lock(mutex);
                        tokens.push_back(token.token);
                        times.tokens.push_back(Clock::now());
                        ended = token.end != decoder::NewToken::End::none;
                        news.notify_all();
                    },
                .on_failure =
                    [this](const std::string& why) {
                        const std::lock_guard lock(mutex);
                        failure = why;
                        ended = true;
                        news.notify_all();
                    }};
    }
};

double at_share(const std::vector<double>& sorted, double share) {
    if (sorted.empty()) return 0;
    return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

class Generation {
  public:
    Generation(const Options& options, const Console& console)
        : options_(options), console_(console), new_tokens_(wanted_tokens()) {}

    Outcome run() {
        if (std::ranges::count(options_.stops, "") > 0)
            refuse("--stop: an empty text, with which every text ends; allowed: one of a byte or more", "");
        if (options_.chat) return chat();
        if (!options_.system.empty()) refuse("--system goes with --chat", "");
        if (options_.no_thinking) refuse("--no-thinking goes with --chat", "");
        require_one_prompt();
        const std::atomic<bool>& stop = stop_on_interrupt("stopping after this token (again: stop at once)");
        if (wants_text()) tokenizer_.emplace(decoder::Tokenizer::load(options_.model));
        const std::vector<int> prompt = prompt_ids();
        load(static_cast<std::int64_t>(prompt.size()));
        std::vector<std::unique_ptr<Growing>> texts;
        const std::string text = grown(prompt, texts, stop);
        Outcome done = outcome(prompt, text, texts);
        if (stop) {
            done.exit = ExitCode::interrupted;
            done.error = {"interrupted", "stopped by Ctrl-C, before the end of the text", ""};
        }
        return done;
    }

  private:
    /// What makes no conversation.
    void require_chat_alone() const {
        const bool prompts = !options_.prompt.empty() || !options_.prompt_file.empty() ||
                             !options_.prompt_ids.empty() || options_.prompt_tokens > 0;
        if (prompts || options_.made_up || options_.sequences > 1 || options_.stats || console_.json)
            refuse("--chat reads what is said from stdin, and prints answers alone",
                   "leave out prompts, --made-up, --sequences, --stats and --json");
    }

    void require_one_prompt() const {
        const bool has_text = !options_.prompt.empty() || !options_.prompt_file.empty();
        const bool has_ids = !options_.prompt_ids.empty();
        const bool has_tokens = options_.prompt_tokens > 0;
        if (has_text + has_ids + has_tokens > 1)
            refuse("a text, --prompt-ids and --prompt-tokens are prompts by themselves",
                   "one of -p and --prompt-file, --prompt-ids, and --prompt-tokens");
        if (has_text && options_.made_up)
            refuse("--made-up has no tokenizer, which a text needs", "--prompt-tokens, or --prompt-ids");
        if (!options_.stops.empty() && !wants_text())
            refuse("--stop looks at text, and tokens are all that there is without -p or --prompt-file",
                   "leave it out");
    }

    Outcome chat() {
        require_chat_alone();
        const std::atomic<bool>& stop =
            stop_on_interrupt("stopping after this token, or at the end of this line (again: stop at once)");
        tokenizer_.emplace(decoder::Tokenizer::load(options_.model));
        const auto chat = decoder::ChatTemplate::load(options_.model, *tokenizer_);
        if (options_.no_thinking && !chat.mentions("enable_thinking"))
            refuse("--no-thinking: the model's chat template has no such choice", "leave it out");
        decoder::ModelOptions how = read_model();
        how.max_sequences = 1;
        how.max_context = options_.context;
        load_for(std::move(how));
        decoder::Engine engine(*model_);
        decoder::ChatVariables variables = decoder::ChatVariables::object();
        if (options_.no_thinking) variables["enable_thinking"] = false;
        const ChatOptions chat_options{.answer = request({}, 0),
                                       .stops = options_.stops,
                                       .system = options_.system,
                                       .variables = std::move(variables)};
        const bool on_terminal = ::isatty(STDIN_FILENO) != 0;
        const std::int64_t answers = Chat(engine, *tokenizer_, chat, chat_options).run(stop, on_terminal);
        return {.data = {{"model", options_.model}, {"answers", answers}}};
    }

    void load(std::int64_t prompt_tokens) {
        decoder::ModelOptions how = read_model();
        const std::int64_t known = how.made_up ? how.made_up->max_position_embeddings
                                               : how.description->model.max_position_embeddings;
        const std::int64_t most = options_.context > 0 ? options_.context : known;
        if (options_.new_tokens == 0 && most > prompt_tokens)
            new_tokens_ = static_cast<int>(std::min<std::int64_t>(new_tokens_, most - prompt_tokens));
        const std::int64_t needed = prompt_tokens + new_tokens_;
        if (options_.context == 0 && known > 0 && needed > known)
            refuse(fmt::format("the prompt has {} tokens, and up to {} follow; the model has {} positions "
                               "for both",
                               prompt_tokens, new_tokens_, known),
                   "a shorter prompt, or a lower -n");
        how.max_sequences = options_.sequences;
        how.max_context = options_.context > 0 ? options_.context : needed;
        load_for(std::move(how));
    }

    decoder::ModelOptions read_model() const {
        if (options_.made_up) return {.made_up = tuner::read_model(options_.model)};
        return {.folder = options_.model, .description = decoder::describe_folder(options_.model)};
    }

    void load_for(decoder::ModelOptions how) {
        const auto begin = Clock::now();
        how.quantize = options_.format.chosen();
        how.kv_dtype = options_.kv_cache.chosen();
        how.device = options_.device;
        model_ = loaded_model(std::move(how), console_);
        ms_to_load_ = Times::ms(begin, Clock::now());
    }

    int wanted_tokens() const {
        if (options_.new_tokens > 0) return options_.new_tokens;
        return options_.chat ? INT_MAX : 128;
    }

    bool wants_text() const {
        return !options_.made_up && options_.prompt_tokens == 0 && options_.prompt_ids.empty();
    }

    bool has_made_up_prompts() const {
        return options_.prompt_ids.empty() && (options_.made_up || options_.prompt_tokens > 0);
    }

    std::size_t made_up_tokens() const {
        return static_cast<std::size_t>(std::max<std::int64_t>(options_.prompt_tokens, 1));
    }

    /// Each text has its own from the first token on: texts that begin alike would share pages.
    std::vector<int> made_up_ids(std::int64_t number) const {
        const std::int64_t vocabulary = model_->description().model.vocab_size;
        std::vector<int> ids;
        for (std::int64_t i = 0; std::cmp_less(i, made_up_tokens()); ++i)
            ids.push_back(static_cast<int>((100 + (number * 3571 + i * 7919) % 10'000) % vocabulary));
        return ids;
    }

    /// Of what is made up as many as there are: which they are, the model's vocabulary says.
    std::vector<int> prompt_ids() const {
        if (!options_.prompt_ids.empty()) return given_ids();
        if (has_made_up_prompts()) return std::vector<int>(made_up_tokens());
        std::string text = options_.prompt;
        if (!options_.prompt_file.empty())
            text += runtime::read_text_file(options_.prompt_file, decoder::max_text_bytes);
        std::vector<int> ids = tokenizer_->encode(text);
        if (ids.empty()) refuse("the prompt is empty", "-p TEXT or --prompt-file FILE says what to continue");
        return ids;
    }

    std::vector<int> given_ids() const {
        std::vector<int> ids;
        std::string_view left = options_.prompt_ids;
        while (!left.empty()) {
            const std::string_view word = left.substr(0, left.find(','));
            left.remove_prefix(std::min(left.size(), word.size() + 1));
            const auto id = parse_integer(word);
            if (!id || *id < 0 || *id > INT32_MAX)
                refuse(fmt::format("--prompt-ids: '{}' is no id of a token", word), "--prompt-ids 1,2,3");
            ids.push_back(static_cast<int>(*id));
        }
        return ids;
    }

    decoder::TextRequest request(const std::vector<int>& prompt, int number) const {
        decoder::TextRequest request{.prompt = prompt, .max_new_tokens = new_tokens_};
        request.wishes = {.temperature = static_cast<float>(options_.temperature),
                          .top_k = static_cast<std::int32_t>(options_.top_k),
                          .top_p = static_cast<float>(options_.top_p),
                          .min_p = static_cast<float>(options_.min_p),
                          .seed = std::bit_cast<std::int64_t>(std::bit_cast<std::uint64_t>(options_.seed) +
                                                              static_cast<std::uint64_t>(number))};
        if (tokenizer_ && !options_.ignore_end) request.end_ids = tokenizer_->eos_ids();
        return request;
    }

    /// Prints as tokens come, unless the whole is asked for at the end.
    std::string follow(Growing& growing, const std::atomic<bool>& stop, const std::function<void()>& cancel,
                       bool prints = true) const {
        std::optional<decoder::TextOutput> output;
        if (tokenizer_) output.emplace(*tokenizer_, options_.stops);
        std::string text;
        bool is_heard = true;
        const auto show = [&](std::string piece) {
            if (prints && !console_.json && options_.sequences == 1) is_heard = is_heard && print(piece);
            text += piece;
        };
        std::size_t seen = 0;
        std::unique_lock lock(growing.mutex);
        while (true) {
            growing.news.wait_for(lock, std::chrono::milliseconds(100),
                                  [&] { return growing.ended || growing.tokens.size() > seen; });
            if (stop || !is_heard || (output && output->stopped())) {
                lock.unlock();
                cancel();
                break;
            }
            if (growing.tokens.size() == seen) {
                if (growing.ended) break;
                continue;
            }
            const int token = growing.tokens[seen++];
            const bool is_end = growing.ended && seen == growing.tokens.size() && tokenizer_ &&
                                std::ranges::count(tokenizer_->eos_ids(), token) > 0;
            lock.unlock();
            if (output && !is_end) show(output->push(token));
            lock.lock();
        }
        if (output) show(output->finish());
        if (!growing.failure.empty()) throw Failure(ExitCode::failure, {"gpu_failed", growing.failure, ""});
        return text;
    }

    /// What has been written of all texts. The engine ends before what it tells of them, and no step is under
    /// way afterwards.
    std::string grown(const std::vector<int>& prompt, std::vector<std::unique_ptr<Growing>>& texts,
                      const std::atomic<bool>& stop) const {
        decoder::Engine engine(*model_);
        std::vector<decoder::RequestId> ids;
        for (int i = 0; i < options_.sequences; ++i) {
            texts.push_back(std::make_unique<Growing>());
            texts.back()->times.asked = Clock::now();
            const std::vector<int> ids_of_text = has_made_up_prompts() ? made_up_ids(i) : prompt;
            ids.push_back(engine.submit(request(ids_of_text, i), texts.back()->listener()));
        }
        std::string text = follow(*texts.front(), stop, [&] { engine.cancel(ids.front()); });
        for (std::size_t i = 1; i < texts.size(); ++i) {
            const std::string other = follow(
                *texts[i], stop, [&] { engine.cancel(ids[i]); }, false);
            if (options_.sequences > 1 && tokenizer_) text += "\n\n" + other;
        }
        return text;
    }

    Outcome outcome(const std::vector<int>& prompt, const std::string& text,
                    const std::vector<std::unique_ptr<Growing>>& texts) const {
        Json stats = stats_of(prompt, texts);
        Outcome outcome;
        if (options_.stats || options_.made_up) {
            const StepCondition condition =
                condition_of(*model_, options_.device,
                             {.sequences = options_.sequences, .kv_len = context_of(prompt, texts)});
            stats["step"] = as_json(condition);
            outcome.text = stats_text(stats) + text_of(condition);
        }
        Json tokens = Json::array();
        for (const auto& one : texts) tokens.push_back(one->tokens);
        outcome.data = {
            {"model", options_.model}, {"text", text}, {"tokens", std::move(tokens)}, {"stats", stats}};
        if (tokenizer_) {
            outcome.text = (options_.sequences == 1 ? "\n" : text + "\n") + outcome.text;
        } else if (!options_.made_up) {
            outcome.text = fmt::format("{}\n", fmt::join(texts.front()->tokens, ",")) + outcome.text;
        }
        return outcome;
    }

    /// Tokens of a text in the middle of its way.
    static std::int64_t context_of(const std::vector<int>& prompt,
                                   const std::vector<std::unique_ptr<Growing>>& texts) {
        return static_cast<std::int64_t>(prompt.size() + texts.front()->tokens.size() / 2);
    }

    Json stats_of(const std::vector<int>& prompt, const std::vector<std::unique_ptr<Growing>>& texts) const {
        const Times& first = texts.front()->times;
        const std::vector<double> between = first.ms_between();
        std::size_t tokens = 0;
        Clock::time_point end = first.asked;
        for (const auto& one : texts) {
            tokens += one->tokens.size();
            if (!one->times.tokens.empty()) end = std::max(end, one->times.tokens.back());
        }
        const double all_ms = Times::ms(first.asked, end);
        const std::int64_t context = context_of(prompt, texts);
        const double floor_ms = static_cast<double>(model_->floor_bytes(options_.sequences, context)) /
                                memory_bytes_per_s() * 1e3;
        const double middle = at_share(between, 0.5);
        return {{"prompt_tokens", prompt.size()},
                {"new_tokens", tokens},
                {"sequences", options_.sequences},
                {"ms_to_load", ms_to_load_},
                {"ms_to_first_token", first.tokens.empty() ? 0 : first.ms_to_first()},
                {"ms_between_tokens",
                 {{"p50", middle}, {"p95", at_share(between, 0.95)}, {"p99", at_share(between, 0.99)}}},
                {"tokens_per_s", all_ms > 0 ? 1e3 * static_cast<double>(tokens) / all_ms : 0},
                {"floor_ms", floor_ms},
                {"share_of_floor", middle > 0 ? floor_ms / middle : 0},
                {"weight_bytes", model_->weights().bytes()},
                {"kernels",
                 {{"exact", model_->runtime().counters().runs_exact},
                  {"fallback", model_->runtime().counters().runs_fallback}}}};
    }

    double memory_bytes_per_s() const {
        return runtime::device_traits(model_->gpu().driver(), options_.device).memory_bytes_per_s;
    }

    std::string stats_text(const Json& stats) const {
        const Json& between = stats["ms_between_tokens"];
        return fmt::format(
            "{} tokens after {} of {}, loaded in {:.2f} s\n"
            "time to first token {:.2f} ms; between tokens p50 {:.3f}, p95 {:.3f}, p99 {:.3f} ms; {:.1f} "
            "tokens/s\n"
            "byte floor {:.3f} ms: {:.1f} %\n",
            stats["new_tokens"].get<std::size_t>(), stats["prompt_tokens"].get<std::size_t>(), options_.model,
            ms_to_load_ / 1e3, stats["ms_to_first_token"].get<double>(), between["p50"].get<double>(),
            between["p95"].get<double>(), between["p99"].get<double>(), stats["tokens_per_s"].get<double>(),
            stats["floor_ms"].get<double>(), 100 * stats["share_of_floor"].get<double>());
    }

    const Options& options_;
    const Console& console_;
    int new_tokens_;  ///< of a text, at most
    std::optional<decoder::Tokenizer> tokenizer_;
    std::unique_ptr<decoder::RunningModel> model_;
    double ms_to_load_ = 0;
};

}  // namespace

Runner declare_generate(const Arguments& app) {
    const auto options = std::make_shared<Options>();
    declare_folder(app, options->model);
    app.add_option("-p,--prompt", options->prompt, "The text to continue").may_be_empty().type_name("TEXT");
    app.add_option("--prompt-file", options->prompt_file, "A file with it, behind --prompt")
        .type_name("FILE");
    app.add_option(
           "-n,--max-new-tokens", options->new_tokens,
           "Tokens that are generated at most (default: 128, or what the context has room for; with --chat "
           "all that it has room for)")
        .range(1, 1 << 20);
    app.add_option("--stop", options->stops, "The text ends before this one")
        .type_name("TEXT")
        .one_value_each();
    app.add_option("--temperature", options->temperature, "0: the likeliest token (default)")
        .range(0.0, 100.0);
    app.add_option("--top-k", options->top_k, "Of the likeliest so many; 0: all").range(0, INT32_MAX);
    app.add_option("--top-p", options->top_p, "Of the likeliest with this share").range(0.0, 1.0);
    app.add_option("--min-p", options->min_p, "Of those at least so likely as a share of the likeliest")
        .range(0.0, 1.0);
    app.add_option("--seed", options->seed, "The same seed draws the same text");
    options->format.declare(app);
    options->kv_cache.declare(app);
    app.add_option("--context", options->context, "Tokens of a text, prompt included (default: as asked for)")
        .range(2, 1 << 30);
    declare_gpu(app, options->device);
    app.add_option("--sequences", options->sequences, "Texts that are generated side by side (default: 1)")
        .range(1, 256);
    app.add_option("--prompt-ids", options->prompt_ids,
                   "A prompt of these tokens, and tokens for the text: needs no tokenizer")
        .type_name("ID,ID...");
    app.add_option("--prompt-tokens", options->prompt_tokens,
                   "A prompt of so many tokens in place of a text, each text's its own")
        .range(1, 1 << 20);
    app.add_flag("--ignore-end", options->ignore_end, "The text goes on behind the model's end token");
    app.add_flag("--made-up", options->made_up,
                 "A known model's shapes with made-up weights: how fast it would be");
    app.add_flag("--chat", options->chat,
                 "A conversation: lines of stdin are answered until its end or /exit; needs a chat template");
    app.add_option("--system", options->system, "With --chat: what the conversation begins with")
        .may_be_empty()
        .type_name("TEXT");
    app.add_flag("--no-thinking", options->no_thinking,
                 "With --chat: answers without thoughts in front, of models that can be told (Qwen3)");
    app.add_flag(
        "--stats", options->stats,
        "Times of tokens, the share of the byte floor, and what they depend on: a step's graph alone, "
        "the GPU's clock, kernels that were not measured on this kind of GPU");
    return [options](const Console& console) { return Generation(*options, console).run(); };
}

}  // namespace hone::cli
