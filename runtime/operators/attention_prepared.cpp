#include "runtime/operators/attention_prepared.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>

#include "kernel_templates/kit/ceil_div.h"
#include "runtime/operators/attention.h"
#include "runtime/operators/attention_problem.h"
#include "runtime/operators/index_check.h"
#include "runtime/operators/number_check.h"

namespace hone::runtime {
namespace {

bool within(std::int64_t size, std::int64_t most) noexcept { return size >= 0 && size <= most; }

bool nothing_in(const Attention& attention, const AttentionArgs& args, AttentionSizes sizes) noexcept {
    return sizes.batch == 0 || sizes.q_len == 0 || (attention.packed && args.q_tokens == 0);
}

/// Whether a call fits what was prepared.
template <class Refuse>
Status check_sizes(const Attention& attention, const AttentionArgs& args, AttentionSizes sizes,
                   Refuse refuse) {
    constexpr Status bad = Status::bad_rows;
    if (!within(sizes.batch, attention.max_batch))
        return refuse(bad, "batch", sizes.batch, "0 to {}", attention.max_batch);
    if (!within(sizes.q_len, attention.max_q_len) || (sizes.q_len != 0 && sizes.q_len < attention.min_q_len))
        return refuse(bad, "q_len", sizes.q_len, "0, or {} to {}", attention.min_q_len, attention.max_q_len);
    if (!within(sizes.kv_len, attention.max_kv_len))
        return refuse(bad, "kv_len", sizes.kv_len, "1 to {}", attention.max_kv_len);
    const std::int64_t most_prompts = attention.packed && attention.page_size != 0 ? sizes.batch : 0;
    if (!within(args.prompts, most_prompts))
        return refuse(bad, "prompts", args.prompts, "0 to {}", most_prompts);
    if (attention.packed && args.q_tokens < 0) return refuse(bad, "q_tokens", args.q_tokens, "from 0");
    if (packs_keys(attention) && args.kv_tokens < 0)
        return refuse(bad, "kv_tokens", args.kv_tokens, "from 1");
    return Status::ok;
}

/// What the families' own checks do not know of calls that fit and have something to do.
template <class Refuse>
Status check_numbers(const Attention& attention, const AttentionArgs& args, AttentionSizes sizes,
                     Refuse refuse) {
    if (sizes.kv_len == 0)
        return refuse(Status::bad_rows, "kv_len", sizes.kv_len, "1 to {}", attention.max_kv_len);
    if (packs_keys(attention) && args.kv_tokens == 0)
        return refuse(Status::bad_rows, "kv_tokens", args.kv_tokens, "from 1");
    if (!std::isfinite(args.scale)) return refuse(Status::bad_scale, "scale", args.scale, "finite numbers");
    if (attention.softcap && !(args.softcap > 0 && std::isfinite(args.softcap)))
        return refuse(Status::bad_scale, "softcap", args.softcap, "finite numbers above 0");
    if (attention.page_size != 0 && args.pool_pages < 1)
        return refuse(Status::bad_pages, "pool_pages", args.pool_pages, "from 1");
    if (attention.page_size != 0 && args.page_table_stride < 0)
        return refuse(Status::bad_pages, "page_table_stride", args.page_table_stride, "from 0");
    return Status::ok;
}

/// Decode reads k and v with the same strides.
bool strides_fit(const Attention& attention, const AttentionArgs& args, AttentionSizes sizes) noexcept {
    return !is_decode(attention, sizes.q_len) || strides_agree(attention, args, sizes.kv_len);
}

/// Multiprocessors that decode needs to read a cache at the speed of memory: each reads 30 GB/s and more.
int reading_multiprocessors(const DeviceTraits& traits) noexcept {
    constexpr double bytes_per_s = 30e9;
    const double needed = std::ceil(traits.memory_bytes_per_s / bytes_per_s);
    return static_cast<int>(std::min(needed, static_cast<double>(traits.sm_count)));
}

void check_size(const char* name, std::int64_t size, std::int64_t most) {
    if (within(size, most)) return;
    throw std::invalid_argument(fmt::format("{} is {}; allowed: 0 to {}, as prepared", name, size, most));
}

}  // namespace

PreparedAttention::PreparedAttention(const Maker& maker, const Attention& description)
    : attention_(filled_in(description)), checking_(maker.checking) {
    const AttentionProblems problems = attention_problems(attention_);
    std::vector<Dispatcher::Request> requests;
    std::vector<Kernels*> places;
    const auto ask = [&](const std::optional<Problem>& problem, const Sizes& least, Kernels& place) {
        if (!problem) return;
        requests.push_back({*problem, least});
        places.push_back(&place);
    };
    for (std::size_t i = 0; i < decode_.size(); ++i) ask(problems.decode[i], {}, decode_[i]);
    ask(problems.prefill, prefill_sizes({.q_len = problems.least_prefill}), prefill_);
    std::vector<Kernels> prepared = maker.dispatcher.prepare_all(requests);
    for (std::size_t i = 0; i < places.size(); ++i) *places[i] = std::move(prepared[i]);
}

Explanation PreparedAttention::explain(const Dispatcher& dispatcher, const Attention& description,
                                       AttentionSizes sizes) {
    const AttentionProblems problems = attention_problems(description);
    if (sizes.q_len < description.min_q_len || sizes.q_len > description.max_q_len) {
        throw std::invalid_argument(fmt::format("q_len is {}; allowed: {} to {}", sizes.q_len,
                                                description.min_q_len, description.max_q_len));
    }
    const bool all_single = sizes.q_len == 1 && problems.decode[0].has_value();
    if (!is_decode(description, sizes.q_len) && !all_single)
        return dispatcher.explain(*problems.prefill, prefill_sizes(sizes));
    return dispatcher.explain(*problems.decode[decode_index(sizes.q_len)], decode_sizes(sizes));
}

PreparedAttention::Part PreparedAttention::decode_part(const AttentionArgs& args,
                                                       AttentionSizes sizes) const noexcept {
    return {*decode_[decode_index(sizes.q_len)], decode_call(attention_, args, sizes), decode_sizes(sizes)};
}

PreparedAttention::Parts PreparedAttention::parts_for(const AttentionArgs& args,
                                                      AttentionSizes sizes) const noexcept {
    if (is_decode(attention_, sizes.q_len)) return {decode_part(args, sizes), std::nullopt};
    Parts parts;
    AttentionArgs rest = args;
    if (sets_singles_apart(attention_, args, sizes)) {
        if (sizes.q_len == 1) {
            parts.decode.emplace(decode_part(args, sizes));
            return parts;
        }
        const std::int64_t front = sequences_in_front(args, sizes);
        parts.decode.emplace(decode_part(args, {front, 1, sizes.kv_len}));
        if (args.prompts > 0) {
            rest = behind(args, front, attention_, sizes);
            sizes.batch = args.prompts;
        }
    }
    parts.prefill.emplace(Part{*prefill_, prefill_call(attention_, rest, sizes), prefill_sizes(sizes)});
    if (parts.decode)
        parts.prefill->call.scalars[attention_prefill::least_queries] = Scalar::of(std::int64_t{2});
    return parts;
}

Status PreparedAttention::check(const Parts& parts) noexcept {
    for (const Part* part : parts.all()) {
        if (part == nullptr) continue;
        const Status wrong = part->kernels.check(part->call, part->sizes);
        if (wrong != Status::ok) return wrong;
    }
    return Status::ok;
}

Status PreparedAttention::run(CUstream stream, const AttentionArgs& args,
                              AttentionSizes sizes) const noexcept {
    constexpr JustStatus refuse;
    if (const Status wrong = check_sizes(attention_, args, sizes, refuse); wrong != Status::ok) return wrong;
    if (nothing_in(attention_, args, sizes)) return Status::ok;
    if (const Status wrong = check_numbers(attention_, args, sizes, refuse); wrong != Status::ok)
        return wrong;
    if (!strides_fit(attention_, args, sizes)) return Status::bad_stride;
    const Parts parts = parts_for(args, sizes);
    if (checking_ != nullptr || (parts.decode && parts.prefill)) {
        if (const Status wrong = check(parts); wrong != Status::ok) return wrong;
    }
    if (checking_ != nullptr) {
        const Status wrong = check_indices(*checking_, stream, attention_, args, sizes);
        if (wrong != Status::ok) return wrong;
    }
    if (parts.decode && parts.prefill) return run_both(stream, *parts.decode, *parts.prefill);
    const Part& part = parts.decode ? *parts.decode : *parts.prefill;
    return part.kernels.run(stream, part.call, part.sizes);
}

// Decode's kernel, beside it that of prefill, which begins where the first one leaves multiprocessors and
// ends behind it, and then what decode has to join. A kernel of prefill that may do so never waits for decode
// at its start, and so has a workspace of its own. Others wait, and follow.
Status PreparedAttention::run_both(CUstream stream, Part decode, const Part& prefill) noexcept {
    const std::optional<std::int64_t> apart = prefill.kernels.workspace_beside(prefill.sizes);
    void*& workspace = decode.call.pointers[attention_decode::workspace];
    if (apart && workspace != nullptr)
        workspace = static_cast<std::byte*>(workspace) + round_up(*apart, workspace_alignment);
    if (!apart || !decode.kernels.workspace_beside(decode.sizes)) {
        const Status wrong = decode.kernels.run(stream, decode.call, decode.sizes);
        return wrong != Status::ok ? wrong : prefill.kernels.run(stream, prefill.call, prefill.sizes);
    }
    Portion portion{.multiprocessors = reading_multiprocessors(decode.kernels.session().traits()),
                    .rest = false};
    Status wrong = decode.kernels.run(stream, decode.call, decode.sizes, &portion);
    if (wrong != Status::ok) return wrong;
    constexpr Portion early{.early = true};
    wrong = prefill.kernels.run(stream, prefill.call, prefill.sizes, &early);
    if (wrong != Status::ok) return wrong;
    portion.first = false;
    portion.rest = true;
    return decode.kernels.run(stream, decode.call, decode.sizes, &portion);
}

std::string PreparedAttention::refusal(const AttentionArgs& args, AttentionSizes sizes) const {
    std::string text;
    const InWords refuse{text};
    if (check_sizes(attention_, args, sizes, refuse) != Status::ok) return text;
    if (nothing_in(attention_, args, sizes)) return {};
    if (check_numbers(attention_, args, sizes, refuse) != Status::ok) return text;
    if (!strides_fit(attention_, args, sizes))
        return "the strides of v are others than those of k; allowed in calls of up to 16 queries: the same";
    const Parts parts = parts_for(args, sizes);
    for (const Part* part : parts.all()) {
        if (part == nullptr) continue;
        text = part->kernels.refusal(part->call, part->sizes, decode_names);
        if (!text.empty()) break;
    }
    return text;
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
    // No call with a size of 0 launches anything, and plans divide by sizes.
    if (sizes.batch == 0 || sizes.q_len == 0 || sizes.kv_len == 0) return 0;
    std::int64_t most = 0;
    for (std::int64_t capacity = 1; const auto& part : decode_) {
        const AttentionSizes here{sizes.batch, std::min(sizes.q_len, capacity), sizes.kv_len};
        if (part != nullptr && sizes.q_len > capacity / 2)
            most = std::max(most, part->workspace_bytes(decode_sizes(here)));
        capacity *= 2;
    }
    if (is_decode(attention_, sizes.q_len)) return most;
    return most + round_up(prefill_->workspace_bytes(prefill_sizes(sizes)), workspace_alignment);
}

}  // namespace hone::runtime
