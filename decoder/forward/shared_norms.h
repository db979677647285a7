// Products of a step that share its norms, so that these have no launches: the one in front of a norm adds
// the residual and leaves what the one behind multiplies (kernel_templates/shared_norm_linear, and
// shared_norm_quantized_linear for weights of packed codes).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "decoder/weights/model_weights.h"
#include "hone/hone.h"
#include "kernel_templates/problem.h"
#include "models/shared_norms.h"

namespace hone::runtime {
class PreparedOperator;
}

namespace hone::decoder {

/// What such a product is given; what it does not take is not looked at.
struct SharedNormArgs {
    const void* x = nullptr;  ///< [tokens, in]; behind a norm times its weight
    const MatrixWeight* weight = nullptr;
    const MatrixWeight* up = nullptr;
    const void* bias = nullptr;
    const void* residual = nullptr;       ///< [tokens, out]
    void* out = nullptr;                  ///< [tokens, out]
    const float* norm_squares = nullptr;  ///< behind a norm: what the product in front left
    float epsilon = 0;                    ///< that norm's
    const void* next_weight = nullptr;    ///< in front of one: its weight
    void* scaled = nullptr;               ///< [tokens, out]
    float* squares = nullptr;             ///< shared_norm_squares() of out
    void* workspace = nullptr;
};

/// Numbers that stand for the squares of so many rows.
[[nodiscard]] std::int64_t shared_norm_squares(std::int64_t rows, std::int64_t width);

class SharedNormProduct {
  public:
    SharedNormProduct() = default;
    SharedNormProduct(Runtime& runtime, const Problem& problem);

    explicit operator bool() const { return prepared_ != nullptr; }
    [[nodiscard]] std::int64_t workspace_bytes(std::int64_t tokens) const;
    void add_reports(std::vector<PrepareReport>& reports) const;
    [[nodiscard]] Status run(CUstream_st* stream, const SharedNormArgs& args, std::int64_t tokens) const;

  private:
    Problem problem_;
    std::shared_ptr<const runtime::PreparedOperator> prepared_;
};

/// A layer's products.
struct SharedNormProducts {
    SharedNormProduct qkv;
    SharedNormProduct output;
    SharedNormProduct up;
    SharedNormProduct down;

    /// For what stands between the network's halves, and for their kernels.
    [[nodiscard]] std::int64_t workspace_bytes(const models::Model& model, std::int64_t tokens) const;
    [[nodiscard]] Status run_network(CUstream_st* stream, const models::Model& model,
                                     const LayerWeights& layer, const SharedNormArgs& args,
                                     std::int64_t tokens) const;
};

/// Numbers of sequences, ascending, whose steps of one token each are shorter where norms are shared: all
/// four products have kernels that hide it, by a race of such a step or, but for `raced_only`, by what is
/// chosen for the products alone. Of models whose layers have weights of this format alone, or of numbers
/// alone.
[[nodiscard]] std::vector<std::int64_t> find_shared_norm_steps(Runtime& runtime, const models::Model& model,
                                                               const checkpoints::WeightFormat& format,
                                                               std::int64_t most_sequences,
                                                               std::span<const std::int64_t> raced_only);

}  // namespace hone::decoder
