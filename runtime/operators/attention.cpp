// Attention: which problems its calls can reach, and the entry to what is prepared of them.
#include "hone/attention.h"

#include <fmt/format.h>

#include <stdexcept>

#include "runtime/dispatch/public_error.h"
#include "runtime/operators/attention_prepared.h"
#include "runtime/operators/attention_problem.h"
#include "runtime/operators/entry.h"

namespace hone {
namespace runtime {
namespace {

const PreparedAttention& attention_of(const Prepared& prepared) {
    return static_cast<const PreparedAttention&>(prepared);
}

}  // namespace

AttentionKernel prepare_with(const Maker& maker, const Attention& description) {
    const AttentionProblems problems = attention_problems(description);
    PreparedAttention::Decode decode;
    for (std::size_t i = 0; i < decode.size(); ++i) {
        if (problems.decode[i]) decode[i] = maker.dispatcher.prepare(*problems.decode[i]);
    }
    std::shared_ptr<const PreparedOperator> prefill;
    if (problems.prefill) {
        const Sizes least = prefill_sizes({.q_len = problems.least_prefill});
        prefill = maker.dispatcher.prepare(*problems.prefill, least);
    }
    return AttentionKernel(std::make_shared<const PreparedAttention>(std::move(decode), std::move(prefill),
                                                                     filled_in(description), maker.checking));
}

Explanation explain_with(const Dispatcher& dispatcher, const Attention& description, AttentionSizes sizes) {
    const AttentionProblems problems = attention_problems(description);
    if (sizes.q_len < description.min_q_len || sizes.q_len > description.max_q_len) {
        throw std::invalid_argument(fmt::format("q_len is {}; allowed: {} to {}", sizes.q_len,
                                                description.min_q_len, description.max_q_len));
    }
    if (!is_decode(description, sizes.q_len))
        return dispatcher.explain(*problems.prefill, prefill_sizes(sizes));
    return dispatcher.explain(*problems.decode[decode_index(sizes.q_len)], decode_sizes(sizes));
}

}  // namespace runtime

Status AttentionKernel::run(CUstream_st* stream, const AttentionArgs& args,
                            AttentionSizes sizes) const noexcept {
    if (!*this) return Status::not_prepared;
    return runtime::attention_of(*prepared_).run(stream, args, sizes);
}

std::string AttentionKernel::refusal(const AttentionArgs& args, AttentionSizes sizes) const {
    if (!*this) runtime::throw_not_prepared("refusal()");
    return runtime::attention_of(*prepared_).refusal(args, sizes);
}

std::int64_t AttentionKernel::workspace_bytes(AttentionSizes sizes) const {
    const char* const where = "workspace_bytes()";
    if (!*this) runtime::throw_not_prepared(where);
    return runtime::guarded(where, [&] {
        return prepared_->workspace_bytes({sizes.batch, sizes.q_len, sizes.kv_len});
    });
}

}  // namespace hone
