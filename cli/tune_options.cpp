#include "cli/tune_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "cli/command.h"
#include "cli/few_kernels.h"
#include "cli/value_types.h"
#include "kernel_templates/text.h"

namespace hone::cli {
namespace {

constexpr std::array<std::string_view, 4> effort_names{"quick", "standard", "exhaustive", "known"};

tuner::Effort effort_from(const std::string& text) {
    if (text.empty()) return tuner::Effort::quick;
    return static_cast<tuner::Effort>(chosen("--effort", text, effort_names));
}

}  // namespace

std::chrono::milliseconds duration_from(const std::string& text) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const std::optional<std::int64_t> count = parse_integer(std::string_view(text).substr(0, digits));
    const std::string_view unit = std::string_view(text).substr(digits);
    const std::int64_t unit_ms = unit == "ms"                  ? 1
                                 : unit == "s" || unit.empty() ? 1000
                                 : unit == "m"                 ? 60'000
                                 : unit == "h"                 ? 3'600'000
                                                               : 0;
    constexpr std::int64_t week_ms = std::int64_t{7} * 24 * 3'600'000;
    if (!count || unit_ms == 0 || *count < 1 || *count > week_ms / unit_ms) {
        throw Failure::usage("bad_duration",
                             fmt::format("--budget: '{}' is no duration from 1ms to a week", text),
                             "500ms, 90s, 10m or 2h");
    }
    return std::chrono::milliseconds(*count * unit_ms);
}

void TuneCommandOptions::declare(const Arguments& app) {
    target.declare(app);
    app.add_option("--shard", shard,
                   "3/8: the third of eight parts of the problems that take about as long as each other; "
                   "whoever tunes the others, hone merge brings the caches together")
        .type_name("N/M");
    app.add_option("--gpu", gpu, "Which GPU, or all of them (default: the first)");
    app.add_option(
           "--effort", effort,
           "quick: kernels that were fast nearby, 5 of them where the problem was measured on this "
           "kind of GPU, 11 where on another one, else 12 with the best predictions, and a second look "
           "at the winners of the last two; standard: 128 predictions more, exhaustive: all that are "
           "allowed, known: after an update, the winners from before it (default: quick)")
        .type_name(one_of(effort_names));
    app.add_option("--budget", budget, "Stop after this time with the best so far: 90s, 10m, 2h");
    app.add_flag("--retune", retune, "Measure again what is known already");
    app.add_option(
           "--kernels", kernels,
           "At most N kernels for all sizes of a static problem: those that lose least, and what they "
           "lose")
        .type_name("N")
        .range(1, most_kernels);
    Argument off = app.add_flag(
        "--offline", offline,
        "Compile and predict for --arch, without a GPU, all of it (where no GPU is found: for five seconds "
        "behind the predictions)");
    app.add_option("--arch", arch, "Architecture for --offline (default sm_90a)").type_name(arch_type());
    Argument recorded =
        app.add_option("--replay", replay_file, "Answer from a recorded sweep instead of a GPU")
            .value_may_be_left_out()
            .type_name(file_type);
    app.when_parsed([this, recorded] { replay = recorded.is_given(); });
    app.add_option("--record", record_file, "Measure anew and write everything to this file, for --replay")
        .type_name(file_type);
    app.add_flag("--dry-run", dry_run, "Show what would be tuned");
    off.excludes(recorded);
#if HONE_WITH_DECODER
    Argument in_chain = app.add_flag(
        "--chain", chain,
        "The kernels of a step of the decoder alone, and of those that are near each other the ones that "
        "make the whole step shortest; --tokens says of how many sequences (default 1,8,64). What wins "
        "there is not replaced by what is faster alone. Steps whose products can share norms are raced "
        "that way, too, and share them from then on where that is shorter");
    in_chain.excludes(off);
    in_chain.excludes(recorded);
    app.add_option("--kv", kv_len, "With --chain: keys of each sequence (default 1024)")
        .range(1, 1 << 20)
        .needs(in_chain);
    kv_cache.declare(app).needs(in_chain);
#endif
}

void TuneCommandOptions::check() const {
    static_cast<void>(tune_options());
    static_cast<void>(shard_asked());
    static_cast<void>(arch_named(arch));
    if (!record_file.empty() && (offline || replay)) {
        throw Failure::usage("contradiction",
                             "--record writes what a GPU measures: not with --offline or --replay");
    }
    if (!record_file.empty() && gpu == "all")
        throw Failure::usage("contradiction", "--record takes one GPU at a time");
    if (chain && (target.model.empty() || !target.op.empty() || !shard.empty() || !record_file.empty() ||
                  kernels > 0 || dry_run || gpu == "all"))
        throw Failure::usage(
            "contradiction",
            "--chain is about all kernels of one model's step on one GPU: without --op, --captured, "
            "--shard, --kernels, --record, --dry-run and --gpu all",
            "hone tune llama-3-8b --chain");
    if (!gpu.empty() && (offline || replay))
        throw Failure::usage("contradiction", "--gpu makes no sense with --offline or --replay");
}

std::optional<Shard> TuneCommandOptions::shard_asked() const {
    if (shard.empty()) return std::nullopt;
    constexpr std::int64_t most = 1000;
    const std::size_t slash = std::min(shard.find('/'), shard.size());
    const std::optional<std::int64_t> number = parse_integer(std::string_view(shard).substr(0, slash));
    const std::optional<std::int64_t> count =
        slash < shard.size() ? parse_integer(std::string_view(shard).substr(slash + 1)) : std::nullopt;
    if (!number || !count || *number < 1 || *number > *count || *count > most) {
        throw Failure::usage(
            "bad_shard",
            fmt::format("--shard: '{}' is no shard: allowed is N/M with N from 1 to M, and M up to {}", shard,
                        most),
            "--shard 3/8 is the third of eight");
    }
    return Shard{static_cast<std::size_t>(*number), static_cast<std::size_t>(*count)};
}

tuner::TuneOptions TuneCommandOptions::tune_options() const {
    return {.effort = effort_from(effort),
            .budget = budget.empty() ? std::nullopt : std::optional(duration_from(budget)),
            // What is known already would be missing from a recording.
            .retune = retune || !record_file.empty(),
            .kernels = kernels > 0 ? std::optional<std::size_t>(kernels) : std::nullopt};
}

}  // namespace hone::cli
