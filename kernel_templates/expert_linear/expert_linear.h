// Linear layers of experts on the host: the problem as numbers. A variant's plan stands in <variant>_plan.h
// (or .cpp), its space and cost in <variant>.cpp, beside <variant>.cu; wgmma and mma_tiles have folders.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernel_templates/expert_linear/declaration.h"
#include "kernel_templates/expert_linear/tiles.cuh"
#include "kernel_templates/kit/ceil_div.h"
#include "kernel_templates/linear/linear.h"

namespace hone::expert_linear {

struct ExpertProblem : Fields {
    ExpertProblem() = default;
    explicit ExpertProblem(const Problem& problem) : Fields(fields_of(problem)) {}

    [[nodiscard]] std::int64_t element_bytes() const { return size_bytes(dtype); }
    [[nodiscard]] std::int64_t products() const { return gated ? 2 : 1; }
    /// Pairs of a token and a slot, which stand by expert.
    [[nodiscard]] std::int64_t places() const { return tokens * top_k; }
    [[nodiscard]] std::int64_t x_rows() const { return gather ? tokens : places(); }
    [[nodiscard]] std::int64_t out_rows() const { return combine ? tokens : places(); }
    /// Whether the call says which pair stands at a place.
    [[nodiscard]] bool maps_rows() const { return gather || combine; }
    [[nodiscard]] bool gated_bias() const { return gated && bias; }

    // Of a routing without favourites.
    [[nodiscard]] double rows_an_expert() const {
        return static_cast<double>(places()) / static_cast<double>(experts);
    }
    /// Experts that have rows, and how many of them.
    [[nodiscard]] std::int64_t active() const { return std::min(experts, places()); }
    /// As many as to expect where tokens choose at random.
    [[nodiscard]] std::int64_t with_rows() const {
        return std::min(active(), tiles(std::max<std::int64_t>(tokens, 1)));
    }
    [[nodiscard]] std::int64_t rows_an_active() const { return ceil_div(places(), active()); }
    /// Tiles of `rows` rows, as many as to expect where tokens choose at random: rows of an expert scatter by
    /// their root, and of few rows an expert some have none.
    [[nodiscard]] std::int64_t tiles(std::int64_t rows) const {
        if (top_k == experts) return experts * ceil_div(tokens, rows);
        if (rows_an_expert() < 8) return tiles_of_few(rows);
        const double mean = static_cast<double>(places()) / static_cast<double>(active());
        const double width = std::sqrt(2 * mean);
        double tiles = 1;
        for (double full = static_cast<double>(rows); full < mean + 4 * width;
             full += static_cast<double>(rows))
            tiles += 0.5 * std::erfc((full + 0.5 - mean) / width);
        return std::llround(tiles * static_cast<double>(active()));
    }
    /// tiles(), by the chances of each number of rows.
    [[nodiscard]] std::int64_t tiles_of_few(std::int64_t rows) const {
        const double share = static_cast<double>(top_k) / static_cast<double>(experts);
        double chance = std::pow(1 - share, static_cast<double>(tokens));
        double tiles = 0;
        for (std::int64_t count = 1; count <= std::min<std::int64_t>(tokens, 64); ++count) {
            chance *=
                share / (1 - share) * static_cast<double>(tokens - count + 1) / static_cast<double>(count);
            tiles += chance * static_cast<double>(ceil_div(count, rows));
        }
        return std::max<std::int64_t>(std::llround(tiles * static_cast<double>(experts)), 1);
    }
    /// Of these, those of an expert's last rows where they are `few` at most.
    [[nodiscard]] double narrow_tiles(std::int64_t rows, std::int64_t few) const {
        const double mean = static_cast<double>(places()) / static_cast<double>(active());
        const double width = std::sqrt(2 * mean);
        const auto above = [&](double count) { return 0.5 * std::erfc((count + 0.5 - mean) / width); };
        double tiles = 0;
        for (double full = 0; full < mean + 4 * width; full += static_cast<double>(rows))
            tiles += above(full) - above(full + static_cast<double>(few));
        return tiles * static_cast<double>(active());
    }
    /// Tiles that any routing needs at most.
    [[nodiscard]] std::int64_t most_tiles(std::int64_t rows) const {
        return expert_linear::most_tiles(places(), experts, rows);
    }

    [[nodiscard]] double weight_bytes() const {
        return static_cast<double>(products() * with_rows() * element_bytes()) * static_cast<double>(in) *
               static_cast<double>(out);
    }
    [[nodiscard]] double flops() const {
        return 2.0 * static_cast<double>(products() * places()) * static_cast<double>(in) *
               static_cast<double>(out);
    }
    /// Standard deviation of weights whose results have the size of x.
    [[nodiscard]] double weight_deviation() const { return 1.0 / std::sqrt(static_cast<double>(in)); }

    /// One expert's layer for so many rows, as linear sees it.
    [[nodiscard]] linear::LinearProblem dense(std::int64_t rows) const {
        linear::LinearProblem p;
        p.dtype = dtype;
        p.activation = activation;
        p.gated = gated;
        p.bias = bias;
        p.in = in;
        p.out = out;
        p.tokens = rows;
        return p;
    }
};

}  // namespace hone::expert_linear
