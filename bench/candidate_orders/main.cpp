// In which order `hone tune` would try the candidates of a recorded sweep, for bench/strategies.py:
//
//     candidate_orders RECORDING [BUNDLE]
//
// One JSON object a line, {"problem": ..., "order": [...], "quick": N}: the N that quick effort tries, then
// what standard effort adds, as far as it was recorded. The cost models' corrections come from a fit that has
// seen the problem's shape on no GPU. BUNDLE is an export of winners that are known before; without one
// nothing is. Each problem stands alone: no winner of another size is known, as it would be within a run.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>

#include "bench/cost_fit/cost_fit.h"
#include "bench/empty_cache.h"
#include "bench/measured_files.h"
#include "kernel_templates/catalog.h"
#include "tuner/compile/no_images.h"
#include "tuner/measure/recorded.h"
#include "tuner/search/problem_tuner.h"

namespace {

using namespace hone;
using namespace hone::tuner;

constexpr std::size_t judged_first = 32;  // as WHOLE_SWEEP of bench/strategies.py

/// The families as a build would have them that has seen no sweep of the problem's shape.
class LeftOutFamilies {
  public:
    LeftOutFamilies() {
        const std::vector<Recording> recordings = bench::recordings_of_tree(HONE_SOURCE_DIR);
        const std::vector<cache::Trial> races = bench::races_of_tree(HONE_SOURCE_DIR);
        for (const Family* family : families()) {  // those that have no corrections get none
            if (!family->calibration.empty())
                fits_[family] = cost_fit::fit_left_out(cost_fit::training_cases(recordings, races, *family),
                                                       judged_first);
        }
    }
    /// The problem with its family; nothing where its shape has no whole sweep.
    [[nodiscard]] std::optional<Problem> seen_by(Problem problem) {
        const auto fits = fits_.find(problem.family);
        if (fits == fits_.end()) return problem;
        const auto fit = fits->second.find(static_text(problem));
        if (fit == fits->second.end()) return std::nullopt;
        Family& family = copies_.emplace_back(*problem.family);
        family.calibration = fit->second;
        problem.family = &family;
        return problem;
    }

  private:
    std::map<const Family*, std::map<std::string, std::vector<Coefficient>>> fits_;
    std::deque<Family> copies_;  ///< their addresses are stable
};

struct Order {
    std::vector<std::string> candidates;  ///< what quick effort tries, then what standard effort adds
    std::size_t quick = 0;                ///< how many the former are
};

Order order_of(const Problem& problem, ReplayMeasurer& measurer, Knowledge& knowledge, cache::Cache& cache) {
    Order found;
    std::vector<std::string>& order = found.candidates;
    for (const Effort effort : {Effort::quick, Effort::standard}) {
        const TuneOptions options{.effort = effort, .budget = {}};
        NoImages images;
        Predictions predictions(measurer.device().traits);
        AskedImages asked(measurer.device().traits.arch());
        const RunContext run{options,      measurer,    images, cache,
                             knowledge,    predictions, asked,  [] { return false; },
                             [](double) {}};
        for (const Candidate& candidate : list_candidates(problem, run).order) {
            std::string text = to_string(candidate);
            if (std::ranges::find(order, text) == order.end()) order.push_back(std::move(text));
        }
        if (effort == Effort::quick) found.quick = order.size();
    }
    return found;
}

void print_orders(const char* file, const std::vector<cache::Trial>& known) {
    ReplayMeasurer measurer(read_recording(file));
    bench::EmptyCache cache;
    Knowledge knowledge(cache.get(), measurer.device(), cache::Provenance::measured);
    knowledge.add_lower(known);
    LeftOutFamilies families;
    for (const auto& [text, recorded] : measurer.recording().problems) {
        const std::optional<Problem> parsed = parse_problem(text);  // none: of a kernel that is no more
        const std::optional<Problem> problem = parsed ? families.seen_by(*parsed) : std::nullopt;
        if (!problem) continue;
        const Order order = order_of(*problem, measurer, knowledge, cache.get());
        const nlohmann::json line{{"problem", text}, {"order", order.candidates}, {"quick", order.quick}};
        fmt::print("{}\n", line.dump());
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2 || argc > 3) {
        fmt::print(stderr, "usage: candidate_orders RECORDING [BUNDLE]\n");
        return 2;
    }
    try {
        print_orders(argv[1], argc > 2 ? bench::trials_of(argv[2]) : std::vector<cache::Trial>());
    } catch (const std::exception& error) {
        fmt::print(stderr, "candidate_orders: {}\n", error.what());
        return 1;
    }
    return 0;
}
