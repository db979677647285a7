// Turns a candidate into a cubin with NVRTC, in this process. Compile workers call it (compile_worker.h), and
// prepare() for what is not worth one. Thread-safe: each call has a program of its own; but NVRTC hardly
// scales over threads.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cache/cache.h"
#include "kernel_templates/family.h"
#include "runtime/nvrtc/nvrtc.h"

namespace hone::runtime {

/// One translation unit: a template's path, its generated constants, and the target.
struct CompileRequest {
    std::string source;     ///< path below kernel_templates/, "rmsnorm/group_rows.cu"
    std::string constants;  ///< text of hone_constants.h; may be empty
    Arch arch;
};

struct CompiledImage {
    std::vector<std::byte> cubin;
    cache::Resources resources;  ///< maximum over the kernels of the image, read from the ptxas report
    std::string log;
};

/// The options every image is compiled with, for the given target, joined by blanks; part of an image's key.
[[nodiscard]] std::string compile_options(Arch arch);

/// Throws NvrtcError carrying the compiler's log.
[[nodiscard]] CompiledImage compile(const Nvrtc& nvrtc, const CompileRequest& request);

/// Requests and image keys for the things that get compiled.
[[nodiscard]] CompileRequest candidate_request(const Problem&, const Candidate&, Arch);
[[nodiscard]] CompileRequest reference_request(const Problem&, Arch);
[[nodiscard]] cache::ImageKey candidate_image_key(const Problem&, const Candidate&, Arch,
                                                  const std::string& nvrtc_version);
[[nodiscard]] cache::ImageKey reference_image_key(const Problem&, Arch, const std::string& nvrtc_version);

/// The key as one text, another one for another key.
[[nodiscard]] std::string key_text(const cache::ImageKey& key);

/// Registers, spills and static shared memory from `--ptxas-options=-v` output; dynamic shared memory is the
/// plan's.
[[nodiscard]] cache::Resources parse_ptxas_report(const std::string& log);

}  // namespace hone::runtime
