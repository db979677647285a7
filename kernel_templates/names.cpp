#include "kernel_templates/names.h"

#include <algorithm>

#include "kernel_templates/catalog.h"
#include "kernel_templates/operator_problems.h"
#include "kernel_templates/text.h"

namespace hone {
namespace {

/// What counts of a name.
std::string plain(std::string_view name) {
    std::string text = lower_case(name);
    std::erase(text, '_');
    return text;
}

std::vector<const Family*> found_families(std::span<const std::string_view> names) {
    std::vector<const Family*> found;
    for (const std::string_view name : names) {
        if (const Family* family = find_family(name)) found.push_back(family);
    }
    return found;
}

/// Operators, and the families whose names none of them has.
std::vector<std::string_view> known_names() {
    std::vector<std::string_view> names;
    for (const OperatorName& one : operator_names()) names.push_back(one.title);
    for (const Family* family : families()) {
        const auto same = [&](const OperatorName& one) { return plain(one.title) == plain(family->name); };
        if (std::ranges::none_of(operator_names(), same)) names.push_back(family->name);
    }
    return names;
}

std::string listed_operators() {
    std::string text;
    for (const OperatorName& one : operator_names()) {
        if (!text.empty()) text += ", ";
        text += one.title;
        if (one.families.size() > 1 || plain(one.families.front()) != plain(one.title))
            text += " (" + join(one.families) + ")";
    }
    return text;
}

std::string_view choice_word(const Field& field, std::string_view text) {
    const auto named = [&](const std::string& word) {
        return std::ranges::find_if(field.choices,
                                    [&](std::string_view choice) { return lower_case(choice) == word; });
    };
    auto found = named(lower_case(text));
    if (found == field.choices.end()) found = named(dtype_word(text));
    return found == field.choices.end() ? text : *found;
}

}  // namespace

const OperatorName* find_operator(std::string_view name) {
    if (find_family(name) != nullptr) return nullptr;
    const auto is_it = [&](const OperatorName& one) { return plain(one.title) == plain(name); };
    const auto found = std::ranges::find_if(operator_names(), is_it);
    return found == operator_names().end() ? nullptr : &*found;
}

std::vector<const Family*> families_named(std::string_view name) {
    if (const Family* family = find_family(name)) return {family};
    if (const OperatorName* one = find_operator(name)) return found_families(one->families);
    for (const Family* family : families()) {
        if (plain(family->name) == plain(name)) return {family};
    }
    return {};
}

std::string no_operator(std::string_view name) {
    return "no operator '" + printable(name) + "'" + did_you_mean(name, known_names()) + ": this build has " +
           listed_operators();
}

std::string dtype_word(std::string_view text) {
    const std::string word = lower_case(text);
    const auto synonym = std::ranges::find(dtype_synonyms(), word, &DtypeSynonym::text);
    if (synonym != dtype_synonyms().end()) return std::string(synonym->dtype);
    return dtype_from_name(word) ? word : std::string(text);
}

std::string spelled_fields(const Family& family, std::string_view fields) {
    const std::optional<std::vector<KeyValue>> pairs = parse_key_values(fields, nullptr);
    if (!pairs) return std::string(fields);
    std::string text;
    for (const auto& [key, value] : *pairs) {
        const int index = field_index(family, key);
        const bool is_choice =
            index >= 0 && family.fields[static_cast<std::size_t>(index)].kind == Field::Kind::choice;
        if (!text.empty()) text += ' ';
        text += key;
        text += '=';
        text += is_choice ? choice_word(family.fields[static_cast<std::size_t>(index)], value) : value;
    }
    return text;
}

std::optional<Problem> read_problem(std::string_view text, std::string* error) {
    const auto [name, fields] = split_first_word(text);
    const std::vector<const Family*> named = families_named(name);
    if (named.empty()) return fail(error, no_operator(name));
    std::vector<Problem> problems;
    std::string wrong;
    for (const Family* family : named) {
        std::string why;
        if (const auto problem = parse_problem(*family, spelled_fields(*family, fields), &why))
            problems.push_back(*problem);
        wrong += (wrong.empty() ? "" : "; ") +
                 (named.size() == 1 ? why : why + " (as " + std::string(family->name) + ")");
    }
    if (problems.empty()) return fail(error, std::move(wrong));
    if (problems.size() == 1) {
        const std::string refusal = OperatorProblems(name).refusal(problems.front());
        return refusal.empty() ? std::optional(problems.front()) : fail(error, refusal);
    }
    return fail(error, "'" + printable(text) + "' may be " + std::string(problems[0].family->name) + " or " +
                           std::string(problems[1].family->name) + ": name one of them");
}

}  // namespace hone
