#include "cli/cli.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <new>
#include <span>

#include "cli/command.h"
#include "cli/declarations.h"
#include "cli/errors.h"
#include "kernel_templates/text.h"
#include "runtime/system/out_of_memory.h"
#include "runtime/system/short_text.h"
#include "tuner/report/report_text.h"

namespace hone::cli {
namespace {

constexpr std::string_view top_examples =
    "  hone tune llama-3-8b                  tune every operator of a model on this GPU\n"
    "  hone list                             what is known, and for which GPU\n"
    "  hone explain rmsnorm dtype=bf16 hidden=4096 rows=16\n"
    "  hone export -o h100.json              take the winners to another machine\n"
    "  hone doctor                           what is missing here\n";

/// The examples are an app's footer, shown before everything else.
class ExamplesFirst : public CLI::Formatter {
  public:
    std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
        const std::string examples = app->get_footer();
        const std::string rest = CLI::Formatter::make_help(app, std::move(name), mode);
        return (examples.empty() ? "" : "Examples:\n" + examples + "\n") + rest;
    }
    std::string make_footer(const CLI::App*) const override { return {}; }
};

struct Parsed {
    std::string command = "hone";  ///< for the schema
    Runner run;
};

std::vector<std::string_view> command_names() {
    std::vector<std::string_view> names;
    for (const Command& command : commands()) names.push_back(command.name);
    return names;
}

/// The options of this command and of the chosen ones below it.
std::vector<std::string> option_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::App* below : app.get_subcommands()) names = option_names(*below);
    for (const CLI::Option* option : app.get_options()) {
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    return names;
}

/// CLI11 says that an argument was not expected; this says what may have been meant.
Outcome describe_usage_error(const CLI::App& app, const CLI::ParseError& error,
                             std::span<char* const> arguments) {
    const std::vector<CLI::App*> chosen = app.get_subcommands();
    const CLI::App& where = chosen.empty() ? app : *chosen.front();
    const std::string hint = chosen.empty() ? "hone --help" : fmt::format("hone {} --help", where.get_name());
    if (chosen.empty() && arguments.empty()) return usage_error("no_command", "no command given", hint);
    if (chosen.empty() && arguments.front()[0] != '-') {
        const std::vector<std::string_view> names = command_names();
        const std::string_view word = arguments.front();
        return usage_error("unknown_command",
                           fmt::format("no command '{}'{}", word, did_you_mean(word, names)), hint);
    }
    const std::vector<std::string> options = option_names(where);
    const std::vector<std::string_view> names(options.begin(), options.end());
    for (const char* argument : arguments) {
        const std::string_view name =
            std::string_view(argument).substr(0, std::string_view(argument).find('='));
        if (!name.starts_with("--") || std::find(names.begin(), names.end(), name) != names.end()) continue;
        return usage_error("unknown_option", fmt::format("no option '{}'{}", name, did_you_mean(name, names)),
                           hint);
    }
    const bool of_flag = dynamic_cast<const CLI::ConversionError*>(&error) != nullptr;  // numbers have checks
    return usage_error(
        "usage",
        of_flag ? fmt::format("{}; a flag takes true, false or nothing", error.what()) : error.what(), hint);
}

/// The controls that JSON lets stand between quotes, DEL and C1, as \u00NN: a terminal obeys them there, too.
std::string escape_high_controls(std::string_view json) {
    std::string text;
    text.reserve(json.size());
    for (std::size_t i = 0; i < json.size(); ++i) {
        const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(json[at]); };
        const bool is_c1 = byte(i) == 0xC2 && i + 1 < json.size() && byte(i + 1) < 0xA0;
        if (is_c1 || byte(i) == 0x7F) {
            if (is_c1) ++i;
            text += fmt::format("\\u{:04x}", byte(i));
        } else {
            text += json[i];
        }
    }
    return text;
}

std::string envelope(const std::string& command, const Outcome& outcome) {
    Json json{{"schema", fmt::format("hone.{}/1", command)}, {"ok", outcome.exit == ExitCode::ok}};
    if (!outcome.data.is_null()) json["data"] = outcome.data;
    if (outcome.error) {
        json["error"] = {{"code", outcome.error->code},
                         {"message", outcome.error->message},
                         {"hint", outcome.error->hint}};
    }
    return escape_high_controls(json.dump(2, ' ', false, Json::error_handler_t::replace)) + '\n';
}

/// Errors quote what they were given, however long that was. A command that is to be pasted stays whole.
Outcome with_short_error(Outcome outcome) {
    constexpr std::size_t longest_command = 2000;
    if (!outcome.error) return outcome;
    outcome.error->message = runtime::with_short_words(outcome.error->message);
    if (outcome.error->hint.size() > longest_command)
        outcome.error->hint = runtime::with_short_words(outcome.error->hint);
    return outcome;
}

/// Prints; a failure has a line on stderr, but where the reader has gone: it does not want more.
bool print_all(std::string_view text, const Console& console) {
    if (print(text)) return true;
    if (errno != EPIPE) console.note("error: " + why_not_printed());
    return false;
}

}  // namespace

int present(const std::string& command, Outcome given, const Console& console) {
    const Outcome outcome = with_short_error(std::move(given));
    const bool printed = print_all(console.json ? envelope(command, outcome) : outcome.text, console);
    if (outcome.error && !console.json) {
        console.note(fmt::format("{}: {}", outcome.exit == ExitCode::usage ? "usage error" : "error",
                                 outcome.error->message));
        if (!outcome.error->hint.empty()) console.hint("  hint: " + outcome.error->hint);
    }
    if (!printed && outcome.exit == ExitCode::ok) return static_cast<int>(ExitCode::failure);
    return static_cast<int>(outcome.exit);
}

namespace {

int show_help(const std::string& text, const Console& console) {
    return print_all(text, console) ? static_cast<int>(ExitCode::ok) : static_cast<int>(ExitCode::failure);
}

Outcome version_outcome() {
    return {.data = {{"version", HONE_VERSION}}, .text = fmt::format("hone {}\n", HONE_VERSION)};
}

/// Adds every command to `app`; the one that is parsed leaves its name and runner in `parsed`.
void declare_commands(CLI::App& app, bool& json, Parsed& parsed) {
    app.add_flag("--json", json, "One JSON object on stdout, also for errors");
    app.add_flag_callback(
        "--version",
        [&parsed] {
            parsed = {"version", [](const Console&) { return version_outcome(); }};
        },
        "Print the version");
    for (const Command& command : commands()) {
        add_command(app, command, json, [&parsed, name = command.name](Runner run) {
            parsed = {std::string(name), std::move(run)};
        });
    }
}

/// As CLI11 wants them: the last one first. After "--op=" it would take the next argument for the value.
std::vector<std::string> words_from_last(std::span<char* const> arguments) {
    constexpr std::string_view letters_of_options = "abcdefghijklmnopqrstuvwxyz-";
    std::vector<std::string> words;
    for (const std::string_view argument : arguments) {
        const bool is_empty_option =
            argument.size() > 3 && argument.starts_with("--") && argument.find('=') == argument.size() - 1 &&
            argument.substr(2, argument.size() - 3).find_first_not_of(letters_of_options) ==
                std::string_view::npos;
        words.emplace_back(argument.substr(0, argument.size() - (is_empty_option ? 1 : 0)));
        if (is_empty_option) words.emplace_back();
    }
    std::ranges::reverse(words);
    return words;
}

int parse_and_run(std::span<char* const> arguments, const Console& console) {
    CLI::App app("Finds, proves and remembers the fastest CUDA kernels for this GPU.", "hone");
    app.formatter(std::make_shared<ExamplesFirst>());
    app.footer(std::string(top_examples));
    bool json = false;
    Parsed parsed;
    declare_commands(app, json, parsed);
    try {
        app.parse(words_from_last(arguments));
        if (!parsed.run) throw CLI::RequiredError("A command");
    } catch (const CLI::CallForHelp&) {
        const auto chosen = app.get_subcommands();
        return show_help(chosen.empty() ? app.help() : chosen.front()->help("hone"), console);
    } catch (const CLI::ParseError& error) {
        const auto chosen = app.get_subcommands();
        return present(chosen.empty() ? "hone" : chosen.front()->get_name(),
                       describe_usage_error(app, error, arguments), console);
    }
    Outcome outcome;
    try {
        outcome = parsed.run(console);
    } catch (...) {
        outcome = outcome_of(std::current_exception());
    }
    return present(parsed.command, std::move(outcome), console);
}

}  // namespace

int run(int argc, char** argv) {
    // A dead worker's or reader's pipe is an error to report, not the end of this process.
    std::signal(SIGPIPE, SIG_IGN);
    const std::span<char* const> arguments(argv + 1, argv + std::max(argc, 1));
    const Console console = Console::of_process(arguments);
    try {
        try {
            return parse_and_run(arguments, console);
        } catch (...) {
            return present("hone", outcome_of(std::current_exception()), console);
        }
    } catch (const std::bad_alloc&) {  // no memory for saying what happened
        return runtime::say_out_of_memory(console.json);
    }
}

}  // namespace hone::cli
