// What families count their work with.
#pragma once

#include <span>

#include "kernel_templates/family.h"

namespace hone {

/// Bytes of all arguments that a call has, but for the workspace: each once, as if caches were perfect.
[[nodiscard]] inline double bytes_of(std::span<const Argument> arguments) {
    double bytes = 0;
    for (const Argument& argument : arguments) {
        if (argument.role != Role::workspace) bytes += static_cast<double>(argument.bytes());
    }
    return bytes;
}

}  // namespace hone
