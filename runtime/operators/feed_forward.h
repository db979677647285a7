// Feed-forward networks as two linear layers that share a workspace, the first of which may have a gate.
// Written once: quantized networks, layers and arguments have what dense ones have, and more.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "hone/fused_ffn.h"
#include "hone/quantized_ffn.h"
#include "runtime/dispatch/prepared_halves.h"
#include "runtime/operators/describe_problem.h"
#include "runtime/operators/linear.h"
#include "runtime/operators/maker.h"
#include "runtime/operators/quantized_linear.h"

namespace hone::runtime {

template <class Ffn>
inline constexpr bool is_quantized = std::is_same_v<Ffn, QuantizedFfn>;
template <class Ffn>
using LayerOf = std::conditional_t<is_quantized<Ffn>, QuantizedLinear, Linear>;

/// What both layers of a network have.
template <class Ffn>
[[nodiscard]] LayerOf<Ffn> layer_of(const Ffn& ffn, std::int64_t in, std::int64_t out) {
    LayerOf<Ffn> layer{.in = in, .out = out, .max_tokens = ffn.max_tokens, .dtype = ffn.dtype};
    layer.bias = ffn.bias;
    if constexpr (is_quantized<Ffn>) {
        layer.format = ffn.format;
        layer.group = ffn.group;
        layer.zeros = ffn.zeros;
        layer.one_scale = ffn.one_scale;
    }
    return layer;
}

/// Where gated, but for its second weight.
template <class Ffn>
[[nodiscard]] LayerOf<Ffn> first_layer(const Ffn& ffn) {
    LayerOf<Ffn> layer = layer_of(ffn, ffn.hidden, ffn.intermediate);
    layer.activation = ffn.activation;
    layer.norm = ffn.norm;
    if constexpr (is_quantized<Ffn>) {
        layer.quantized_x = ffn.quantized_x;
        layer.one_x_scale = ffn.one_x_scale;
    }
    return layer;
}

template <class Ffn>
[[nodiscard]] LayerOf<Ffn> second_layer(const Ffn& ffn) {
    LayerOf<Ffn> layer = layer_of(ffn, ffn.intermediate, ffn.hidden);
    layer.residual = ffn.residual;
    return layer;
}

/// The problem that `describe()` makes of a layer; errors speak of the network and its fields.
template <class Ffn, class Describe>
[[nodiscard]] Problem described_half(std::string_view in, std::string_view out, const Describe& describe) {
    try {
        return describe();
    } catch (const std::invalid_argument& error) {
        throw std::invalid_argument(
            error_of_operator(error.what(), {.family = is_quantized<Ffn> ? "quantized_linear" : "linear",
                                             .name = is_quantized<Ffn> ? "quantized_ffn" : "fused_ffn",
                                             .in = in,
                                             .out = out}));
    }
}

/// The halves as problems. Each throws std::invalid_argument naming field, value and what is allowed.
template <class Ffn>
[[nodiscard]] Problem first_half(const Ffn& ffn) {
    return described_half<Ffn>("hidden", "intermediate", [&] {
        const Problem problem = problem_of(first_layer(ffn));
        return ffn.gated ? gated(problem) : problem;
    });
}
template <class Ffn>
[[nodiscard]] Problem second_half(const Ffn& ffn) {
    return described_half<Ffn>("intermediate", "hidden", [&] { return problem_of(second_layer(ffn)); });
}

inline void put_up(Call& call, const void* up) noexcept { call.pointers[linear::up] = pointer(up); }
inline void put_up(Call& call, const QuantizedWeightPointers& up) noexcept {
    call.pointers[quantized_linear::up] = pointer(up.codes);
    call.pointers[quantized_linear::up_scales] = pointer(up.scales);
    call.pointers[quantized_linear::up_zeros] = pointer(up.zeros);
}

/// The callers' names of what the layers take; the halves meet in the workspace.
inline constexpr CallName gated_names[] = {
    {"out", "workspace"}, {"weight", "gate"}, {"scales", "gate_scales"}, {"zeros", "gate_zeros"}};
inline constexpr CallName plain_names[] = {{"out", "workspace"},
                                           {"weight", "up"},
                                           {"scales", "up_scales"},
                                           {"zeros", "up_zeros"},
                                           {"bias", "up_bias"}};
inline constexpr CallName second_names[] = {{"x", "workspace"},
                                            {"weight", "down"},
                                            {"scales", "down_scales"},
                                            {"zeros", "down_zeros"},
                                            {"bias", "down_bias"}};

template <class Ffn, class Args, class LayerArgs>
class PreparedFfn final : public PreparedHalves {
  public:
    PreparedFfn(const Maker& maker, const Ffn& ffn)
        : PreparedHalves(prepared_halves(maker, ffn), ffn.intermediate * size_bytes(ffn.dtype),
                         ffn.max_tokens),
          first_layer_(first_layer(ffn)),
          second_layer_(second_layer(ffn)),
          gated_(ffn.gated) {}

    [[nodiscard]] static std::vector<Half> prepared_halves(const Maker& maker, const Ffn& ffn) {
        const std::array requests = {Dispatcher::Request{first_half(ffn)},
                                     Dispatcher::Request{second_half(ffn)}};
        return maker.dispatcher.prepare_all(requests);
    }

    [[nodiscard]] static std::array<Explanation, 2> explain(const Dispatcher& dispatcher, const Ffn& ffn,
                                                            std::int64_t tokens) {
        return {dispatcher.explain(first_half(ffn), {tokens}),
                dispatcher.explain(second_half(ffn), {tokens})};
    }

    [[nodiscard]] Status run(CUstream stream, const Args& args, std::int64_t tokens) const noexcept {
        if (const Status wrong = check(args.workspace, tokens); wrong != Status::ok) return wrong;
        if (tokens == 0) return Status::ok;
        return PreparedHalves::run(stream, first_call(args, tokens), second_call(args, tokens), tokens);
    }

    [[nodiscard]] std::string refusal(const Args& args, std::int64_t tokens) const {
        if (check(args.workspace, tokens) == Status::null_pointer) return "workspace is a null pointer";
        const CallNames first_names = gated_ ? CallNames(gated_names) : CallNames(plain_names);
        return PreparedHalves::refusal(first_call(args, tokens), second_call(args, tokens), tokens,
                                       first_names, second_names);
    }

  private:
    [[nodiscard]] Call first_call(const Args& args, std::int64_t tokens) const noexcept {
        const Workspace workspace = divide(args.workspace, tokens);
        LayerArgs layer{.x = args.x,
                        .weight = gated_ ? args.gate : args.up,
                        .bias = args.up_bias,
                        .out = workspace.intermediate,
                        .workspace = workspace.rest,
                        .x_stride = args.x_stride,
                        .norm_weight = args.norm_weight,
                        .epsilon = args.epsilon};
        if constexpr (is_quantized<Ffn>) {
            layer.x_scales = args.x_scales;
            layer.x_scale_stride = args.x_scale_stride;
        }
        Call call = call_of(first_layer_, layer, tokens);
        put_up(call, args.up);
        return call;
    }

    [[nodiscard]] Call second_call(const Args& args, std::int64_t tokens) const noexcept {
        const Workspace workspace = divide(args.workspace, tokens);
        return call_of(second_layer_,
                       LayerArgs{.x = workspace.intermediate,
                                 .weight = args.down,
                                 .bias = args.down_bias,
                                 .residual = args.residual,
                                 .out = args.out,
                                 .workspace = workspace.rest,
                                 .residual_stride = args.residual_stride,
                                 .out_stride = args.out_stride},
                       tokens);
    }

    LayerOf<Ffn> first_layer_;
    LayerOf<Ffn> second_layer_;
    bool gated_ = false;
};

using PreparedFusedFfn = PreparedFfn<FusedFfn, FusedFfnArgs, LinearArgs>;
using PreparedQuantizedFfn = PreparedFfn<QuantizedFfn, QuantizedFfnArgs, QuantizedLinearArgs>;

}  // namespace hone::runtime
