// QuantizedExpertLinear: the problem, run() and what it refuses. Generated from
// kernel_templates/quantized_expert_linear/operators.py by `./hone generate`.
#include "runtime/operators/quantized_expert_linear.h"

#include "runtime/dispatch/prepared_operator.h"
#include "runtime/dispatch/public_error.h"
#include "runtime/operators/describe_problem.h"
#include "runtime/operators/entry.h"
#include "runtime/operators/index_check.h"

namespace hone {
namespace runtime {

Problem problem_of(const QuantizedExpertLinear& description) {
    return describe_problem("quantized_expert_linear",
                            {{"in", description.in},
                             {"out", description.out},
                             {"experts", description.experts},
                             {"top_k", description.top_k},
                             {"dtype", dtype_name(description.dtype)},
                             {"format", word(description.format)},
                             {"group", description.group},
                             {"zeros", yes_no(description.zeros)},
                             {"activation", word(description.activation)},
                             {"gated", yes_no(description.gated)},
                             {"bias", yes_no(description.bias)},
                             {"gather", yes_no(description.gather)},
                             {"combine", yes_no(description.combine)}},
                            {{"max_tokens", description.max_tokens}});
}

QuantizedExpertLinearKernel prepare_with(const Maker& maker, const QuantizedExpertLinear& description) {
    return {maker.dispatcher.prepare(problem_of(description)), description, maker.checking != nullptr};
}

Explanation explain_with(const Dispatcher& dispatcher, const QuantizedExpertLinear& description,
                         std::int64_t tokens) {
    return dispatcher.explain(problem_of(description), {tokens});
}

}  // namespace runtime

Status QuantizedExpertLinearKernel::run(CUstream_st* stream, const QuantizedExpertLinearArgs& args,
                                        std::int64_t tokens) const noexcept {
    if (!*this) return Status::not_prepared;
    const Call call = runtime::call_of(description_, args, tokens);
    if (checks_indices_) {
        const Status wrong =
            runtime::check_indices(runtime::single(*prepared_), stream, call, description_, args, tokens);
        if (wrong != Status::ok) return wrong;
    }
    return runtime::single(*prepared_).run(stream, call, {tokens});
}

std::string QuantizedExpertLinearKernel::refusal(const QuantizedExpertLinearArgs& args,
                                                 std::int64_t tokens) const {
    if (!*this) runtime::throw_not_prepared("refusal()");
    const Call call = runtime::call_of(description_, args, tokens);
    return runtime::single(*prepared_).refusal(call, {tokens});
}

}  // namespace hone
