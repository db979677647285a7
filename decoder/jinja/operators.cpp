#include "decoder/jinja/operators.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "decoder/jinja/fault.h"
#include "decoder/jinja/limits.h"
#include "decoder/jinja/python_text.h"
#include "decoder/jinja/text_form.h"
#include "decoder/text/utf8.h"

namespace hone::decoder::jinja {
namespace {

[[noreturn]] void fail_pair(std::string_view sign, const Value& a, const Value& b) {
    require_defined(a);
    require_defined(b);
    throw Fault(fmt::format("{} between a {} and a {}", sign, type_name(a), type_name(b)));
}

std::string_view view_of(const Value& value) { return std::get<Text>(value).text; }

bool equal_lists(Memory& memory, const List& a, const List& b) {
    if (a.sort == List::Sort::view && b.sort == List::Sort::view)
        throw Fault("a comparison of views of objects; the filter \"list\" makes lists of them");
    if (a.sort != b.sort || a.items.size() != b.items.size()) return false;
    if (a.sort == List::Sort::once) return &a == &b;
    for (std::size_t i = 0; i < a.items.size(); ++i)
        if (!equal(memory, a.items[i], b.items[i])) return false;
    return true;
}

bool equal_dicts(Memory& memory, const Dict& a, const Dict& b) {
    if (a.entries.size() != b.entries.size()) return false;
    return std::ranges::all_of(a.entries, [&](const auto& entry) {
        const Value* const other = find(memory, b, entry.first);
        return other != nullptr && equal(memory, entry.second, *other);
    });
}

/// Numbers compare by what they are, however they are held.
int compare_numbers(const Value& a, const Value& b) {
    const auto first = whole(a);
    const auto second = whole(b);
    if (first && second) return *first < *second ? -1 : *first > *second;
    const long double x = first ? static_cast<long double>(*first) : real(a).value();
    const long double y = second ? static_cast<long double>(*second) : real(b).value();
    return x < y ? -1 : x > y;
}

bool is_nan(const Value& value) { return is<double>(value) && std::isnan(std::get<double>(value)); }

Value repeated(Memory& memory, const Value& value, std::int64_t times) {
    const auto count = static_cast<std::size_t>(std::max<std::int64_t>(times, 0));
    const auto check = [&](std::size_t size) {
        if (size > 0 && count > (std::size_t{1} << 40) / size) memory.take(std::size_t{1} << 62);
        memory.take(size * count);
    };
    if (is<Text>(value)) {
        check(view_of(value).size());
        std::string text;
        text.reserve(view_of(value).size() * count);
        for (std::size_t i = 0; i < count && !view_of(value).empty(); ++i) text += view_of(value);
        return memory.text(std::move(text));
    }
    const List& list = *std::get<const List*>(value);
    check(list.items.size() * sizeof(Value));
    std::vector<Value> items;
    for (std::size_t i = 0; i < count && !list.items.empty(); ++i)
        items.insert(items.end(), list.items.begin(), list.items.end());
    return memory.list(std::move(items), list.sort);
}

bool is_plain_list(const Value& value) {
    const auto* list = std::get_if<const List*>(&value);
    return list != nullptr && ((*list)->sort == List::Sort::list || (*list)->sort == List::Sort::tuple);
}

Value add(Memory& memory, const Value& a, const Value& b) {
    if (is<Text>(a) && is<Text>(b)) {
        if (std::get<Text>(a).is_safe != std::get<Text>(b).is_safe)
            throw Fault("+ between a text of the filter \"safe\" and another, which Jinja would escape");
        std::string text;
        text.reserve(view_of(a).size() + view_of(b).size());
        return Text{memory.keep(std::move(text.append(view_of(a)).append(view_of(b)))),
                    std::get<Text>(a).is_safe};
    }
    if (is_plain_list(a) && is_plain_list(b)) {
        const List& first = *std::get<const List*>(a);
        const List& second = *std::get<const List*>(b);
        if (first.sort != second.sort) fail_pair("+", a, b);
        memory.step((first.items.size() + second.items.size()) * sizeof(Value));
        std::vector<Value> items = first.items;
        items.insert(items.end(), second.items.begin(), second.items.end());
        return memory.list(std::move(items), first.sort);
    }
    fail_pair("+", a, b);
}

[[noreturn]] void fail_large() { throw Fault("a whole number of more than 64 bits"); }

std::int64_t floored(std::int64_t a, std::int64_t b) {
    if (b == -1) {
        if (a == std::numeric_limits<std::int64_t>::min()) fail_large();
        return -a;
    }
    return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

Value power(std::int64_t base, std::int64_t exponent) {
    if (exponent < 0) {
        if (base == 0) throw Fault("division by zero");
        return std::pow(static_cast<double>(base), static_cast<double>(exponent));
    }
    std::int64_t result = 1;
    if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
    if (base == -1) return exponent % 2 == 0 ? std::int64_t{1} : std::int64_t{-1};
    for (; exponent > 0; --exponent)  // 64 times at the most
        if (__builtin_mul_overflow(result, base, &result)) fail_large();
    return result;
}

Value compute_whole(std::string_view sign, std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    if (sign == "+"   ? __builtin_add_overflow(a, b, &result)
        : sign == "-" ? __builtin_sub_overflow(a, b, &result)
                      : sign == "*" && __builtin_mul_overflow(a, b, &result))
        fail_large();
    if (sign == "+" || sign == "-" || sign == "*") return result;
    if (sign == "**") return power(a, b);
    if (b == 0) throw Fault("division by zero");
    if (sign == "/") return static_cast<double>(a) / static_cast<double>(b);
    if (sign == "//") return floored(a, b);
    return a - floored(a, b) * b;
}

Value compute_real(std::string_view sign, double a, double b) {
    if (sign == "+") return a + b;
    if (sign == "-") return a - b;
    if (sign == "*") return a * b;
    if (sign == "**") {
        if ((a == 0 && b < 0) || (a < 0 && b != std::floor(b))) throw Fault("a power that is no real number");
        const double result = std::pow(a, b);
        if (std::isinf(result) && !std::isinf(a) && !std::isinf(b)) throw Fault("a number that is too large");
        return result;
    }
    if (b == 0) throw Fault("division by zero");
    if (sign == "/") return a / b;
    double rest = std::fmod(a, b);
    if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
    if (rest == 0) rest = std::copysign(0.0, b);
    if (sign == "%") return rest;
    const double quotient = (a - rest) / b;
    const double down = std::floor(quotient);
    return quotient - down > 0.5 ? down + 1 : down;
}

/// What [from:to:step] takes of so many: from `begin`, and as long as `end` is not reached.
struct Places {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t step = 1;

    template <class Take>
    void each(const Take& take) const {
        for (std::int64_t at = begin; step > 0 ? at < end : at > end;) {
            take(static_cast<std::size_t>(at));
            if (__builtin_add_overflow(at, step, &at)) return;
        }
    }
};

std::optional<std::int64_t> place_in_slice(const Value& value) {
    if (is<None>(value)) return std::nullopt;
    require_defined(value);
    const auto known = whole(value);
    if (!known) throw Fault(fmt::format("a {} as a place of a slice", type_name(value)));
    return known;
}

Places places_of(std::size_t count, const Value& from, const Value& to, const Value& step) {
    const auto size = static_cast<std::int64_t>(count);
    Places places{.step = place_in_slice(step).value_or(1)};
    if (places.step == 0) throw Fault("a slice whose step is 0");
    const bool forward = places.step > 0;
    const auto place = [&](const Value& value, std::int64_t otherwise) {
        const auto given = place_in_slice(value);
        if (!given) return otherwise;
        return std::clamp(*given < 0 ? std::max(*given, -size - 1) + size : *given,
                          forward ? std::int64_t{0} : std::int64_t{-1}, forward ? size : size - 1);
    };
    places.begin = place(from, forward ? 0 : size - 1);
    places.end = place(to, forward ? size : -1);
    return places;
}

Value sliced_text(Memory& memory, std::string_view text, const Value& from, const Value& to,
                  const Value& step) {
    memory.step(text.size());
    const Places places = places_of(count_characters(text), from, to, step);
    if (places.step == 1) {
        const auto end = static_cast<std::size_t>(std::max(places.begin, places.end));
        return text_value(part_of(text, static_cast<std::size_t>(places.begin), end));
    }
    memory.take(text.size() * sizeof(std::size_t));
    const std::vector<std::size_t> begins = character_places(text);
    std::string out;
    places.each([&](std::size_t at) { out += text.substr(begins[at], begins[at + 1] - begins[at]); });
    return memory.text(std::move(out));
}

Undefined no_element(Memory& memory, const Value& value, const Value& index) {
    return {
        memory.keep(fmt::format("{} object has no element {}", type_name(value), form_of(memory, index)))};
}

}  // namespace

void require_defined(const Value& value) {
    if (const auto* undefined = std::get_if<Undefined>(&value)) throw Fault(std::string(undefined->why));
}

std::optional<std::int64_t> whole(const Value& value) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
    if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? 1 : 0;
    return std::nullopt;
}

std::optional<double> real(const Value& value) {
    if (const auto* number = std::get_if<double>(&value)) return *number;
    if (const auto number = whole(value)) return static_cast<double>(*number);
    return std::nullopt;
}

bool equal(Memory& memory, const Value& a, const Value& b) {
    memory.step();
    if (real(a) && real(b)) return !is_nan(a) && !is_nan(b) && compare_numbers(a, b) == 0;
    if (a.index() != b.index()) return false;
    if (is<Text>(a)) {
        if (view_of(a).size() != view_of(b).size()) return false;
        memory.step(view_of(a).size());
        return view_of(a) == view_of(b);
    }
    if (is<const List*>(a)) return equal_lists(memory, *std::get<const List*>(a), *std::get<const List*>(b));
    if (is<const Dict*>(a)) return equal_dicts(memory, *std::get<const Dict*>(a), *std::get<const Dict*>(b));
    if (is<Space*>(a)) return std::get<Space*>(a) == std::get<Space*>(b);
    if (is<const Loop*>(a)) return std::get<const Loop*>(a) == std::get<const Loop*>(b);
    if (is<const Function*>(a)) return std::get<const Function*>(a) == std::get<const Function*>(b);
    return true;  // undefined, or none
}

bool less(Memory& memory, const Value& a, const Value& b) {
    memory.step();
    if (real(a) && real(b)) return !is_nan(a) && !is_nan(b) && compare_numbers(a, b) < 0;
    if (is<Text>(a) && is<Text>(b)) {
        memory.step(std::min(view_of(a).size(), view_of(b).size()));
        return view_of(a) < view_of(b);  // bytes of UTF-8 have the order of characters
    }
    if (!is_plain_list(a) || !is_plain_list(b) ||
        std::get<const List*>(a)->sort != std::get<const List*>(b)->sort)
        fail_pair("<", a, b);
    const std::vector<Value>& first = std::get<const List*>(a)->items;
    const std::vector<Value>& second = std::get<const List*>(b)->items;
    for (std::size_t i = 0; i < std::min(first.size(), second.size()); ++i)
        if (!equal(memory, first[i], second[i])) return less(memory, first[i], second[i]);
    return first.size() < second.size();
}

bool compare(Memory& memory, std::string_view sign, const Value& a, const Value& b) {
    if (sign == "==") return equal(memory, a, b);
    if (sign == "!=") return !equal(memory, a, b);
    if (sign == "in") return contains(memory, b, a);
    if (sign == "not in") return !contains(memory, b, a);
    if (is_nan(a) || is_nan(b)) return real(a) && real(b) ? false : less(memory, a, b);
    if (sign == "<") return less(memory, a, b);
    if (sign == ">") return less(memory, b, a);
    if (sign == "<=") return !less(memory, b, a);
    return !less(memory, a, b);
}

bool contains(Memory& memory, const Value& holder, const Value& item) {
    if (is<Text>(holder)) {
        require_defined(item);
        if (!is<Text>(item)) throw Fault(fmt::format("a {} in a text", type_name(item)));
        memory.step(view_of(holder).size());
        return find_in(view_of(holder), view_of(item)) != std::string_view::npos;
    }
    if (const auto* dict = std::get_if<const Dict*>(&holder)) return find(memory, **dict, item) != nullptr;
    return std::ranges::any_of(items_of(memory, holder),
                               [&](const Value& one) { return equal(memory, one, item); });
}

Value compute(Memory& memory, std::string_view sign, const Value& a, const Value& b) {
    const auto first = whole(a);
    const auto second = whole(b);
    if (first && second) return compute_whole(sign, *first, *second);
    if (real(a) && real(b)) return compute_real(sign, *real(a), *real(b));
    if (sign == "+") return add(memory, a, b);
    if (sign == "*" && second && (is<Text>(a) || is_plain_list(a))) return repeated(memory, a, *second);
    if (sign == "*" && first && (is<Text>(b) || is_plain_list(b))) return repeated(memory, b, *first);
    if (sign == "%" && is<Text>(a)) {
        const bool is_tuple = is<const List*>(b) && std::get<const List*>(b)->sort == List::Sort::tuple;
        return memory.text(
            percent_form(memory, view_of(a), is_tuple ? std::get<const List*>(b)->items : std::vector{b}));
    }
    fail_pair(sign, a, b);
}

Value negated(const Value& value) {
    require_defined(value);
    if (const auto number = whole(value)) return compute_whole("-", 0, *number);
    if (const auto* number = std::get_if<double>(&value)) return -*number;
    throw Fault(fmt::format("- in front of a {}", type_name(value)));
}

void require_key(const Value& key) {
    const auto* list = std::get_if<const List*>(&key);
    if (is<const Dict*>(key) ||
        (list != nullptr && ((*list)->sort == List::Sort::list || (*list)->sort == List::Sort::view)))
        throw Fault(fmt::format("a {} as a key", type_name(key)));
}

const Value* find(Memory& memory, const Dict& dict, const Value& key) {
    require_key(key);
    memory.step(dict.entries.size() * sizeof(Value));
    for (const auto& [known, value] : dict.entries) {
        const bool is_same =
            is<Text>(known) && is<Text>(key) ? view_of(known) == view_of(key) : equal(memory, known, key);
        if (is_same) return &value;
    }
    return nullptr;
}

Value* find(Memory& memory, Space& space, std::string_view name) {
    memory.step(space.entries.size() * bytes_of_name);
    const auto entry = std::ranges::find(space.entries, name, [](const auto& known) { return known.first; });
    return entry != space.entries.end() ? &entry->second : nullptr;
}

std::vector<Value> items_of(Memory& memory, const Value& value) {
    if (is<Undefined>(value)) return {};
    std::vector<Value> items;
    if (const auto* list = std::get_if<const List*>(&value)) {
        memory.step((*list)->items.size() * sizeof(Value));
        if ((*list)->sort == List::Sort::once && std::exchange((*list)->spent, true)) return {};
        return (*list)->items;
    }
    if (const auto* dict = std::get_if<const Dict*>(&value)) {
        memory.step((*dict)->entries.size() * sizeof(Value));
        for (const auto& [key, unused] : (*dict)->entries) items.push_back(key);
        return items;
    }
    if (!is<Text>(value)) throw Fault(fmt::format("a {} is no list to go over", type_name(value)));
    std::string_view text = view_of(value);
    memory.step(text.size() * sizeof(Value));
    memory.take(text.size() * sizeof(Value));
    for (; !text.empty(); text.remove_prefix(first_length(text)))
        items.push_back(text_value(text.substr(0, first_length(text))));
    return items;
}

std::int64_t length_of(const Value& value) {
    if (is<Undefined>(value)) return 0;
    if (is<Text>(value)) return static_cast<std::int64_t>(count_characters(view_of(value)));
    if (const auto* dict = std::get_if<const Dict*>(&value)) return std::ssize((*dict)->entries);
    const auto* list = std::get_if<const List*>(&value);
    if (list == nullptr || (*list)->sort == List::Sort::once)
        throw Fault(fmt::format("a {} has no length", type_name(value)));
    return std::ssize((*list)->items);
}

Value slice(Memory& memory, const Value& value, const Value& from, const Value& to, const Value& step) {
    require_defined(value);
    if (is<Text>(value)) return sliced_text(memory, view_of(value), from, to, step);
    const auto* list = std::get_if<const List*>(&value);
    if (list == nullptr || (*list)->sort >= List::Sort::view)
        throw Fault(fmt::format("a slice of a {}", type_name(value)));
    std::vector<Value> items;
    const std::vector<Value>& all = (*list)->items;
    places_of(all.size(), from, to, step).each([&](std::size_t at) { items.push_back(all[at]); });
    return memory.list(std::move(items), (*list)->sort);
}

Value element(Memory& memory, const Value& value, const Value& index) {
    require_defined(value);
    if (const auto* dict = std::get_if<const Dict*>(&value)) {
        if (const Value* const found = find(memory, **dict, index)) return *found;
        return no_element(memory, value, index);
    }
    const auto at = whole(index);
    const auto* list = std::get_if<const List*>(&value);
    const bool has_places = is<Text>(value) || (list != nullptr && (*list)->sort < List::Sort::view);
    if (!at || !has_places) return no_element(memory, value, index);
    const std::int64_t size = length_of(value);
    if (is<Text>(value)) memory.step(view_of(value).size());
    const std::int64_t place = *at < 0 ? *at + size : *at;
    if (place < 0 || place >= size) return no_element(memory, value, index);
    if (list != nullptr) return (*list)->items[static_cast<std::size_t>(place)];
    return sliced_text(memory, view_of(value), place, place + 1, None{});
}

}  // namespace hone::decoder::jinja
