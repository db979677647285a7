// RuntimeOptions::check_indices: what kernels are told through device memory, looked at on the host before a
// call. Slow: waits for the stream, allocates, copies. Never on the way of a call that did not ask for it.
#pragma once

#include <cstdint>
#include <span>

#include "hone/attention.h"
#include "hone/attention_append.h"
#include "hone/expert_linear.h"
#include "hone/quantized_expert_linear.h"
#include "hone/rope_kv_append.h"
#include "runtime/cuda/device_session.h"
#include "runtime/dispatch/prepared_operator.h"

namespace hone::runtime {

/// For calls that are right otherwise, with descriptions filled in. `capturing` under stream capture;
/// launch_failed when the driver does not hand out the indices.
[[nodiscard]] Status check_indices(const DeviceSession& session, CUstream stream, const Attention& attention,
                                   const AttentionArgs& args, AttentionSizes sizes) noexcept;
[[nodiscard]] Status check_indices(const DeviceSession& session, CUstream stream, const RopeKvAppend& rope,
                                   const RopeKvAppendArgs& args, std::int64_t tokens) noexcept;
[[nodiscard]] Status check_indices(const DeviceSession& session, CUstream stream,
                                   const AttentionAppend& append, const AttentionAppendArgs& args,
                                   AttentionAppendSizes sizes) noexcept;

/// After `kernels` has said whether `call` is right otherwise: bad_lengths for starts that do not rise from 0
/// to all places, bad_indices for rows that are not each place once.
[[nodiscard]] Status check_indices(const PreparedOperator& kernels, CUstream stream, const Call& call,
                                   const ExpertLinear& layer, const ExpertLinearArgs& args,
                                   std::int64_t tokens) noexcept;
[[nodiscard]] Status check_indices(const PreparedOperator& kernels, CUstream stream, const Call& call,
                                   const QuantizedExpertLinear& layer, const QuantizedExpertLinearArgs& args,
                                   std::int64_t tokens) noexcept;

/// Ids of the rows of a table, on the device.
struct RowIds {
    const void* data = nullptr;  ///< nullptr: the operator has none
    bool is_wide = false;        ///< int64, else int32
    std::int64_t rows = 0;       ///< rows of the table
};

/// Whether the `count` ids of each tensor have a row, after `kernels` has said whether `call` is right
/// otherwise. bad_indices where one has none; the rest as above.
[[nodiscard]] Status check_rows(const PreparedOperator& kernels, CUstream stream, const Call& call,
                                std::int64_t count, std::span<const RowIds> tensors) noexcept;

}  // namespace hone::runtime
