#include "kernel_templates/quantized_linear/formats.h"

namespace hone::quantized_linear {
namespace {

std::string wrong_group(const QuantizedProblem& p) {
    const std::string found = "group=" + std::to_string(p.group);
    if (p.group == 0) return {};
    if (p.format == QuantFormat::w8a16 || p.format == QuantFormat::w8a8)
        return found + ": codes of 8 bits have a scale a row; allowed: 0";
    if (p.format == QuantFormat::fp8 && p.group != scaled_block)
        return found + ": fp8 has blocks of 128 columns, or none; allowed: 128, 0";
    if (p.group != 32 && p.group != 64 && p.group != 128) return found + "; allowed: 32, 64, 128, 0";
    if (p.in % p.group != 0)
        return found + " does not divide in=" + std::to_string(p.in) + "; allowed: groups that do, or 0";
    return {};
}

}  // namespace

std::string wrong_format(const QuantizedProblem& p) {
    if (p.dtype == Dtype::fp32) return "dtype=fp32: codes are multiplied with 16 bits; allowed: fp16, bf16";
    if (std::string error = wrong_group(p); !error.empty()) return error;
    if (p.zeros && p.format != QuantFormat::w4a16) return "zeros=yes is for format=w4a16 alone";
    return {};
}

}  // namespace hone::quantized_linear
