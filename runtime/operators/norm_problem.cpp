#include "runtime/operators/norm_problem.h"

#include <fmt/format.h>

#include <stdexcept>

#include "kernel_templates/norm/norm.h"
#include "kernel_templates/rmsnorm_backward/backward.h"
#include "runtime/operators/describe_problem.h"

namespace hone::runtime {
namespace {

constexpr RowStride norm_strides[] = {{norm::x_stride, norm::x},
                                      {norm::residual_stride, norm::residual},
                                      {norm::out_stride, norm::out},
                                      {norm::sum_stride, norm::sum}};

constexpr RowStride backward_strides[] = {{rmsnorm_backward::dy_stride, rmsnorm_backward::dy},
                                          {rmsnorm_backward::x_stride, rmsnorm_backward::x},
                                          {rmsnorm_backward::dsum_stride, rmsnorm_backward::dsum},
                                          {rmsnorm_backward::dx_stride, rmsnorm_backward::dx}};

std::string_view output_name(NormOutput output) {
    switch (output) {
        case NormOutput::same: return "same";
        case NormOutput::int8: return "int8";
        case NormOutput::fp8: return "fp8";
    }
    throw std::invalid_argument(
        fmt::format("output is {}; allowed: same, int8, fp8", static_cast<int>(output)));
}

template <class Norm>
std::string common_fields(const Norm& norm) {
    return fmt::format("dtype={} output={} residual={} hidden={}", dtype_name(norm.dtype),
                       output_name(norm.output), yes_no(norm.residual), norm.hidden);
}

}  // namespace

std::span<const RowStride> row_strides(const RmsNorm&) { return norm_strides; }

std::span<const RowStride> row_strides(const LayerNorm&) { return norm_strides; }

std::span<const RowStride> row_strides(const RmsNormBackward&) { return backward_strides; }

Problem norm_problem(const RmsNorm& norm) {
    return describe_problem("rmsnorm", common_fields(norm), {{"max_rows", norm.max_rows}});
}

Problem norm_problem(const LayerNorm& norm) {
    return describe_problem("layernorm", fmt::format("{} bias={}", common_fields(norm), yes_no(norm.bias)),
                            {{"max_rows", norm.max_rows}});
}

Problem norm_problem(const RmsNormBackward& norm) {
    return describe_problem("rmsnorm_backward",
                            fmt::format("dtype={} residual={} hidden={}", dtype_name(norm.dtype),
                                        yes_no(norm.residual), norm.hidden),
                            {{"max_rows", norm.max_rows}});
}

}  // namespace hone::runtime
