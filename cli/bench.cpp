// hone bench: what dispatch would take, the default and the runner-up, measured now in interleaved rounds.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "cli/bench_energy.h"
#include "cli/command_list.h"
#if HONE_WITH_DECODER
#include "cli/decoder/chain.h"
#include "cli/decoder/weight_format.h"
#endif
#include "cli/devices.h"
#include "cli/interrupt.h"
#include "cli/stored.h"
#include "cli/targets.h"
#include "cli/value_types.h"
#include "runtime/dispatch/explain.h"
#include "tuner/measure/gpu_session.h"
#include "tuner/report/report.h"
#include "tuner/report/report_text.h"
#include "tuner/search/statistics.h"

namespace hone::cli {
namespace {

struct Options {
    std::vector<std::string> words;
    Target target;  ///< what --model names
    std::string gpu;
    int rounds = 50;
    bool energy = false;
    double energy_seconds = 2;
    bool chain = false;
    std::int64_t layers = 0;  ///< 0: all
    std::int64_t kv_len = 1024;
    std::string prompt_tokens;  ///< "64,256"
#if HONE_WITH_DECODER
    KvCacheOption kv_cache;
#endif
};

/// What all problems are measured with.
struct Bench {
    const Options& options;
    const Console& console;
    tuner::GpuSession& session;
    const runtime::WinnerTable& winners;
    const cache::Cache& cache;
    const std::atomic<bool>& stop;

    [[nodiscard]] const DeviceTraits& traits() const { return session.measurer->device().traits; }
};

/// A candidate with what it is to this problem: "winner", "default", "runner-up", or two of them.
struct Contender {
    std::string part;
    Candidate candidate;
    cache::Image image;
    tuner::Samples samples{};
};

std::vector<Problem> problems_of(const Options& options, const Console& console) {
    if (options.words.empty() == !options.target.names_many()) {
        throw Failure::usage("no_target", "give a problem, --model or --captured",
                             "hone bench rmsnorm dtype=bf16 hidden=4096 rows=16");
    }
    if (!options.words.empty()) return {problem_from_words(options.words)};
    const tuner::Workload workload = options.target.workload();
    warn_of(workload, console);
    return workload.problems;
}

/// Candidates that dispatch knows, each once.
std::vector<Contender> contenders(const Problem& problem, const Bench& bench) {
    const Explanation explained =
        runtime::explain(problem, problem, {&bench.winners, &bench.traits(), &bench.cache});
    std::vector<Contender> list;
    const auto add = [&](const std::string& part, const std::string& text) {
        const std::optional<Candidate> candidate = parse_candidate(*problem.family, text);
        if (!candidate) return;
        const auto known = std::find_if(list.begin(), list.end(),
                                        [&](const Contender& c) { return c.candidate == *candidate; });
        if (known != list.end()) {
            known->part += ", " + part;
            return;
        }
        list.push_back({.part = part, .candidate = *candidate, .image = {}});
    };
    if (explained.bucket.origin != Origin::fallback) add("winner", explained.bucket.candidate);
    add("default", explained.fallback);
    add("runner-up", explained.runner_up);
    return list;
}

/// False where Ctrl-C has come: the reference may be what was not compiled then, which nobody is told.
bool begin(const Problem& problem, const Bench& bench) {
    const tuner::Verdict ready = bench.session.measurer->begin_problem(problem);
    if (ready.status == cache::TrialStatus::ok) return true;
    if (!bench.stop) bench.console.warn(fmt::format("{}: {}", to_string(problem), ready.detail));
    return false;
}

/// The contenders, compiled and verified; what fails keeps its verdict and does not race. Without those whose
/// compile Ctrl-C may have ended: that says nothing about them.
std::vector<Contender> prepared(const Problem& problem, std::vector<Contender> list, const Bench& bench) {
    std::vector<Contender> ready;
    for (Contender& contender : list) {
        tuner::ImageSource::Result compiled = bench.session.images->get(problem, contender.candidate);
        if (compiled.status != cache::TrialStatus::ok && bench.stop) continue;
        Contender& one = ready.emplace_back(std::move(contender));
        one.image = std::move(compiled.image);
        one.samples.verdict =
            compiled.status == cache::TrialStatus::ok
                ? bench.session.measurer->verify({one.candidate, &one.image})
                : tuner::Verdict{.status = compiled.status, .detail = std::move(compiled.detail)};
    }
    return ready;
}

void race(tuner::GpuSession& session, std::vector<Contender>& list, int rounds) {
    std::vector<tuner::CandidateImage> racing;
    std::vector<Contender*> racers;
    for (Contender& contender : list) {
        if (contender.samples.verdict.status != cache::TrialStatus::ok) continue;
        racing.push_back({contender.candidate, &contender.image});
        racers.push_back(&contender);
    }
    std::vector<tuner::Samples> samples = session.measurer->interleave(racing, rounds);
    for (std::size_t i = 0; i < samples.size(); ++i) racers[i]->samples = std::move(samples[i]);
}

double default_us(const std::vector<Contender>& list) {
    for (const Contender& contender : list) {
        if (contender.part.find("default") != std::string::npos) return tuner::median(contender.samples.us);
    }
    return 0;
}

/// The one that dispatch takes; the next one where that does not run.
void add_energy(const Problem& problem, const std::string& prefix, const std::vector<Contender>& list,
                const Bench& bench, std::vector<EnergyRow>& rows) {
    const auto runs = std::ranges::find(list, cache::TrialStatus::ok,
                                        [](const Contender& c) { return c.samples.verdict.status; });
    if (runs == list.end()) return;
    const auto duration = std::chrono::milliseconds(std::llround(bench.options.energy_seconds * 1e3));
    rows.push_back({.part = prefix + runs->part,
                    .problem = problem,
                    .candidate = runs->candidate,
                    .sustained = bench.session.measurer->sustain({runs->candidate, &runs->image}, duration)});
}

/// The product that a quantized one stands for, with a weight that is not.
void add_dense_energy(const Problem& problem, const Bench& bench, std::vector<EnergyRow>& rows) {
    const std::optional<Problem> dense = dense_problem(problem);
    if (!dense) return;
    if (!begin(*dense, bench)) return;
    const std::vector<Contender> list = prepared(*dense, contenders(*dense, bench), bench);
    add_energy(*dense, "dense ", list, bench, rows);
    bench.session.measurer->end_problem();
}

void report(const Problem& problem, const DeviceTraits& traits, const std::vector<Contender>& list,
            const Console& console, Outcome& outcome) {
    using tuner::Align;
    tuner::Table table({{"which"},
                        {"candidate"},
                        {"us", Align::right},
                        {"p10", Align::right},
                        {"p90", Align::right},
                        {"vs default", Align::right},
                        {"of floor", Align::right},
                        {""}});
    Json rows = Json::array();
    const double reference = default_us(list);
    for (const Contender& contender : list) {
        const std::vector<double>& us = contender.samples.us;
        const double median = tuner::median(us);
        const auto share = tuner::floor_share(problem, median, traits);
        rows.push_back({{"which", contender.part},
                        {"candidate", to_string(contender.candidate)},
                        {"status", cache::name(contender.samples.verdict.status)},
                        {"median_us", median},
                        {"p10_us", tuner::quantile(us, 0.1)},
                        {"p90_us", tuner::quantile(us, 0.9)},
                        {"samples", us.size()},
                        {"floor_share", share ? Json(*share) : Json(nullptr)},
                        {"detail", contender.samples.verdict.detail}});
        table.add({contender.part, to_string(contender.candidate), tuner::format_us(median),
                   tuner::format_us(tuner::quantile(us, 0.1)), tuner::format_us(tuner::quantile(us, 0.9)),
                   median > 0 && reference > 0 ? fmt::format("{:.2f}x", reference / median) : "-",
                   share ? tuner::format_share(*share) : "-", contender.samples.verdict.detail});
    }
    const double floor = tuner::bandwidth_floor_us(problem, traits);
    outcome.data["problems"].push_back(
        {{"problem", to_string(problem)}, {"floor_us", floor}, {"rows", std::move(rows)}});
    outcome.text += fmt::format("{} (floor {} us)\n{}\n", to_string(problem), tuner::format_us(floor),
                                table.render(console.page, "  "));
}

void report_energy(const std::vector<EnergyRow>& rows, const Console& console, Outcome& outcome) {
    outcome.data["problems"].back()["energy"] = energy_json(rows);
    outcome.text += energy_text(rows, console.page) + '\n';
}

bool bench_problem(const Problem& problem, const Bench& bench, Outcome& outcome) {
    tuner::GpuSession& session = bench.session;
    if (!begin(problem, bench)) return false;
    std::vector<Contender> list = prepared(problem, contenders(problem, bench), bench);
    race(session, list, bench.options.rounds);
    std::vector<EnergyRow> energy;
    if (bench.options.energy) add_energy(problem, "", list, bench, energy);
    session.measurer->end_problem();
    if (bench.options.energy) add_dense_energy(problem, bench, energy);
    if (list.empty()) return false;
    report(problem, bench.traits(), list, bench.console, outcome);
    if (bench.options.energy) report_energy(energy, bench.console, outcome);
    return std::any_of(list.begin(), list.end(), [](const Contender& c) { return !c.samples.us.empty(); });
}

Outcome bench(const Options& options, const Console& console) {
    const std::vector<Problem> problems = problems_of(options, console);
    const tuner::DeviceInfo device = chosen_gpus(find_gpus(), options.gpu).front();
    if (options.energy) check_energy(device);
    warn_without_nvml(console);
    const std::atomic<bool>& stop = stop_on_interrupt();
    cache::Cache cache = open_user_cache();
    const runtime::WinnerTable winners(cache::Winners(
        device.gpu, device.toolchain, [&](const std::string& warning) { console.warn(warning); }));
    tuner::GpuSession session = tuner::open_gpu(cache, device, {}, {.arch = {}, .nvrtc = {}, .stop = &stop});
    Outcome outcome{.data = {{"gpu", tuner::as_json(device.gpu)}, {"problems", Json::array()}}};
    const Bench bench{options, console, session, winners, cache, stop};
    for (const Problem& problem : problems) {
        if (stop) break;
        if (bench_problem(problem, bench, outcome)) continue;
        outcome.exit = ExitCode::nothing_valid;
        outcome.error = {"nothing_valid", "nothing could be measured for " + to_string(problem),
                         "hone show " + to_string(problem) + " lists what was tried"};
    }
    if (!stop) return outcome;
    outcome.exit = ExitCode::interrupted;
    outcome.error = {"interrupted", "stopped by Ctrl-C", ""};
    return outcome;
}

#if HONE_WITH_DECODER
/// The first so many: a model that is larger than the GPU has room for.
void keep_layers(models::Model& model, std::int64_t layers) {
    if (layers > model.num_hidden_layers) {
        throw Failure(
            ExitCode::usage,
            {"bad_option", fmt::format("--layers {}: {} has {}", layers, model.name, model.num_hidden_layers),
             ""});
    }
    model.num_hidden_layers = layers;
    if (!model.group_of_layer.empty()) model.group_of_layer.resize(static_cast<std::size_t>(layers));
}

std::vector<std::int64_t> prompt_tokens(const std::string& list) {
    constexpr std::int64_t most = 65536;
    std::vector<std::int64_t> prompts = tokens_from(list, "--prompt-tokens");
    for (const std::int64_t tokens : prompts) {
        if (tokens >= 0 && tokens <= most) continue;
        throw Failure::usage("bad_tokens", fmt::format("--prompt-tokens: {}; allowed: 0 to {}", tokens, most),
                             "hone bench --chain llama-3-8b --prompt-tokens 64,256");
    }
    return prompts;
}

Outcome bench_step(Options options, const Console& console) {
    Target& target = options.target;
    if (target.model.empty() && options.words.size() == 1) target.model = options.words.front();
    if (target.model.empty() || options.words.size() > 1 || !target.op.empty() || options.energy) {
        throw Failure::usage("no_target", "--chain goes with one model, and without --op and --energy",
                             "hone bench --chain llama-3-8b --tokens 1,8 --kv 1024");
    }
    std::vector<std::int64_t> sequences = target.options().tokens;
    if (sequences.empty()) sequences = {1};
    models::Model model = target.whole_model();
    if (options.layers > 0) keep_layers(model, options.layers);
    return bench_chain({.model = std::move(model),
                        .quantize = target.codes(),
                        .kv_dtype = options.kv_cache.chosen(),
                        .sequences = std::move(sequences),
                        .kv_len = options.kv_len,
                        .prompt_tokens = prompt_tokens(options.prompt_tokens),
                        .device = chosen_gpus(find_gpus(), options.gpu).front().ordinal,
                        .rounds = options.rounds},
                       console);
}
#endif

constexpr std::array<const char*, 8> of_a_model{"--op",     "--tokens", "--dtype", "--tp",
                                                "--format", "--group",  "--zeros", "--lm-head"};

void require_model(const Arguments& app) {
    for (const char* option : of_a_model) {
        if (app.get(option).is_given())
            throw Failure::usage("bad_option", fmt::format("{} requires --model", option),
                                 "hone bench --help");
    }
}

Outcome run(const Arguments& app, const Options& options, const Console& console) {
#if HONE_WITH_DECODER
    if (options.chain) return bench_step(options, console);
#endif
    if (options.target.model.empty()) require_model(app);
    return bench(options, console);
}

}  // namespace

Runner declare_bench(const Arguments& app) {
    const auto options = std::make_shared<Options>();
    app.add_option("PROBLEM", options->words, "An operator and its fields").type_name(operator_type);
    Argument model = options->target.declare_model_and_variant(app, "Every problem of a model instead");
    Argument captured = options->target.declare_captured(
        app, "Every problem that a process with HONE_CAPTURE=FILE ran instead");
    captured.excludes(model);
    app.add_option("--op", options->target.op, "Only this operator of --model").type_name(operator_type);
    app.add_option("--tokens", options->target.tokens,
                   "Token counts for --model; with --chain how many sequences, of one token each");
    app.add_option("--gpu", options->gpu, "On this GPU (default: 0)");
    app.add_option("--rounds", options->rounds, "Interleaved rounds (default 50)").range(1, 10000);
    Argument energy = app.add_flag("--energy", options->energy,
                                   "Power, energy of a call and calls a joule too, of what dispatch "
                                   "takes, without pause; of a quantized "
                                   "product also of the one with weights of 16 bits");
    app.add_option("--seconds", options->energy_seconds, "Of each such loop (default 2)")
        .range(0.1, 600.0)
        .needs(energy);
#if HONE_WITH_DECODER
    Argument chain =
        app.add_flag("--chain", options->chain,
                     "A whole step of a model (PROBLEM or --model names it; its weights are made "
                     "up), as the decoder runs it: which part takes how long");
    chain.excludes(captured);
    app.add_option("--kv", options->kv_len, "With --chain: keys of each sequence (default 1024)")
        .range(1, 1 << 20)
        .needs(chain);
    options->kv_cache.declare(app).needs(chain);
    app.add_option("--prompt-tokens", options->prompt_tokens,
                   "With --chain: also steps with a prompt of so many tokens beside the sequences")
        .needs(chain);
    app.add_option("--layers", options->layers,
                   "With --chain: of so many layers, where the GPU has no room for all (default: all)")
        .range(1, 4096)
        .needs(chain);
#endif
    return [app, options](const Console& console) { return run(app, *options, console); };
}

}  // namespace hone::cli
