#include "cli/declarations.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/value_types.h"
#include "kernel_templates/names.h"
#include "kernel_templates/text.h"
#include "tuner/models/known_models.h"

namespace hone::cli {
namespace {

/// Values of a type by its name; "a|b|c" names them itself.
std::vector<std::string> values_of(const std::string& type) {
    std::vector<std::string> values;
    if (type == operator_type) {
        for (const OperatorName& one : operator_names()) values.emplace_back(one.title);
    } else if (type == model_type) {
        values = tuner::known_models();
    } else if (type.find('|') != std::string::npos) {
        for (std::size_t at = 0; at <= type.size(); at = std::min(type.find('|', at), type.size()) + 1)
            values.push_back(type.substr(at, std::min(type.find('|', at), type.size()) - at));
    }
    return values;
}

DeclaredOption read_option(const CLI::Option& option) {
    DeclaredOption read{.names = {}, .says = option.get_description(), .is_required = option.get_required()};
    for (const std::string& name : option.get_lnames()) read.names.push_back("--" + name);
    for (const std::string& name : option.get_snames()) read.names.push_back("-" + name);
    if (option.get_positional()) read.names = {option.get_name()};
    if (option.get_items_expected_max() == 0) return read;
    const std::string type = option.get_type_name();
    // What a validator adds stands behind; a positional option without a type is of the type it is named
    // after.
    read.type = type.empty() ? option.get_name() : type.substr(0, type.find(':'));
    read.values = values_of(read.type);
    read.takes_file = read.type == file_type || read.type == model_type;
    return read;
}

DeclaredCommand read_command(const CLI::App& app) {
    DeclaredCommand command{
        .name = app.get_name(), .says = app.get_description(), .examples = app.get_footer()};
    for (const CLI::Option* option : app.get_options()) {
        (option->get_positional() ? command.positionals : command.options).push_back(read_option(*option));
    }
    for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; }))
        command.commands.push_back(read_command(*below));
    return command;
}

}  // namespace

void add_command(CLI::App& app, const Command& command, bool& json,
                 const std::function<void(Runner)>& parsed) {
    CLI::App* sub = app.add_subcommand(std::string(command.name), std::string(command.summary));
    sub->footer(std::string(command.examples));
    sub->add_flag("--json", json, "One JSON object on stdout, also for errors");
    sub->parse_complete_callback([parsed, run = command.declare(Arguments(*sub))] { parsed(run); });
}

DeclaredCommand declared_program() {
    CLI::App app("Finds, proves and remembers the fastest CUDA kernels for this GPU.", "hone");
    bool json = false;
    for (const Command& command : commands()) add_command(app, command, json, [](const Runner&) {});
    return read_command(app);
}

}  // namespace hone::cli
