// The text NVRTC compiles: a template, the device headers, and one header generated in memory that carries
// the problem's static fields and the config as constexpr members, and the structs that the kernels take.
#pragma once

#include <string>

#include "kernel_templates/family.h"

namespace hone {

/// Name under which a template includes the generated header: #include "hone_constants.h"
inline constexpr std::string_view constants_header_name = "hone_constants.h";

/// `struct Shape { static constexpr long long hidden = 4096; ... };` with the static fields (choices as their
/// index), `struct Tuned { ... };` with the tunables, and:
///
///   namespace hone::<family> { struct Arguments { const bf16* x; ...; long long rows; float epsilon; }; }
///       the whole call (Family::call_args), pointers typed by the problem's dtypes; and held(), a copy of
///       one whose members are read where it is made, each by itself, as parameters of their own would be
///   namespace hone::arguments { struct <kernel> { ... }; }
///       for each kernel that takes something else; derived from Arguments where it begins with the call
///
/// A kernel takes its struct as `const __grid_constant__`; the launcher fills it in the same order.
[[nodiscard]] std::string render_constants(const Problem&, const Candidate&);
/// The same for the reference kernels: no Tuned, and outputs are float.
[[nodiscard]] std::string render_constants(const Problem&);

}  // namespace hone
