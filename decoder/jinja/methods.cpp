#include "decoder/jinja/methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "decoder/jinja/arguments.h"
#include "decoder/jinja/fault.h"
#include "decoder/jinja/limits.h"
#include "decoder/jinja/operators.h"
#include "decoder/jinja/python_text.h"
#include "decoder/jinja/text_form.h"
#include "decoder/text/utf8.h"

namespace hone::decoder::jinja {
namespace {

[[noreturn]] void fail_unknown(std::string_view name, const char* of) {
    throw Fault(fmt::format("the method {} of a {} is not known here", name, of));
}

Value texts(Memory& memory, const std::vector<std::string_view>& parts, List::Sort sort = List::Sort::list) {
    std::vector<Value> items;
    items.reserve(parts.size());
    for (const std::string_view part : parts) items.push_back(text_value(part));
    return memory.list(std::move(items), sort);
}

/// A method of a text, with what it is called with.
class TextMethod {
  public:
    TextMethod(Memory& memory, std::string_view text, std::string_view name, const Arguments& arguments)
        : memory_(memory), text_(text), name_(name), arguments_(arguments) {}

    Value run() {
        memory_.step(text_.size());
        if (name_.ends_with("strip")) return stripped();
        if (name_ == "split" || name_ == "rsplit") return parts();
        if (name_ == "splitlines") return lines();
        if (name_ == "startswith" || name_ == "endswith") return begins_or_ends();
        if (name_ == "removeprefix" || name_ == "removesuffix") return without();
        if (name_ == "find" || name_ == "rfind" || name_ == "index" || name_ == "rindex") return place();
        if (name_ == "count") return count();
        if (name_ == "replace") return replacement();
        if (name_ == "join") return joined();
        if (name_ == "partition" || name_ == "rpartition") return partition();
        if (name_ == "format") return formatted();
        return plain();
    }

  private:
    [[nodiscard]] Bound bound(std::initializer_list<std::string_view> parameters) const {
        return {name_, arguments_, parameters};
    }

    Value stripped() const {
        const Bound given = bound({"chars"});
        std::string_view text = text_;
        if (!given.has(0)) {
            if (name_ != "rstrip") text = without_leading_spaces(text);
            if (name_ != "lstrip") text = without_trailing_spaces(text);
            return text_value(text);
        }
        step_product(given.text(0));
        if (name_ != "rstrip") text = without_leading(text, given.text(0));
        if (name_ != "lstrip") text = without_trailing(text, given.text(0));
        return text_value(text);
    }

    Value parts() const {
        const Bound given = bound({"sep", "maxsplit"});
        const std::int64_t most = std::max<std::int64_t>(given.whole_or(1, -1), -1);
        if (!given.has(0)) {
            if (name_ == "rsplit" && most >= 0) fail_unknown("rsplit at spaces", "text");
            take_parts(text_.size() / 2);
            return texts(memory_, words_of(text_, most));
        }
        take_parts(count_of(text_, separator(given), most));
        if (name_ == "rsplit") step_product(given.text(0));
        return texts(memory_, name_ == "split" ? split(text_, separator(given), most)
                                               : split_from_end(text_, separator(given), most));
    }

    /// For what may compare each character of the text with each of another.
    void step_product(std::string_view other) const {
        constexpr std::size_t many = std::size_t{1} << 31;
        memory_.step(std::min(text_.size(), many) * std::min(other.size(), many));
    }
    /// What parts take before they are values.
    void take_parts(std::size_t count) const { memory_.take(count * sizeof(std::string_view)); }

    Value lines() const {
        const auto may_end = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c < 0; };
        take_parts(static_cast<std::size_t>(std::ranges::count_if(text_, may_end)));
        return texts(memory_, lines_of(text_, bound({"keepends"}).truth_or(0, false)));
    }

    [[nodiscard]] std::string_view separator(const Bound& given) const {
        const std::string_view separator = given.text(0);
        if (separator.empty()) throw Fault(fmt::format("{} with an empty separator", name_));
        return separator;
    }

    Value begins_or_ends() const {
        const Bound given = bound({"prefix", "start", "end"});
        if (given.has(1)) fail_unknown("startswith with a place", "text");
        const auto fits = [this](std::string_view part) {
            return name_ == "startswith" ? text_.starts_with(part) : text_.ends_with(part);
        };
        const Value part = given.need(0);
        const auto* several = std::get_if<const List*>(&part);
        if (several == nullptr || (*several)->sort != List::Sort::tuple) return fits(given.text(0));
        return std::ranges::any_of((*several)->items, [&](const Value& one) {
            memory_.step();
            if (!is<Text>(one)) throw Fault(fmt::format("{} of a {}", name_, type_name(one)));
            return fits(std::get<Text>(one).text);
        });
    }

    Value without() const {
        const std::string_view part = bound({"part"}).text(0);
        std::string_view text = text_;
        if (name_ == "removeprefix" && text.starts_with(part)) text.remove_prefix(part.size());
        if (name_ == "removesuffix" && text.ends_with(part)) text.remove_suffix(part.size());
        return text_value(text);
    }

    Value place() const {
        const Bound given = bound({"sub", "start", "end"});
        if (given.has(1)) fail_unknown("find with a place", "text");
        const bool from_end = name_.starts_with('r');
        if (from_end) step_product(given.text(0));
        const std::size_t at = from_end ? text_.rfind(given.text(0)) : find_in(text_, given.text(0));
        if (at != std::string_view::npos)
            return static_cast<std::int64_t>(count_characters(text_.substr(0, at)));
        if (name_.ends_with("index")) throw Fault("substring not found");
        return std::int64_t{-1};
    }

    Value count() const { return static_cast<std::int64_t>(count_of(text_, bound({"sub"}).text(0), -1)); }

    Value replacement() const {
        const Bound given = bound({"old", "new", "count"});
        return replaced_text(memory_, text_, given.text(0), given.text(1),
                             std::max<std::int64_t>(given.whole_or(2, -1), -1));
    }

    Value joined() const {
        std::string text;
        bool is_first = true;
        for (const Value& item : items_of(memory_, bound({"parts"}).need(0))) {
            if (!is<Text>(item)) throw Fault(fmt::format("join of a {}; allowed: texts", type_name(item)));
            const std::string_view part = std::get<Text>(item).text;
            memory_.step(part.size() + text_.size());
            memory_.take(part.size() + text_.size());
            if (!std::exchange(is_first, false)) text += text_;
            text += part;
        }
        return memory_.text(std::move(text));
    }

    Value partition() const {
        const std::string_view by = separator(bound({"sep"}));
        const bool from_end = name_ == "rpartition";
        if (from_end) step_product(by);
        const std::size_t at = from_end ? text_.rfind(by) : find_in(text_, by);
        std::vector<std::string_view> parts{text_.substr(0, at), by, {}};
        if (at != std::string_view::npos)
            parts[2] = text_.substr(at + by.size());
        else
            parts = from_end ? std::vector<std::string_view>{"", "", text_}
                             : std::vector<std::string_view>{text_, "", ""};
        return texts(memory_, parts, List::Sort::tuple);
    }

    /// {}, {0} and {name}, {{ and }}.
    Value formatted() const {
        std::string out;
        std::string_view rest = text_;
        std::size_t used = 0;
        for (std::size_t at = rest.find_first_of("{}"); at != std::string_view::npos;
             at = rest.find_first_of("{}")) {
            memory_.step();
            out += rest.substr(0, at);
            const char bracket = rest[at];
            rest.remove_prefix(at + 1);
            if (rest.starts_with(bracket)) {
                out += bracket;
                rest.remove_prefix(1);
                continue;
            }
            const std::size_t end = bracket == '{' ? rest.find('}') : std::string_view::npos;
            if (end == std::string_view::npos) throw Fault("format: a bracket that stands alone");
            const std::string_view part = text_of(memory_, field(rest.substr(0, end), used));
            memory_.take(part.size());
            memory_.step(part.size());
            out += part;
            rest.remove_prefix(end + 1);
        }
        return memory_.text(out.append(rest));
    }

    [[nodiscard]] const Value& field(std::string_view name, std::size_t& used) const {
        const bool is_number = !name.empty() && name.size() < 5 &&
                               std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
        if (name.empty() || is_number) {
            const std::size_t at =
                is_number ? static_cast<std::size_t>(std::stoi(std::string(name))) : used++;
            if (at < arguments_.values.size()) return arguments_.values[at];
        }
        memory_.step(arguments_.named.size() * bytes_of_name);
        for (const auto& [known, value] : arguments_.named)
            if (known == name) return value;
        throw Fault(
            fmt::format("format: there is nothing for {{{}}}; forms of a field are not known here", name));
    }

    Value plain() const {
        static constexpr std::string_view tests[] = {"isalpha", "isdigit", "isalnum",
                                                     "isspace", "isupper", "islower"};
        const bool is_test = std::ranges::find(tests, name_) != std::end(tests);
        const auto change = name_ == "upper"        ? upper
                            : name_ == "lower"      ? lower
                            : name_ == "title"      ? titled
                            : name_ == "capitalize" ? capitalized
                                                    : nullptr;
        if (!is_test && change == nullptr) fail_unknown(name_, "text");
        static_cast<void>(bound({}));
        memory_.step(text_.size() * 16);  // each character is looked at
        return is_test ? Value(is_all(text_, name_)) : memory_.text(change(text_));
    }

    Memory& memory_;
    std::string_view text_;
    std::string_view name_;
    const Arguments& arguments_;
};

}  // namespace

Value replaced_text(Memory& memory, std::string_view text, std::string_view from, std::string_view to,
                    std::int64_t most) {
    memory.step(text.size());
    const std::size_t times = count_of(text, from, most);
    memory.step(times * to.size());
    memory.take(times * to.size());
    return memory.text(replaced(text, from, to, most));
}

Value text_method(Memory& memory, std::string_view text, std::string_view name, const Arguments& arguments) {
    return TextMethod(memory, text, name, arguments).run();
}

Value list_method(Memory& memory, const List& list, std::string_view name, const Arguments& arguments) {
    if (name == "copy") return memory.list(list.items);
    if (name != "index" && name != "count")
        throw Fault(fmt::format("the method {} of a list: lists do not change", name));
    const Value sought = Bound(name, arguments, {"value"}).need(0);
    std::int64_t count = 0;
    for (std::size_t i = 0; i < list.items.size(); ++i) {
        if (!equal(memory, list.items[i], sought)) continue;
        if (name == "index") return static_cast<std::int64_t>(i);
        ++count;
    }
    if (name == "index") throw Fault("index of what is not in the list");
    return count;
}

Value dict_method(Memory& memory, const Dict& dict, std::string_view name, const Arguments& arguments) {
    if (name == "get") {
        const Bound given(name, arguments, {"key", "default"});
        const Value* const found = find(memory, dict, given.need(0));
        return found != nullptr ? *found : given.at(1).value_or(None{});
    }
    static_cast<void>(Bound(name, arguments, {}));
    if (name == "copy") return memory.dict(dict.entries);
    if (name != "items" && name != "keys" && name != "values")
        throw Fault(fmt::format("the method {} of an object: objects do not change", name));
    std::vector<Value> items;
    items.reserve(dict.entries.size());
    for (const auto& [key, value] : dict.entries)
        items.push_back(name == "items"  ? memory.list({key, value}, List::Sort::tuple)
                        : name == "keys" ? key
                                         : value);
    return memory.list(std::move(items), List::Sort::view);
}

Value loop_method(Memory& memory, const Loop& loop, std::string_view name, const Arguments& arguments) {
    if (!arguments.named.empty()) throw Fault(fmt::format("loop.{} with names of arguments", name));
    const std::vector<Value>& values = arguments.values;
    if (name == "cycle") {
        if (values.empty()) throw Fault("loop.cycle() of nothing");
        return values[loop.index % values.size()];
    }
    const bool same =
        loop.seen && std::ranges::equal(*loop.seen, values,
                                        [&](const Value& a, const Value& b) { return equal(memory, a, b); });
    loop.seen = values;
    return !same;
}

}  // namespace hone::decoder::jinja
