#include "cli/man_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace hone::cli {
namespace {

/// Text that roff takes as it is: no requests at the beginnings of lines, hyphens that can be pasted.
std::string roff(std::string_view text) {
    std::string out;
    bool is_line_begin = true;
    for (const char c : text) {
        if (is_line_begin && (c == '.' || c == '\'')) out += "\\&";
        if (c == '\\')
            out += "\\e";
        else if (c == '-')
            out += "\\-";
        else
            out += c;
        is_line_begin = c == '\n';
    }
    return out;
}

std::string option_entry(const DeclaredOption& option) {
    std::vector<std::string> names;
    for (const std::string& name : option.names) names.push_back("\\fB" + roff(name) + "\\fR");
    std::string text = fmt::format(".TP\n{}", fmt::join(names, ", "));
    if (option.takes_value() && option.names.front().starts_with('-'))
        text += " \\fI" + roff(option.type) + "\\fR";
    return text + '\n' + roff(option.says) + '\n';
}

std::string synopsis(const DeclaredCommand& command, const std::string& before) {
    std::string text = fmt::format("\\fB{}{}\\fR", before, roff(command.name));
    if (!command.commands.empty()) text += " \\fIACTION\\fR";
    for (const DeclaredOption& option : command.positionals) {
        const std::string name = "\\fI" + roff(option.names.front()) + "\\fR";
        text += option.is_required ? " " + name : " [" + name + "]";
    }
    return text + " [\\fIOPTIONS\\fR]\n";
}

std::string options_of(const DeclaredCommand& command) {
    std::string text;
    for (const DeclaredOption& option : command.positionals) text += option_entry(option);
    for (const DeclaredOption& option : command.options) {
        const std::string& name = option.names.front();
        if (name != "--help" && name != "--json") text += option_entry(option);
    }
    for (const DeclaredCommand& below : command.commands) {
        text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(below.name), roff(below.says));
        text += options_of(below);
    }
    return text;
}

std::string section(const DeclaredCommand& command) {
    std::string text = fmt::format(".SS \"{}\"\n{}.PP\n{}\n", roff(command.name), synopsis(command, "hone "),
                                   roff(command.says));
    text += options_of(command);
    if (!command.examples.empty()) text += fmt::format(".PP\n.nf\n{}.fi\n", roff(command.examples));
    return text;
}

constexpr std::string_view files = R"(.SH FILES
.TP
\fI~/.cache/hone/cache.db\fR
What is remembered, unless \fBHONE_CACHE\fR or \fBXDG_CACHE_HOME\fR say another place; \fBhone cache path\fR prints it.
.SH "EXIT STATUS"
0 done, 1 failure, 2 usage, 3 no usable GPU, 4 nothing valid for some problem, 5 cache unusable, 6 import refused,
7 the budget ended with partial results, 130 Ctrl\-C.
)";

}  // namespace

std::string man_page(const DeclaredCommand& program) {
    std::string text = fmt::format(".TH HONE 1 \"\" \"hone {}\" \"User Commands\"\n", HONE_VERSION);
    text += ".SH NAME\nhone \\- find, prove and remember the fastest CUDA kernels for this GPU\n";
    text += ".SH SYNOPSIS\n\\fBhone\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n";
    text +=
        ".SH DESCRIPTION\nData goes to stdout, progress to stderr. Every command takes \\fB\\-\\-help\\fR, "
        "and "
        "\\fB\\-\\-json\\fR: one JSON object on stdout, also for errors.\n.SH COMMANDS\n";
    for (const DeclaredCommand& command : program.commands) text += section(command);
    return text + std::string(files);
}

}  // namespace hone::cli
