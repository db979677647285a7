// RmsNormBackward: the problem, run() and what it refuses. Generated from
// kernel_templates/rmsnorm_backward/operators.py by `./hone generate`.
#include "runtime/operators/rms_norm_backward.h"

#include "runtime/dispatch/prepared_operator.h"
#include "runtime/dispatch/public_error.h"
#include "runtime/operators/describe_problem.h"
#include "runtime/operators/entry.h"

namespace hone {
namespace runtime {

Problem problem_of(const RmsNormBackward& description) {
    return describe_problem("rmsnorm_backward",
                            {{"hidden", description.hidden},
                             {"dtype", dtype_name(description.dtype)},
                             {"residual", yes_no(description.residual)}},
                            {{"max_rows", description.max_rows}});
}

RmsNormBackwardKernel prepare_with(const Maker& maker, const RmsNormBackward& description) {
    return {maker.dispatcher.prepare(problem_of(description)), description};
}

Explanation explain_with(const Dispatcher& dispatcher, const RmsNormBackward& description,
                         std::int64_t rows) {
    return dispatcher.explain(problem_of(description), {rows});
}

}  // namespace runtime

Status RmsNormBackwardKernel::run(CUstream_st* stream, const RmsNormBackwardArgs& args,
                                  std::int64_t rows) const noexcept {
    if (!*this) return Status::not_prepared;
    const Call call = runtime::call_of(description_, args, rows);
    return runtime::single(*prepared_).run(stream, call, {rows});
}

std::string RmsNormBackwardKernel::refusal(const RmsNormBackwardArgs& args, std::int64_t rows) const {
    if (!*this) runtime::throw_not_prepared("refusal()");
    const Call call = runtime::call_of(description_, args, rows);
    return runtime::single(*prepared_).refusal(call, {rows});
}

}  // namespace hone
