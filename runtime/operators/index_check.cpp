#include "runtime/operators/index_check.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include "runtime/cuda/memory.h"
#include "runtime/cuda/stream.h"
#include "runtime/operators/attention_call.h"

namespace hone::runtime {
namespace {

using Indices = std::vector<std::int32_t>;

Indices read(const Driver& driver, const std::int32_t* indices, std::int64_t count) {
    const DeviceSpan<std::int32_t> span{reinterpret_cast<CUdeviceptr>(indices),
                                        static_cast<std::size_t>(count)};
    return download(driver, span);
}

bool all_within(const Indices& indices, std::int64_t least, std::int64_t most) {
    return std::ranges::all_of(indices, [&](std::int64_t index) { return index >= least && index <= most; });
}

/// `longest`: of a sequence; `tokens`: of all.
bool are_starts(const Indices& starts, std::int64_t longest, std::int64_t tokens) {
    if (starts.front() != 0 || starts.back() > tokens) return false;
    const auto wrong = [&](std::int64_t start, std::int64_t next) {
        return next < start || next - start > longest;
    };
    return std::ranges::adjacent_find(starts, wrong) == starts.end();
}

/// Positions [first, last) of one sequence that a call touches.
struct Touched {
    std::int64_t first = 0;
    std::int64_t last = 0;
};

struct PageTable {
    Indices entries;
    std::int64_t stride = 0;
    std::int64_t page_size = 0;
    std::int64_t pool_pages = 0;

    [[nodiscard]] bool has_room(std::size_t sequence, Touched touched) const {
        if (touched.first >= touched.last) return true;
        const std::int64_t begin = touched.first / page_size;
        const std::int64_t end = (touched.last - 1) / page_size + 1;
        if (end > stride) return false;
        const auto row = entries.begin() + static_cast<std::int64_t>(sequence) * stride;
        return std::all_of(row + begin, row + end,
                           [&](std::int64_t page) { return page >= 0 && page < pool_pages; });
    }
};

/// The page table of a call: attention and what appends have the same arguments for it.
template <class Args>
PageTable read_table(const Driver& driver, const Args& args, std::int64_t sequences, std::int64_t page_size,
                     std::int64_t kv_len) {
    const std::int64_t stride = page_table_stride(args.page_table_stride, page_size, kv_len);
    return {read(driver, args.page_table, sequences * stride), stride, page_size, args.pool_pages};
}

Status check_packed(const Driver& driver, const AttentionArgs& args, AttentionSizes sizes) {
    const bool right =
        are_starts(read(driver, args.q_starts, sizes.batch + 1), sizes.q_len, args.q_tokens) &&
        are_starts(read(driver, args.kv_starts, sizes.batch + 1), sizes.kv_len, args.kv_tokens);
    return right ? Status::ok : Status::bad_lengths;
}

/// Keys that some query of a sequence sees: pages before a window may have gone.
Touched seen_keys(std::int64_t window, std::int64_t q_len, std::int64_t length) {
    const std::int64_t first = window == 0 ? 0 : length - q_len + 1 - window;
    return {std::max<std::int64_t>(first, 0), length};
}

/// Whether sequences have as many queries as a host says that knows where prompts begin.
bool are_as_told(const Indices& starts, std::int64_t sequences, std::int64_t prompts) {
    const std::int64_t front = sequences - prompts;
    for (std::int64_t i = 0; prompts > 0 && front > 0 && i < sequences; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const std::int64_t queries = starts[at + 1] - starts[at];
        if (i < front ? queries > 1 : queries == 1) return false;
    }
    return true;
}

Status check_pages(const Driver& driver, const Attention& attention, const AttentionArgs& args,
                   AttentionSizes sizes, const Indices& lengths) {
    Indices starts;
    if (attention.packed) starts = read(driver, args.q_starts, sizes.batch + 1);
    if (attention.packed && !are_starts(starts, sizes.q_len, args.q_tokens)) return Status::bad_lengths;
    if (!are_as_told(starts, sizes.batch, args.prompts)) return Status::bad_lengths;
    const PageTable table = read_table(driver, args, sizes.batch, attention.page_size, sizes.kv_len);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        const std::int64_t queries = attention.packed ? starts[i + 1] - starts[i] : sizes.q_len;
        if (queries > 0 && !table.has_room(i, seen_keys(attention.window, queries, lengths[i])))
            return Status::bad_pages;
    }
    return Status::ok;
}

Status check_attention(const Driver& driver, const Attention& attention, const AttentionArgs& args,
                       AttentionSizes sizes) {
    if (packs_keys(attention)) return check_packed(driver, args, sizes);
    Indices lengths(static_cast<std::size_t>(sizes.batch), static_cast<std::int32_t>(sizes.kv_len));
    if (attention.lengths) lengths = read(driver, args.kv_lengths, sizes.batch);
    if (!all_within(lengths, 0, sizes.kv_len)) return Status::bad_lengths;
    if (attention.page_size == 0) return Status::ok;
    return check_pages(driver, attention, args, sizes, lengths);
}

std::int64_t last_position(const RopeKvAppend& rope, const RopeKvAppendArgs& args) {
    constexpr std::int64_t any = INT32_MAX;
    return rope.rotary_dim == 0 ? any : args.table_rows - 1;
}

Status check_slots(const Driver& driver, const RopeKvAppend& rope, const RopeKvAppendArgs& args,
                   std::int64_t tokens) {
    if (rope.rotary_dim != 0 &&
        !all_within(read(driver, args.positions, tokens), INT32_MIN, last_position(rope, args)))
        return Status::bad_lengths;
    const std::int64_t room = rope.page_size != 0 ? rope.page_size : args.kv_len;
    const bool inside = all_within(read(driver, args.slots, tokens), INT32_MIN, args.pool_pages * room - 1);
    return inside ? Status::ok : Status::bad_pages;
}

Status check_append(const Driver& driver, const RopeKvAppend& rope, const RopeKvAppendArgs& args,
                    std::int64_t tokens) {
    if (rope.slots) return check_slots(driver, rope, args, tokens);
    const std::int64_t sequences = tokens / args.q_len;
    const Indices lengths = read(driver, args.kv_lengths, sequences);
    if (!all_within(lengths, 0, std::min(args.kv_len, last_position(rope, args) + 1)))
        return Status::bad_lengths;
    if (rope.page_size == 0) return Status::ok;
    const PageTable table = read_table(driver, args, sequences, rope.page_size, args.kv_len);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        const std::int64_t length = lengths[i];
        if (!table.has_room(i, {std::max<std::int64_t>(length - args.q_len, 0), length}))
            return Status::bad_pages;
    }
    return Status::ok;
}

Status check_attention_append(const Driver& driver, const AttentionAppend& append,
                              const AttentionAppendArgs& args, AttentionAppendSizes sizes) {
    const Indices lengths = read(driver, args.kv_lengths, sizes.batch);
    if (!all_within(lengths, 0, sizes.kv_len)) return Status::bad_lengths;
    if (append.page_size == 0) return Status::ok;
    const PageTable table = read_table(driver, args, sizes.batch, append.page_size, sizes.kv_len);
    for (std::size_t i = 0; i < lengths.size(); ++i)
        if (!table.has_room(i, seen_keys(append.window, 1, lengths[i]))) return Status::bad_pages;
    return Status::ok;
}

/// Whether they are 0 to count - 1 in any order.
bool are_permuted(const Indices& indices) {
    std::vector<bool> seen(indices.size());
    return std::ranges::all_of(indices, [&](std::int64_t index) {
        if (index < 0 || index >= std::ssize(seen) || seen[static_cast<std::size_t>(index)]) return false;
        seen[static_cast<std::size_t>(index)] = true;
        return true;
    });
}

/// Of a layer of experts, whatever its weights are.
template <class Layer, class Args>
Status check_routing(const Driver& driver, const Layer& layer, const Args& args, std::int64_t tokens) {
    const std::int64_t places = tokens * layer.top_k;
    const Indices starts = read(driver, args.starts, layer.experts + 1);
    if (!are_starts(starts, places, places) || starts.back() != places) return Status::bad_lengths;
    if (!layer.gather && !layer.combine) return Status::ok;
    return are_permuted(read(driver, args.rows, places)) ? Status::ok : Status::bad_indices;
}

template <class Id>
bool all_have_rows(const Driver& driver, const RowIds& ids, std::int64_t count) {
    const DeviceSpan<Id> span{reinterpret_cast<CUdeviceptr>(ids.data), static_cast<std::size_t>(count)};
    return std::ranges::all_of(download(driver, span), [&](Id id) { return id >= 0 && id < ids.rows; });
}

bool have_rows(const Driver& driver, const RowIds& ids, std::int64_t count) {
    if (ids.data == nullptr) return true;
    return ids.is_wide ? all_have_rows<std::int64_t>(driver, ids, count)
                       : all_have_rows<std::int32_t>(driver, ids, count);
}

template <class Check>
Status on_the_host(const DeviceSession& session, CUstream stream, Check&& check_read) noexcept {
    try {
        const Driver& driver = session.driver();
        const CurrentContext context(driver, session.context());  // a thread may have none of its own yet
        if (is_capturing(driver, stream)) return Status::capturing;
        check(driver, driver.cuStreamSynchronize(stream), "stream");
        return check_read(driver);
    } catch (const std::exception&) {
        return Status::launch_failed;
    }
}

/// Of a call that has passed all other checks and has something to do.
template <class Check>
Status after_the_rest(const PreparedOperator& kernels, CUstream stream, const Call& call, std::int64_t count,
                      Check&& check_read) noexcept {
    const Status wrong = kernels.check(call, {count});
    if (wrong != Status::ok || count == 0) return wrong;
    return on_the_host(kernels.session(), stream, std::forward<Check>(check_read));
}

}  // namespace

Status check_indices(const DeviceSession& session, CUstream stream, const Attention& attention,
                     const AttentionArgs& args, AttentionSizes sizes) noexcept {
    return on_the_host(session, stream,
                       [&](const Driver& driver) { return check_attention(driver, attention, args, sizes); });
}

Status check_indices(const DeviceSession& session, CUstream stream, const RopeKvAppend& rope,
                     const RopeKvAppendArgs& args, std::int64_t tokens) noexcept {
    return on_the_host(session, stream,
                       [&](const Driver& driver) { return check_append(driver, rope, args, tokens); });
}

Status check_indices(const DeviceSession& session, CUstream stream, const AttentionAppend& append,
                     const AttentionAppendArgs& args, AttentionAppendSizes sizes) noexcept {
    return on_the_host(session, stream, [&](const Driver& driver) {
        return check_attention_append(driver, append, args, sizes);
    });
}

Status check_indices(const PreparedOperator& kernels, CUstream stream, const Call& call,
                     const ExpertLinear& layer, const ExpertLinearArgs& args, std::int64_t tokens) noexcept {
    return after_the_rest(kernels, stream, call, tokens,
                          [&](const Driver& driver) { return check_routing(driver, layer, args, tokens); });
}

Status check_indices(const PreparedOperator& kernels, CUstream stream, const Call& call,
                     const QuantizedExpertLinear& layer, const QuantizedExpertLinearArgs& args,
                     std::int64_t tokens) noexcept {
    return after_the_rest(kernels, stream, call, tokens,
                          [&](const Driver& driver) { return check_routing(driver, layer, args, tokens); });
}

Status check_rows(const PreparedOperator& kernels, CUstream stream, const Call& call, std::int64_t count,
                  std::span<const RowIds> tensors) noexcept {
    return after_the_rest(kernels, stream, call, count, [&](const Driver& driver) {
        const bool right =
            std::ranges::all_of(tensors, [&](const RowIds& ids) { return have_rows(driver, ids, count); });
        return right ? Status::ok : Status::bad_indices;
    });
}

}  // namespace hone::runtime
