// quantize() of quantize.h on a GPU: a weight in device memory becomes codes and scales in device memory, the
// same bits. Use is that of norm.h: describe the operator, let Runtime::prepare() make a kernel object of it,
// call run() for each weight with as many columns.
//
// Unlike other operators' run(), this one waits for the stream, reads a few bytes back to see whether every
// weight has a code, and is refused under stream capture. It may be called from several threads at once, with
// a workspace each.
#pragma once

#include <cstdint>
#include <memory>

#include "hone/error.h"
#include "hone/prepared_kernel.h"
#include "hone/quant_format.h"
#include "kernel_templates/dtype.h"

namespace hone {

/// As PackedShape says, of weights with up to `max_out` rows; `in` x `max_out` is at most 2^36.
struct QuantizeWeights {
    std::int64_t in = 0;           ///< columns, 1 to 262144
    std::int64_t max_out = 32768;  ///< most rows of one call, 1 to 1048576
    Dtype dtype = Dtype::bf16;     ///< of the weight: fp32, fp16 or bf16
    QuantFormat format = QuantFormat::w4a16;
    std::int64_t group = 0;
    bool zeros = false;
    bool one_scale = false;
    Dtype scale_dtype = Dtype::bf16;  ///< of w4a16's scales: fp16 or bf16; the other formats' are fp32 always
    bool search = true;               ///< as in QuantizeOptions
};

/// Device pointers of one call. 16 bytes always suffice as alignment of pointers and of rows. No part may
/// overlap another.
struct QuantizeWeightsArgs {
    const void* weight = nullptr;    ///< [out, in], dtype
    void* codes = nullptr;           ///< packed_bytes()
    void* scales = nullptr;          ///< scale_bytes()
    void* zeros = nullptr;           ///< zero_count() bytes; needed when codes have zero points
    void* workspace = nullptr;       ///< workspace_bytes(out), aligned to 256
    std::int64_t weight_stride = 0;  ///< between two rows of the weight, in elements; 0: `in`
};

/// A prepared QuantizeWeights.
class QuantizeWeightsKernel : public PreparedKernel {
  public:
    QuantizeWeightsKernel() = default;

    /// Quantizes `out` rows (0: does nothing) and waits until that is done. Throws Error, in the words of
    /// quantize(), for weights that are infinite or no number and for scales beyond the range of scale_dtype;
    /// what is written then means nothing. Throws Error (failed) when the driver reports an error meanwhile.
    /// `capturing` under stream capture.
    [[nodiscard]] Status run(CUstream_st* stream, const QuantizeWeightsArgs& args, std::int64_t out) const;

    /// For Runtime::prepare().
    QuantizeWeightsKernel(std::shared_ptr<const runtime::PreparedOperator> prepared,
                          const QuantizeWeights& weights)
        : PreparedKernel(std::move(prepared)), weights_(weights) {}

  private:
    QuantizeWeights weights_;
};

}  // namespace hone
