#include "tests/cli/made_trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string>

#include "cache/cache.h"
#include "kernel_templates/catalog.h"
#include "kernel_templates/space.h"

namespace hone::test {
namespace {

using cache::Trial;
using cache::TrialStatus;

constexpr std::int64_t first_day_ms = 1'795'000'000'000;  // 2026-11-18
constexpr std::int64_t day_ms = std::int64_t{24} * 3600 * 1000;

/// Numbers from 0 to 1 that are the same on every machine.
class Generator {
  public:
    double next() {
        state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
        return static_cast<double>(state_ >> 33) / static_cast<double>(1ULL << 31);
    }

  private:
    std::uint64_t state_ = 1;
};

std::vector<std::string> problem_texts() {
    std::vector<std::string> texts;
    for (int tokens = 1; tokens <= 8192; tokens *= 2) {
        for (const char* shape :
             {"in=4096 out=6144", "in=4096 out=4096", "in=14336 out=4096", "in=8192 out=8192",
              "in=5120 out=5120", "in=4096 out=14336", "in=2048 out=8192"}) {
            for (const char* dtype : {"bf16", "fp16"})
                texts.push_back(fmt::format("linear dtype={} {} tokens={}", dtype, shape, tokens));
            for (const char* format : {"w4a16 group=128", "w8a8 group=0", "fp8 group=128"})
                texts.push_back(
                    fmt::format("quantized_linear dtype=bf16 format={} {} tokens={}", format, shape, tokens));
        }
        for (const char* hidden : {"hidden=2048", "hidden=4096", "hidden=8192"}) {
            for (const char* residual : {"no", "yes"})
                texts.push_back(
                    fmt::format("rmsnorm dtype=bf16 residual={} {} rows={}", residual, hidden, tokens));
        }
        for (const int kv_len : {256, 1024, 4096, 16384}) {
            texts.push_back(
                fmt::format("attention_decode dtype=bf16 heads=32 kv_heads=8 head_dim=128 q_tokens=1 "
                            "batch={} kv_len={} q_len=1",
                            std::min(tokens, 256), kv_len));
        }
        texts.push_back(
            fmt::format("attention_prefill dtype=bf16 heads=32 kv_heads=8 head_dim=128 causal=yes batch=1 "
                        "q_len={0} kv_len={0}",
                        std::max(tokens, 32)));
    }
    return texts;
}

/// So many, evenly from all.
std::vector<Problem> problems(std::size_t count) {
    std::vector<Problem> all;
    for (const std::string& text : problem_texts()) {
        const std::optional<Problem> problem = parse_problem(text);
        if (problem && std::ranges::find(all, *problem) == all.end()) all.push_back(*problem);
    }
    std::vector<Problem> list;
    for (std::size_t i = 0; i < count; ++i) list.push_back(all[i * all.size() / count]);
    return list;
}

cache::GpuKey key_of(const DeviceTraits& traits, int memory_clock_mhz) {
    return {traits.name, traits.compute_major, traits.compute_minor, traits.sm_count, memory_clock_mhz, ""};
}

/// Candidates of one GPU by static problem: spaces are large, and alike for all sizes of a call.
class Candidates {
  public:
    explicit Candidates(const DeviceTraits& traits) : traits_(traits) {}

    /// So many, evenly from the whole space, fastest prediction of the first size first.
    const std::vector<Candidate>& of(const Problem& problem, std::size_t count) {
        const auto [place, added] = by_problem_.try_emplace(
            fmt::format("{} {}", problem.family->name, static_text(problem)), std::vector<Candidate>());
        if (!added) return place->second;
        const std::vector<RankedCandidate> ranked = ranked_space(problem, traits_);
        const std::size_t step = std::max<std::size_t>(1, ranked.size() / count);
        for (std::size_t i = 0; i < ranked.size() && place->second.size() < count; i += step)
            place->second.push_back(ranked[i].candidate);
        return place->second;
    }

  private:
    const DeviceTraits& traits_;
    std::map<std::string, std::vector<Candidate>> by_problem_;
};

/// One problem on one GPU.
class Race {
  public:
    Race(const Problem& problem, const DeviceTraits& traits, const cache::GpuKey& gpu, Generator& random)
        : problem_(problem), traits_(traits), gpu_(gpu), random_(random) {}

    void add(std::vector<Candidate> candidates, std::int64_t begin_ms, std::vector<Trial>& trials) {
        const std::size_t first = trials.size();
        const std::optional<Candidate> usual = fallback(problem_, traits_);
        if (usual && std::ranges::find(candidates, *usual) == candidates.end()) candidates.front() = *usual;
        for (const Candidate& candidate : candidates) {
            Trial trial = trial_of(candidate);
            trial.is_default = usual && candidate == *usual;
            trial.created_at = begin_ms + static_cast<std::int64_t>(trials.size() - first) * 240;
            trials.push_back(std::move(trial));
        }
        name_winner(std::span(trials).subspan(first));
    }

  private:
    Trial trial_of(const Candidate& candidate) {
        const double predicted_us = candidate.variant->predict_us(problem_, candidate.config, traits_);
        const double floor_us = problem_.family->work(problem_).bytes / traits_.memory_bytes_per_s * 1e6;
        const double us = (1.2 + std::max(floor_us * 1.08, predicted_us)) * (1 + 0.12 * random_.next());
        Trial trial{
            .key = {gpu_, std::string(problem_.family->name), static_text(problem_), dynamic_text(problem_)},
            .toolchain = {"580.159.04", "13.0"},
            .candidate = to_string(candidate),
            .template_hash = std::string(32, 'a')};
        trial.timing = {us, us * 0.99, us * 1.02, 60};
        trial.resources = {static_cast<int>(32 + 200 * random_.next()), 49152, 0};
        trial.energy_mj = us * (280 + 380 * random_.next()) / 1000;
        trial.stage = random_.next() < 0.1 ? cache::Stage::final_round : cache::Stage::screened;
        trial.tool_version = "0.1.0";
        if (random_.next() < 0.03) fail(trial);
        return trial;
    }

    void fail(Trial& trial) {
        const double which = random_.next();
        trial.timing = {};
        trial.energy_mj = 0;
        trial.stage = cache::Stage::screened;
        trial.status = which < 0.7   ? TrialStatus::over_limits
                       : which < 0.9 ? TrialStatus::wrong_result
                                     : TrialStatus::crashed;
        trial.detail = which < 0.7
                           ? fmt::format("spills {} bytes of registers to memory", 8 + 8 * int(which * 40))
                       : which < 0.9 ? fmt::format("output 0: relative error {:.3f}, allowed 0.004", which)
                                     : "CUDA_ERROR_ILLEGAL_ADDRESS";
    }

    static void name_winner(std::span<Trial> race) {
        Trial* best = nullptr;
        for (Trial& trial : race) {
            if (trial.status != TrialStatus::ok) continue;
            if (best == nullptr || trial.timing.median_us < best->timing.median_us) best = &trial;
        }
        if (best == nullptr) return;
        best->winner = true;
        best->stage = cache::Stage::final_round;
    }

    const Problem& problem_;
    const DeviceTraits& traits_;
    const cache::GpuKey& gpu_;
    Generator& random_;
};

/// A winner that was replaced later, and was a little slower.
Trial older(Trial winner, Generator& random) {
    winner.created_at = first_day_ms;
    winner.timing.median_us *= 1 + 0.3 * random.next() * random.next();
    winner.timing.p90_us = winner.timing.median_us * 1.02;
    return winner;
}

/// Tunables have hostile names, too, and `value`.
Trial hostile_trial(const Trial& model, TrialStatus status, int value) {
    const std::string evil =
        "</script><script>document.title='owned'</script><img src=x "
        "onerror=\"document.title='owned'\">'\"&\xE2\x80\xA8";
    Trial trial = model;
    trial.key.gpu.name = evil;
    trial.key.family = "<b>" + evil;
    trial.key.static_fields = "dtype=" + evil;
    trial.key.dynamic_fields = "rows=" + evil;
    trial.candidate =
        fmt::format("variant </script><img/src={0} datum['\"}}}}`${{{{b={0} __proto__={0}", value);
    trial.toolchain = {evil, evil};
    trial.tool_version = evil;
    trial.detail = evil + '\xff';
    trial.status = status;
    trial.winner = status == TrialStatus::ok;
    trial.is_default = false;
    if (status != TrialStatus::ok) trial.timing = {};
    return trial;
}

}  // namespace

std::vector<Trial> made_trials(const MadeTrials& options) {
    std::vector<Trial> trials;
    Generator random;
    const std::vector<Problem> wanted = problems(options.problems);
    const std::array<std::pair<Arch, int>, 2> devices{{{{9, 0, true}, 2619}, {{8, 0, false}, 1593}}};
    std::int64_t now = first_day_ms + 2 * day_ms;
    for (const auto& [arch, clock] : std::span(devices).first(options.gpus)) {
        const DeviceTraits traits = *representative_device(arch);
        const cache::GpuKey gpu = key_of(traits, clock);
        Candidates candidates(traits);
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            const std::size_t first = trials.size();
            Race(wanted[i], traits, gpu, random)
                .add(candidates.of(wanted[i], options.trials_a_problem), now, trials);
            now = trials.size() > first ? trials.back().created_at + 4000 : now;
            const auto winner = std::ranges::find_if(trials.begin() + static_cast<std::ptrdiff_t>(first),
                                                     trials.end(), &Trial::winner);
            if (i % 2 == 0 && winner != trials.end()) {
                const Trial before = older(*winner, random);
                trials.insert(trials.begin() + static_cast<std::ptrdiff_t>(first), before);
            }
        }
    }
    if (options.hostile) {
        const Trial model = trials.front();
        trials.push_back(hostile_trial(model, TrialStatus::ok, 1));
        trials.push_back(hostile_trial(model, TrialStatus::ok, 2));
        trials.push_back(hostile_trial(model, TrialStatus::compile_failed, 3));
    }
    return trials;
}

void write_made_cache(const std::filesystem::path& file, const MadeTrials& options) {
    cache::Cache::open(file).store(made_trials(options));
}

}  // namespace hone::test
