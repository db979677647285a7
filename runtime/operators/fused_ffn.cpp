// The feed-forward network: two linear layers that share a workspace.
#include "hone/fused_ffn.h"

#include "runtime/dispatch/prepared_halves.h"
#include "runtime/dispatch/public_error.h"
#include "runtime/operators/entry.h"
#include "runtime/operators/feed_forward.h"
#include "runtime/operators/linear.h"

namespace hone {
namespace runtime {
namespace {

class PreparedFfn final : public PreparedHalves {
  public:
    PreparedFfn(Half first, Half second, const FusedFfn& ffn)
        : PreparedHalves(std::move(first), std::move(second), ffn.intermediate * size_bytes(ffn.dtype),
                         ffn.max_tokens),
          first_layer_(first_layer(ffn)),
          second_layer_(second_layer(ffn)),
          gated_(ffn.gated) {}

    [[nodiscard]] Call first_call(const FusedFfnArgs& args, std::int64_t tokens) const noexcept {
        const Workspace workspace = divide(args.workspace, tokens);
        Call call = linear_call(first_layer_,
                                {.x = args.x,
                                 .weight = gated_ ? args.gate : args.up,
                                 .bias = args.up_bias,
                                 .out = workspace.intermediate,
                                 .workspace = workspace.rest,
                                 .x_stride = args.x_stride,
                                 .norm_weight = args.norm_weight,
                                 .epsilon = args.epsilon},
                                tokens);
        call.pointers[linear::up] = pointer(args.up);
        return call;
    }

    [[nodiscard]] Call second_call(const FusedFfnArgs& args, std::int64_t tokens) const noexcept {
        const Workspace workspace = divide(args.workspace, tokens);
        return linear_call(second_layer_,
                           {.x = workspace.intermediate,
                            .weight = args.down,
                            .bias = args.down_bias,
                            .residual = args.residual,
                            .out = args.out,
                            .workspace = workspace.rest,
                            .residual_stride = args.residual_stride,
                            .out_stride = args.out_stride},
                           tokens);
    }

    [[nodiscard]] CallNames first_names() const {
        return gated_ ? CallNames(gated_names) : CallNames(plain_names);
    }

    /// The halves meet in the workspace.
    static constexpr CallName gated_names[] = {{"out", "workspace"}, {"weight", "gate"}};
    static constexpr CallName plain_names[] = {{"out", "workspace"}, {"weight", "up"}, {"bias", "up_bias"}};
    static constexpr CallName second_names[] = {
        {"x", "workspace"}, {"weight", "down"}, {"bias", "down_bias"}};

  private:
    Linear first_layer_;
    Linear second_layer_;
    bool gated_ = false;
};

}  // namespace

FusedFfnKernel prepare_with(const Maker& maker, const FusedFfn& description) {
    auto first = maker.dispatcher.prepare(first_half(description));
    auto second = maker.dispatcher.prepare(second_half(description));
    return FusedFfnKernel(
        std::make_shared<const PreparedFfn>(std::move(first), std::move(second), description));
}

std::array<Explanation, 2> explain_with(const Dispatcher& dispatcher, const FusedFfn& description,
                                        std::int64_t tokens) {
    return {dispatcher.explain(first_half(description), {tokens}),
            dispatcher.explain(second_half(description), {tokens})};
}

}  // namespace runtime

Status FusedFfnKernel::run(CUstream_st* stream, const FusedFfnArgs& args,
                           std::int64_t tokens) const noexcept {
    if (!*this) return Status::not_prepared;
    const auto& ffn = static_cast<const runtime::PreparedFfn&>(*prepared_);
    if (const Status wrong = ffn.check(args.workspace, tokens); wrong != Status::ok) return wrong;
    if (tokens == 0) return Status::ok;
    return ffn.run(stream, ffn.first_call(args, tokens), ffn.second_call(args, tokens), tokens);
}

std::string FusedFfnKernel::refusal(const FusedFfnArgs& args, std::int64_t tokens) const {
    if (!*this) runtime::throw_not_prepared("refusal()");
    const auto& ffn = static_cast<const runtime::PreparedFfn&>(*prepared_);
    if (ffn.check(args.workspace, tokens) == Status::null_pointer) return "workspace is a null pointer";
    return ffn.refusal(ffn.first_call(args, tokens), ffn.second_call(args, tokens), tokens, ffn.first_names(),
                       ffn.second_names);
}

}  // namespace hone
