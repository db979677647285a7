#include "runtime/norm_problem.h"

#include <fmt/format.h>

#include <stdexcept>

#include "kernel_templates/catalog.h"
#include "kernel_templates/norm/norm.h"
#include "kernel_templates/rmsnorm_backward/backward.h"

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

std::string_view dtype_name(Dtype dtype) {
    switch (dtype) {
        case Dtype::fp32:
        case Dtype::fp16:
        case Dtype::bf16:
        case Dtype::int8:
        case Dtype::fp8_e4m3: return name(dtype);  // the family says which of them it takes
    }
    throw std::invalid_argument(fmt::format("dtype is {}, which is no Dtype", static_cast<int>(dtype)));
}

template <class Norm>
std::string common_fields(const Norm& norm) {
    return fmt::format("dtype={} output={} residual={} hidden={} rows={}", dtype_name(norm.dtype),
                       output_name(norm.output), norm.residual ? "yes" : "no", norm.hidden, norm.max_rows);
}

Problem parse(std::string_view family, const std::string& fields, std::int64_t max_rows) {
    const Family* found = find_family(family);
    if (found == nullptr) throw std::invalid_argument(fmt::format("this build has no family {}", family));
    // The family calls it rows, the caller max_rows.
    const Field& rows = found->fields[static_cast<std::size_t>(dynamic_field(*found))];
    if (max_rows < rows.min || max_rows > rows.max) {
        throw std::invalid_argument(
            fmt::format("{}: max_rows is {}; allowed: {} to {}", family, max_rows, rows.min, rows.max));
    }
    std::string error;
    const std::optional<Problem> problem = parse_problem(*found, fields, &error);
    if (!problem) throw std::invalid_argument(fmt::format("{}: {}", family, error));
    return *problem;
}

}  // namespace

std::span<const RowStride> row_strides(const RmsNorm&) { return norm_strides; }

std::span<const RowStride> row_strides(const LayerNorm&) { return norm_strides; }

std::span<const RowStride> row_strides(const RmsNormBackward&) { return backward_strides; }

Problem norm_problem(const RmsNorm& norm) { return parse("rmsnorm", common_fields(norm), norm.max_rows); }

Problem norm_problem(const LayerNorm& norm) {
    return parse("layernorm", fmt::format("{} bias={}", common_fields(norm), norm.bias ? "yes" : "no"),
                 norm.max_rows);
}

Problem norm_problem(const RmsNormBackward& norm) {
    return parse("rmsnorm_backward",
                 fmt::format("dtype={} residual={} hidden={} rows={}", dtype_name(norm.dtype),
                             norm.residual ? "yes" : "no", norm.hidden, norm.max_rows),
                 norm.max_rows);
}

}  // namespace hone::runtime
