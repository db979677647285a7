// hone serve: a model over HTTP, as OpenAI's clients speak.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

#include "cli/command_list.h"
#include "cli/decoder/ends_in_time.h"
#include "cli/decoder/loaded_model.h"
#include "cli/decoder/weight_format.h"
#include "cli/interrupt.h"
#include "decoder/engine/engine.h"
#include "decoder/engine/step_times.h"
#include "decoder/error.h"
#include "decoder/gpu/gpu.h"
#include "decoder/serve/large_turn.h"
#include "decoder/serve/model_server.h"
#include "tuner/models/known_models.h"

namespace hone::cli {
namespace {

struct Options {
    std::string model;
    std::string name;
    std::string host = "127.0.0.1";
    int port = 8000;
    WeightFormatOptions format;
    KvCacheOption kv_cache;
    int device = 0;
    int sequences = 64;
    std::int64_t context = 0;
    std::int64_t step_tokens = 2048;
    std::int64_t step_prompt_tokens = 0;
    double step_stretch = 1.25;
    double max_step_stretch = 3;
    int requests = 0;
    int body_mib = 8;
    double grace_s = 5;
    double step_s = std::chrono::duration<double>(decoder::usual_longest_step).count();
    double memory_share = 0.9;
    bool made_up = false;
};

std::chrono::milliseconds milliseconds(double s) {
    return std::chrono::milliseconds(static_cast<std::int64_t>(s * 1000));
}

/// The folder's last name: "models/llama/" is "llama".
std::string name_of(const Options& options) {
    if (!options.name.empty()) return options.name;
    std::error_code unknown;  // of a working folder that is gone
    const auto path = std::filesystem::absolute(options.model, unknown).lexically_normal();
    const std::string last = (path.has_filename() ? path : path.parent_path()).filename().string();
    return last.empty() ? "model" : last;
}

decoder::ServedModel served_model(const Options& options) {
    if (options.made_up) {
        const auto tokens = static_cast<int>(tuner::read_model(options.model).vocab_size);
        return {.name = name_of(options),
                .tokenizer = decoder::Tokenizer::made_up(tokens),
                .no_chat = "what is made up has no chat template"};
    }
    decoder::ServedModel model{.name = name_of(options),
                               .tokenizer = decoder::Tokenizer::load(options.model)};
    model.chat = decoder::ChatTemplate::find(options.model, model.tokenizer, model.no_chat);
    return model;
}

std::unique_ptr<decoder::RunningModel> running_model(const Options& options, const Console& console) {
    decoder::ModelOptions how{.folder = options.model,
                              .quantize = options.format.chosen(),
                              .kv_dtype = options.kv_cache.chosen(),
                              .device = options.device,
                              .max_sequences = options.sequences,
                              .max_context = options.context,
                              .max_step_tokens = options.step_tokens,
                              .memory_share = options.memory_share,
                              .longest_step = milliseconds(options.step_s)};
    if (options.made_up) how.made_up = tuner::read_model(options.model);
    return loaded_model(std::move(how), console);
}

int max_requests(const Options& options) {
    return options.requests > 0 ? options.requests : std::max(256, options.sequences);
}

decoder::EngineOptions engine_options(const Options& options, decoder::RunningModel& model) {
    decoder::EngineOptions how{.step_prompt_tokens = options.step_prompt_tokens,
                               .step_stretch = options.step_stretch,
                               .max_step_stretch = options.max_step_stretch};
    if (how.step_stretch > 0)
        how.step_times = decoder::measured_steps(model, std::max(how.step_stretch, how.max_step_stretch));
    return how;
}

decoder::ServeOptions serve_options(const Options& options) {
    return {.http = {.host = options.host, .port = options.port},
            .service = {.max_requests = max_requests(options),
                        .max_body_bytes = static_cast<std::size_t>(options.body_mib) << 20},
            .grace = milliseconds(options.grace_s)};
}

/// What the GPU may take for a step, and to give its memory back.
constexpr std::chrono::seconds last_work{10};

/// From the request to stop until the process has ended, where the GPU does not hang.
std::chrono::milliseconds longest_end(const decoder::ServeOptions& options) {
    return options.grace + options.http.write_timeout + last_work;
}

/// A port that is taken, and no room for its threads, are said before the model is loaded, which takes a
/// while.
void require_server(const Options& options) {
    const decoder::HttpServer probe(serve_options(options).of_server(), {});
}

void say_ready(const decoder::ServedModel& model, const std::string& address, const Console& console) {
    if (!model.chat) console.note(fmt::format("no chats: {}", model.no_chat));
    const std::string line = fmt::format("listening on {}", address);
    if (console.json) return console.note(line);
    static_cast<void>(print(line + "\n"));
}

Outcome serve(const Options& options, const Console& console) {
    if (options.step_stretch != 0 && !(options.step_stretch >= 1)) {
        throw Failure::usage(
            "bad_option", fmt::format("--step-stretch is {}; allowed: 0, or from 1", options.step_stretch));
    }
    const decoder::ServedModel served = served_model(options);
    try {
        require_server(options);
        decoder::keep_large_blocks_apart();
        std::optional<EndsInTime> end;  // also of the model's
        const auto model = running_model(options, console);
        const decoder::EngineOptions how = engine_options(options, *model);
        // Until here no request is under way, and a signal ends the process as usual.
        const std::atomic<bool>& stop =
            stop_on_interrupt("stopping: requests under way are finished (again: stop at once)");
        end.emplace("serve", stop, longest_end(serve_options(options)), console);
        decoder::Engine engine(*model, how);
        decoder::ModelServer server(engine, served, serve_options(options));
        const std::string address = server.address();  // while it listens
        say_ready(served, address, console);
        const std::string why = server.run(stop);
        if (!why.empty())
            throw Failure(ExitCode::failure, {"server_failed", why, "hone doctor checks driver and GPUs"});
        return {.data = {{"address", address}, {"model", served.name}}};
    } catch (const decoder::ListenError& error) {
        throw Failure(ExitCode::failure, {"cannot_listen", error.what(), ""});
    }
}

}  // namespace

Runner declare_serve(const Arguments& app) {
    const auto options = std::make_shared<Options>();
    declare_folder(app, options->model);
    app.add_option("--host", options->host,
                   "The address to listen at (default: 127.0.0.1, this machine alone)")
        .type_name("ADDRESS");
    app.add_option("--port", options->port, "0: one that is free (default: 8000)").range(0, 65535);
    app.add_option("--name", options->name, "What clients call the model (default: the folder's name)");
    options->format.declare(app);
    options->kv_cache.declare(app);
    declare_gpu(app, options->device);
    app.add_option("--max-sequences", options->sequences, "Texts that are computed together (default: 64)")
        .range(1, 1024);
    app.add_option("--context", options->context,
                   "Tokens of a text, prompt included (default: as many as the model knows, at most 8192)")
        .range(2, 1 << 30);
    app.add_option("--max-step-tokens", options->step_tokens, "Tokens that a step computes (default: 2048)");
    app.add_option("--step-stretch", options->step_stretch,
                   "How many times as long as without prompts a step may take for prompts beside texts that "
                   "grow: less keeps the time between tokens even, more brings first tokens sooner; 0: "
                   "whatever it takes; twice as long where nearly all places are taken (default: 1.25)")
        .range(0.0, 1000.0);
    app.add_option(
           "--max-step-stretch", options->max_step_stretch,
           "The same where a quarter of the texts that there is room for wait for their prompts; in "
           "between in proportion; where half and more wait, a step may also take twice as long as one "
           "of all texts will; less than --step-stretch: as that (default: 3)")
        .range(0.0, 1000.0);
    app.add_option("--step-prompt-tokens", options->step_prompt_tokens,
                   "And tokens of prompts in such a step at most; 0: as many as there is room for (default)")
        .range(0, 65536);
    app.add_option("--max-step-seconds", options->step_s,
                   "Seconds that the GPU may take for a step, or at the start for a piece of the weights: "
                   "where that has not ended by then the GPU hangs, and the server ends with that reason "
                   "(default: 120)")
        .range(0.1, 86400.0);
    app.add_option("--memory-share", options->memory_share,
                   "Of the GPU's memory that the weights leave, for keys and values at most (default: 0.9)")
        .range(0.0, 1.0);
    app.add_option("--max-requests", options->requests,
                   "Requests that are answered at a time; others get 429 (default: 256, or --max-sequences "
                   "where that is more)")
        .range(1, 4096);
    app.add_option("--max-body", options->body_mib, "MiB of a request at the most (default: 8)")
        .range(1, 256);
    app.add_option("--grace", options->grace_s, "Seconds that requests have to finish at Ctrl-C (default: 5)")
        .range(0.0, 3600.0);
    app.add_flag("--made-up", options->made_up,
                 "A known model's shapes with made-up weights and words: how fast it would be");
    return [options](const Console& console) { return serve(*options, console); };
}

}  // namespace hone::cli
