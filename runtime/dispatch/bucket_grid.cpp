#include "runtime/dispatch/bucket_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "kernel_templates/family.h"

namespace hone::runtime {
namespace {

/// Those of `more` that lie below the last edge.
void add(std::span<const std::int64_t> more, std::vector<std::int64_t>& edges) {
    const std::int64_t last = edges.back();
    std::ranges::copy_if(more, std::back_inserter(edges), [&](std::int64_t edge) { return edge < last; });
    std::ranges::sort(edges);
    const auto repeated = std::ranges::unique(edges);
    edges.erase(repeated.begin(), repeated.end());
}

}  // namespace

BucketGrid::BucketGrid(const Problem& largest, const Sizes& least, std::span<const std::int64_t> finer)
    : largest_(largest), fields_(run_time_fields(*largest.family)), maxima_(sizes_of(largest)) {
    for (std::size_t i = 0; i < fields_.count; ++i) {
        if (largest.family->fields[fields_[i]].kind != Field::Kind::dynamic) continue;
        std::vector<std::int64_t> edges = bucket_edges(maxima_[i]);
        if (largest.family->fields[fields_[i]].finer) add(finer, edges);
        std::erase_if(edges, [&](std::int64_t edge) { return edge < std::min(least[i], maxima_[i]); });
        cells_ *= edges.size();
        axes_[axis_count_++] = {i, BucketIndex(edges)};
    }
}

Problem BucketGrid::edge(std::size_t cell, Edge which) const {
    Sizes sizes = maxima_;
    for (std::size_t i = axis_count_; i-- > 0;) {
        const std::span<const std::int64_t> edges = axes_[i].index.edges();
        const std::size_t bucket = cell % edges.size();
        cell /= edges.size();
        const std::int64_t below = bucket == 0 ? 0 : edges[bucket - 1];
        sizes[axes_[i].size] = which == Edge::last ? edges[bucket] : below + 1;
    }
    return problem(sizes);
}

std::optional<Problem> BucketGrid::largest_below(std::size_t cell, const Sizes& sizes) const {
    const Sizes least = sizes_of(first(cell));
    Sizes most = sizes_of(last(cell));
    for (std::size_t i = 0; i < fields_.count; ++i) most[i] = std::min(most[i], sizes[i]);
    for (std::size_t i = 0; i < axis_count_; ++i) {
        if (most[axes_[i].size] < least[axes_[i].size]) return std::nullopt;
    }
    return problem(most);
}

std::string BucketGrid::why_not(const Sizes& sizes) const {
    for (std::size_t i = 0; i < fields_.count; ++i) {
        if (sizes[i] >= 0 && sizes[i] <= maxima_[i]) continue;
        return fmt::format("{} is {}; allowed: 0 to {}, as prepared",
                           largest_.family->fields[fields_[i]].name, sizes[i], maxima_[i]);
    }
    return {};
}

}  // namespace hone::runtime
