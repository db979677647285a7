// Sample: the problem, run() and what it refuses. Generated from kernel_templates/sample/operators.py by
// `./hone generate`.
#include "runtime/operators/sample.h"

#include "runtime/dispatch/prepared_operator.h"
#include "runtime/dispatch/public_error.h"
#include "runtime/operators/describe_problem.h"
#include "runtime/operators/entry.h"

namespace hone {
namespace runtime {

Problem problem_of(const Sample& description) {
    return describe_problem("sample",
                            {{"vocabulary", description.vocabulary},
                             {"dtype", dtype_name(description.dtype)},
                             {"filters", yes_no(description.filters)},
                             {"log_probability", yes_no(description.log_probability)},
                             {"softcap", description.softcap}},
                            {{"max_rows", description.max_rows}});
}

SampleKernel prepare_with(const Maker& maker, const Sample& description) {
    return {maker.dispatcher.prepare(problem_of(description)), description};
}

Explanation explain_with(const Dispatcher& dispatcher, const Sample& description, std::int64_t rows) {
    return dispatcher.explain(problem_of(description), {rows});
}

}  // namespace runtime

Status SampleKernel::run(CUstream_st* stream, const SampleArgs& args, std::int64_t rows) const noexcept {
    if (!*this) return Status::not_prepared;
    const Call call = runtime::call_of(description_, args, rows);
    return runtime::single(*prepared_).run(stream, call, {rows});
}

std::string SampleKernel::refusal(const SampleArgs& args, std::int64_t rows) const {
    if (!*this) runtime::throw_not_prepared("refusal()");
    const Call call = runtime::call_of(description_, args, rows);
    return runtime::single(*prepared_).refusal(call, {rows});
}

}  // namespace hone
