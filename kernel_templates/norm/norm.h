// What RMSNorm and LayerNorm share on the host: the problem as plain numbers and the variants. A variant's
// plan stands in norm/<variant>_plan.cpp, its space and cost in norm/<variant>.cpp, beside
// norm/<variant>.cuh.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernel_templates/kit/ceil_div.h"
#include "kernel_templates/norm/declaration.h"

namespace hone::norm {

/// A problem of either family as numbers.
struct NormProblem : Fields {
    NormProblem() = default;
    explicit NormProblem(const Problem& problem) : Fields(fields_of(problem)) {}

    [[nodiscard]] bool quantized() const { return output != NormOutput::same; }
    [[nodiscard]] Dtype out_dtype() const {
        if (output == NormOutput::int8) return Dtype::int8;
        return output == NormOutput::fp8 ? Dtype::fp8_e4m3 : dtype;
    }
    [[nodiscard]] std::int64_t element_bytes() const { return size_bytes(dtype); }
    /// Bytes of a row that are read: of x, and of the residual.
    [[nodiscard]] std::int64_t read_bytes() const { return hidden * element_bytes() * (residual ? 2 : 1); }
    /// Reductions that follow one another.
    [[nodiscard]] int reductions() const { return layernorm ? (quantized() ? 3 : 2) : 1; }
    /// Packets of `vector` elements that each of `lanes` threads holds of a row.
    [[nodiscard]] std::int64_t packets(std::int64_t lanes, std::int64_t vector) const {
        return ceil_div(hidden, lanes * vector);
    }
};

/// Adds what both families share to what is a family's own: variants and the reference's source.
[[nodiscard]] Family family(Family own);

/// `source`: the family's template for this variant.
[[nodiscard]] Variant group_rows(std::string_view source);
[[nodiscard]] Variant persistent_rows(std::string_view source);
[[nodiscard]] Variant cluster_row(std::string_view source);
[[nodiscard]] Variant streamed_row(std::string_view source);

}  // namespace hone::norm
