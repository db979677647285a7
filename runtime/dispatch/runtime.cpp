#include "hone/runtime.h"

#include <fmt/format.h>

#include <stdexcept>

#include "runtime/dispatch/dispatcher.h"
#include "runtime/dispatch/public_error.h"
#include "runtime/operators/attention_problem.h"
#include "runtime/operators/linear_problem.h"
#include "runtime/operators/norm_problem.h"
#include "runtime/operators/quantize_weights_problem.h"
#include "runtime/operators/quantized_linear_problem.h"
#include "runtime/system/environment.h"

namespace hone {
namespace {

template <class Norm>
std::shared_ptr<const runtime::PreparedOperator> prepare_norm(runtime::Dispatcher& dispatcher,
                                                              const Norm& norm, const char* where) {
    return runtime::guarded(
        where, [&] { return dispatcher.prepare(runtime::norm_problem(norm), runtime::row_strides(norm)); });
}

Explanation explain_at(const runtime::Dispatcher& dispatcher, const Problem& largest, const Sizes& sizes) {
    return dispatcher.explain(with(largest, sizes), largest);
}

template <class Norm>
Explanation explain_norm(const runtime::Dispatcher& dispatcher, const Norm& norm, std::int64_t rows,
                         const char* where) {
    return runtime::guarded(where,
                            [&] { return explain_at(dispatcher, runtime::norm_problem(norm), {rows}); });
}

}  // namespace

struct Runtime::State {
    explicit State(const RuntimeOptions& options)
        : dispatcher(options),
          checking(options.check_indices || runtime::read_environment().check_indices == "1"
                       ? &dispatcher.session()
                       : nullptr) {}
    runtime::Dispatcher dispatcher;
    const runtime::DeviceSession* checking;  ///< for operators that look at indices first
};

Runtime::Runtime(RuntimeOptions options)
    : state_(runtime::guarded("hone::Runtime()", [&] { return std::make_unique<State>(options); })) {}
Runtime::Runtime(Runtime&&) noexcept = default;
Runtime& Runtime::operator=(Runtime&&) noexcept = default;
Runtime::~Runtime() = default;

RmsNormKernel Runtime::prepare(const RmsNorm& norm) {
    return {prepare_norm(state_->dispatcher, norm, "prepare(RmsNorm)"), norm.hidden};
}

LayerNormKernel Runtime::prepare(const LayerNorm& norm) {
    return {prepare_norm(state_->dispatcher, norm, "prepare(LayerNorm)"), norm.hidden};
}

RmsNormBackwardKernel Runtime::prepare(const RmsNormBackward& norm) {
    return {prepare_norm(state_->dispatcher, norm, "prepare(RmsNormBackward)"), norm.hidden};
}

LinearKernel Runtime::prepare(const Linear& linear) {
    return runtime::guarded("prepare(Linear)", [&]() -> LinearKernel {
        return {state_->dispatcher.prepare(runtime::linear_problem(linear), runtime::linear_row_strides()),
                linear};
    });
}

FusedFfnKernel Runtime::prepare(const FusedFfn& ffn) {
    return runtime::guarded("prepare(FusedFfn)", [&]() -> FusedFfnKernel {
        runtime::Dispatcher& dispatcher = state_->dispatcher;
        auto first = dispatcher.prepare(runtime::first_half(ffn), runtime::linear_row_strides());
        auto second = dispatcher.prepare(runtime::second_half(ffn), runtime::linear_row_strides());
        return {std::move(first), std::move(second), ffn};
    });
}

QuantizedLinearKernel Runtime::prepare(const QuantizedLinear& linear) {
    return runtime::guarded("prepare(QuantizedLinear)", [&]() -> QuantizedLinearKernel {
        return {state_->dispatcher.prepare(runtime::quantized_problem(linear), runtime::row_strides(linear)),
                linear};
    });
}

QuantizedFfnKernel Runtime::prepare(const QuantizedFfn& ffn) {
    return runtime::guarded("prepare(QuantizedFfn)", [&]() -> QuantizedFfnKernel {
        runtime::Dispatcher& dispatcher = state_->dispatcher;
        auto first =
            dispatcher.prepare(runtime::first_half(ffn), runtime::row_strides(runtime::first_layer(ffn)));
        auto second =
            dispatcher.prepare(runtime::second_half(ffn), runtime::row_strides(runtime::second_layer(ffn)));
        return {std::move(first), std::move(second), ffn};
    });
}

QuantizeWeightsKernel Runtime::prepare(const QuantizeWeights& weights) {
    return runtime::guarded("prepare(QuantizeWeights)", [&]() -> QuantizeWeightsKernel {
        return {state_->dispatcher.prepare(runtime::quantize_problem(weights), runtime::quantize_strides()),
                weights};
    });
}

AttentionKernel Runtime::prepare(const Attention& attention) {
    return runtime::guarded("prepare(Attention)", [&] {
        return runtime::prepare_attention(state_->dispatcher, attention, state_->checking);
    });
}

RopeKvAppendKernel Runtime::prepare(const RopeKvAppend& rope) {
    return runtime::guarded("prepare(RopeKvAppend)", [&]() -> RopeKvAppendKernel {
        return {state_->dispatcher.prepare(runtime::rope_problem(rope), runtime::rope_strides()),
                runtime::filled_in(rope), state_->checking};
    });
}

Explanation Runtime::explain(const RmsNorm& norm, std::int64_t rows) const {
    return explain_norm(state_->dispatcher, norm, rows, "explain(RmsNorm)");
}

Explanation Runtime::explain(const LayerNorm& norm, std::int64_t rows) const {
    return explain_norm(state_->dispatcher, norm, rows, "explain(LayerNorm)");
}

Explanation Runtime::explain(const RmsNormBackward& norm, std::int64_t rows) const {
    return explain_norm(state_->dispatcher, norm, rows, "explain(RmsNormBackward)");
}

Explanation Runtime::explain(const Linear& linear, std::int64_t tokens) const {
    return runtime::guarded("explain(Linear)", [&] {
        return explain_at(state_->dispatcher, runtime::linear_problem(linear), {tokens});
    });
}

std::array<Explanation, 2> Runtime::explain(const FusedFfn& ffn, std::int64_t tokens) const {
    return runtime::guarded("explain(FusedFfn)", [&] {
        return std::array{explain_at(state_->dispatcher, runtime::first_half(ffn), {tokens}),
                          explain_at(state_->dispatcher, runtime::second_half(ffn), {tokens})};
    });
}

Explanation Runtime::explain(const QuantizedLinear& linear, std::int64_t tokens) const {
    return runtime::guarded("explain(QuantizedLinear)", [&] {
        return explain_at(state_->dispatcher, runtime::quantized_problem(linear), {tokens});
    });
}

std::array<Explanation, 2> Runtime::explain(const QuantizedFfn& ffn, std::int64_t tokens) const {
    return runtime::guarded("explain(QuantizedFfn)", [&] {
        return std::array{explain_at(state_->dispatcher, runtime::first_half(ffn), {tokens}),
                          explain_at(state_->dispatcher, runtime::second_half(ffn), {tokens})};
    });
}

Explanation Runtime::explain(const QuantizeWeights& weights, std::int64_t out) const {
    return runtime::guarded("explain(QuantizeWeights)", [&] {
        return explain_at(state_->dispatcher, runtime::quantize_problem(weights), {out});
    });
}

Explanation Runtime::explain(const Attention& attention, AttentionSizes sizes) const {
    return runtime::guarded("explain(Attention)", [&] {
        const runtime::AttentionProblems problems = runtime::attention_problems(attention);
        if (sizes.q_len < attention.min_q_len || sizes.q_len > attention.max_q_len) {
            throw std::invalid_argument(fmt::format("q_len is {}; allowed: {} to {}", sizes.q_len,
                                                    attention.min_q_len, attention.max_q_len));
        }
        if (!runtime::is_decode(attention, sizes.q_len))
            return explain_at(state_->dispatcher, *problems.prefill, runtime::prefill_sizes(sizes));
        return explain_at(state_->dispatcher, *problems.decode[runtime::decode_index(sizes.q_len)],
                          runtime::decode_sizes(sizes));
    });
}

Explanation Runtime::explain(const RopeKvAppend& rope, std::int64_t tokens) const {
    return runtime::guarded("explain(RopeKvAppend)", [&] {
        const Problem largest = runtime::rope_problem(rope);
        Sizes sizes = sizes_of(largest);
        sizes[0] = tokens;
        return explain_at(state_->dispatcher, largest, sizes);
    });
}

void Runtime::freeze() noexcept { state_->dispatcher.freeze(); }

Counters Runtime::counters() const { return state_->dispatcher.counters(); }

std::string Runtime::last_launch_error() const {
    return runtime::guarded("last_launch_error()", [&] { return state_->dispatcher.last_launch_error(); });
}

std::string Runtime::device_name() const { return state_->dispatcher.session().traits().name; }

}  // namespace hone
