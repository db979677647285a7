#include "kernel_templates/problem.h"

#include <algorithm>
#include <bit>

#include "kernel_templates/catalog.h"
#include "kernel_templates/text.h"

namespace hone {
namespace {

bool is_quiet(const Field& field, std::int64_t value) {
    return field.quiet_default && value == field.default_value;
}

template <class Keep>
std::string fields_text(const Problem& problem, Keep keep) {
    std::string text;
    for (std::size_t i = 0; i < problem.family->fields.size(); ++i) {
        const Field& field = problem.family->fields[i];
        if (!keep(field) || is_quiet(field, problem.values[i])) continue;
        if (!text.empty()) text += ' ';
        text += std::string(field.name) + '=' + value_text(field, problem.values[i]);
    }
    return text;
}

template <class Keep>
FieldIndices indices(const Family& family, Keep keep) {
    FieldIndices found;
    for (std::size_t i = 0; i < family.fields.size(); ++i) {
        if (keep(family.fields[i])) found.items[found.count++] = static_cast<std::uint8_t>(i);
    }
    return found;
}

std::optional<std::int64_t> parse_choice(const Field& field, std::string_view text, std::string* error) {
    for (std::size_t i = 0; i < field.choices.size(); ++i) {
        if (field.choices[i] == text) return static_cast<std::int64_t>(i);
    }
    return fail(error, "field '" + std::string(field.name) + "' has the value '" + std::string(text) +
                           "'; allowed: " + join(field.choices) + did_you_mean(text, field.choices));
}

std::optional<std::int64_t> parse_value(const Field& field, std::string_view text, std::string* error) {
    if (field.kind == Field::Kind::choice) return parse_choice(field, text, error);
    const std::optional<std::int64_t> value = parse_integer(text);
    if (!value || *value < field.min || *value > field.max) {
        return fail(error, "field '" + std::string(field.name) + "' has the value '" + std::string(text) +
                               "'; allowed: an integer from " + std::to_string(field.min) + " to " +
                               std::to_string(field.max));
    }
    return value;
}

/// What a field is that was left out; those before it are known.
std::optional<std::int64_t> default_of(const Problem& problem, const Field& field, std::string* error) {
    if (field.default_value >= 0) return field.default_value;
    if (const int as = field_index(*problem.family, field.default_as); as >= 0)
        return problem[static_cast<std::size_t>(as)];
    return fail(error, std::string(problem.family->name) + " needs the field '" + std::string(field.name) +
                           "': " + std::string(field.meaning));
}

bool fill_left_out(Problem& problem, const std::array<bool, max_fields>& given, std::string* error) {
    for (std::size_t i = 0; i < problem.family->fields.size(); ++i) {
        if (given[i]) continue;
        const std::optional<std::int64_t> value = default_of(problem, problem.family->fields[i], error);
        if (!value) return false;
        problem.values[i] = *value;
    }
    return true;
}

std::vector<std::string_view> field_names(const Family& family) {
    std::vector<std::string_view> names;
    for (const Field& field : family.fields) names.push_back(field.name);
    return names;
}

std::vector<std::string_view> family_names() {
    std::vector<std::string_view> names;
    for (const Family* family : families()) names.push_back(family->name);
    return names;
}

}  // namespace

std::string value_text(const Field& field, std::int64_t value) {
    if (field.kind == Field::Kind::choice) return std::string(field.choices[static_cast<std::size_t>(value)]);
    return std::to_string(value);
}

int field_index(const Family& family, std::string_view name) {
    for (std::size_t i = 0; i < family.fields.size(); ++i) {
        if (family.fields[i].name == name) return static_cast<int>(i);
    }
    return -1;
}

FieldIndices dynamic_fields(const Family& family) {
    return indices(family, [](const Field& field) { return field.kind == Field::Kind::dynamic; });
}

FieldIndices run_time_fields(const Family& family) {
    return indices(family, [](const Field& field) { return !is_static(field); });
}

std::string to_string(const Problem& problem) {
    return std::string(problem.family->name) + ' ' + fields_text(problem, [](const Field&) { return true; });
}

std::string static_text(const Problem& problem) { return fields_text(problem, is_static); }

std::string dynamic_text(const Problem& problem) {
    return fields_text(problem, [](const Field& field) { return !is_static(field); });
}

std::optional<Problem> parse_problem(std::string_view text, std::string* error) {
    const auto [name, fields] = split_first_word(text);
    if (const Family* family = find_family(name)) return parse_problem(*family, fields, error);
    const std::vector<std::string_view> names = family_names();
    return fail(error, "there is no family '" + std::string(name) + "'; known: " + join(names) +
                           did_you_mean(name, names));
}

std::optional<Problem> parse_problem(const Family& family, std::string_view fields, std::string* error) {
    const std::optional<std::vector<KeyValue>> pairs = parse_key_values(fields, error);
    if (!pairs) return std::nullopt;

    Problem problem{&family, {}};
    std::array<bool, max_fields> given{};
    for (const auto& [key, text] : *pairs) {
        const int index = field_index(family, key);
        if (index < 0) {
            const std::vector<std::string_view> names = field_names(family);
            return fail(error, std::string(family.name) + " has no field '" + std::string(key) +
                                   "'; known: " + join(names) + did_you_mean(key, names));
        }
        const std::size_t i = static_cast<std::size_t>(index);
        if (given[i]) return fail(error, "field '" + std::string(key) + "' is given twice");
        const std::optional<std::int64_t> value = parse_value(family.fields[i], text, error);
        if (!value) return std::nullopt;
        problem.values[i] = *value;
        given[i] = true;
    }
    if (!fill_left_out(problem, given, error)) return std::nullopt;
    if (std::string wrong = family.validate(problem); !wrong.empty()) return fail(error, std::move(wrong));
    return problem;
}

Problem with(Problem problem, std::size_t field, std::int64_t value) {
    problem.values[field] = value;
    return problem;
}

Problem with(Problem problem, const Sizes& sizes) {
    std::size_t i = 0;
    for (const std::uint8_t field : run_time_fields(*problem.family)) problem.values[field] = sizes[i++];
    return problem;
}

Sizes sizes_of(const Problem& problem) {
    Sizes sizes{};
    std::size_t i = 0;
    for (const std::uint8_t field : run_time_fields(*problem.family)) sizes[i++] = problem.values[field];
    return sizes;
}

Problem static_part(Problem problem) {
    for (std::size_t i = 0; i < problem.family->fields.size(); ++i) {
        if (!is_static(problem.family->fields[i])) problem.values[i] = 0;
    }
    return problem;
}

std::vector<std::int64_t> bucket_edges(std::int64_t max) {
    std::vector<std::int64_t> edges;
    for (std::int64_t edge = 1; edge < max; edge *= 2) edges.push_back(edge);
    if (max >= 1) edges.push_back(max);
    return edges;
}

bool is_finer_edge(std::int64_t size) {
    constexpr std::int64_t least = 128;
    if (size <= least) return false;
    const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(size)));
    return size > power && size % (power / 4) == 0;
}

int finer_field(const Family& family) {
    const auto found = std::ranges::find_if(family.fields, &Field::finer);
    return found == family.fields.end() ? -1 : static_cast<int>(found - family.fields.begin());
}

}  // namespace hone
