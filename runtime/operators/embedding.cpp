// Embedding: the problem, run() and what it refuses. Generated from kernel_templates/embedding/operators.py
// by `./hone generate`.
#include "runtime/operators/embedding.h"

#include "runtime/dispatch/prepared_operator.h"
#include "runtime/dispatch/public_error.h"
#include "runtime/operators/describe_problem.h"
#include "runtime/operators/entry.h"
#include "runtime/operators/index_check.h"

namespace hone {
namespace runtime {

Problem problem_of(const Embedding& description) {
    return describe_problem("embedding",
                            {{"hidden", description.hidden},
                             {"dtype", dtype_name(description.dtype)},
                             {"index", word(description.index)},
                             {"scale", yes_no(description.scale)},
                             {"positions", yes_no(description.positions)}},
                            {{"max_tokens", description.max_tokens}});
}

EmbeddingKernel prepare_with(const Maker& maker, const Embedding& description) {
    return {maker.dispatcher.prepare(problem_of(description)), description, maker.checking != nullptr};
}

Explanation explain_with(const Dispatcher& dispatcher, const Embedding& description, std::int64_t tokens) {
    const Problem largest = problem_of(description);
    Sizes sizes = sizes_of(largest);
    sizes[0] = tokens;
    return dispatcher.explain(largest, sizes);
}

}  // namespace runtime

Status EmbeddingKernel::run(CUstream_st* stream, const EmbeddingArgs& args,
                            std::int64_t tokens) const noexcept {
    if (!*this) return Status::not_prepared;
    const Call call = runtime::call_of(description_, args, tokens);
    if (checks_indices_) {
        const runtime::RowIds ids[] = {
            {args.ids, description_.index == IndexType::int64, args.vocabulary},
            {description_.positions ? args.position_ids : nullptr,
             description_.index == IndexType::int64,
             args.position_rows},
        };
        const Status wrong = runtime::check_rows(runtime::single(*prepared_), stream, call, tokens, ids);
        if (wrong != Status::ok) return wrong;
    }
    return runtime::single(*prepared_).run(stream, call, {tokens});
}

std::string EmbeddingKernel::refusal(const EmbeddingArgs& args, std::int64_t tokens) const {
    if (!*this) runtime::throw_not_prepared("refusal()");
    const Call call = runtime::call_of(description_, args, tokens);
    return runtime::single(*prepared_).refusal(call, {tokens});
}

}  // namespace hone
