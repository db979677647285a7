// Sample. Describe the operator, let Runtime::prepare() make a kernel object of it, call run() as often as
// you like: it is safe from many threads at once and under stream capture, takes no lock, allocates nothing
// and makes no system call of its own. The calling thread needs the device's primary context current, as
// after any call of the CUDA runtime; a thread without a context gets it at its first run(). Generated from
// kernel_templates/sample/operators.py by `./hone generate`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "hone/error.h"
#include "hone/prepared_kernel.h"
#include "kernel_templates/dtype.h"

namespace hone {

/// A token for each row of logits: the likeliest where the row's temperature is 0, else one drawn from the
/// softmax of logits / temperature. With filters, of the top_k likeliest tokens first, then of the likeliest
/// until their part of the probability reaches top_p, then of those at least min_p times as likely as the
/// likeliest; tokens that are as likely as the last one that stays stay, too. A seed and a counter give the
/// same token whatever the batch, the row's place or the GPU. NaN is never chosen; a row without a number
/// gives token 0.
struct Sample {
    std::int64_t vocabulary = 0;  ///< 1 to 1048576
    std::int64_t max_rows = 256;  ///< most rows of one call
    Dtype dtype = Dtype::bf16;    ///< element type of the logits; fp32, fp16 or bf16
    bool filters = false;
    bool log_probability = false;
    /// logits x count as softcap * tanh(x / softcap) in what is drawn; 0: as they are, 0 to 65536
    std::int64_t softcap = 0;
};

/// One call. Everything that a row asks for is on the device, so that a captured call may be replayed with
/// other wishes. `logits_stride` is the distance between two rows in elements, 0 meaning `vocabulary`.
struct SampleArgs {
    const void* logits = nullptr;           ///< [rows, vocabulary], dtype
    const float* temperature = nullptr;     ///< [rows]; below 1e-5: the likeliest token
    const std::int32_t* top_k = nullptr;    ///< [rows]; needed when the operator has filters; below 1: all
    const float* top_p = nullptr;           ///< [rows]; needed when the operator has filters; from 1 on: all
    const float* min_p = nullptr;           ///< [rows]; needed when the operator has filters; 0: all
    const std::int64_t* seed = nullptr;     ///< [rows]
    const std::int64_t* counter = nullptr;  ///< [rows]; another one for each draw with the same seed
    std::int32_t* out = nullptr;            ///< [rows]; the tokens
    /// [rows]; needed when the operator has a log_probability; natural, at temperature 1, of all tokens
    float* log_probability = nullptr;
    std::int64_t logits_stride = 0;
};

/// A prepared Sample.
class SampleKernel : public PreparedKernel {
  public:
    SampleKernel() = default;

    /// Enqueues the operator for `rows` (0: does nothing). Checks fail before anything is enqueued.
    [[nodiscard]] Status run(CUstream_st* stream, const SampleArgs& args, std::int64_t rows) const noexcept;
    /// Why run() refuses such a call: the argument's name, its value and what is allowed. Empty: it does not.
    [[nodiscard]] std::string refusal(const SampleArgs& args, std::int64_t rows) const;

    /// For Runtime::prepare().
    SampleKernel(std::shared_ptr<const runtime::Prepared> prepared, const Sample& description)
        : PreparedKernel(std::move(prepared)), description_(description) {}

  private:
    Sample description_;
};

}  // namespace hone
