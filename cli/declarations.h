// The commands as they are declared, read back as data: what completion and the man page are made from.
// Nothing here is said a second time.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace hone::cli {

struct DeclaredOption {
    std::vector<std::string> names;  ///< "--output", "-o"; of a positional one its name, "MODEL"
    std::string says;
    std::string type;                 ///< of its value: "FILE", "quick|standard"; empty: a flag
    std::vector<std::string> values;  ///< that it takes, where they are known
    bool takes_file = false;
    bool is_required = false;

    [[nodiscard]] bool takes_value() const { return !type.empty(); }
};

struct DeclaredCommand {
    std::string name;
    std::string says;
    std::string examples;
    std::vector<DeclaredOption> positionals;
    std::vector<DeclaredOption> options;
    std::vector<DeclaredCommand> commands;
};

/// Adds a command to the program, with --json; parsing it leaves what runs in `run`. `json` must outlive it.
void add_command(CLI::App& app, const Command& command, bool& json,
                 const std::function<void(Runner)>& parsed);

/// hone itself, with every command.
[[nodiscard]] DeclaredCommand declared_program();

}  // namespace hone::cli
