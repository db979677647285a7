#include <fmt/format.h>

#include <stdexcept>

#include "hone/quant_format.h"
#include "runtime/operators/describe_problem.h"
#include "runtime/operators/quantized_linear.h"

namespace hone::runtime {

// A problem does not tell single scales: they are in the strides of a call.
void check_description(const QuantizedLinear& linear) {
    if (linear.one_scale && (is_packed(linear.format) || linear.group != 0)) {
        throw std::invalid_argument(
            fmt::format("quantized_linear: one_scale is for format=w8a8 and fp8 with group=0; here are "
                        "format={} group={}",
                        name(linear.format), linear.group));
    }
    if (linear.one_x_scale && (!linear.quantized_x || linear.group != 0)) {
        throw std::invalid_argument(
            fmt::format("quantized_linear: one_x_scale is for quantized_x=yes with group=0; here are "
                        "quantized_x={} group={}",
                        yes_no(linear.quantized_x), linear.group));
    }
}

}  // namespace hone::runtime
