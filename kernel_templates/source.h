// The text NVRTC compiles: a template, the device headers, and one header generated in memory that carries
// the problem's static fields and the config as constexpr members, and what the kernels take.
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
///       the whole call (Family::call_args), pointers typed by the problem's dtypes
///   namespace hone::arguments { struct <kernel> { ... }; }
///       for each kernel that does not take the whole call
///   HONE_PARAMETERS(<kernel>), HONE_ARGUMENTS(<kernel>)
///       the kernel's parameters one by one, tensor maps as `const __grid_constant__`, in the order that the
///       launcher fills in; and the struct made of them. What a kernel takes beyond the whole call stands
///       beside the struct, by name.
///
/// Parameters and not a struct's members: the compiler orders what it computes by whether an operand is a
/// parameter or was read, and a struct would have changed the machine code of every fifth measured winner.
[[nodiscard]] std::string render_constants(const Problem&, const Candidate&);
/// The same for the reference kernels: no Tuned, and outputs are float.
[[nodiscard]] std::string render_constants(const Problem&);

}  // namespace hone
