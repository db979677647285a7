// A variant's config as a struct of named integers. Name, index and place of a tunable follow from the
// member, checked when compiled:
//
//   struct GemvConfig { std::int64_t tokens = 1; std::int64_t rows = 1; };
//   constexpr auto tunables = tunables_of({
//       tunable<&GemvConfig::tokens>("tokens of a block", {1, 2, 4, 8}),
//       tunable<&GemvConfig::rows>("rows of the weight that a warp multiplies together", {1, 2, 4}),
//   });
//
// A table that leaves a member out, or has another order than the struct, does not compile.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "kernel_templates/config.h"

namespace hone {

template <class Values>
inline constexpr std::size_t tunable_count = sizeof(Values) / sizeof(std::int64_t);

/// The config of a variant as its struct. `Values` has std::int64_t members only.
template <class Values>
[[nodiscard]] constexpr Values values_of(const Config& config) {
    static_assert(sizeof(Values) % sizeof(std::int64_t) == 0 && tunable_count<Values> <= max_tunables);
    std::array<std::int64_t, tunable_count<Values>> leading{};
    for (std::size_t i = 0; i < leading.size(); ++i) leading[i] = config.values[i];
    return std::bit_cast<Values>(leading);
}

/// Inverse of values_of().
template <class Values>
[[nodiscard]] constexpr Config config_of(const Values& values) {
    static_assert(sizeof(Values) % sizeof(std::int64_t) == 0 && tunable_count<Values> <= max_tunables);
    const auto leading = std::bit_cast<std::array<std::int64_t, tunable_count<Values>>>(values);
    Config config;
    for (std::size_t i = 0; i < leading.size(); ++i) config.values[i] = leading[i];
    return config;
}

/// Index of a member in its struct, which is that of the tunable in Config::values.
template <class Values>
[[nodiscard]] constexpr std::size_t index_of(std::int64_t Values::*member) {
    std::array<std::int64_t, tunable_count<Values>> numbers{};
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i);
    return static_cast<std::size_t>(std::bit_cast<Values>(numbers).*member);
}

/// "rows" of &GemvConfig::rows, as the compiler spells it.
template <auto member>
[[nodiscard]] consteval std::string_view member_name() {
    constexpr std::string_view spelled = __PRETTY_FUNCTION__;
    constexpr std::size_t begin = spelled.find("member = ");
    constexpr std::size_t end = spelled.find_first_of(";]", begin);
    std::string_view name = spelled.substr(begin, end - begin);
    name.remove_prefix(name.rfind("::") + 2);
    while (name.back() == ')') name.remove_suffix(1);
    return name;
}

template <class Values>
struct TunableOf {
    std::int64_t Values::*member;
    Tunable tunable;
};

template <class Values>
consteval TunableOf<Values> make_tunable(std::int64_t Values::*member, std::string_view name,
                                         std::string_view meaning, std::initializer_list<std::int64_t> values,
                                         std::int64_t image_of_plain_launch = 0) {
    return {member, {name, meaning, values, image_of_plain_launch, {}, false}};
}

/// One row of the table: the member, its meaning in words, and all its values.
template <auto member>
[[nodiscard]] consteval auto tunable(std::string_view meaning, std::initializer_list<std::int64_t> values) {
    return make_tunable(member, member_name<member>(), meaning, values);
}

/// The row, of a tunable whose values mean something else for each value of `other`.
template <auto other, class Values>
[[nodiscard]] consteval TunableOf<Values> read_with(TunableOf<Values> row) {
    row.tunable.read_with = member_name<other>();
    return row;
}

/// The row, of a tunable that no device code reads: its values share an image.
template <class Values>
[[nodiscard]] consteval TunableOf<Values> of_launch_alone(TunableOf<Values> row) {
    row.tunable.of_launch_alone = true;
    return row;
}

/// The row of the tunable that says whether a launch is programmatic; its 0 has no image of its own.
template <auto member>
[[nodiscard]] consteval auto programmatic_launch() {
    return make_tunable(member, member_name<member>(), "1: programmatic dependent launch", {0, 1}, 1);
}
/// The same where the successor may be released late, which is what a plain launch does.
template <auto member>
[[nodiscard]] consteval auto programmatic_launches() {
    return make_tunable(member, member_name<member>(),
                        "1: programmatic dependent launch; 2: of the successor, late and beside the block",
                        {0, 1, 2}, 2);
}

/// The table of a variant: all members of its struct, in their order.
template <class Values, std::size_t count>
[[nodiscard]] consteval std::array<Tunable, count> tunables_of(const TunableOf<Values> (&rows)[count]) {
    static_assert(count == tunable_count<Values>, "every member of the struct has its row");
    std::array<Tunable, count> table{rows[0].tunable};
    for (std::size_t i = 0; i < count; ++i) {
        if (index_of(rows[i].member) != i) throw "rows stand in the order of the struct's members";
        table[i] = rows[i].tunable;
    }
    return table;
}

/// The table of a struct that derives from another one: the rows of its base, then its own members'.
template <class Values, std::size_t first, std::size_t count>
[[nodiscard]] consteval std::array<Tunable, first + count> tunables_of(
    const std::array<Tunable, first>& base, const TunableOf<Values> (&rows)[count]) {
    static_assert(first + count == tunable_count<Values>, "every member of the struct has its row");
    std::array<Tunable, first + count> table{};
    for (std::size_t i = 0; i < first; ++i) table[i] = base[i];
    for (std::size_t i = 0; i < count; ++i) {
        if (index_of(rows[i].member) != first + i) throw "rows stand in the order of the struct's members";
        table[first + i] = rows[i].tunable;
    }
    return table;
}

}  // namespace hone
