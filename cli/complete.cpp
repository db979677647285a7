// hone completion SHELL and hone manual: what shells and man are told of the commands, for package makers.
#include <array>
#include <memory>

#include "cli/command_list.h"
#include "cli/completion.h"
#include "cli/man_page.h"
#include "cli/targets.h"
#include "cli/value_types.h"

namespace hone::cli {
namespace {

constexpr std::array<std::string_view, 3> shells{"bash", "zsh", "fish"};

Outcome completion(const std::string& shell) {
    constexpr std::array scripts{bash_completion, zsh_completion, fish_completion};
    const std::string script = scripts[chosen("SHELL", shell, shells)](declared_program());
    return {.data = {{"shell", shell}, {"script", script}}, .text = script};
}

Outcome manual() {
    const std::string page = man_page(declared_program());
    return {.data = {{"page", page}}, .text = page};
}

}  // namespace

Runner declare_completion(const Arguments& app) {
    const auto shell = std::make_shared<std::string>();
    app.add_option("SHELL", *shell, "bash, zsh or fish").required().type_name(one_of(shells));
    return [shell](const Console&) { return completion(*shell); };
}

Runner declare_manual(const Arguments&) {
    return [](const Console&) { return manual(); };
}

}  // namespace hone::cli
