// Every family and every template source of this build. Generated: CMake finds the folders below
// kernel_templates/ that hold a family.cpp (folder `rmsnorm` defines `rmsnorm_family`) and embeds all .cu and
// .cuh files.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "kernel_templates/family.h"

namespace hone {

struct EmbeddedSource {
    std::string_view path;  ///< below kernel_templates/, "rmsnorm/group_rows.cu"
    std::string_view text;
    /// For a .cu: SHA-256 (32 hex digits) over itself, all headers it includes, and its launch plan with the
    /// family's host code that the plan includes; comments and white space do not count, nor does preference:
    /// tunables, constraints, predictions and fallbacks stand in other files. Two builds with the same hash
    /// launch the same kernel. Empty for .cuh.
    std::string_view hash;
    /// For a .cu: bytes of itself and all headers it includes, without comments. Templates with more of them
    /// take longer to compile.
    std::size_t device_bytes = 0;
};

[[nodiscard]] std::span<const Family* const> families();
[[nodiscard]] std::span<const EmbeddedSource> embedded_sources();

/// nullptr when there is none of that name.
[[nodiscard]] const Family* find_family(std::string_view name);
[[nodiscard]] const Variant* find_variant(const Family& family, std::string_view name);
[[nodiscard]] const EmbeddedSource* find_source(std::string_view path);

/// Hash of the variant's template; what a record must carry to be valid.
[[nodiscard]] std::string_view template_hash(const Variant& variant);

}  // namespace hone
