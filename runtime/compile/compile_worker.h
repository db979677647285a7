// The compile worker's loop: one request, one image. Runs in a process of its own, because NVRTC compiles
// hardly faster over threads and because a compile bomb has to be killable.
//   request  {source, constants, arch, build, nvrtc}
//   reply    {ok: true, registers, shared_bytes, spill_bytes} + cubin
//            {ok: false, refused, detail, log}: `refused` where the source is not to blame
#pragma once

#include "runtime/compile/compiler.h"
#include "runtime/workers/channel.h"

namespace hone::runtime {

/// Address space of a compile worker: a compile bomb ends with an error instead of taking the machine's
/// memory.
inline constexpr std::int64_t compile_memory_limit_bytes = std::int64_t{8} << 30;

/// What a compile worker calls for each request.
using CompileFunction = CompiledImage (*)(const Nvrtc&, const CompileRequest&);

/// Returns the process's exit code.
int serve_compiles(Channel& channel, CompileFunction compile_one = &compile);

/// The request as it travels, and back.
[[nodiscard]] nlohmann::json to_json(const CompileRequest& request);
[[nodiscard]] CompileRequest compile_request_from_json(const nlohmann::json& object);

/// What this build makes an image of, besides the request: equal in two builds that make the same of it.
[[nodiscard]] std::string build_text(const CompileRequest& request);

}  // namespace hone::runtime
