// Linear: the problem, run() and what it refuses. Generated from kernel_templates/linear/operators.py by
// `./hone generate`.
#include "runtime/operators/linear.h"

#include "runtime/dispatch/prepared_operator.h"
#include "runtime/dispatch/public_error.h"
#include "runtime/operators/describe_problem.h"
#include "runtime/operators/entry.h"

namespace hone {
namespace runtime {

Problem problem_of(const Linear& description) {
    return describe_problem("linear",
                            {{"in", description.in},
                             {"out", description.out},
                             {"dtype", dtype_name(description.dtype)},
                             {"activation", word(description.activation)},
                             {"bias", yes_no(description.bias)},
                             {"residual", yes_no(description.residual)},
                             {"norm", yes_no(description.norm)}},
                            {{"max_tokens", description.max_tokens}});
}

LinearKernel prepare_with(const Maker& maker, const Linear& description) {
    return {maker.dispatcher.prepare(problem_of(description)), description};
}

Explanation explain_with(const Dispatcher& dispatcher, const Linear& description, std::int64_t tokens) {
    return dispatcher.explain(problem_of(description), {tokens});
}

}  // namespace runtime

Status LinearKernel::run(CUstream_st* stream, const LinearArgs& args, std::int64_t tokens) const noexcept {
    if (!*this) return Status::not_prepared;
    const Call call = runtime::call_of(description_, args, tokens);
    return runtime::single(*prepared_).run(stream, call, {tokens});
}

std::string LinearKernel::refusal(const LinearArgs& args, std::int64_t tokens) const {
    if (!*this) runtime::throw_not_prepared("refusal()");
    const Call call = runtime::call_of(description_, args, tokens);
    return runtime::single(*prepared_).refusal(call, {tokens});
}

}  // namespace hone
