// Linear layers of experts with quantized weights, on the host: the problem as numbers. Places, tiles and the
// sum over slots are expert_linear's, formats quantized_linear's. A variant's launch stands in plan.h and
// plan.cpp of its folder, beside kernel.cu, its space and cost in space.cpp; plain has no folder.
#pragma once

#include "kernel_templates/expert_linear/expert_linear.h"
#include "kernel_templates/quantized_expert_linear/declaration.h"
#include "kernel_templates/quantized_expert_linear/room.cuh"
#include "kernel_templates/quantized_linear/quantized_linear.h"

namespace hone::quantized_expert_linear {

struct QuantizedExpertProblem : expert_linear::ExpertProblem {
    QuantFormat format = QuantFormat::w4a16;
    std::int64_t group = 0;
    bool zeros = false;

    QuantizedExpertProblem() = default;
    explicit QuantizedExpertProblem(const Problem&);

    /// One expert's layer for so many rows, as quantized_linear sees it.
    [[nodiscard]] quantized_linear::QuantizedProblem coded(std::int64_t rows = 1) const;
    /// Codes of 4 or 8 bits are multiplied with 16-bit x; else codes with codes, which x becomes first.
    [[nodiscard]] bool is_packed() const { return coded().is_packed(); }
    [[nodiscard]] int bits() const { return coded().bits(); }
    [[nodiscard]] bool has_blocks() const { return coded().has_blocks(); }
    /// Whether the products' rows of x stand by token: codes are made place by place.
    [[nodiscard]] bool x_by_token() const { return gather && is_packed(); }
    /// What the workspace holds.
    [[nodiscard]] Room room() const {
        return room_of(places(), in, is_packed() ? 0 : coded().groups(), combine ? out * element_bytes() : 0);
    }

    // The tensors of a call.
    [[nodiscard]] Dtype code_dtype() const { return coded().code_dtype(); }
    [[nodiscard]] std::int64_t code_rows() const { return coded().code_rows(); }
    [[nodiscard]] std::int64_t row_bytes() const { return coded().row_bytes(); }
    [[nodiscard]] Dtype scale_dtype() const { return coded().scale_dtype(); }
    [[nodiscard]] std::int64_t scale_rows() const { return coded().scale_rows(); }
    [[nodiscard]] std::int64_t scale_columns() const { return coded().scale_columns(); }
    [[nodiscard]] Fill code_fill() const { return coded().code_fill(); }
    [[nodiscard]] double code_fill_scale() const { return coded().code_fill_scale(); }
    [[nodiscard]] double weight_scale() const { return coded().weight_scale(); }

    /// Bytes of the weights of experts that have rows, with their scales and zero points.
    [[nodiscard]] double weight_bytes() const {
        return static_cast<double>(with_rows()) * coded().weight_bytes();
    }
};

}  // namespace hone::quantized_expert_linear
