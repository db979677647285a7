// Products of a model, each prepared for weights of numbers, of codes, or, where layers differ, for both.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <vector>

#include "checkpoints/pack/weight_format.h"
#include "decoder/weights/model_weights.h"
#include "hone/hone.h"
#include "kernel_templates/family.h"

namespace hone::decoder {

/// Which kinds of weights a product has in a model's layers: some may have been left out when codes were
/// made.
struct WeightKinds {
    bool numbers = false;
    bool codes = false;
    checkpoints::WeightFormat format{};  ///< of codes
};

/// What was chosen for an operator, behind the others; nothing where it is not prepared.
inline void add_reports_of(const PreparedKernel& kernel, std::vector<PrepareReport>& reports) {
    if (kernel) std::ranges::move(kernel.reports(), std::back_inserter(reports));
}

/// An operator for weights of numbers, and the one for codes; either may be missing.
template <class Dense, class Coded>
class ForEitherWeight {
  public:
    ForEitherWeight() = default;
    explicit operator bool() const { return dense_ || coded_; }
    [[nodiscard]] std::int64_t workspace_bytes(std::int64_t tokens) const {
        return std::max(dense_ ? dense_.workspace_bytes(tokens) : 0,
                        coded_ ? coded_.workspace_bytes(tokens) : 0);
    }
    void add_reports(std::vector<PrepareReport>& reports) const {
        add_reports_of(dense_, reports);
        add_reports_of(coded_, reports);
    }

  protected:
    /// `coded` describes what `dense` does, with codes.
    template <class Numbers, class Codes>
    ForEitherWeight(Runtime& runtime, const WeightKinds& weights, const Numbers& dense, Codes&& coded) {
        if (weights.numbers) dense_ = runtime.prepare(dense);
        if (weights.codes) coded_ = runtime.prepare(coded());
    }

    Dense dense_;
    Coded coded_;
};

/// Whether such a kernel of a product behind a norm normalizes x where it brings it to shared memory: a norm
/// in it is then a launch less and hardly any time. gemv and mma, which do so while they multiply, are slower
/// than with a launch in front.
[[nodiscard]] bool normalizes_on_the_way(Runtime& runtime, const Problem& problem, const Candidate& kernel);

/// One weight.
class Product : public ForEitherWeight<LinearKernel, QuantizedLinearKernel> {
  public:
    Product() = default;
    /// `takes_codes`: x comes as codes with a scale each row, which weights of codes are multiplied with.
    Product(Runtime& runtime, const Linear& linear, const WeightKinds& weights, bool takes_codes = false);

    /// Whether the kernels of `linear`, which has a norm, normalize on the way where it has max_tokens.
    [[nodiscard]] static bool normalizes(Runtime& runtime, const Linear& linear, const WeightKinds& weights);

    /// `args` without a weight; x_scales are those of x that comes as codes.
    [[nodiscard]] Status run(CUstream_st* stream, const MatrixWeight& weight, LinearArgs args,
                             std::int64_t tokens, const float* x_scales = nullptr) const;
};

/// A feed-forward network.
class Network : public ForEitherWeight<FusedFfnKernel, QuantizedFfnKernel> {
  public:
    Network() = default;
    /// `takes_codes`: as a product's.
    Network(Runtime& runtime, const FusedFfn& network, const WeightKinds& weights, bool takes_codes = false);

    /// As a product's, of its first half.
    [[nodiscard]] static bool normalizes(Runtime& runtime, const FusedFfn& network,
                                         const WeightKinds& weights);

    /// `args` without weights and biases; x_scales as a product's.
    [[nodiscard]] Status run(CUstream_st* stream, const LayerWeights& layer, FusedFfnArgs args,
                             std::int64_t tokens, const float* x_scales = nullptr) const;
};

/// A product of experts, all with weights of numbers or all of codes.
class ExpertProduct : public ForEitherWeight<ExpertLinearKernel, QuantizedExpertLinearKernel> {
  public:
    ExpertProduct() = default;
    ExpertProduct(Runtime& runtime, const ExpertLinear& linear, const WeightKinds& weights);

    /// `args` without weights; `up` is not looked at where the product is not gated.
    [[nodiscard]] Status run(CUstream_st* stream, const MatrixWeight& weight, const MatrixWeight& up,
                             ExpertLinearArgs args, std::int64_t tokens) const;
};

}  // namespace hone::decoder
