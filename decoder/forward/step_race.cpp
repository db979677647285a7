// Steps with other kernels in them, side by side: what `hone tune --chain` asks of a model.
#include <algorithm>
#include <iterator>
#include <utility>

#include "decoder/error.h"
#include "decoder/forward/forward.h"
#include "decoder/forward/forward_memory.h"
#include "kernel_templates/catalog.h"
#include "runtime/operators/runtime_state.h"

namespace hone::decoder {
namespace {

/// What a step's sizes are called in the problems of its operators.
std::optional<std::int64_t> size_named(std::string_view name, const StepSizes& sizes) {
    if (name == "rows" || name == "tokens" || name == "batch") return sizes.sequences;
    if (name == "kv_len") return sizes.kv_len;
    return std::nullopt;
}

bool serves(const BucketReport& bucket, const StepSizes& sizes) {
    return std::ranges::all_of(bucket.sizes, [&](const SizeRange& range) {
        const std::optional<std::int64_t> size = size_named(range.name, sizes);
        return size && *size >= range.first && *size <= range.last;
    });
}

/// Sizes that no kernel depends on are what they are when nobody says them.
Problem as_tuned(Problem problem) {
    for (std::size_t i = 0; i < problem.family->fields.size(); ++i) {
        const Field& field = problem.family->fields[i];
        if (field.kind == Field::Kind::free && field.default_value > 0)
            problem.values[i] = field.default_value;
    }
    return problem;
}

/// The problem at the bucket's upper edge, and what was chosen for it.
std::optional<StepKernel> kernel_of(Part part, const PrepareReport& report, const BucketReport& bucket) {
    std::optional<Problem> problem = parse_problem(report.problem);
    if (!problem) return std::nullopt;
    for (const SizeRange& range : bucket.sizes) {
        const int field = field_index(*problem->family, range.name);
        if (field < 0) return std::nullopt;
        problem->values[static_cast<std::size_t>(field)] = range.last;
    }
    const std::optional<Candidate> candidate = parse_candidate(*problem->family, bucket.candidate);
    if (!candidate) return std::nullopt;
    return StepKernel{part, as_tuned(*problem), *problem, *candidate, bucket.origin};
}

/// Of a product with the norm in front of it, whole; attention and the append have norms of heads, which are
/// another matter, as are products that share a norm, all of whose kernels take its squares.
bool has_norm_in_front(const StepKernel& kernel) {
    if (kernel.part != Part::qkv && kernel.part != Part::network) return false;
    if (field_index(*kernel.problem.family, "next_norm") >= 0) return false;
    const int norm = field_index(*kernel.problem.family, "norm");
    return norm >= 0 && kernel.problem[static_cast<std::size_t>(norm)] != 0;
}

constexpr Part raced_parts[] = {Part::network,   Part::head,         Part::qkv,   Part::output,
                                Part::attention, Part::network_norm, Part::append};

}  // namespace

std::int64_t raced_length(std::int64_t kv_len, std::int64_t sequence, std::int64_t round) {
    constexpr std::int64_t lengths = 3;
    return std::max<std::int64_t>(kv_len >> ((sequence + round) % lengths), 1);
}

std::vector<StepKernel> Forward::step_kernels(const StepSizes& sizes) const {
    const StepSizes padded_sizes{graphs_.padded(sizes.sequences), graphs_.length_bucket(sizes.kv_len)};
    std::vector<StepKernel> kernels;
    for (const Part part : raced_parts) {
        for (const PrepareReport& report : operators_.reports(part, padded_sizes.sequences)) {
            for (const BucketReport& bucket : report.buckets) {
                if (!serves(bucket, padded_sizes)) continue;
                if (std::optional<StepKernel> kernel = kernel_of(part, report, bucket))
                    kernels.push_back(*std::move(kernel));
            }
        }
    }
    return kernels;
}

/// Operators with another candidate in the kernel's place; nothing where it cannot be prepared. Nor where a
/// product with a norm in it would not normalize on the way: a model that is loaded with such a kernel has
/// launches for norms, and products that nobody raced.
std::optional<Operators> Forward::with_other(const StepKernel& kernel, const Candidate& candidate) {
    if (has_norm_in_front(kernel) && !normalizes_on_the_way(runtime_, kernel.at_edge, candidate))
        return std::nullopt;
    runtime::Dispatcher& dispatcher = runtime::dispatcher_of(runtime_);
    Operators others = operators_;
    bool is_prepared = true;
    dispatcher.hold(kernel.at_edge, candidate);
    try {
        others.prepare_again(kernel.part, runtime_, model_, weights_, capacity_);
    } catch (const Error&) {
        is_prepared = false;
    }
    dispatcher.hold(kernel.at_edge, kernel.candidate);
    return is_prepared ? std::optional(std::move(others)) : std::nullopt;
}

Forward::Variation Forward::variation(Operators operators, const StepSizes& sizes) {
    Variation other{.operators = std::move(operators), .workspace = {}, .graph = {}};
    const auto exchange = [&] {
        std::swap(other.operators, operators_);
        if (other.workspace.size() > 0) std::swap(other.workspace, memory_->workspace);
    };
    const std::size_t bytes = elements(other.operators.workspace_bytes(model_, capacity_));
    if (bytes > memory_->workspace.size()) other.workspace = Bytes(gpu_.driver(), bytes);
    exchange();
    try {
        other.graph = runtime::instantiate(gpu_.driver(),
                                           graphs_.capture(graphs_.step_of(sizes.sequences, sizes.kv_len)));
    } catch (...) {
        exchange();
        throw;
    }
    exchange();
    return other;
}

std::vector<std::vector<double>> Forward::times_of(std::span<const Variation* const> steps,
                                                   const StepSizes& sizes, Lengths lengths, int rounds,
                                                   const FaultSink& on_fault) {
    std::vector<CUgraphExec> graphs;
    for (const Variation* step : steps) graphs.push_back(step != nullptr ? step->graph.get() : nullptr);
    const auto fill = [&](int round) { fill_for_race(sizes, lengths, round); };
    return race(timer_, graphs, fill, rounds, on_fault);
}

std::vector<std::vector<double>> Forward::times_with(const StepKernel& kernel,
                                                     std::span<const Candidate> candidates,
                                                     const StepSizes& sizes, int rounds,
                                                     const FaultSink& on_fault) {
    std::vector<std::optional<Variation>> steps;
    steps.push_back(variation(operators_, sizes));
    for (const Candidate& candidate : candidates) {
        std::optional<Operators> others = with_other(kernel, candidate);
        steps.push_back(others ? std::optional(variation(*std::move(others), sizes)) : std::nullopt);
    }
    std::vector<const Variation*> all;
    for (const std::optional<Variation>& step : steps) all.push_back(step ? &*step : nullptr);
    return times_of(all, sizes, Lengths::mixed, rounds, on_fault);
}

void Forward::mark(const StepSizes& sizes) {
    mark_ = std::make_unique<Variation>(variation(operators_, sizes));
}

std::vector<std::vector<double>> Forward::times_since_mark(const StepSizes& sizes, Lengths lengths,
                                                           int rounds, const FaultSink& on_fault) {
    const Variation now = variation(operators_, sizes);
    const Variation* const both[] = {&now, mark_.get()};
    return times_of(both, sizes, lengths, rounds, on_fault);
}

void Forward::fill_for_race(const StepSizes& sizes, Lengths lengths, int round) {
    fill_for_timing(graphs_.padded(sizes.sequences), [&](std::int64_t row) {
        return lengths == Lengths::equal ? sizes.kv_len : raced_length(sizes.kv_len, row, round);
    });
}

void Forward::take(const StepKernel& kernel, const Candidate& candidate) {
    graphs_.clear();  // of the kernel that was, which goes with its operator; captured when they are needed
    runtime::dispatcher_of(runtime_).hold(kernel.at_edge, candidate);
    operators_.prepare_again(kernel.part, runtime_, model_, weights_, capacity_);
    const std::int64_t bytes = operators_.workspace_bytes(model_, capacity_);
    if (elements(bytes) <= memory_->workspace.size()) return;
    mark_.reset();  // its graph has the workspace that was
    memory_->workspace = Bytes(gpu_.driver(), elements(bytes));
}

bool Forward::can_share_norms(std::int64_t sequences) const {
    return graphs_.padded(sequences) <= operators_.most_sharing;
}

void Forward::share_norms(std::int64_t sequences, bool shares) {
    const std::int64_t tokens = graphs_.padded(sequences);
    if (operators_.share_norms(tokens) == shares) return;
    graphs_.clear();
    std::vector<std::int64_t>& steps = operators_.sharing_steps;
    const auto place = std::ranges::lower_bound(steps, tokens);
    if (shares)
        steps.insert(place, tokens);
    else
        steps.erase(place);
}

}  // namespace hone::decoder
