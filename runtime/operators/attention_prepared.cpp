#include "runtime/operators/attention_prepared.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "runtime/operators/attention_call.h"
#include "runtime/operators/attention_problem.h"
#include "runtime/operators/index_check.h"

namespace hone::runtime {
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

/// What the families' own checks do not know of calls that have something to do.
Status check_numbers(const Attention& attention, const AttentionArgs& args, AttentionSizes sizes) noexcept {
    if (sizes.kv_len == 0 || (attention.packed && args.kv_tokens == 0)) return Status::bad_rows;
    if (!std::isfinite(args.scale)) return Status::bad_scale;
    if (attention.softcap && !(args.softcap > 0 && std::isfinite(args.softcap))) return Status::bad_scale;
    if (attention.page_size != 0 && args.pool_pages < 1) return Status::bad_pages;
    const bool alike = same_strides(kv_strides(attention, args.k_strides, sizes.kv_len),
                                    kv_strides(attention, args.v_strides, sizes.kv_len));
    return alike || !is_decode(attention, sizes.q_len) ? Status::ok : Status::bad_stride;
}

/// Why a call does not fit, or its numbers are wrong, with the name of the first that is.
std::string wrong_numbers(const Attention& attention, const AttentionArgs& args, AttentionSizes sizes) {
    const auto is = [](const char* name, auto value, const std::string& allowed) {
        return fmt::format("{} is {}; allowed: {}", name, value, allowed);
    };
    const auto up_to = [](std::int64_t least, std::int64_t most) {
        return fmt::format("{} to {}", least, most);
    };
    if (!within(sizes.batch, attention.max_batch))
        return is("batch", sizes.batch, up_to(0, attention.max_batch));
    if (!within(sizes.q_len, attention.max_q_len) || (sizes.q_len != 0 && sizes.q_len < attention.min_q_len))
        return is("q_len", sizes.q_len, "0, or " + up_to(attention.min_q_len, attention.max_q_len));
    if (sizes.kv_len < 1 || sizes.kv_len > attention.max_kv_len)
        return is("kv_len", sizes.kv_len, up_to(1, attention.max_kv_len));
    if (attention.packed && args.q_tokens < 0) return is("q_tokens", args.q_tokens, "from 0");
    if (attention.packed && args.kv_tokens < 1) return is("kv_tokens", args.kv_tokens, "from 1");
    if (!std::isfinite(args.scale)) return is("scale", args.scale, "finite numbers");
    if (attention.softcap && !(args.softcap > 0 && std::isfinite(args.softcap)))
        return is("softcap", args.softcap, "finite numbers above 0");
    if (attention.page_size != 0 && args.pool_pages < 1) return is("pool_pages", args.pool_pages, "from 1");
    return "the strides of v are others than those of k; allowed in calls of up to 16 queries: the same";
}

void check_size(const char* name, std::int64_t size, std::int64_t most) {
    if (within(size, most)) return;
    throw std::invalid_argument(fmt::format("{} is {}; allowed: 0 to {}, as prepared", name, size, most));
}

constexpr CallName decode_names[] = {{"k_cache", "k"},
                                     {"v_cache", "v"},
                                     {"cache_stride", "k_batch_stride"},
                                     {"cache_token_stride", "k_token_stride"},
                                     {"cache_head_stride", "k_head_stride"}};

}  // namespace

PreparedAttention::PreparedAttention(Decode decode, std::shared_ptr<const PreparedOperator> prefill,
                                     const Attention& attention, const DeviceSession* checking)
    : decode_(std::move(decode)), prefill_(std::move(prefill)), attention_(attention), checking_(checking) {}

PreparedAttention::Part PreparedAttention::part_for(const AttentionArgs& args,
                                                    AttentionSizes sizes) const noexcept {
    if (is_decode(attention_, sizes.q_len))
        return {*decode_[decode_index(sizes.q_len)], decode_call(attention_, args, sizes),
                decode_sizes(sizes)};
    return {*prefill_, prefill_call(attention_, args, sizes), prefill_sizes(sizes)};
}

Status PreparedAttention::run(CUstream stream, const AttentionArgs& args,
                              AttentionSizes sizes) const noexcept {
    if (!fits(attention_, args, sizes)) return Status::bad_rows;
    if (nothing_in(attention_, args, sizes)) return Status::ok;
    if (const Status wrong = check_numbers(attention_, args, sizes); wrong != Status::ok) return wrong;
    const Part part = part_for(args, sizes);
    if (checking_ != nullptr) {
        if (const Status wrong = part.kernels.check(part.call, part.sizes); wrong != Status::ok) return wrong;
        const Status wrong = check_indices(*checking_, stream, attention_, args, sizes);
        if (wrong != Status::ok) return wrong;
    }
    return part.kernels.run(stream, part.call, part.sizes);
}

std::string PreparedAttention::refusal(const AttentionArgs& args, AttentionSizes sizes) const {
    if (!fits(attention_, args, sizes)) return wrong_numbers(attention_, args, sizes);
    if (nothing_in(attention_, args, sizes)) return {};
    if (check_numbers(attention_, args, sizes) != Status::ok) return wrong_numbers(attention_, args, sizes);
    const Part part = part_for(args, sizes);
    return part.kernels.refusal(part.call, part.sizes, decode_names);
}

std::vector<PrepareReport> PreparedAttention::reports() const {
    std::vector<PrepareReport> reports;
    for (int queries = 1; const auto& part : decode_) {
        if (part != nullptr) {
            reports.push_back(part->report());
            reports.back().part = queries == 1 ? "1 query" : fmt::format("up to {} queries", queries);
        }
        queries *= 2;
    }
    if (prefill_ == nullptr) return reports;
    reports.push_back(prefill_->report());
    reports.back().part = "prefill";
    return reports;
}

std::int64_t PreparedAttention::workspace_bytes(const Sizes& given) const {
    const AttentionSizes sizes{given[0], given[1], given[2]};
    check_size("batch", sizes.batch, attention_.max_batch);
    check_size("q_len", sizes.q_len, attention_.max_q_len);
    check_size("kv_len", sizes.kv_len, attention_.max_kv_len);
    std::int64_t most = 0;
    for (std::int64_t capacity = 1; const auto& part : decode_) {
        const AttentionSizes here{sizes.batch, std::min(sizes.q_len, capacity), sizes.kv_len};
        if (part != nullptr && sizes.q_len > capacity / 2)
            most = std::max(most, part->workspace_bytes(decode_sizes(here)));
        capacity *= 2;
    }
    if (is_decode(attention_, sizes.q_len)) return most;
    return std::max(most, prefill_->workspace_bytes(prefill_sizes(sizes)));
}

}  // namespace hone::runtime
