// How alike are two cold runs of `hone tune` on one GPU? Replays a recorded sweep with noise that is drawn
// from it, several runs with other seeds, and holds every run's winners against every other's, as
// `hone list --compare` does:
//
//     two_runs MODEL RECORDING [--format F] [--runs N] [--calm X] [--disturbed P] [--effort E] [--new-shapes]
//              [--unfair] [--list] [--losers X] [BUNDLE...]
//
// F is how the model's linear layers are stored, as in `hone tune --format`.
// BUNDLEs are exports of winners that are known before, with --new-shapes without those of the model's own
// shapes; without one nothing is. Prints how many winners are the same, tied, and neither (--list: which);
// what they lose to the fastest recorded kernels (--losers: which lose more than X %, and why); and what a
// run costs. A sample is the candidate's median in its recorded heat, times one of the heat's rounds over
// that median (all candidates of an interleaved round have the same one, so that what slowed a round slows
// all of them), times a factor of the candidate's own that is drawn anew whenever a problem is begun: how far
// some finalist of the family moved between its recorded heat and final, against its race's median. All of it
// in a share P (0.08) of the problems, X (0.02) of it in the others: with these, two runs by the rules of
// 2026-11-24 were as alike as on an H200, or a little less. Problems whose recorded times cannot be compared
// (comparable.h) are left out, unless --unfair asks for them. Sweeps are older than few early weights
// (programmatic=3 of tensor-core products): the kernel that starts its successor late with a full ring
// stands for them, in lists and for the judge, until a sweep has them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/comparable.h"
#include "bench/empty_cache.h"
#include "bench/measured_files.h"
#include "checkpoints/pack/request.h"
#include "tuner/compile/no_images.h"
#include "tuner/measure/recorded.h"
#include "tuner/models/known_models.h"
#include "tuner/models/workload.h"
#include "tuner/search/statistics.h"
#include "tuner/search/tuner.h"

namespace {

using namespace hone;
using namespace hone::tuner;
using bench::Comparable;

constexpr double short_us = 20;  // above it power may limit the clock

/// A recorded candidate as the noise needs it, and its judge.
struct Truth {
    double us = 0;               ///< of all its samples: what runs of it are drawn around, and judged by
    std::vector<double> rounds;  ///< of the heat, over their middle mean
    bool is_judge = true;        ///< whether others may be held against it
};

using Truths = std::map<std::string, Truth>;  ///< by candidate

/// Whoever was screened alone is brought to the heat's clock, and so is what a final adds. Where the clock
/// moved, whoever was screened alone is no judge, and whoever ran in other rounds is left out.
Truths truths_of(const RecordedProblem& problem) {
    const Comparable comparable(problem);
    Truths truths;
    for (const auto& [name, candidate] : problem.candidates) {
        if (candidate.us.empty()) continue;
        const bool raced = comparable.raced(candidate.us);
        std::vector<double> us = candidate.us;
        if (raced) {
            std::optional<std::vector<double>> heat = comparable.heat(candidate.us);
            if (!heat) continue;
            us = std::move(*heat);
        }
        std::vector<double> pooled = us;
        for (double& sample : pooled) sample *= raced ? 1 : comparable.clock;
        if (raced) std::ranges::copy(comparable.final_samples(candidate.us), std::back_inserter(pooled));
        const double middle = trimmed_mean(us);
        for (double& sample : us) sample /= middle;
        truths[name] = {.us = trimmed_mean(pooled),
                        .rounds = std::move(us),
                        .is_judge = raced || !comparable.clock_moved};
    }
    return truths;
}

/// The sweep with a kernel of few early weights for each that starts its successor late.
Recording with_few_early_weights(Recording recording) {
    constexpr std::string_view late = " programmatic=2";
    for (auto& [_, problem] : recording.problems) {
        std::map<std::string, RecordedCandidate> twins;
        for (const auto& [name, candidate] : problem.candidates) {
            const std::size_t at = name.find(late);
            if (!name.starts_with("wgmma") || at == std::string::npos) continue;
            std::string twin = name;
            twin.replace(at, late.size(), " programmatic=3");
            twins.emplace(std::move(twin), candidate);
        }
        problem.candidates.merge(twins);  // what was measured stays
    }
    return recording;
}

/// How finalists moved between heat and final, as logarithms, by family and whether calls are short.
using Moves = std::map<std::pair<std::string, bool>, std::vector<double>>;

Moves moves_of(const Recording& recording) {
    Moves moves;
    for (const auto& [text, problem] : recording.problems) {
        const Comparable comparable(problem);
        if (!comparable.is_fair()) continue;
        std::vector<double> changes;
        double fastest = std::numeric_limits<double>::infinity();
        for (const auto& [_, candidate] : problem.candidates) {
            if (candidate.us.size() < comparable.stages.heat_end + 10) continue;
            const std::optional<std::vector<double>> heat = comparable.heat(candidate.us);
            if (!heat) continue;
            changes.push_back(
                std::log(trimmed_mean(comparable.final_samples(candidate.us)) / trimmed_mean(*heat)));
            fastest = std::min(fastest, trimmed_mean(*heat));
        }
        if (changes.size() < 3) continue;
        const double all = median(changes);
        for (const double change : changes)
            moves[{text.substr(0, text.find(' ')), fastest < short_us}].push_back(change - all);
    }
    return moves;
}

struct Noise {
    double calm = 0.02;       ///< share of the recorded moves that candidates have in most problems
    double disturbed = 0.08;  ///< share of the problems in which they have all of it
};

/// What a run has cost.
struct Cost {
    std::int64_t candidates = 0;
    std::set<std::string> images;
    double gpu_s = 0;
};

class NoisyReplay final : public Measurer {
  public:
    NoisyReplay(const Recording& recording, const std::map<std::string, Truths>& truths, const Moves& moves,
                const Noise& noise, std::uint64_t seed)
        : recording_(recording), truths_(truths), moves_(moves), noise_(noise), random_(seed) {}

    Cost cost;

    [[nodiscard]] const DeviceInfo& device() const override { return recording_.device; }
    [[nodiscard]] cache::Provenance provenance() const override { return cache::Provenance::replayed; }
    [[nodiscard]] bool needs_images() const override { return false; }
    [[nodiscard]] Verdict begin_problem(const Problem& problem) override {
        const auto found = recording_.problems.find(to_string(problem));
        if (found == recording_.problems.end())
            return {.status = cache::TrialStatus::launch_failed, .detail = {}};
        problem_ = problem;
        recorded_ = &found->second;
        known_ = &truths_.at(found->first);
        own_.clear();
        const bool is_disturbed = std::uniform_real_distribution(0.0, 1.0)(random_) < noise_.disturbed;
        scale_ = is_disturbed ? 1 : noise_.calm;
        cost.gpu_s += seconds_of_begin;
        return recorded_->begin;
    }
    void end_problem() override {}
    [[nodiscard]] int calls_per_replay() const override { return recorded_->calls_per_replay; }
    [[nodiscard]] bool can_measure(const Problem& problem, const Candidate& candidate) const override {
        const auto found = recording_.problems.find(to_string(problem));
        return found != recording_.problems.end() && truths_.at(found->first).contains(to_string(candidate));
    }
    [[nodiscard]] std::optional<cache::Resources> resources_of(const Candidate& candidate) const override {
        return recorded_->candidates.at(to_string(candidate)).resources;
    }
    [[nodiscard]] Verdict verify(const CandidateImage& image) override {
        ++cost.candidates;
        cost.images.insert(to_string(static_part(*problem_)) + '\n' +
                           to_string(image_candidate(image.candidate, device().traits.arch())));
        cost.gpu_s += seconds_of_candidate;
        const auto known = known_->find(to_string(image.candidate));
        if (known != known_->end()) cost.gpu_s += launches_of_verify * known->second.us * 1e-6;
        return recorded_->candidates.at(to_string(image.candidate)).verdict;
    }
    [[nodiscard]] Samples time(const CandidateImage& image, int replays) override {
        return samples(image, drawn_rounds(replays));
    }
    [[nodiscard]] std::vector<Samples> interleave(const std::vector<CandidateImage>& images,
                                                  int rounds) override {
        const std::vector<std::uint64_t> drawn = drawn_rounds(rounds);
        std::vector<Samples> all;
        for (const CandidateImage& image : images) all.push_back(samples(image, drawn));
        return all;
    }

  private:
    // As measured on an H200 with 16 cores: docs/performance.md.
    static constexpr double seconds_of_begin = 0.04;
    static constexpr double seconds_of_candidate = 0.004;
    static constexpr double launches_of_verify = 12;

    [[nodiscard]] std::vector<std::uint64_t> drawn_rounds(int count) {
        std::vector<std::uint64_t> drawn;
        for (int i = 0; i < count; ++i) drawn.push_back(random_());
        return drawn;
    }
    [[nodiscard]] Samples samples(const CandidateImage& image, const std::vector<std::uint64_t>& rounds) {
        const std::string name = to_string(image.candidate);
        Samples found{.verdict = recorded_->candidates.at(name).verdict, .us = {}};
        const auto known = known_->find(name);
        if (known == known_->end()) return found;
        const auto& [us, heat, _] = known->second;
        const double moved = own_factor(name);
        for (const std::uint64_t round : rounds) {
            found.us.push_back(us * moved * heat[round % heat.size()]);
            cost.gpu_s += found.us.back() * calls_per_replay() * 1e-6;
        }
        return found;
    }
    [[nodiscard]] double own_factor(const std::string& name) {
        const auto [place, is_new] = own_.try_emplace(name, 1.0);
        if (!is_new) return place->second;
        const auto moves = moves_.find({std::string(problem_->family->name), known_->at(name).us < short_us});
        if (moves == moves_.end()) return 1.0;
        return place->second = std::exp(scale_ * moves->second[random_() % moves->second.size()]);
    }

    const Recording& recording_;
    const std::map<std::string, Truths>& truths_;
    const Moves& moves_;
    Noise noise_;
    std::mt19937_64 random_;
    double scale_ = 0;  ///< of the moves in the problem that was begun
    std::optional<Problem> problem_;
    const RecordedProblem* recorded_ = nullptr;
    const Truths* known_ = nullptr;
    std::map<std::string, double> own_;  ///< of the problem that was begun
};

/// How a problem ended in one run.
struct End {
    std::string winner;
    std::set<std::string> ties;
    std::map<std::string, std::string> seen;  ///< how far others came, by candidate
    std::string first_winner;                 ///< before the second look
    double loss = 0;                          ///< of the winner's time in the recording, to the fastest one
    std::string fastest;                      ///< in the recording
    std::string fastest_tried;                ///< as print_losers() says it; empty where it is the fastest
};

struct FinishedRun {
    std::map<std::string, End> ends;  ///< by problem
    std::size_t candidates = 0;
    std::size_t images = 0;
    double gpu_s = 0;
};

struct Arguments {
    std::string model;
    std::string recording;
    std::string format;  ///< of linear layers; empty: as the model's file says
    std::vector<std::string> bundles;
    int runs = 6;
    Noise noise;
    Effort effort = Effort::quick;
    bool new_shapes = false;
    bool list = false;
    bool with_unfair = false;
    std::optional<double> losers;  ///< those that lose more are listed; in %
};

/// Of those that others may be held against, and there are some.
Truths::const_iterator fastest_of(const Truths& truths) {
    return std::ranges::min_element(
        truths, {}, [](const auto& known) { return std::pair(!known.second.is_judge, known.second.us); });
}

cache::Filter filter_of(const Problem& problem) {
    return {.gpu = std::nullopt,
            .family = std::string(problem.family->name),
            .static_fields = static_text(problem),
            .dynamic_fields = dynamic_text(problem)};
}

FinishedRun run_once(const Workload& workload, const TuneOptions& options, NoisyReplay& measurer,
                     const std::map<std::string, Truths>& truths) {
    bench::EmptyCache cache;
    NoImages images;
    const std::atomic<bool> never{false};
    const TuneResult result = tune(workload, options, measurer, images, cache.get(), {}, never);
    FinishedRun run{.ends = {},
                    .candidates = static_cast<std::size_t>(measurer.cost.candidates),
                    .images = measurer.cost.images.size(),
                    .gpu_s = measurer.cost.gpu_s};
    for (const ProblemResult& problem : result.problems) {
        if (!problem.winner) continue;
        const std::string text = to_string(problem.problem);
        const Truths& known = truths.at(text);
        End end{.winner = problem.winner->candidate, .ties = {}, .seen = {}, .first_winner = {}};
        for (const cache::Trial& trial : cache.get().trials(filter_of(problem.problem))) {
            std::string& seen = end.seen[trial.candidate];
            seen += fmt::format(" {} {:+.2f} %", name(trial.stage),
                                100 * (trial.timing.median_us / problem.winner->timing.median_us - 1));
            if (trial.winner) seen += " won";
            if (trial.winner && end.first_winner.empty()) end.first_winner = trial.candidate;
        }
        for (const cache::Trial& other : problem.ties.others) end.ties.insert(other.candidate);
        const auto fastest = fastest_of(known);
        end.loss = std::max(known.at(end.winner).us / fastest->second.us - 1, 0.0);
        end.fastest = fastest->first;
        const auto tried = std::ranges::min_element(end.seen, {}, [&](const auto& seen) {
            return known.contains(seen.first) ? known.at(seen.first).us : 1e9;
        });
        if (tried->first != end.fastest)
            end.fastest_tried =
                fmt::format("\n      of those tried {} ({:.2f} %):{}", tried->first,
                            100 * (known.at(tried->first).us / fastest->second.us - 1), tried->second);
        run.ends[text] = std::move(end);
    }
    return run;
}

struct Counts {
    int same_at_first = 0;  ///< before the second look
    int same = 0;
    int tied = 0;
    int neither = 0;
};

void print_pair(const std::string& problem, const End& ours, const End& theirs) {
    fmt::print("  neither: {}\n", problem);
    for (const auto& [one, other] : {std::pair(&ours, &theirs), std::pair(&theirs, &ours)}) {
        const auto seen = one->seen.find(other->winner);
        fmt::print("    loses {:.2f} %, {} tie: {}\n      (itself: {}), the other's here: {}\n",
                   100 * one->loss, one->ties.size(), one->winner, one->seen.at(one->winner),
                   seen == one->seen.end() ? "not tried" : seen->second);
    }
}

Counts compare(const FinishedRun& a, const FinishedRun& b, bool list) {
    Counts counts;
    for (const auto& [problem, ours] : a.ends) {
        const End& theirs = b.ends.at(problem);
        counts.same_at_first += ours.first_winner == theirs.first_winner ? 1 : 0;
        if (ours.winner == theirs.winner) {
            ++counts.same;
        } else if (ours.ties.contains(theirs.winner) || theirs.ties.contains(ours.winner)) {
            ++counts.tied;
        } else {
            ++counts.neither;
            if (list) print_pair(problem, ours, theirs);
        }
    }
    return counts;
}

void print_losses(const std::vector<FinishedRun>& runs) {
    std::map<std::string, std::vector<double>> by_family;
    std::size_t ties = 0;
    std::size_t changed = 0;
    std::size_t ends = 0;
    for (const FinishedRun& run : runs) {
        for (const auto& [problem, end] : run.ends) {
            by_family[problem.substr(0, problem.find(' '))].push_back(end.loss);
            by_family["all"].push_back(end.loss);
            ties += end.ties.size();
            changed += end.winner == end.first_winner ? 0 : 1;
            ++ends;
        }
    }
    for (const auto& [family, losses] : by_family) {
        double logs = 0;
        for (const double loss : losses) logs += std::log1p(loss);
        fmt::print(
            "  loss of {:18} {:5.2f} / {:5.2f} / {:5.2f} %  (geometric mean, 95th percentile, worst)\n",
            family, 100 * std::expm1(logs / static_cast<double>(losses.size())), 100 * quantile(losses, 0.95),
            100 * *std::ranges::max_element(losses));
    }
    fmt::print(
        "  {:.2f} kernels tie with a winner on the mean; {:.1f} % of the winners come from the second look\n",
        static_cast<double>(ties) / static_cast<double>(ends),
        100 * static_cast<double>(changed) / static_cast<double>(ends));
}

/// Problems that lose more than `limit` in some run, and why: with each winner, how the fastest recorded
/// kernel fared in that run.
void print_losers(const std::vector<FinishedRun>& runs, double limit) {
    for (const auto& [problem, _] : runs.front().ends) {
        std::map<std::string, std::string> winners;
        for (const FinishedRun& run : runs) {
            const End& end = run.ends.at(problem);
            if (end.loss <= limit) continue;
            const auto seen = end.seen.find(end.fastest);
            winners[fmt::format("{:.2f} %: {}{}", 100 * end.loss, end.winner, end.seen.at(end.winner))] =
                fmt::format("fastest {}: {}{}", end.fastest,
                            seen == end.seen.end() ? " not tried" : seen->second, end.fastest_tried);
        }
        if (winners.empty()) continue;
        fmt::print("  loses more than {:.1f} %: {}\n", 100 * limit, problem);
        for (const auto& [winner, fastest] : winners) fmt::print("    {}\n      {}\n", winner, fastest);
    }
}

void print_all(const std::vector<FinishedRun>& runs, bool list) {
    Counts sum;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        for (std::size_t j = i + 1; j < runs.size(); ++j) {
            const Counts pair = compare(runs[i], runs[j], list);
            sum.same_at_first += pair.same_at_first;
            sum.same += pair.same;
            sum.tied += pair.tied;
            sum.neither += pair.neither;
        }
    }
    const double all = std::max(1, sum.same + sum.tied + sum.neither);
    fmt::print(
        "{} runs of {} problems, each pair: {:.1f} % the same ({:.1f} % before the second look), {:.1f} % "
        "tied, {:.1f} % neither\n",
        runs.size(), runs.front().ends.size(), 100 * sum.same / all, 100 * sum.same_at_first / all,
        100 * sum.tied / all, 100 * sum.neither / all);
    print_losses(runs);
    double candidates = 0;
    double images = 0;
    double gpu_s = 0;
    for (const FinishedRun& run : runs) {
        candidates += static_cast<double>(run.candidates);
        images += static_cast<double>(run.images);
        gpu_s += run.gpu_s;
    }
    const auto count = static_cast<double>(runs.size());
    fmt::print("  a run: {:.0f} candidates measured, {:.0f} images, {:.1f} s of the GPU\n",
               candidates / count, images / count, gpu_s / count);
}

/// Problems of the model that judge nobody.
void print_unfair(const std::vector<std::string>& unfair, const Workload& workload, bool list) {
    std::vector<std::string> left_out;
    for (const Problem& problem : workload.problems) {
        const std::string text = to_string(problem);
        if (std::ranges::find(unfair, text) != unfair.end()) left_out.push_back(text);
    }
    if (left_out.empty()) return;
    fmt::print("{} problems are not judged: the clock moved while their kernels ran one after another\n",
               left_out.size());
    if (list) fmt::print("  {}\n", fmt::join(left_out, "\n  "));
}

std::optional<checkpoints::WeightFormat> weights_named(const std::string& name) {
    if (name.empty()) return std::nullopt;
    const auto found = std::ranges::find(quant_format_names, name);
    if (found == quant_format_names.end())
        throw std::invalid_argument(
            fmt::format("--format: {}; allowed: {}", name, fmt::join(quant_format_names, ", ")));
    const auto format = static_cast<QuantFormat>(found - quant_format_names.begin());
    return checkpoints::WeightFormat{.format = format, .group = checkpoints::usual_group(format)};
}

void compare_runs(const Arguments& arguments) {
    const Recording recording = with_few_early_weights(read_recording(arguments.recording));
    const Moves moves = moves_of(recording);
    std::map<std::string, Truths> truths;
    std::vector<std::string> unfair;
    for (const auto& [text, problem] : recording.problems) {
        if (arguments.with_unfair || Comparable(problem).is_fair())
            truths[text] = truths_of(problem);
        else
            unfair.push_back(text);
    }
    Workload workload =
        model_workload(read_model(arguments.model), {.weights = weights_named(arguments.format)});
    print_unfair(unfair, workload, arguments.list);
    std::erase_if(workload.problems,
                  [&](const Problem& problem) { return !truths.contains(to_string(problem)); });
    TuneOptions options{.effort = arguments.effort, .budget = {}};
    std::set<std::string> own_shapes;
    for (const Problem& problem : workload.problems) own_shapes.insert(static_text(problem));
    std::vector<cache::Trial> known;
    for (const std::string& bundle : arguments.bundles) {
        for (cache::Trial& trial : bench::trials_of(bundle)) {
            if (!arguments.new_shapes || !own_shapes.contains(trial.key.static_fields))
                known.push_back(std::move(trial));
        }
    }
    options.lower_trials = [&] { return known; };
    std::vector<FinishedRun> runs;
    for (int run = 0; run < arguments.runs; ++run) {
        NoisyReplay measurer(recording, truths, moves, arguments.noise, static_cast<std::uint64_t>(run) + 1);
        runs.push_back(run_once(workload, options, measurer, truths));
    }
    print_all(runs, arguments.list);
    if (arguments.losers) print_losers(runs, *arguments.losers / 100);
}

std::optional<Arguments> read_arguments(int argc, char** argv) {
    Arguments arguments;
    std::vector<std::string> places;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        const bool has_value = word == "--runs" || word == "--calm" || word == "--disturbed" ||
                               word == "--effort" || word == "--losers" || word == "--format";
        if (has_value && i + 1 == argc) return std::nullopt;
        if (word == "--list") {
            arguments.list = true;
        } else if (word == "--unfair") {
            arguments.with_unfair = true;
        } else if (word == "--new-shapes") {
            arguments.new_shapes = true;
        } else if (word == "--format") {
            arguments.format = argv[++i];
        } else if (word == "--losers") {
            arguments.losers = std::atof(argv[++i]);
        } else if (word == "--runs") {
            arguments.runs = std::atoi(argv[++i]);
        } else if (word == "--calm") {
            arguments.noise.calm = std::atof(argv[++i]);
        } else if (word == "--disturbed") {
            arguments.noise.disturbed = std::atof(argv[++i]);
        } else if (word == "--effort") {
            arguments.effort = std::string_view(argv[++i]) == "standard" ? Effort::standard : Effort::quick;
        } else {
            places.emplace_back(word);
        }
    }
    if (places.size() < 2 || arguments.runs < 2) return std::nullopt;
    arguments.model = places[0];
    arguments.recording = places[1];
    arguments.bundles.assign(places.begin() + 2, places.end());
    return arguments;
}

}  // namespace

int main(int argc, char** argv) {
    const std::optional<Arguments> arguments = read_arguments(argc, argv);
    if (!arguments) {
        fmt::print(stderr,
                   "usage: two_runs MODEL RECORDING [--format F] [--runs N] [--calm X] [--disturbed P] "
                   "[--effort E] [--new-shapes] [--unfair] [--list] [--losers X] [BUNDLE...]\n");
        return 2;
    }
    try {
        compare_runs(*arguments);
    } catch (const std::exception& error) {
        fmt::print(stderr, "two_runs: {}\n", error.what());
        return 1;
    }
    return 0;
}
