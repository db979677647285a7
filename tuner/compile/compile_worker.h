// The compile worker's loop: one request, one image. Runs in a process of its own, because NVRTC does not
// compile faster over threads and because a compile bomb has to be killable.
//   request  {source, constants, arch}
//   reply    {ok: true, registers, shared_bytes, spill_bytes} + cubin, or {ok: false, detail}
#pragma once

#include "tuner/worker/channel.h"
#include "tuner/worker/entry.h"

namespace hone::tuner {

/// Address space of a compile worker: a compile bomb ends with an error instead of taking the machine's
/// memory.
inline constexpr std::int64_t compile_memory_limit_bytes = std::int64_t{8} << 30;

/// Returns the process's exit code.
int serve_compiles(Channel& channel, CompileFunction compile);

/// The request as it travels, and back.
[[nodiscard]] nlohmann::json to_json(const runtime::CompileRequest& request);
[[nodiscard]] runtime::CompileRequest compile_request_from_json(const nlohmann::json& object);

}  // namespace hone::tuner
