#include "cli/value_types.h"

#include "kernel_templates/device_traits.h"
#include "kernel_templates/text.h"

namespace hone::cli {

std::string one_of(std::span<const std::string_view> names) { return join(names, "|"); }

std::string arch_type() {
    std::string text;
    for (const Arch& arch : supported_archs()) text += (text.empty() ? "" : "|") + to_string(arch);
    return text;
}

}  // namespace hone::cli
