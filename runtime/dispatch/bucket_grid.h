// From a call's sizes to the bucket that serves them. Each dynamic field of a family has buckets of its own;
// a cell is one bucket of each, and has its kernel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "kernel_templates/problem.h"
#include "runtime/dispatch/bucket_index.h"

namespace hone::runtime {

class BucketGrid {
  public:
    /// `largest` carries the maxima in its run-time fields. Cells all below `least` in some dynamic field are
    /// left out; smaller sizes then belong to the first that is there. `finer`: edges of the finer field
    /// (kernel_templates/problem.h) beside the usual ones, measured_between() of what is known.
    explicit BucketGrid(const Problem& largest, const Sizes& least = {},
                        std::span<const std::int64_t> finer = {});

    /// Buckets of all dynamic fields, multiplied; of cells with neighbouring numbers the last field differs.
    [[nodiscard]] std::size_t cells() const noexcept { return cells_; }
    /// The largest and the smallest problem of a cell; free fields at their maximum.
    [[nodiscard]] Problem last(std::size_t cell) const { return edge(cell, Edge::last); }
    [[nodiscard]] Problem first(std::size_t cell) const { return edge(cell, Edge::first); }

    /// Whether a call may have these sizes: 0 to the maxima.
    [[nodiscard]] bool takes(const Sizes& sizes) const noexcept {
        bool inside = true;
        for (std::size_t i = 0; i < fields_.count; ++i) inside &= sizes[i] >= 0 && sizes[i] <= maxima_[i];
        return inside;
    }
    /// Whether a dynamic size is 0: there is nothing to do.
    [[nodiscard]] bool nothing_in(const Sizes& sizes) const noexcept {
        bool nothing = false;
        for (std::size_t i = 0; i < axis_count_; ++i) nothing |= sizes[axes_[i].size] == 0;
        return nothing;
    }
    /// For sizes that it takes, with something in them.
    [[nodiscard]] std::size_t find(const Sizes& sizes) const noexcept {
        std::size_t cell = 0;
        for (std::size_t i = 0; i < axis_count_; ++i)
            cell = cell * axes_[i].index.edges().size() + axes_[i].index.find(sizes[axes_[i].size]);
        return cell;
    }
    /// The problem of a call.
    [[nodiscard]] Problem problem(const Sizes& sizes) const noexcept {
        Problem problem = largest_;
        for (std::size_t i = 0; i < fields_.count; ++i) problem.values[fields_[i]] = sizes[i];
        return problem;
    }
    /// The largest problem of a cell that is nowhere above `sizes`, if there is one.
    [[nodiscard]] std::optional<Problem> largest_below(std::size_t cell, const Sizes& sizes) const;
    /// As error texts name it: "rows is 9; allowed: 0 to 8, as prepared". For sizes that it does not take.
    [[nodiscard]] std::string why_not(const Sizes& sizes) const;

  private:
    struct Axis {
        std::size_t size = 0;  ///< index in Sizes
        BucketIndex index;
    };
    enum class Edge : std::uint8_t { first, last };
    [[nodiscard]] Problem edge(std::size_t cell, Edge which) const;

    Problem largest_;
    FieldIndices fields_;  ///< indices of the run-time fields
    Sizes maxima_{};
    std::array<Axis, max_dynamic_fields> axes_;
    std::size_t axis_count_ = 0;
    std::size_t cells_ = 1;
};

}  // namespace hone::runtime
