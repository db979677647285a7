#include "decoder/forward/shared_norms.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "cache/kept_step.h"
#include "kernel_templates/catalog.h"
#include "kernel_templates/shared_norm_linear/shared_norm_linear.h"
#include "kernel_templates/shared_norm_quantized_linear/shared_norm_quantized_linear.h"
#include "runtime/operators/call_arguments.h"
#include "runtime/operators/runtime_state.h"

namespace hone::decoder {
namespace {

/// Sequences, at most, whose steps were faster with shared norms wherever the products alone had ring.
constexpr std::int64_t most_by_kin = 16;

Explanation chosen(Runtime& runtime, const Problem& problem, std::int64_t tokens) {
    return runtime::dispatcher_of(runtime).explain(problem, {tokens});
}

std::string_view variant_of(const Problem& problem, const Explanation& chosen) {
    const std::optional<Candidate> kernel = parse_candidate(*problem.family, chosen.bucket.candidate);
    return kernel ? kernel->variant->name : std::string_view();
}

/// Whether the kernel that is chosen writes and takes squares beside its products, and the step is shorter
/// for it: where steps were raced both ways that says so; else `by_kin`, where it is a ring as the product
/// alone would have. Where another one is faster alone, norms by themselves are no reason to leave it.
bool hides_norms(Runtime& runtime, const Problem& problem, std::int64_t tokens, bool by_kin) {
    const Explanation sharing = chosen(runtime, problem, tokens);
    if (sharing.bucket.origin == Origin::exact && !sharing.chain.empty())
        return cache::is_of_kept_step(sharing.chain);
    if (!by_kin || variant_of(problem, sharing) != "ring") return false;
    const Problem alone = problem.family->kin(problem).value();
    return variant_of(alone, chosen(runtime, alone, tokens)) == "ring";
}

std::int64_t bytes_between(const models::Model& model, std::int64_t tokens) {
    return round_up(tokens * model.intermediate_size * size_bytes(model.dtype), workspace_alignment);
}

}  // namespace

std::int64_t shared_norm_squares(std::int64_t rows, std::int64_t width) {
    return rows * ceil_div(width, linear::square_columns);
}

SharedNormProduct::SharedNormProduct(Runtime& runtime, const Problem& problem)
    : problem_(problem), prepared_(runtime::dispatcher_of(runtime).prepare(problem)) {}

std::int64_t SharedNormProduct::workspace_bytes(std::int64_t tokens) const {
    return prepared_ ? prepared_->workspace_bytes({tokens}) : 0;
}

void SharedNormProduct::add_reports(std::vector<PrepareReport>& reports) const {
    if (prepared_) std::ranges::move(prepared_->reports(), std::back_inserter(reports));
}

namespace {

Call call_of_numbers(const shared_norm_linear::SharedNormProblem& p, const SharedNormArgs& args) {
    using namespace shared_norm_linear;
    using runtime::pointer;
    Call call;
    call.pointers[x] = pointer(args.x);
    call.pointers[norm_weight] = pointer(args.next_weight);
    call.pointers[weight] = pointer(args.weight->values);
    if (args.up != nullptr) call.pointers[up] = pointer(args.up->values);
    call.pointers[bias] = pointer(args.bias);
    call.pointers[residual] = pointer(args.residual);
    call.pointers[out] = args.out;
    call.pointers[workspace] = args.workspace;
    call.pointers[norm_squares] = pointer(args.norm_squares);
    call.pointers[scaled] = args.scaled;
    call.pointers[squares] = args.squares;
    for (const CallScalar row_of_x : {x_stride, weight_stride, up_stride})
        call.scalars[row_of_x] = Scalar::of(p.in);
    for (const CallScalar row_of_results : {residual_stride, out_stride})
        call.scalars[row_of_results] = Scalar::of(p.out);
    call.scalars[epsilon] = Scalar::of(args.epsilon);
    return call;
}

Call call_of_codes(const shared_norm_quantized_linear::SharedNormQuantizedProblem& p,
                   const SharedNormArgs& args) {
    using namespace shared_norm_quantized_linear;
    using runtime::pointer;
    Call call;
    call.pointers[x] = pointer(args.x);
    call.pointers[norm_weight] = pointer(args.next_weight);
    call.pointers[weight] = pointer(args.weight->packed.codes);
    call.pointers[scales] = pointer(args.weight->packed.scales);
    call.pointers[zeros] = pointer(args.weight->packed.zeros);
    if (args.up != nullptr) {
        call.pointers[up] = pointer(args.up->packed.codes);
        call.pointers[up_scales] = pointer(args.up->packed.scales);
        call.pointers[up_zeros] = pointer(args.up->packed.zeros);
    }
    call.pointers[bias] = pointer(args.bias);
    call.pointers[residual] = pointer(args.residual);
    call.pointers[out] = args.out;
    call.pointers[workspace] = args.workspace;
    call.pointers[norm_squares] = pointer(args.norm_squares);
    call.pointers[scaled] = args.scaled;
    call.pointers[squares] = args.squares;
    call.scalars[x_stride] = Scalar::of(p.in);
    call.scalars[scale_stride] = Scalar::of(std::int64_t{1});
    for (const CallScalar row_of_results : {residual_stride, out_stride})
        call.scalars[row_of_results] = Scalar::of(p.out);
    call.scalars[epsilon] = Scalar::of(args.epsilon);
    return call;
}

}  // namespace

Status SharedNormProduct::run(CUstream_st* stream, const SharedNormArgs& args, std::int64_t tokens) const {
    Call call;
    if (problem_.family->name == "shared_norm_linear") {
        call = call_of_numbers(shared_norm_linear::SharedNormProblem(problem_), args);
        call.scalars[shared_norm_linear::tokens] = Scalar::of(tokens);
    } else {
        call = call_of_codes(shared_norm_quantized_linear::SharedNormQuantizedProblem(problem_), args);
        call.scalars[shared_norm_quantized_linear::tokens] = Scalar::of(tokens);
    }
    return prepared_->run(stream, call, {tokens});
}

std::int64_t SharedNormProducts::workspace_bytes(const models::Model& model, std::int64_t tokens) const {
    if (!qkv) return 0;
    const std::int64_t halves = std::max(up.workspace_bytes(tokens), down.workspace_bytes(tokens));
    return std::max(
        {qkv.workspace_bytes(tokens), output.workspace_bytes(tokens), bytes_between(model, tokens) + halves});
}

Status SharedNormProducts::run_network(CUstream_st* stream, const models::Model& model,
                                       const LayerWeights& layer, const SharedNormArgs& args,
                                       std::int64_t tokens) const {
    auto* const between = static_cast<std::byte*>(args.workspace);
    SharedNormArgs first = args;
    first.weight = model.gated_ffn ? &layer.gate : &layer.up;
    first.up = model.gated_ffn ? &layer.up : nullptr;
    first.bias = layer.up_bias;
    first.out = between;
    first.workspace = between + bytes_between(model, tokens);
    if (const Status status = up.run(stream, first, tokens); status != Status::ok) return status;
    SharedNormArgs second = args;
    second.x = between;
    second.weight = &layer.down;
    second.bias = layer.down_bias;
    second.workspace = first.workspace;
    return down.run(stream, second, tokens);
}

std::vector<std::int64_t> find_shared_norm_steps(Runtime& runtime, const models::Model& model,
                                                 const checkpoints::WeightFormat& format,
                                                 std::int64_t most_sequences,
                                                 std::span<const std::int64_t> raced_only) {
    std::vector<std::int64_t> found;
    const std::int64_t most = std::min(most_sequences, models::most_sharing_sequences(model, format));
    if (most == 0) return found;
    const models::SharedNormProblems problems(model, format, most);
    const std::array all{problems.qkv, problems.output, problems.up, problems.down};
    for (std::int64_t sequences = 1; sequences <= most; ++sequences) {
        const bool by_kin =
            sequences <= most_by_kin && std::ranges::find(raced_only, sequences) == raced_only.end();
        if (std::ranges::all_of(all, [&](const Problem& problem) {
                return hides_norms(runtime, problem, sequences, by_kin);
            }))
            found.push_back(sequences);
    }
    return found;
}

}  // namespace hone::decoder
