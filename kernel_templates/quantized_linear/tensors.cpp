// The tensors of a call: their sizes, and what tuning fills them with. Kernels meet all of these by their
// pointers alone.
#include "kernel_templates/quantized_linear/quantized_linear.h"

namespace hone::quantized_linear {
namespace {

/// The standard deviation of codes as they are drawn: uniform over all of 4 or 8 bits; fp8 normal, far from
/// its largest number.
double code_deviation(const QuantizedProblem& p) {
    switch (p.format) {
        case QuantFormat::w4a16: return p.zeros ? 6.3 : 4.6;
        case QuantFormat::fp8: return 60.0;
        default: return 73.6;
    }
}

}  // namespace

Dtype QuantizedProblem::code_dtype() const {
    return format == QuantFormat::fp8 ? Dtype::fp8_e4m3 : Dtype::int8;
}
std::int64_t QuantizedProblem::code_rows() const { return is_packed() ? whole_blocks(out) : out; }
std::int64_t QuantizedProblem::row_bytes() const { return is_packed() ? packed_bytes(1, in, bits()) : in; }

Dtype QuantizedProblem::scale_dtype() const { return format == QuantFormat::w4a16 ? dtype : Dtype::fp32; }
std::int64_t QuantizedProblem::scale_rows() const {
    if (format == QuantFormat::w4a16) return whole_blocks(out) * groups();
    return has_blocks() ? ceil_div(out, scaled_block) : 1;
}
std::int64_t QuantizedProblem::scale_columns() const {
    if (format == QuantFormat::w4a16) return block_rows;
    return has_blocks() ? groups() : out;
}

Fill QuantizedProblem::code_fill() const { return format == QuantFormat::fp8 ? Fill::normal : Fill::uniform; }
double QuantizedProblem::code_fill_scale() const {
    return format == QuantFormat::fp8 ? code_deviation(*this) : 127.4;
}
double QuantizedProblem::x_scale() const { return 1.0 / code_deviation(*this); }
double QuantizedProblem::weight_scale() const { return dense().weight_deviation() / code_deviation(*this); }

double QuantizedProblem::weight_bytes() const {
    const double rows = static_cast<double>(products() * out);
    const double columns = static_cast<double>(in);
    double scale_bytes = 4;  // a channel's
    if (format == QuantFormat::w4a16) scale_bytes = static_cast<double>(groups() * (2 + (zeros ? 1 : 0)));
    if (has_blocks()) scale_bytes = 4 * columns / (scaled_block * scaled_block);
    return rows * (columns * bits() / 8 + scale_bytes);
}

double QuantizedProblem::x_bytes() const {
    const double rows = static_cast<double>(tokens);
    const double columns = static_cast<double>(in);
    if (!quantized_x) return rows * columns * 2;
    return rows * (columns + 4 * static_cast<double>(groups()));
}

double QuantizedProblem::out_bytes() const {
    return static_cast<double>(tokens * (residual ? 2 : 1) * 2) * static_cast<double>(out);
}

}  // namespace hone::quantized_linear
