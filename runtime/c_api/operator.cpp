#include "runtime/c_api/operator.h"

namespace hone::c_api {

void refuse(const char* field, std::int64_t value, const char* allowed) {
    throw Error(std::string(field) + " is " + std::to_string(value) + "; allowed: " + allowed, "", "",
                ErrorKind::bad_argument);
}

void check_reserved(std::uint32_t given) {
    if (given != 0) refuse("reserved", given, "0");
}

Dtype dtype_from(std::int32_t given) {
    switch (given) {
        case HONE_FP32: return Dtype::fp32;
        case HONE_FP16: return Dtype::fp16;
        case HONE_BF16: return Dtype::bf16;
        default: refuse("dtype", given, "HONE_FP32 (0), HONE_FP16 (1), HONE_BF16 (2)");
    }
}

Activation activation_from(std::int32_t given) {
    switch (given) {
        case HONE_ACTIVATION_NONE: return Activation::none;
        case HONE_GELU_TANH: return Activation::gelu_tanh;
        case HONE_GELU_ERF: return Activation::gelu_erf;
        case HONE_SILU: return Activation::silu;
        case HONE_RELU: return Activation::relu;
        default:
            refuse("activation", given,
                   "HONE_ACTIVATION_NONE (0), HONE_GELU_TANH (1), HONE_GELU_ERF (2), HONE_SILU (3), "
                   "HONE_RELU (4)");
    }
}

QuantFormat format_from(std::int32_t given) {
    switch (given) {
        case HONE_QUANT_W4A16: return QuantFormat::w4a16;
        case HONE_QUANT_W8A16: return QuantFormat::w8a16;
        case HONE_QUANT_W8A8: return QuantFormat::w8a8;
        case HONE_QUANT_FP8: return QuantFormat::fp8;
        default:
            refuse("format", given,
                   "HONE_QUANT_W4A16 (0), HONE_QUANT_W8A16 (1), HONE_QUANT_W8A8 (2), HONE_QUANT_FP8 (3)");
    }
}

bool flag_from(const char* field, std::int32_t given) {
    if (given != 0 && given != 1) refuse(field, given, "0, 1");
    return given == 1;
}

hone_status status_of(const hone_operator& op, Status status) noexcept {
    return run_status(status, [&] { return op.runtime->last_launch_error(); });
}

}  // namespace hone::c_api
