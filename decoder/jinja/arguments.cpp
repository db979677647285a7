#include "decoder/jinja/arguments.h"

#include <algorithm>

#include "decoder/jinja/fault.h"
#include "decoder/jinja/operators.h"

namespace hone::decoder::jinja {

Bound::Bound(std::string_view function, const Arguments& given,
             std::initializer_list<std::string_view> parameters)
    : function_(function), values_(parameters.size()) {
    if (given.values.size() > values_.size())
        throw Fault(fmt::format("{} takes up to {} arguments, and not {}", function, values_.size(),
                                given.values.size()));
    std::ranges::copy(given.values, values_.begin());
    for (const auto& [name, value] : given.named) {
        const auto at = static_cast<std::size_t>(std::ranges::find(parameters, name) - parameters.begin());
        if (at == values_.size() || values_[at])
            throw Fault(fmt::format("{} takes no argument {:?}{}", function, name,
                                    at == values_.size() ? "" : " twice"));
        values_[at] = value;
    }
}

Value Bound::need(std::size_t parameter) const {
    if (!values_[parameter]) throw Fault(fmt::format("{} needs {} arguments", function_, parameter + 1));
    return *values_[parameter];
}

std::string_view Bound::text(std::size_t parameter) const {
    const Value value = need(parameter);
    require_defined(value);
    if (!is<Text>(value))
        throw Fault(fmt::format("{} of a {}; allowed: a text", function_, type_name(value)));
    return std::get<Text>(value).text;
}

std::string_view Bound::text_or(std::size_t parameter, std::string_view otherwise) const {
    return values_[parameter] ? text(parameter) : otherwise;
}

std::int64_t Bound::whole_or(std::size_t parameter, std::int64_t otherwise) const {
    if (!has(parameter)) return otherwise;
    require_defined(*values_[parameter]);
    const auto number = whole(*values_[parameter]);
    if (!number)
        throw Fault(
            fmt::format("{} of a {}; allowed: a whole number", function_, type_name(*values_[parameter])));
    return *number;
}

bool Bound::truth_or(std::size_t parameter, bool otherwise) const {
    return values_[parameter] ? truth(*values_[parameter]) : otherwise;
}

bool Bound::has(std::size_t parameter) const { return values_[parameter] && !is<None>(*values_[parameter]); }

}  // namespace hone::decoder::jinja
