// The text NVRTC compiles: a template, the device headers, and one header generated in memory that carries
// the problem's static fields and the config as constexpr members.
#pragma once

#include <string>

#include "kernel_templates/family.h"

namespace hone {

/// Name under which a template includes the generated header: #include "hone_constants.h"
inline constexpr std::string_view constants_header_name = "hone_constants.h";

/// `struct Shape { static constexpr long long hidden = 4096; ... };` with the static fields (choices as their
/// index), and `struct Tuned { static constexpr int threads = 256; ... };` with the tunables.
[[nodiscard]] std::string render_constants(const Problem&, const Candidate&);
/// The same for a reference kernel: Shape only.
[[nodiscard]] std::string render_constants(const Problem&);

}  // namespace hone
