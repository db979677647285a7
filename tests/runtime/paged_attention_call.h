// A call of attention over packed queries and pages, for tests on the GPU: its index tensors and workspace on
// the device, and its arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hone/attention.h"
#include "tests/runtime/device_indices.h"
#include "tests/runtime/gpu_run.h"

namespace hone::test {

using DeviceBytes = runtime::DeviceBuffer<std::byte>;

[[nodiscard]] inline DeviceBytes on_device(const std::vector<std::byte>& bytes) {
    DeviceBytes buffer(*Bench::get().driver, bytes.size());
    runtime::upload(*Bench::get().driver, buffer.span(), bytes);
    return buffer;
}

class PagedAttentionCall {
  public:
    /// What the index tensors have first; a replayed graph finds what has been copied into them since.
    struct Indices {
        std::vector<std::int32_t> q_starts;
        std::vector<std::int32_t> kv_lengths;
        std::vector<std::int32_t> page_table;  ///< as many entries for each sequence
    };

    PagedAttentionCall(const AttentionKernel& attention, const AttentionSizes& sizes, const Indices& first,
                       std::int64_t pool_pages)
        : q_starts(*Bench::get().driver, first.q_starts),
          kv_lengths(*Bench::get().driver, first.kv_lengths),
          page_table_(*Bench::get().driver, first.page_table),
          workspace_(*Bench::get().driver, static_cast<std::size_t>(attention.workspace_bytes(sizes))),
          table_stride_(std::ssize(first.page_table) / sizes.batch),
          pool_pages_(pool_pages) {}

    [[nodiscard]] AttentionArgs args(const DeviceBytes& q, const DeviceBytes& k, const DeviceBytes& v,
                                     const DeviceBytes& out, std::int64_t q_tokens) const {
        return {.q = q.data(),
                .k = k.data(),
                .v = v.data(),
                .out = out.data(),
                .kv_lengths = kv_lengths.data(),
                .q_starts = q_starts.data(),
                .page_table = page_table_.data(),
                .workspace = workspace_.data(),
                .page_table_stride = table_stride_,
                .pool_pages = pool_pages_,
                .q_tokens = q_tokens};
    }

    DeviceIndices<> q_starts;
    DeviceIndices<> kv_lengths;

  private:
    DeviceIndices<> page_table_;
    DeviceBytes workspace_;
    std::int64_t table_stride_;
    std::int64_t pool_pages_;
};

}  // namespace hone::test
