#include "decoder/jinja/text_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "decoder/jinja/fault.h"
#include "decoder/jinja/operators.h"
#include "decoder/jinja/python_text.h"
#include "decoder/text/utf8.h"

namespace hone::decoder::jinja {
namespace {

/// Of what has neither items nor characters.
std::string plain_text(const Value& value) {
    if (is<None>(value)) return "None";
    if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "True" : "False";
    if (const auto* number = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *number);
    if (const auto* number = std::get_if<double>(&value)) return number_text(*number);
    if (is<Undefined>(value)) return "Undefined";
    throw Fault(fmt::format("a {} has no text to be written", type_name(value)));
}

/// Writes into one text, whose bytes count before they are there.
class Writer {
  public:
    explicit Writer(Memory& memory) : memory_(memory) {}
    [[nodiscard]] std::string finish() { return std::move(text_); }

  protected:
    void put(std::string_view text) {
        memory_.step(text.size());
        memory_.take(text.size());
        text_ += text;
    }
    Memory& memory_;

  private:
    std::string text_{};
};

class Form : public Writer {
  public:
    using Writer::Writer;

    void write(const Value& value) {
        if (const auto* text = std::get_if<Text>(&value)) return write_text(*text);
        if (const auto* list = std::get_if<const List*>(&value)) return write_list(**list, value);
        if (const auto* dict = std::get_if<const Dict*>(&value)) return write_dict(**dict);
        put(plain_text(value));
    }

  private:
    void write_text(const Text& text) {
        if (text.is_safe) throw Fault("a text of the filter \"safe\" inside of a list that is written");
        put(quoted(text.text));
    }

    void write_list(const List& list, const Value& value) {
        if (list.sort > List::Sort::tuple)
            throw Fault(fmt::format("a {} has no text to be written; the filter \"list\" makes a list of it",
                                    type_name(value)));
        const bool is_tuple = list.sort == List::Sort::tuple;
        put(is_tuple ? "(" : "[");
        for (std::size_t i = 0; i < list.items.size(); ++i) {
            if (i > 0) put(", ");
            write(list.items[i]);
        }
        put(!is_tuple ? "]" : list.items.size() == 1 ? ",)" : ")");
    }

    void write_dict(const Dict& dict) {
        put("{");
        for (std::size_t i = 0; i < dict.entries.size(); ++i) {
            if (i > 0) put(", ");
            write(dict.entries[i].first);
            put(": ");
            write(dict.entries[i].second);
        }
        put("}");
    }
};

class Json : public Writer {
  public:
    Json(Memory& memory, const JsonForm& form) : Writer(memory), form_(form) {}

    void write(const Value& value) {
        if (const auto* text = std::get_if<Text>(&value)) return write_text(text->text);
        if (const auto* list = std::get_if<const List*>(&value)) return write_list(**list, value);
        if (const auto* dict = std::get_if<const Dict*>(&value)) return write_dict(**dict);
        put(plain(value));
    }

  private:
    static std::string plain(const Value& value) {
        if (is<None>(value)) return "null";
        if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
        if (const auto* number = std::get_if<double>(&value); number != nullptr && !std::isfinite(*number))
            return std::isnan(*number) ? "NaN" : *number > 0 ? "Infinity" : "-Infinity";
        if (!is<std::int64_t>(value) && !is<double>(value))
            throw Fault(fmt::format("a {} is nothing that JSON has", type_name(value)));
        return plain_text(value);
    }

    void write_text(std::string_view text) {
        put("\"");
        while (!text.empty()) {
            const auto end = std::ranges::find_if_not(text, [this](char c) { return stands_as_it_is(c); });
            const auto length = static_cast<std::size_t>(end - text.begin());
            if (length > 0) put(text.substr(0, length));
            text.remove_prefix(length);
            if (text.empty()) break;
            put_character(text.substr(0, first_length(text)));
            text.remove_prefix(first_length(text));
        }
        put("\"");
    }

    [[nodiscard]] bool stands_as_it_is(char c) const {
        const auto byte = static_cast<unsigned char>(c);
        return byte >= 0x20 && c != '"' && c != '\\' && (byte < 0x80 || !form_.ascii);
    }

    void put_character(std::string_view character) {
        constexpr std::string_view kinds = "\"\\\n\r\t\b\f";
        constexpr std::string_view letters = "\"\\nrtbf";
        const char32_t c = first_code_point(character);
        if (const std::size_t at = kinds.find(character); at != std::string_view::npos)
            put(fmt::format("\\{}", letters[at]));
        else if (c >= 0x10000 && form_.ascii)
            put(fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((static_cast<unsigned>(c) - 0x10000) >> 10),
                            0xDC00 + (static_cast<unsigned>(c) & 0x3FF)));
        else if (c < 0x20 || (c >= 0x80 && form_.ascii))
            put(fmt::format("\\u{:04x}", static_cast<unsigned>(c)));
        else
            put(character);
    }

    void write_list(const List& list, const Value& value) {
        if (list.sort > List::Sort::tuple)
            throw Fault(fmt::format("a {} is nothing that JSON has", type_name(value)));
        if (list.items.empty()) return put("[]");
        open("[");
        for (std::size_t i = 0; i < list.items.size(); ++i) {
            separate(i);
            write(list.items[i]);
        }
        close("]");
    }

    void write_dict(const Dict& dict) {
        if (dict.entries.empty()) return put("{}");
        std::vector<std::pair<Value, Value>> entries = dict.entries;
        if (form_.sorted)
            std::ranges::stable_sort(
                entries, [this](const auto& a, const auto& b) { return less(memory_, a.first, b.first); });
        open("{");
        for (std::size_t i = 0; i < entries.size(); ++i) {
            separate(i);
            const Value& key = entries[i].first;
            if (is<const List*>(key)) throw Fault("a tuple as a key of JSON");
            write_text(is<Text>(key) ? std::get<Text>(key).text : plain(key));
            put(form_.key_separator);
            write(entries[i].second);
        }
        close("}");
    }

    void open(std::string_view bracket) {
        put(bracket);
        ++depth_;
    }
    void separate(std::size_t index) {
        if (index > 0) put(form_.item_separator);
        put_line();
    }
    void close(std::string_view bracket) {
        --depth_;
        put_line();
        put(bracket);
    }
    void put_line() {
        if (form_.indent < 0) return;
        put("\n");
        put(std::string(static_cast<std::size_t>(form_.indent * depth_), ' '));
    }

    const JsonForm& form_;
    int depth_ = 0;
};

}  // namespace

std::string_view text_of(Memory& memory, const Value& value) {
    if (const auto* text = std::get_if<Text>(&value)) return text->text;
    if (is<Undefined>(value)) return {};
    return memory.keep(form_of(memory, value));
}

std::string form_of(Memory& memory, const Value& value) {
    Form form(memory);
    form.write(value);
    return form.finish();
}

std::string json_of(Memory& memory, const Value& value, const JsonForm& form) {
    Json json(memory, form);
    json.write(value);
    return json.finish();
}

std::string percent_form(Memory& memory, std::string_view format, const std::vector<Value>& values) {
    std::string out;
    std::size_t used = 0;
    for (std::size_t at = format.find('%'); at != std::string_view::npos; at = format.find('%')) {
        memory.step();
        out += format.substr(0, at);
        const char kind = at + 1 < format.size() ? format[at + 1] : '\0';
        format.remove_prefix(std::min(format.size(), at + 2));
        if (kind == '%') {
            out += '%';
            continue;
        }
        if (kind == '\0') throw Fault("a lone % ends a text that is formatted; known are %s, %d, %r and %%");
        if (kind != 's' && kind != 'd' && kind != 'r')
            throw Fault(fmt::format("%{} in a text that is formatted; known are %s, %d, %r and %%", kind));
        if (used == values.size()) throw Fault("a text that is formatted has more places than values");
        const Value& value = values[used++];
        if (kind == 'd' && !real(value)) throw Fault(fmt::format("%d for a {}", type_name(value)));
        if (kind == 'd' && is<double>(value)) throw Fault("%d for a float");
        const std::string text = kind == 'r'   ? form_of(memory, value)
                                 : kind == 'd' ? fmt::format("{}", *whole(value))
                                               : std::string(text_of(memory, value));
        memory.take(text.size());
        out += text;
    }
    if (used < values.size()) throw Fault("a text that is formatted has fewer places than values");
    return out.append(format);
}

}  // namespace hone::decoder::jinja
