#include "decoder/jinja/filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "decoder/jinja/arguments.h"
#include "decoder/jinja/attributes.h"
#include "decoder/jinja/fault.h"
#include "decoder/jinja/is_tests.h"
#include "decoder/jinja/methods.h"
#include "decoder/jinja/operators.h"
#include "decoder/jinja/python_text.h"
#include "decoder/jinja/text_form.h"

namespace hone::decoder::jinja {
namespace {

using Filter = Value (*)(Memory&, const Value&, const Arguments&);

std::string_view text_in(Memory& memory, const Value& value) {
    const std::string_view text = text_of(memory, value);
    memory.step(text.size());
    return text;
}

/// For what looks at each character.
std::string_view characters_in(Memory& memory, const Value& value) {
    const std::string_view text = text_in(memory, value);
    memory.step(text.size() * 16);
    return text;
}

Value generated(Memory& memory, std::vector<Value> items) {
    return memory.list(std::move(items), List::Sort::once);
}

/// Behind the name of an attribute, or several with dots; numbers are places.
Value attribute_path(Memory& memory, Value value, const Value& path,
                     const std::optional<Value>& otherwise = {}) {
    std::vector<Value> parts;
    if (is<Text>(path)) {
        memory.step(std::get<Text>(path).text.size() * 16);
        for (const std::string_view part : split(std::get<Text>(path).text, ".", -1)) {
            std::int64_t place = 0;
            const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), place);
            const bool is_place =
                !part.empty() && part[0] != '-' && error == std::errc() && end == part.data() + part.size();
            parts.push_back(is_place ? Value(place) : text_value(part));
        }
    } else {
        parts.push_back(path);
    }
    for (const Value& part : parts) {
        value = item_of(memory, value, part);
        if (otherwise && is<Undefined>(value)) value = *otherwise;
    }
    return value;
}

/// What items are compared by: texts without regard to their case, unless that is asked for.
Value sort_key(Memory& memory, Value value, const std::optional<Value>& attribute, bool with_case) {
    if (attribute && !is<None>(*attribute)) value = attribute_path(memory, value, *attribute);
    return is<Text>(value) && !with_case ? memory.text(lower(characters_in(memory, value))) : value;
}

Value absolute(Memory&, const Value& value, const Arguments&) {
    require_defined(value);
    if (const auto* number = std::get_if<double>(&value)) return std::abs(*number);
    const auto number = whole(value);
    if (!number) throw Fault(fmt::format("abs of a {}", type_name(value)));
    return *number < 0 ? negated(*number) : *number;
}

Value attribute(Memory& memory, const Value& value, const Arguments& arguments) {
    const std::string_view name = Bound("attr", arguments, {"name"}).text(0);
    return is<const Dict*>(value) ? method_of(memory, value, name) : attribute_of(memory, value, name);
}

Value otherwise(Memory&, const Value& value, const Arguments& arguments) {
    const Bound given("default", arguments, {"default_value", "boolean"});
    const bool is_missing = is<Undefined>(value) || (given.truth_or(1, false) && !truth(value));
    return is_missing ? given.at(0).value_or(text_value({})) : value;
}

/// What stands behind each key, in the keys' order.
Value by_keys(Memory& memory, std::vector<std::pair<Value, Value>> items, bool is_reversed) {
    std::ranges::stable_sort(items, [&](const auto& a, const auto& b) {
        return is_reversed ? less(memory, b.first, a.first) : less(memory, a.first, b.first);
    });
    std::vector<Value> out;
    for (const auto& item : items) out.push_back(item.second);
    return memory.list(std::move(out));
}

Value sorted_items(Memory& memory, const Value& value, const Arguments& arguments) {
    const Bound given("dictsort", arguments, {"case_sensitive", "by", "reverse"});
    if (!is<const Dict*>(value)) throw Fault(fmt::format("dictsort of a {}", type_name(value)));
    const std::size_t by = given.text_or(1, "key") == "value" ? 1 : 0;
    std::vector<std::pair<Value, Value>> items;
    for (const auto& [key, behind] : std::get<const Dict*>(value)->entries)
        items.emplace_back(sort_key(memory, by == 0 ? key : behind, {}, given.truth_or(0, false)),
                           memory.list({key, behind}, List::Sort::tuple));
    return by_keys(memory, std::move(items), given.truth_or(2, false));
}

Value first(Memory& memory, const Value& value, const Arguments&) {
    const std::vector<Value> items = items_of(memory, value);
    return items.empty() ? Value(Undefined{"No first item, sequence was empty."}) : items.front();
}

Value last(Memory& memory, const Value& value, const Arguments&) {
    static_cast<void>(length_of(value));  // Python goes over it from its end
    const std::vector<Value> items = items_of(memory, value);
    return items.empty() ? Value(Undefined{"No last item, sequence was empty."}) : items.back();
}

Value indented(Memory& memory, const Value& value, const Arguments& arguments) {
    const Bound given("indent", arguments, {"width", "first", "blank"});
    const bool is_text = given.at(0) && is<Text>(*given.at(0));
    const std::int64_t width = is_text ? 0 : std::max<std::int64_t>(given.whole_or(0, 4), 0);
    if (width > 1000) throw Fault("indent by more than 1000 spaces");
    const std::string by =
        is_text ? std::string(given.text(0)) : std::string(static_cast<std::size_t>(width), ' ');
    require_defined(value);
    if (!is<Text>(value)) throw Fault(fmt::format("indent of a {}; allowed: a text", type_name(value)));
    const std::string_view text = text_in(memory, value);
    memory.take(count_of(text, "\n", -1) * (by.size() + sizeof(std::string_view)));
    std::string out;
    if (given.truth_or(2, false)) {
        out = replaced(text, "\n", "\n" + by, -1);
    } else {
        std::vector<std::string_view> lines = lines_of(text, false);
        if (text.empty() || text.ends_with('\n')) lines.emplace_back();  // as for "text\n" split
        for (std::size_t i = 0; i < lines.size(); ++i) {
            if (i > 0) (out += '\n') += lines[i].empty() ? "" : by;
            out += lines[i];
        }
    }
    return memory.text(given.truth_or(1, false) ? by + out : out);
}

template <class Number>
std::optional<Number> number_in(std::string_view text) {
    text = without_trailing_spaces(without_leading_spaces(text));
    if (text.starts_with('+')) text.remove_prefix(1);
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

Value as_float(Memory& memory, const Value& value, const Arguments& arguments) {
    const Bound given("float", arguments, {"default"});
    require_defined(value);
    if (const auto number = real(value)) return *number;
    const auto number = is<Text>(value) ? number_in<double>(text_in(memory, value)) : std::nullopt;
    return number ? Value(*number) : given.at(0).value_or(0.0);
}

Value as_whole(Memory& memory, const Value& value, const Arguments& arguments) {
    const Bound given("int", arguments, {"default", "base"});
    if (given.whole_or(1, 10) != 10) throw Fault("int with another base than 10");
    require_defined(value);
    if (const auto number = whole(value)) return *number;
    std::optional<double> number = real(value);
    if (is<Text>(value)) {
        const std::string_view text = text_in(memory, value);
        if (const auto known = number_in<std::int64_t>(text)) return *known;
        number = number_in<double>(text);
    }
    if (!number || std::isnan(*number)) return given.at(0).value_or(std::int64_t{0});
    if (std::abs(*number) >= 9.2e18) throw Fault("a whole number of more than 64 bits");
    return static_cast<std::int64_t>(*number);
}

Value entries(Memory& memory, const Value& value, const Arguments&) {
    if (is<Undefined>(value)) return generated(memory, {});
    if (!is<const Dict*>(value))
        throw Fault(fmt::format("items of a {}; allowed: an object", type_name(value)));
    return generated(memory,
                     items_of(memory, dict_method(memory, *std::get<const Dict*>(value), "items", {})));
}

Value joined(Memory& memory, const Value& value, const Arguments& arguments) {
    const Bound given("join", arguments, {"d", "attribute"});
    const std::string_view by = given.at(0) ? text_in(memory, *given.at(0)) : std::string_view();
    std::string text;
    const std::vector<Value> items = items_of(memory, value);
    for (std::size_t i = 0; i < items.size(); ++i) {
        const Value item = given.has(1) ? attribute_path(memory, items[i], *given.at(1)) : items[i];
        const std::string_view part = text_in(memory, item);
        memory.take(part.size() + by.size());
        if (i > 0) text += by;
        text += part;
    }
    return memory.text(std::move(text));
}

Value length(Memory& memory, const Value& value, const Arguments&) {
    if (is<Text>(value)) memory.step(std::get<Text>(value).text.size());
    return length_of(value);
}

Value listed(Memory& memory, const Value& value, const Arguments&) {
    return memory.list(items_of(memory, value));
}

/// The arguments behind the first, which named a filter or a test.
Arguments rest_of(const Arguments& arguments, std::size_t from) {
    Arguments rest{.values = {}, .named = arguments.named};
    if (arguments.values.size() > from)
        rest.values.assign(arguments.values.begin() + static_cast<std::ptrdiff_t>(from),
                           arguments.values.end());
    return rest;
}

Value mapped(Memory& memory, const Value& value, const Arguments& arguments) {
    std::vector<Value> out;
    if (arguments.values.empty()) {
        const Bound given("map", arguments, {"attribute", "default"});
        for (const Value& item : items_of(memory, value))
            out.push_back(attribute_path(memory, item, given.need(0), given.at(1)));
        return generated(memory, std::move(out));
    }
    const std::string_view name = text_of(memory, arguments.values.front());
    const Arguments rest = rest_of(arguments, 1);
    for (const Value& item : items_of(memory, value)) out.push_back(apply_filter(memory, name, item, rest));
    return generated(memory, std::move(out));
}

template <bool of_attribute, bool wanted>
Value selected(Memory& memory, const Value& value, const Arguments& arguments) {
    const std::size_t before = of_attribute ? 1 : 0;
    if (arguments.values.size() < before) throw Fault("selectattr and rejectattr need an attribute's name");
    const bool has_test = arguments.values.size() > before;
    const std::string_view test = has_test ? text_of(memory, arguments.values[before]) : std::string_view();
    const Arguments rest = rest_of(arguments, before + 1);
    std::vector<Value> out;
    for (const Value& item : items_of(memory, value)) {
        const Value looked_at = of_attribute ? attribute_path(memory, item, arguments.values[0]) : item;
        if ((has_test ? apply_test(memory, test, looked_at, rest) : truth(looked_at)) == wanted)
            out.push_back(item);
    }
    return generated(memory, std::move(out));
}

template <bool smallest>
Value extreme(Memory& memory, const Value& value, const Arguments& arguments) {
    const Bound given("min and max", arguments, {"case_sensitive", "attribute"});
    std::optional<std::pair<Value, Value>> best;  // what it is compared by, and itself
    for (const Value& item : items_of(memory, value)) {
        const Value key = sort_key(memory, item, given.at(1), given.truth_or(0, false));
        if (!best || (smallest ? less(memory, key, best->first) : less(memory, best->first, key)))
            best = {key, item};
    }
    return best ? best->second : Value(Undefined{"No aggregated item, sequence was empty."});
}

Value replacement(Memory& memory, const Value& value, const Arguments& arguments) {
    const Bound given("replace", arguments, {"old", "new", "count"});
    if (is<Text>(value) && std::get<Text>(value).is_safe)
        throw Fault("replace in a text of the filter \"safe\"");
    return replaced_text(memory, text_in(memory, value), text_in(memory, given.need(0)),
                         text_in(memory, given.need(1)), std::max<std::int64_t>(given.whole_or(2, -1), -1));
}

Value reversed(Memory& memory, const Value& value, const Arguments&) {
    if (is<Text>(value)) return slice(memory, value, None{}, None{}, std::int64_t{-1});
    std::vector<Value> items = items_of(memory, value);
    std::ranges::reverse(items);
    return generated(memory, std::move(items));
}

Value rounded(Memory&, const Value& value, const Arguments& arguments) {
    const Bound given("round", arguments, {"precision", "method"});
    require_defined(value);
    const auto number = real(value);
    const std::int64_t digits = given.whole_or(0, 0);
    if (!number || digits < 0 || digits > 15)
        throw Fault("round takes a number, and 0 to 15 places behind the point");
    const std::string_view method = given.text_or(1, "common");
    if (method == "common") {
        if (const auto known = whole(value)) return *known;
        return std::stod(fmt::format("{:.{}f}", *number, digits));
    }
    if (method != "ceil" && method != "floor") throw Fault("round: allowed are common, ceil and floor");
    const double factor = std::pow(10.0, static_cast<double>(digits));
    return (method == "ceil" ? std::ceil(*number * factor) : std::floor(*number * factor)) / factor;
}

Value safe(Memory& memory, const Value& value, const Arguments&) {
    return Text{text_in(memory, value), true};
}

Value sorted(Memory& memory, const Value& value, const Arguments& arguments) {
    const Bound given("sort", arguments, {"reverse", "case_sensitive", "attribute"});
    std::vector<std::pair<Value, Value>> items;
    for (const Value& item : items_of(memory, value))
        items.emplace_back(sort_key(memory, item, given.at(2), given.truth_or(1, false)), item);
    return by_keys(memory, std::move(items), given.truth_or(0, false));
}

Value as_text(Memory& memory, const Value& value, const Arguments&) {
    return is<Text>(value) ? value : text_value(text_in(memory, value));
}

Value sum(Memory& memory, const Value& value, const Arguments& arguments) {
    const Bound given("sum", arguments, {"attribute", "start"});
    Value total = given.at(1).value_or(std::int64_t{0});
    for (const Value& item : items_of(memory, value))
        total = compute(memory, "+", total, given.has(0) ? attribute_path(memory, item, *given.at(0)) : item);
    return total;
}

/// Words begin behind spaces, hyphens and opening brackets.
Value titled_words(Memory& memory, const Value& value, const Arguments&) {
    std::string out;
    std::string word;
    const auto end_word = [&] { out += capitalized(std::exchange(word, {})); };
    const std::string_view text = characters_in(memory, value);
    const std::vector<std::size_t> places = character_places(text);
    memory.take(text.size() * sizeof(std::size_t));
    for (std::size_t i = 0; i + 1 < places.size(); ++i) {
        const std::string_view character = text.substr(places[i], places[i + 1] - places[i]);
        const bool parts = without_leading_spaces(character).empty() ||
                           std::string_view("-({[<").find(character) != std::string_view::npos;
        if (parts) end_word();
        (parts ? out : word) += character;
    }
    end_word();
    return memory.text(std::move(out));
}

Value json_text(Memory& memory, const Value& value, const Arguments& arguments) {
    const Bound given("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
    JsonForm form{.ascii = given.truth_or(0, false), .sorted = given.truth_or(3, false)};
    if (given.has(1)) {
        const std::int64_t indent = given.whole_or(1, 0);
        if (indent < 0 || indent > 100) throw Fault("tojson: indent may be 0 to 100 spaces");
        form.indent = static_cast<int>(indent);
        form.item_separator = ",";
    }
    if (given.has(2)) {
        const std::vector<Value> both = items_of(memory, *given.at(2));
        if (both.size() != 2 || !is<Text>(both[0]) || !is<Text>(both[1]))
            throw Fault("tojson: separators are two texts");
        form.item_separator = std::get<Text>(both[0]).text;
        form.key_separator = std::get<Text>(both[1]).text;
    }
    return memory.text(json_of(memory, value, form));
}

Value trimmed(Memory& memory, const Value& value, const Arguments& arguments) {
    const Bound given("trim", arguments, {"chars"});
    Arguments handed;
    if (given.has(0)) handed.values.push_back(*given.at(0));
    return text_method(memory, text_in(memory, value), "strip", handed);
}

Value unique(Memory& memory, const Value& value, const Arguments& arguments) {
    const Bound given("unique", arguments, {"case_sensitive", "attribute"});
    std::vector<Value> keys;
    std::vector<Value> out;
    for (const Value& item : items_of(memory, value)) {
        const Value key = sort_key(memory, item, given.at(1), given.truth_or(0, false));
        require_key(key);
        const bool is_known =
            std::ranges::any_of(keys, [&](const Value& known) { return equal(memory, known, key); });
        if (is_known) continue;
        keys.push_back(key);
        out.push_back(item);
    }
    return generated(memory, std::move(out));
}

template <std::string (*change)(std::string_view)>
Value changed(Memory& memory, const Value& value, const Arguments& arguments) {
    static_cast<void>(Bound("upper, lower and capitalize", arguments, {}));
    return memory.text(change(characters_in(memory, value)));
}

Value formatted(Memory& memory, const Value& value, const Arguments& arguments) {
    if (!arguments.named.empty()) throw Fault("format with names of arguments");
    return memory.text(percent_form(memory, text_in(memory, value), arguments.values));
}

const std::unordered_map<std::string_view, Filter>& filters() {
    static const std::unordered_map<std::string_view, Filter> known{
        {"abs", absolute},
        {"attr", attribute},
        {"capitalize", changed<capitalized>},
        {"count", length},
        {"d", otherwise},
        {"default", otherwise},
        {"dictsort", sorted_items},
        {"first", first},
        {"float", as_float},
        {"format", formatted},
        {"indent", indented},
        {"int", as_whole},
        {"items", entries},
        {"join", joined},
        {"last", last},
        {"length", length},
        {"list", listed},
        {"lower", changed<lower>},
        {"map", mapped},
        {"max", extreme<false>},
        {"min", extreme<true>},
        {"reject", selected<false, false>},
        {"rejectattr", selected<true, false>},
        {"replace", replacement},
        {"reverse", reversed},
        {"round", rounded},
        {"safe", safe},
        {"select", selected<false, true>},
        {"selectattr", selected<true, true>},
        {"sort", sorted},
        {"string", as_text},
        {"sum", sum},
        {"title", titled_words},
        {"tojson", json_text},
        {"trim", trimmed},
        {"unique", unique},
        {"upper", changed<upper>},
    };
    return known;
}

/// Jinja's others.
constexpr std::string_view undone[] = {"batch",       "center",   "e",         "escape", "filesizeformat",
                                       "forceescape", "groupby",  "pprint",    "random", "slice",
                                       "striptags",   "truncate", "urlencode", "urlize", "wordcount",
                                       "wordwrap",    "xmlattr"};

}  // namespace

bool is_filter(std::string_view name) {
    return filters().contains(name) || std::ranges::find(undone, name) != std::end(undone);
}

Value apply_filter(Memory& memory, std::string_view name, const Value& input, const Arguments& arguments) {
    memory.step();
    const auto filter = filters().find(name);
    if (filter != filters().end()) return filter->second(memory, input, arguments);
    throw Fault(fmt::format("{} {:?}",
                            is_filter(name) ? "not known here is the filter" : "there is no filter", name));
}

}  // namespace hone::decoder::jinja
