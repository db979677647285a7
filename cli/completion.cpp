#include "cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace hone::cli {
namespace {

/// The command's options with those of the commands below it.
std::vector<DeclaredOption> all_options(const DeclaredCommand& command) {
    std::vector<DeclaredOption> options = command.options;
    for (const DeclaredCommand& below : command.commands) {
        for (const DeclaredOption& option : below.options) {
            if (option.names.front() != "--help") options.push_back(option);
        }
    }
    return options;
}

/// What may stand where no option does.
std::vector<std::string> positional_words(const DeclaredCommand& command) {
    std::vector<std::string> words;
    for (const DeclaredCommand& below : command.commands) words.push_back(below.name);
    for (const DeclaredOption& option : command.positionals)
        words.insert(words.end(), option.values.begin(), option.values.end());
    return words;
}

bool takes_files(const DeclaredCommand& command) {
    return std::ranges::any_of(command.positionals, &DeclaredOption::takes_file);
}

/// For single quotes in all three shells, where "'\''" is a quote.
std::string quoted(const std::string& text) {
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + '\'';
}

/// The first clause of what an option says: completion shows one line.
std::string short_words(const std::string& says) {
    return says.substr(0, std::min({says.find(": "), says.find("; "), says.find(" ("), says.size()}));
}

std::string bash_values(const DeclaredCommand& command) {
    std::string text;
    for (const DeclaredOption& option : all_options(command)) {
        if (!option.takes_value()) continue;
        std::vector<std::string> patterns;
        for (const std::string& name : option.names) patterns.push_back(command.name + ',' + name);
        text += fmt::format("        {}) words={} files={} ;;\n", fmt::join(patterns, "|"),
                            quoted(fmt::format("{}", fmt::join(option.values, " "))),
                            option.takes_file ? "yes" : "no");
    }
    return text;
}

std::string bash_words(const DeclaredCommand& command) {
    std::vector<std::string> options;
    for (const DeclaredOption& option : all_options(command))
        options.insert(options.end(), option.names.begin(), option.names.end());
    return fmt::format("        {},-*) words={} ;;\n        {},*) words={} files={} ;;\n", command.name,
                       quoted(fmt::format("{}", fmt::join(options, " "))), command.name,
                       quoted(fmt::format("{}", fmt::join(positional_words(command), " "))),
                       takes_files(command) ? "yes" : "no");
}

std::string zsh_option(const DeclaredOption& option) {
    std::string says;
    for (const char c : short_words(option.says)) says += c == '[' || c == ']' ? '|' : c;
    std::string value;
    if (option.takes_value()) {
        value = fmt::format(":{}:", option.names.front());
        if (!option.values.empty() && option.takes_file)
            value += fmt::format("{{compadd -- {}; _files}}", fmt::join(option.values, " "));
        else if (option.takes_file)
            value += "_files";
        else if (!option.values.empty())
            value += fmt::format("({})", fmt::join(option.values, " "));
        else
            value += " ";
    }
    std::string text;
    for (const std::string& name : option.names) {
        const bool is_long = name.starts_with("--");
        text +=
            " \\\n            " +
            quoted(fmt::format("{}{}[{}]{}", name, option.takes_value() && is_long ? "=" : "", says, value));
    }
    return text;
}

std::string zsh_positionals(const DeclaredCommand& command) {
    const std::vector<std::string> words = positional_words(command);
    if (words.empty() && !takes_files(command)) return {};
    std::string action;
    if (!words.empty()) action += fmt::format("compadd -- {}", fmt::join(words, " "));
    if (takes_files(command)) action += action.empty() ? "_files" : "; _files";
    return " \\\n            " + quoted("*:word:{" + action + "}");
}

std::string fish_option(const std::string& command, const DeclaredOption& option) {
    std::string line =
        fmt::format("complete -c hone -n {}", quoted("__fish_seen_subcommand_from " + command));
    for (const std::string& name : option.names)
        line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (option.takes_value()) line += option.takes_file ? " -r -F" : " -x";
    if (!option.values.empty()) line += " -a " + quoted(fmt::format("{}", fmt::join(option.values, " ")));
    return line + " -d " + quoted(short_words(option.says)) + '\n';
}

}  // namespace

std::string bash_completion(const DeclaredCommand& program) {
    std::string values;
    std::string words;
    std::vector<std::string> names;
    for (const DeclaredCommand& command : program.commands) {
        names.push_back(command.name);
        values += bash_values(command);
        words += bash_words(command);
    }
    return fmt::format(R"(# Completion of hone for bash; made by `hone completion bash`.
_hone() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} command= words= files=no i
    # --effort=qu comes as three words.
    [[ $before == = ]] && before=${{COMP_WORDS[COMP_CWORD - 2]}}
    [[ $current == = ]] && current=
    for ((i = 1; i < COMP_CWORD; ++i)); do
        [[ ${{COMP_WORDS[i]}} == -* ]] || {{ command=${{COMP_WORDS[i]}} && break; }}
    done
    case $command,$before in
{}        *)
        case $command,$current in
        ,-*) words='--help --version --json' ;;
        ,*) words='{}' ;;
{}        esac ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    [[ $files == yes ]] || return 0
    mapfile -t -O ${{#COMPREPLY[@]}} COMPREPLY < <(compgen -f -- "$current")
    compopt -o filenames 2>/dev/null || true  # bash quotes what they have, and puts a slash behind folders
}}
complete -F _hone hone
)",
                       values, fmt::join(names, " "), words);
}

std::string zsh_completion(const DeclaredCommand& program) {
    std::string commands;
    std::string cases;
    for (const DeclaredCommand& command : program.commands) {
        commands += fmt::format("        {}\n", quoted(command.name + ":" + short_words(command.says)));
        cases += fmt::format("    {})\n        _arguments", command.name);
        for (const DeclaredOption& option : all_options(command)) cases += zsh_option(option);
        cases += zsh_positionals(command) + " ;;\n";
    }
    return fmt::format(R"(#compdef hone
# Completion of hone for zsh; made by `hone completion zsh`.
_hone() {{
    local context state state_descr line
    typeset -A opt_args
    local -a commands
    commands=(
{})
    _arguments -C '--help[Show what there is]' '--version[Print the version]' \
        '--json[One JSON object on stdout]' '1:command:->command' '*::argument:->argument'
    case $state in
    command) _describe command commands && return ;;
    esac
    case $words[1] in
{}    esac
}}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _hone "$@"; else compdef _hone hone; fi
)",
                       commands, cases);
}

std::string fish_completion(const DeclaredCommand& program) {
    std::string text =
        "# Completion of hone for fish; made by `hone completion fish`.\ncomplete -c hone -f\n"
        "complete -c hone -n __fish_use_subcommand -l version -d 'Print the version'\n";
    for (const DeclaredCommand& command : program.commands) {
        text += fmt::format("complete -c hone -n __fish_use_subcommand -a {} -d {}\n", command.name,
                            quoted(short_words(command.says)));
        for (const DeclaredOption& option : all_options(command)) text += fish_option(command.name, option);
        const std::vector<std::string> words = positional_words(command);
        if (words.empty() && !takes_files(command)) continue;
        text += fmt::format("complete -c hone -n {}", quoted("__fish_seen_subcommand_from " + command.name));
        if (takes_files(command)) text += " -F";
        if (!words.empty()) text += " -a " + quoted(fmt::format("{}", fmt::join(words, " ")));
        text += '\n';
    }
    return text;
}

}  // namespace hone::cli
