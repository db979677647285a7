#include "runtime/operators/attention_append_prepared.h"

#include "runtime/operators/index_check.h"

namespace hone::runtime {
namespace {

/// What the family's own check does not know.
template <class Refuse>
Status check_call(const AttentionAppend& append, const AttentionAppendArgs& args,
                  const AttentionAppendSizes& sizes, Refuse refuse) {
    if (sizes.batch < 0 || sizes.batch > append.max_batch)
        return refuse(Status::bad_rows, "batch", sizes.batch, "0 to {}", append.max_batch);
    if (sizes.batch == 0) return Status::ok;
    if (sizes.kv_len < 1 || sizes.kv_len > append.max_kv_len)
        return refuse(Status::bad_rows, "kv_len", sizes.kv_len, "1 to {}", append.max_kv_len);
    if (append.rotary_dim != 0 && args.table_rows < sizes.kv_len)
        return refuse(Status::bad_rows, "table_rows", args.table_rows, "from kv_len, {}", sizes.kv_len);
    if (!std::isfinite(args.scale)) return refuse(Status::bad_scale, "scale", args.scale, "finite numbers");
    if (append.softcap && !(args.softcap > 0 && std::isfinite(args.softcap)))
        return refuse(Status::bad_scale, "softcap", args.softcap, "finite numbers above 0");
    if (append.page_size != 0 && args.pool_pages < 1)
        return refuse(Status::bad_pages, "pool_pages", args.pool_pages, "from 1");
    if (append.page_size != 0 && args.page_table_stride < 0)
        return refuse(Status::bad_pages, "page_table_stride", args.page_table_stride, "from 0");
    return Status::ok;
}

}  // namespace

AttentionAppend filled_in(AttentionAppend append) {
    if (append.kv_heads == 0) append.kv_heads = append.heads;
    if (append.rotary_dim == -1) append.rotary_dim = append.head_dim;
    return append;
}

PreparedAttentionAppend::PreparedAttentionAppend(const Maker& maker, const AttentionAppend& description)
    : append_(filled_in(description)),
      kernels_(maker.dispatcher.prepare(attention_append_problem(append_))),
      checking_(maker.checking) {}

Explanation PreparedAttentionAppend::explain(const Dispatcher& dispatcher, const AttentionAppend& description,
                                             AttentionAppendSizes sizes) {
    return dispatcher.explain(attention_append_problem(filled_in(description)),
                              attention_append_sizes(sizes));
}

Status PreparedAttentionAppend::run(CUstream stream, const AttentionAppendArgs& args,
                                    AttentionAppendSizes sizes) const noexcept {
    if (const Status wrong = check_call(append_, args, sizes, JustStatus{}); wrong != Status::ok)
        return wrong;
    if (sizes.batch == 0) return Status::ok;
    const Call call = attention_append_call(append_, args, sizes);
    const Sizes of_call = attention_append_sizes(sizes);
    if (checking_ != nullptr) {
        if (const Status wrong = kernels_->check(call, of_call); wrong != Status::ok) return wrong;
        const Status wrong = check_indices(*checking_, stream, append_, args, sizes);
        if (wrong != Status::ok) return wrong;
    }
    return kernels_->run(stream, call, of_call);
}

std::string PreparedAttentionAppend::refusal(const AttentionAppendArgs& args,
                                             AttentionAppendSizes sizes) const {
    std::string text;
    if (check_call(append_, args, sizes, InWords{text}) != Status::ok || sizes.batch == 0) return text;
    return kernels_->refusal(attention_append_call(append_, args, sizes), attention_append_sizes(sizes),
                             attention_append_names);
}

}  // namespace hone::runtime
