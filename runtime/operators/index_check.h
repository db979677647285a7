// RuntimeOptions::check_indices: what kernels are told through device memory, looked at on the host before a
// call. Slow: waits for the stream, allocates, copies. Never on the way of a call that did not ask for it.
#pragma once

#include "hone/attention.h"
#include "hone/embedding.h"
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

/// The same for ids and positions that have no row, which otherwise give zeros; asks `kernels` first whether
/// `call` is right otherwise.
[[nodiscard]] Status check_indices(const PreparedOperator& kernels, CUstream stream, const Call& call,
                                   const Embedding& embedding, const EmbeddingArgs& args,
                                   std::int64_t tokens) noexcept;

}  // namespace hone::runtime
