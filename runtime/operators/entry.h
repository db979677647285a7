// How each operator is prepared and explained: what Runtime calls. Generated from the declarations,
// kernel_templates/*/operators.py and generate/enums.py, by `./hone generate`.
#pragma once

#include "hone/runtime.h"
#include "runtime/operators/maker.h"

namespace hone::runtime {

[[nodiscard]] AttentionAppendKernel prepare_with(const Maker& maker, const AttentionAppend& description);
[[nodiscard]] Explanation explain_with(const Dispatcher& dispatcher, const AttentionAppend& description,
                                       AttentionAppendSizes sizes);
[[nodiscard]] AttentionKernel prepare_with(const Maker& maker, const Attention& description);
[[nodiscard]] Explanation explain_with(const Dispatcher& dispatcher, const Attention& description,
                                       AttentionSizes sizes);
[[nodiscard]] EmbeddingKernel prepare_with(const Maker& maker, const Embedding& description);
[[nodiscard]] Explanation explain_with(const Dispatcher& dispatcher, const Embedding& description,
                                       std::int64_t tokens);
[[nodiscard]] ExpertLinearKernel prepare_with(const Maker& maker, const ExpertLinear& description);
[[nodiscard]] Explanation explain_with(const Dispatcher& dispatcher, const ExpertLinear& description,
                                       std::int64_t tokens);
[[nodiscard]] ExpertRoutingKernel prepare_with(const Maker& maker, const ExpertRouting& description);
[[nodiscard]] Explanation explain_with(const Dispatcher& dispatcher, const ExpertRouting& description,
                                       std::int64_t tokens);
[[nodiscard]] LinearKernel prepare_with(const Maker& maker, const Linear& description);
[[nodiscard]] Explanation explain_with(const Dispatcher& dispatcher, const Linear& description,
                                       std::int64_t tokens);
[[nodiscard]] FusedFfnKernel prepare_with(const Maker& maker, const FusedFfn& description);
[[nodiscard]] std::array<Explanation, 2> explain_with(const Dispatcher& dispatcher,
                                                      const FusedFfn& description, std::int64_t tokens);
[[nodiscard]] RmsNormKernel prepare_with(const Maker& maker, const RmsNorm& description);
[[nodiscard]] Explanation explain_with(const Dispatcher& dispatcher, const RmsNorm& description,
                                       std::int64_t rows);
[[nodiscard]] LayerNormKernel prepare_with(const Maker& maker, const LayerNorm& description);
[[nodiscard]] Explanation explain_with(const Dispatcher& dispatcher, const LayerNorm& description,
                                       std::int64_t rows);
[[nodiscard]] QuantizedExpertLinearKernel prepare_with(const Maker& maker,
                                                       const QuantizedExpertLinear& description);
[[nodiscard]] Explanation explain_with(const Dispatcher& dispatcher, const QuantizedExpertLinear& description,
                                       std::int64_t tokens);
[[nodiscard]] QuantizedLinearKernel prepare_with(const Maker& maker, const QuantizedLinear& description);
[[nodiscard]] Explanation explain_with(const Dispatcher& dispatcher, const QuantizedLinear& description,
                                       std::int64_t tokens);
[[nodiscard]] QuantizedFfnKernel prepare_with(const Maker& maker, const QuantizedFfn& description);
[[nodiscard]] std::array<Explanation, 2> explain_with(const Dispatcher& dispatcher,
                                                      const QuantizedFfn& description, std::int64_t tokens);
[[nodiscard]] RmsNormBackwardKernel prepare_with(const Maker& maker, const RmsNormBackward& description);
[[nodiscard]] Explanation explain_with(const Dispatcher& dispatcher, const RmsNormBackward& description,
                                       std::int64_t rows);
[[nodiscard]] RopeKvAppendKernel prepare_with(const Maker& maker, const RopeKvAppend& description);
[[nodiscard]] Explanation explain_with(const Dispatcher& dispatcher, const RopeKvAppend& description,
                                       std::int64_t tokens);
[[nodiscard]] SampleKernel prepare_with(const Maker& maker, const Sample& description);
[[nodiscard]] Explanation explain_with(const Dispatcher& dispatcher, const Sample& description,
                                       std::int64_t rows);

}  // namespace hone::runtime
