// RmsNorm and LayerNorm: the problem, run() and what it refuses. Generated from
// kernel_templates/norm/operators.py by `./hone generate`.
#include "runtime/operators/norm.h"

#include "runtime/dispatch/prepared_operator.h"
#include "runtime/dispatch/public_error.h"
#include "runtime/operators/describe_problem.h"
#include "runtime/operators/entry.h"

namespace hone {
namespace runtime {

Problem problem_of(const RmsNorm& description) {
    return describe_problem("rmsnorm",
                            {{"hidden", description.hidden},
                             {"dtype", dtype_name(description.dtype)},
                             {"output", word(description.output)},
                             {"residual", yes_no(description.residual)},
                             {"unit_offset", yes_no(description.unit_offset)}},
                            {{"max_rows", description.max_rows}});
}

RmsNormKernel prepare_with(const Maker& maker, const RmsNorm& description) {
    return {maker.dispatcher.prepare(problem_of(description)), description.hidden};
}

Explanation explain_with(const Dispatcher& dispatcher, const RmsNorm& description, std::int64_t rows) {
    return dispatcher.explain(problem_of(description), {rows});
}

Problem problem_of(const LayerNorm& description) {
    return describe_problem("layernorm",
                            {{"hidden", description.hidden},
                             {"dtype", dtype_name(description.dtype)},
                             {"output", word(description.output)},
                             {"residual", yes_no(description.residual)},
                             {"bias", yes_no(description.bias)},
                             {"unit_offset", yes_no(description.unit_offset)}},
                            {{"max_rows", description.max_rows}});
}

LayerNormKernel prepare_with(const Maker& maker, const LayerNorm& description) {
    return {maker.dispatcher.prepare(problem_of(description)), description.hidden};
}

Explanation explain_with(const Dispatcher& dispatcher, const LayerNorm& description, std::int64_t rows) {
    return dispatcher.explain(problem_of(description), {rows});
}

}  // namespace runtime

Status NormKernel::run(CUstream_st* stream, const NormArgs& args, std::int64_t rows) const noexcept {
    if (!*this) return Status::not_prepared;
    const Call call = runtime::call_of(hidden_, args, rows);
    return runtime::single(*prepared_).run(stream, call, {rows});
}

std::string NormKernel::refusal(const NormArgs& args, std::int64_t rows) const {
    if (!*this) runtime::throw_not_prepared("refusal()");
    const Call call = runtime::call_of(hidden_, args, rows);
    return runtime::single(*prepared_).refusal(call, {rows});
}

}  // namespace hone
