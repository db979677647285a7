#include "kernel_templates/operator_problems.h"

#include <algorithm>
#include <array>
#include <optional>

#include "kernel_templates/text.h"

namespace hone {
namespace {

using Pairs = std::vector<KeyValue>;

std::string_view value_of(const Pairs& pairs, std::string_view key) {
    const auto found = std::ranges::find(pairs, key, &KeyValue::key);
    return found == pairs.end() ? std::string_view{} : found->value;
}

/// "gated=yes" or "activation!=none".
bool holds(std::string_view condition, const Pairs& pairs) {
    const std::size_t equals = condition.find('=');
    const bool is_other = condition[equals - 1] == '!';
    const std::string_view key = condition.substr(0, equals - (is_other ? 1 : 0));
    return (value_of(pairs, key) == condition.substr(equals + 1)) != is_other;
}

std::string joined(const Pairs& pairs) {
    std::string text;
    for (const auto& [key, value] : pairs) {
        if (key == "residual") continue;  // is the second half's alone
        if (!text.empty()) text += ' ';
        text.append(key).append("=").append(value);
    }
    return text;
}

/// The fields of the second half behind this first one, but for the residual.
std::string second_half_of(const Pairs& first) {
    constexpr std::array<KeyValue, 4> plain{
        {{"norm", "no"}, {"activation", "none"}, {"gated", "no"}, {"quantized_x", "no"}}};
    Pairs second = first;
    for (KeyValue& pair : second) {
        if (pair.key == "in") pair.value = value_of(first, "out");
        if (pair.key == "out") pair.value = value_of(first, "in");
        const auto found = std::ranges::find(plain, pair.key, &KeyValue::key);
        if (found != plain.end()) pair.value = found->value;
    }
    return joined(second);
}

Pairs pairs_of(std::string_view fields) { return parse_key_values(fields, nullptr).value_or(Pairs()); }

}  // namespace

OperatorProblems::OperatorProblems(std::string_view name)
    : families_(families_named(name)), operator_(find_operator(name)) {}

void OperatorProblems::consider(std::string_view family, std::string_view static_fields) {
    if (operator_ == nullptr || !operator_->halves || !has_family(family)) return;
    if (is_told_by_fields(static_fields))
        second_halves_.emplace(family, second_half_of(pairs_of(static_fields)));
}

bool OperatorProblems::contains(std::string_view family, std::string_view static_fields) const {
    if (!has_family(family)) return false;
    return is_told_by_fields(static_fields) ||
           second_halves_.contains({std::string(family), joined(pairs_of(static_fields))});
}

std::string OperatorProblems::refusal(const Problem& problem) const {
    const bool may_be = operator_ == nullptr || operator_->halves || is_told_by_fields(static_text(problem));
    if (may_be) return {};
    return std::string(operator_->title) + " has " + join(operator_->problems) + ": '" +
           std::string(problem.family->name) + "' names the family, with all that it has";
}

bool OperatorProblems::has_family(std::string_view family) const {
    return std::ranges::any_of(families_, [&](const Family* one) { return one->name == family; });
}

bool OperatorProblems::is_told_by_fields(std::string_view static_fields) const {
    if (operator_ == nullptr || operator_->problems.empty()) return true;
    const Pairs pairs = pairs_of(static_fields);
    return std::ranges::any_of(operator_->problems,
                               [&](std::string_view condition) { return holds(condition, pairs); });
}

}  // namespace hone
