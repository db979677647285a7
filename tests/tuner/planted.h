// A family that exists in tests alone: y = 2 x, with one good variant and one for each thing a kernel must
// not do. Its sources are texts of this program, which only its own compile workers know; no catalog holds
// them.
#pragma once

#include "runtime/compile/compiler.h"

namespace hone::test {

[[nodiscard]] const Family& planted_family();
/// "good", "fault", "fault_at_seventh", "endless", "out_of_bounds", "wrong", "compile_bomb", ...
[[nodiscard]] Candidate planted(std::string_view variant);
/// A problem with only these variants in its space. The family is static and lives for the whole program.
[[nodiscard]] Problem planted_problem(std::int64_t rows);

/// runtime::compile for everything but sources below "planted/".
[[nodiscard]] runtime::CompiledImage compile_planted(const runtime::Nvrtc& nvrtc,
                                                     const runtime::CompileRequest& request);

}  // namespace hone::test
