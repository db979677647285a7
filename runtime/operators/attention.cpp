// run() of attention: which family serves a call, and what is looked at before.
#include "hone/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "runtime/dispatch/prepared_operator.h"
#include "runtime/dispatch/public_error.h"
#include "runtime/operators/attention_call.h"
#include "runtime/operators/attention_problem.h"
#include "runtime/operators/index_check.h"

namespace hone {
namespace {

bool same_strides(const AttentionStrides& a, const AttentionStrides& b) noexcept {
    return a.batch == b.batch && a.token == b.token && a.head == b.head;
}

bool within(std::int64_t size, std::int64_t most) noexcept { return size >= 0 && size <= most; }

bool fits(const Attention& attention, const AttentionArgs& args, AttentionSizes sizes) noexcept {
    const bool tokens_fit = !attention.packed || (args.q_tokens >= 0 && args.kv_tokens >= 0);
    const bool queries_fit = sizes.q_len == 0 || sizes.q_len >= attention.min_q_len;
    return within(sizes.batch, attention.max_batch) && within(sizes.q_len, attention.max_q_len) &&
           within(sizes.kv_len, attention.max_kv_len) && queries_fit && tokens_fit;
}

bool nothing_in(const Attention& attention, const AttentionArgs& args, AttentionSizes sizes) noexcept {
    return sizes.batch == 0 || sizes.q_len == 0 || (attention.packed && args.q_tokens == 0);
}

/// Of calls that have something to do: what the families' own checks do not know.
Status check_numbers(const Attention& attention, const AttentionArgs& args, AttentionSizes sizes) noexcept {
    if (sizes.kv_len == 0 || (attention.packed && args.kv_tokens == 0)) return Status::bad_rows;
    if (!std::isfinite(args.scale)) return Status::bad_scale;
    if (attention.softcap && !(args.softcap > 0 && std::isfinite(args.softcap))) return Status::bad_scale;
    if (attention.page_size != 0 && args.pool_pages < 1) return Status::bad_pages;
    const bool alike = same_strides(runtime::kv_strides(attention, args.k_strides, sizes.kv_len),
                                    runtime::kv_strides(attention, args.v_strides, sizes.kv_len));
    return alike || !runtime::is_decode(attention, sizes.q_len) ? Status::ok : Status::bad_stride;
}

void check_size(const char* name, std::int64_t size, std::int64_t most) {
    if (within(size, most)) return;
    throw std::invalid_argument(fmt::format("{} is {}; allowed: 0 to {}, as prepared", name, size, most));
}

}  // namespace

Status AttentionKernel::run(CUstream_st* stream, const AttentionArgs& args,
                            AttentionSizes sizes) const noexcept {
    if (!*this) return Status::not_prepared;
    if (!fits(attention_, args, sizes)) return Status::bad_rows;
    if (nothing_in(attention_, args, sizes)) return Status::ok;
    if (const Status wrong = check_numbers(attention_, args, sizes); wrong != Status::ok) return wrong;
    const bool decodes = runtime::is_decode(attention_, sizes.q_len);
    const Call call = decodes ? runtime::decode_call(attention_, args, sizes)
                              : runtime::prefill_call(attention_, args, sizes);
    const Sizes ordered = decodes ? runtime::decode_sizes(sizes) : runtime::prefill_sizes(sizes);
    const runtime::PreparedOperator& part =
        decodes ? *decode_[runtime::decode_index(sizes.q_len)] : *prefill_;
    if (checking_ != nullptr) {
        if (const Status wrong = part.check(call, ordered); wrong != Status::ok) return wrong;
        const Status wrong = runtime::check_indices(*checking_, stream, attention_, args, sizes);
        if (wrong != Status::ok) return wrong;
    }
    return part.run(stream, call, ordered);
}

std::int64_t AttentionKernel::workspace_bytes(AttentionSizes sizes) const {
    const char* const where = "workspace_bytes()";
    if (!*this) runtime::throw_not_prepared(where);
    return runtime::guarded(where, [&] {
        check_size("batch", sizes.batch, attention_.max_batch);
        check_size("q_len", sizes.q_len, attention_.max_q_len);
        check_size("kv_len", sizes.kv_len, attention_.max_kv_len);
        std::int64_t most = 0;
        for (std::int64_t capacity = 1; const auto& part : decode_) {
            const AttentionSizes here{sizes.batch, std::min(sizes.q_len, capacity), sizes.kv_len};
            if (part != nullptr && sizes.q_len > capacity / 2)
                most = std::max(most, part->workspace_bytes(runtime::decode_sizes(here)));
            capacity *= 2;
        }
        if (runtime::is_decode(attention_, sizes.q_len)) return most;
        return std::max(most, prefill_->workspace_bytes(runtime::prefill_sizes(sizes)));
    });
}

std::vector<PrepareReport> AttentionKernel::reports() const {
    if (!*this) runtime::throw_not_prepared("reports()");
    std::vector<PrepareReport> reports;
    for (const auto& part : decode_) {
        if (part != nullptr) reports.push_back(part->report());
    }
    if (prefill_ != nullptr) reports.push_back(prefill_->report());
    return reports;
}

}  // namespace hone
