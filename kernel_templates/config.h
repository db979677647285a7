// Values for a variant's tunables, in declared order. A tunable is a named integer with its complete list of
// values: nothing from outside ever reaches a kernel except as one of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

namespace hone {

inline constexpr std::size_t max_tunables = 16;

/// Up to 32 integers, usable in constant expressions.
struct TunableValues {
    std::array<std::int64_t, 32> items{};
    std::size_t count = 0;

    constexpr TunableValues(std::initializer_list<std::int64_t> list) {
        for (const std::int64_t value : list) items[count++] = value;
    }
    [[nodiscard]] constexpr std::span<const std::int64_t> span() const { return {items.data(), count}; }
};

struct Tunable {
    std::string_view name;
    std::string_view meaning;
    TunableValues values;
    /// Not 0: whether launches are programmatic. Where the architecture has such launches, the value 0 is
    /// launched from the image of this one: its waits end at once there.
    std::int64_t image_of_plain_launch = 0;
    /// Not empty: another tunable of the variant that decides what this one's values mean. Measurements speak
    /// of each value beside each of the other's (calibration.h).
    std::string_view read_with;
    /// No device code reads it, only the plan: all values are launched from the image of the first.
    bool of_launch_alone = false;
};

struct Config {
    std::array<std::int64_t, max_tunables> values{};

    [[nodiscard]] std::int64_t operator[](std::size_t tunable) const { return values[tunable]; }
    std::int64_t& operator[](std::size_t tunable) { return values[tunable]; }
    friend auto operator<=>(const Config&, const Config&) = default;
};

}  // namespace hone
