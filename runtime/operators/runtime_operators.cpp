// Runtime::prepare() and explain(). Generated from the declarations, kernel_templates/*/operators.py and
// generate/enums.py, by `./hone generate`.
#include "runtime/dispatch/public_error.h"
#include "runtime/operators/entry.h"
#include "runtime/operators/runtime_state.h"

namespace hone {

AttentionAppendKernel Runtime::prepare(const AttentionAppend& description) {
    return runtime::guarded("prepare(AttentionAppend)",
                            [&] { return runtime::prepare_with(state_->maker(), description); });
}

AttentionKernel Runtime::prepare(const Attention& description) {
    return runtime::guarded("prepare(Attention)",
                            [&] { return runtime::prepare_with(state_->maker(), description); });
}

EmbeddingKernel Runtime::prepare(const Embedding& description) {
    return runtime::guarded("prepare(Embedding)",
                            [&] { return runtime::prepare_with(state_->maker(), description); });
}

ExpertLinearKernel Runtime::prepare(const ExpertLinear& description) {
    return runtime::guarded("prepare(ExpertLinear)",
                            [&] { return runtime::prepare_with(state_->maker(), description); });
}

ExpertRoutingKernel Runtime::prepare(const ExpertRouting& description) {
    return runtime::guarded("prepare(ExpertRouting)",
                            [&] { return runtime::prepare_with(state_->maker(), description); });
}

LinearKernel Runtime::prepare(const Linear& description) {
    return runtime::guarded("prepare(Linear)",
                            [&] { return runtime::prepare_with(state_->maker(), description); });
}

FusedFfnKernel Runtime::prepare(const FusedFfn& description) {
    return runtime::guarded("prepare(FusedFfn)",
                            [&] { return runtime::prepare_with(state_->maker(), description); });
}

RmsNormKernel Runtime::prepare(const RmsNorm& description) {
    return runtime::guarded("prepare(RmsNorm)",
                            [&] { return runtime::prepare_with(state_->maker(), description); });
}

LayerNormKernel Runtime::prepare(const LayerNorm& description) {
    return runtime::guarded("prepare(LayerNorm)",
                            [&] { return runtime::prepare_with(state_->maker(), description); });
}

QuantizedExpertLinearKernel Runtime::prepare(const QuantizedExpertLinear& description) {
    return runtime::guarded("prepare(QuantizedExpertLinear)",
                            [&] { return runtime::prepare_with(state_->maker(), description); });
}

QuantizedLinearKernel Runtime::prepare(const QuantizedLinear& description) {
    return runtime::guarded("prepare(QuantizedLinear)",
                            [&] { return runtime::prepare_with(state_->maker(), description); });
}

QuantizedFfnKernel Runtime::prepare(const QuantizedFfn& description) {
    return runtime::guarded("prepare(QuantizedFfn)",
                            [&] { return runtime::prepare_with(state_->maker(), description); });
}

RmsNormBackwardKernel Runtime::prepare(const RmsNormBackward& description) {
    return runtime::guarded("prepare(RmsNormBackward)",
                            [&] { return runtime::prepare_with(state_->maker(), description); });
}

RopeKvAppendKernel Runtime::prepare(const RopeKvAppend& description) {
    return runtime::guarded("prepare(RopeKvAppend)",
                            [&] { return runtime::prepare_with(state_->maker(), description); });
}

SampleKernel Runtime::prepare(const Sample& description) {
    return runtime::guarded("prepare(Sample)",
                            [&] { return runtime::prepare_with(state_->maker(), description); });
}

Explanation Runtime::explain(const AttentionAppend& description, AttentionAppendSizes sizes) const {
    return runtime::guarded("explain(AttentionAppend)",
                            [&] { return runtime::explain_with(state_->dispatcher, description, sizes); });
}

Explanation Runtime::explain(const Attention& description, AttentionSizes sizes) const {
    return runtime::guarded("explain(Attention)",
                            [&] { return runtime::explain_with(state_->dispatcher, description, sizes); });
}

Explanation Runtime::explain(const Embedding& description, std::int64_t tokens) const {
    return runtime::guarded("explain(Embedding)",
                            [&] { return runtime::explain_with(state_->dispatcher, description, tokens); });
}

Explanation Runtime::explain(const ExpertLinear& description, std::int64_t tokens) const {
    return runtime::guarded("explain(ExpertLinear)",
                            [&] { return runtime::explain_with(state_->dispatcher, description, tokens); });
}

Explanation Runtime::explain(const ExpertRouting& description, std::int64_t tokens) const {
    return runtime::guarded("explain(ExpertRouting)",
                            [&] { return runtime::explain_with(state_->dispatcher, description, tokens); });
}

Explanation Runtime::explain(const Linear& description, std::int64_t tokens) const {
    return runtime::guarded("explain(Linear)",
                            [&] { return runtime::explain_with(state_->dispatcher, description, tokens); });
}

std::array<Explanation, 2> Runtime::explain(const FusedFfn& description, std::int64_t tokens) const {
    return runtime::guarded("explain(FusedFfn)",
                            [&] { return runtime::explain_with(state_->dispatcher, description, tokens); });
}

Explanation Runtime::explain(const RmsNorm& description, std::int64_t rows) const {
    return runtime::guarded("explain(RmsNorm)",
                            [&] { return runtime::explain_with(state_->dispatcher, description, rows); });
}

Explanation Runtime::explain(const LayerNorm& description, std::int64_t rows) const {
    return runtime::guarded("explain(LayerNorm)",
                            [&] { return runtime::explain_with(state_->dispatcher, description, rows); });
}

Explanation Runtime::explain(const QuantizedExpertLinear& description, std::int64_t tokens) const {
    return runtime::guarded("explain(QuantizedExpertLinear)",
                            [&] { return runtime::explain_with(state_->dispatcher, description, tokens); });
}

Explanation Runtime::explain(const QuantizedLinear& description, std::int64_t tokens) const {
    return runtime::guarded("explain(QuantizedLinear)",
                            [&] { return runtime::explain_with(state_->dispatcher, description, tokens); });
}

std::array<Explanation, 2> Runtime::explain(const QuantizedFfn& description, std::int64_t tokens) const {
    return runtime::guarded("explain(QuantizedFfn)",
                            [&] { return runtime::explain_with(state_->dispatcher, description, tokens); });
}

Explanation Runtime::explain(const RmsNormBackward& description, std::int64_t rows) const {
    return runtime::guarded("explain(RmsNormBackward)",
                            [&] { return runtime::explain_with(state_->dispatcher, description, rows); });
}

Explanation Runtime::explain(const RopeKvAppend& description, std::int64_t tokens) const {
    return runtime::guarded("explain(RopeKvAppend)",
                            [&] { return runtime::explain_with(state_->dispatcher, description, tokens); });
}

Explanation Runtime::explain(const Sample& description, std::int64_t rows) const {
    return runtime::guarded("explain(Sample)",
                            [&] { return runtime::explain_with(state_->dispatcher, description, rows); });
}

}  // namespace hone
