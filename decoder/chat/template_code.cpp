#include "decoder/chat/template_code.h"

#include <algorithm>
#include <array>
#include <utility>

namespace hone::decoder {
namespace {

constexpr char literal_mark = '`';
constexpr std::string_view spaces = " \t\r\n";

/// In one pass: templates may repeat what is replaced a hundred thousand times.
std::string replaced_all(std::string_view text, std::string_view from, std::string_view to) {
    std::string out;
    std::size_t done = 0;
    for (std::size_t at = text.find(from); at != std::string_view::npos; at = text.find(from, done)) {
        out.append(text, done, at - done).append(to);
        done = at + from.size();
    }
    return out.append(text, done);
}

char unescaped(char c) { return c == 'n' ? '\n' : c == 't' ? '\t' : c; }

/// Jinja as transformers sets it up: a line end behind a statement, and the spaces in front of one that
/// begins its line, are no text.
class Reader {
  public:
    explicit Reader(std::string_view text) : rest_(text) {
        if (rest_.ends_with('\n')) rest_.remove_suffix(1);
    }

    TemplateCode run() {
        while (!rest_.empty()) next();
        out_.code = replaced_all(out_.code, "`+`", "");
        out_.code = replaced_all(out_.code, "[`role`]", ".role");
        out_.code = replaced_all(out_.code, "[`content`]", ".content");
        return std::move(out_);
    }

  private:
    /// The text up to a tag, and the tag.
    void next() {
        const std::size_t at = next_tag();
        std::string_view text = rest_.substr(0, at);
        rest_.remove_prefix(at);
        const char kind = rest_.empty() ? '\0' : rest_[1];
        take_text(text, kind, rest_.substr(0, 3).ends_with('-'));
        if (kind == '#') return skip_comment();
        if (kind != '\0') take_tag(kind);
    }

    /// Not a search for each kind of tag: what is not there would be sought to the end behind every other.
    [[nodiscard]] std::size_t next_tag() const {
        constexpr std::string_view kinds = "{%#";
        std::size_t at = rest_.find('{');
        while (at != std::string_view::npos && at + 1 < rest_.size() &&
               kinds.find(rest_[at + 1]) == std::string_view::npos)
            at = rest_.find('{', at + 1);
        return at < rest_.size() - 1 ? at : rest_.size();
    }

    void take_text(std::string_view text, char next_kind, bool next_trims) {
        if (trims_)
            text.remove_prefix(std::min(text.size(), text.find_first_not_of(spaces)));
        else if (behind_statement_ && text.starts_with('\n')) {
            text.remove_prefix(1);
            begins_line_ = true;
        }
        if (next_trims) text = text.substr(0, text.find_last_not_of(spaces) + 1);
        if (next_kind == '%' || next_kind == '#') text = without_indent(text);
        out_.has_text = out_.has_text || !text.empty();
        begins_line_ = false;
    }

    [[nodiscard]] std::string_view without_indent(std::string_view text) const {
        const std::size_t line = text.rfind('\n') + 1;  // 0 where there is none
        const bool is_indent = text.find_first_not_of(" \t", line) == std::string_view::npos;
        return is_indent && (line > 0 || begins_line_) ? text.substr(0, line) : text;
    }

    void skip_comment() {
        const std::size_t end = std::min(rest_.size(), rest_.find("#}"));
        trims_ = rest_.substr(0, end).ends_with('-');
        behind_statement_ = true;
        rest_.remove_prefix(std::min(rest_.size(), end + 2));
    }

    void take_tag(char kind) {
        const std::string_view end = kind == '{' ? "}}" : "%}";
        out_.code += rest_.substr(0, 2);
        rest_.remove_prefix(2);
        if (rest_.starts_with('-')) rest_.remove_prefix(1);
        trims_ = false;
        while (!rest_.empty() && !rest_.starts_with(end)) take_part(end);
        out_.code += end;
        behind_statement_ = kind == '%';
        rest_.remove_prefix(std::min(rest_.size(), end.size()));
    }

    void take_part(std::string_view end) {
        const char c = rest_[0];
        rest_.remove_prefix(1);
        if (c == '\'' || c == '"') return take_literal(c);
        if (c == '-' && rest_.starts_with(end)) {
            trims_ = true;
        } else if (spaces.find(c) == std::string_view::npos) {
            out_.code += c;
        } else if (!rest_.empty() && is_word(out_.code.back()) && is_word(rest_[0])) {
            out_.code += ' ';
        }
    }

    [[nodiscard]] static bool is_word(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    }

    void take_literal(char quote) {
        out_.code += literal_mark;
        while (!rest_.empty() && rest_[0] != quote) {
            const bool is_escaped = rest_[0] == '\\' && rest_.size() > 1;
            out_.code += is_escaped ? unescaped(rest_[1]) : rest_[0];
            rest_.remove_prefix(is_escaped ? 2 : 1);
        }
        out_.code += literal_mark;
        rest_.remove_prefix(std::min<std::size_t>(rest_.size(), 1));
    }

    std::string_view rest_;
    TemplateCode out_{};
    bool trims_ = false;             ///< the tag before: all spaces behind it
    bool behind_statement_ = false;  ///< or a comment
    bool begins_line_ = true;
};

}  // namespace

/// Lines end as Jinja has them, whatever they end with in the file.
TemplateCode template_code(std::string_view chat_template) {
    const std::string text = replaced_all(replaced_all(chat_template, "\r\n", "\n"), "\r", "\n");
    return Reader(text).run();
}

}  // namespace hone::decoder
