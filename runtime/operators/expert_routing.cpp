// ExpertRouting: the problem, run() and what it refuses. Generated from
// kernel_templates/expert_routing/operators.py by `./hone generate`.
#include "runtime/operators/expert_routing.h"

#include "runtime/dispatch/prepared_operator.h"
#include "runtime/dispatch/public_error.h"
#include "runtime/operators/describe_problem.h"
#include "runtime/operators/entry.h"

namespace hone {
namespace runtime {

Problem problem_of(const ExpertRouting& description) {
    return describe_problem("expert_routing",
                            {{"experts", description.experts},
                             {"top_k", description.top_k},
                             {"dtype", dtype_name(description.dtype)},
                             {"renormalize", yes_no(description.renormalize)}},
                            {{"max_tokens", description.max_tokens}});
}

ExpertRoutingKernel prepare_with(const Maker& maker, const ExpertRouting& description) {
    return {maker.dispatcher.prepare(problem_of(description)), description};
}

Explanation explain_with(const Dispatcher& dispatcher, const ExpertRouting& description,
                         std::int64_t tokens) {
    return dispatcher.explain(problem_of(description), {tokens});
}

}  // namespace runtime

Status ExpertRoutingKernel::run(CUstream_st* stream, const ExpertRoutingArgs& args,
                                std::int64_t tokens) const noexcept {
    if (!*this) return Status::not_prepared;
    const Call call = runtime::call_of(description_, args, tokens);
    return runtime::single(*prepared_).run(stream, call, {tokens});
}

std::string ExpertRoutingKernel::refusal(const ExpertRoutingArgs& args, std::int64_t tokens) const {
    if (!*this) runtime::throw_not_prepared("refusal()");
    const Call call = runtime::call_of(description_, args, tokens);
    return runtime::single(*prepared_).refusal(call, {tokens});
}

}  // namespace hone
