#include "models/keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "kernel_templates/text.h"
#include "models/error.h"
#include "models/model.h"

namespace hone::models {

const Keys::Entry* Keys::find(const Spellings& spellings) const {
    for (const std::string_view spelling : spellings) asked_.emplace(spelling);
    return document_.find(spellings);
}

bool Keys::is_null(const Spellings& spellings) const {
    return find(spellings) == nullptr && document_.find_or_null(spellings) != nullptr;
}

std::optional<std::int64_t> Keys::whole(const Spellings& spellings, std::int64_t least) const {
    const Entry* entry = find(spellings);
    if (entry == nullptr) return std::nullopt;
    const auto* value = std::get_if<std::int64_t>(&entry->value);
    if (value == nullptr) refuse(*entry, fmt::format("a whole number from {} to {}", least, max_model_size));
    if (*value < least || *value > max_model_size)
        fail_at(*entry, fmt::format("is {}, allowed is {} to {}", *value, least, max_model_size));
    return *value;
}

std::optional<std::int64_t> Keys::size(const Spellings& spellings) const { return whole(spellings, 1); }

std::optional<std::int64_t> Keys::count(const Spellings& spellings) const { return whole(spellings, 0); }

std::int64_t Keys::needed_size(const Spellings& spellings) const {
    if (const auto value = size(spellings)) return *value;
    missing(spellings);
}

std::int64_t Keys::needed_count(const Spellings& spellings) const {
    if (const auto value = count(spellings)) return *value;
    if (is_null(spellings)) return 0;
    missing(spellings);
}

std::string Keys::text(const Spellings& spellings) const {
    const Entry* entry = find(spellings);
    if (entry == nullptr) return {};
    const auto* value = std::get_if<std::string>(&entry->value);
    if (value == nullptr) refuse(*entry, "a text");
    return *value;
}

std::optional<bool> Keys::flag(const Spellings& spellings) const {
    const Entry* entry = find(spellings);
    if (entry == nullptr) return std::nullopt;
    const auto* value = std::get_if<bool>(&entry->value);
    if (value == nullptr) refuse(*entry, "true or false");
    return *value;
}

std::optional<double> Keys::fraction(const Spellings& spellings) const {
    const Entry* entry = find(spellings);
    if (entry == nullptr) return std::nullopt;
    if (const auto* whole = std::get_if<std::int64_t>(&entry->value); whole != nullptr && *whole == 1)
        return 1.0;
    const auto* value = std::get_if<double>(&entry->value);
    if (value == nullptr || !(*value > 0) || *value > 1) refuse(*entry, "a number above 0 and at most 1");
    return *value;
}

std::optional<double> Keys::positive(const Spellings& spellings) const {
    const Entry* entry = find(spellings);
    if (entry == nullptr) return std::nullopt;
    const auto* whole = std::get_if<std::int64_t>(&entry->value);
    const auto* value = std::get_if<double>(&entry->value);
    const double number = whole != nullptr ? static_cast<double>(*whole) : value != nullptr ? *value : 0;
    if (!(number > 0) || std::isinf(number)) refuse(*entry, "a finite number above 0");
    return number;
}

const ModelDocument::List* Keys::list(const Spellings& spellings) const {
    const Entry* entry = find(spellings);
    if (entry == nullptr) return nullptr;
    const auto* value = std::get_if<ModelDocument::List>(&entry->value);
    if (value == nullptr) refuse(*entry, "a list of numbers or words");
    return value;
}

std::string_view Keys::one_of(const Spellings& spellings, std::span<const NamedValue> allowed,
                              std::string_view fallback) const {
    const std::string word = text(spellings);
    if (word.empty()) return fallback;
    Spellings names;
    for (const NamedValue& named : allowed) {
        if (named.spelling == word) return named.meaning;
        names.push_back(named.spelling);
    }
    fail(spellings, fmt::format("is '{}', allowed is {}{}", printable(word), fmt::join(names, ", "),
                                did_you_mean(word, names)));
}

std::vector<std::string> Keys::unread() const {
    std::set<std::string, std::less<>> names;
    for (const Entry* entry : document_.entries()) {
        if (!asked_.contains(entry->key)) names.insert(entry->key);
    }
    return {names.begin(), names.end()};
}

void Keys::missing(const Spellings& spellings) const {
    throw ModelError(fmt::format("{}: key {} is missing (accepted spellings: {})", document_.file_name(),
                                 spellings.front(), fmt::join(spellings, ", ")));
}

void Keys::fail(const Spellings& spellings, const std::string& what) const {
    const Entry* entry = document_.find(spellings);
    if (entry != nullptr) fail_at(*entry, what);
    throw ModelError(fmt::format("{}: {} {}", document_.file_name(), spellings.front(), what));
}

void Keys::refuse(const Entry& entry, std::string_view allowed) const {
    fail_at(entry, fmt::format("is {}, allowed is {}", shown(entry.value), allowed));
}

void Keys::fail_at(const Entry& entry, const std::string& what) const {
    throw ModelError(fmt::format("{}{} {}", document_.place(entry), entry.key, what));
}

}  // namespace hone::models
