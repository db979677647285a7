// What a call asks of a family: values for its fields. Static fields become compile-time constants of the
// kernel; dynamic ones (rows, tokens, sequence length) stay run-time arguments and are known to the tuner as
// a bucket; free ones are run-time arguments that do not decide which kernel runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

struct Family;

inline constexpr std::size_t max_fields = 16;

struct Field {
    enum class Kind : std::uint8_t {
        choice,   ///< one of `choices`; the value is its index, the text its name
        extent,   ///< static integer
        dynamic,  ///< integer known at call time; tuned at bucket edges
        free,     ///< integer known at call time; has no buckets: constraints may not depend on it
    };

    std::string_view name;
    Kind kind = Kind::extent;
    std::string_view meaning;
    std::int64_t min = 1;
    std::int64_t max = 1;
    std::int64_t default_value = -1;  ///< -1: must be given, unless `default_as` says another field
    std::span<const std::string_view> choices{};
    std::string_view default_as{};  ///< where left out, it is as this integer, which is declared before it
    /// Texts say it only where it is not its default: it came when problems without it had been stored.
    bool quiet_default = false;
    /// Of a dynamic one: sizes between powers of two have buckets of their own where a winner was measured.
    bool finer = false;
};

struct Problem {
    const Family* family = nullptr;
    std::array<std::int64_t, max_fields> values{};

    [[nodiscard]] std::int64_t operator[](std::size_t field) const { return values[field]; }
    friend bool operator==(const Problem&, const Problem&) = default;
};

/// Index of a field by name, or -1.
[[nodiscard]] int field_index(const Family& family, std::string_view name);

/// "rmsnorm dtype=bf16 output=same residual=no hidden=4096 rows=1": all fields in declared order, but for
/// quiet defaults.
[[nodiscard]] std::string to_string(const Problem&);
/// The static fields only, "dtype=bf16 output=same residual=no hidden=4096", and the others only, "rows=1":
/// the two columns under which the cache files a problem.
[[nodiscard]] std::string static_text(const Problem&);
[[nodiscard]] std::string dynamic_text(const Problem&);

/// One of the field's values as it stands in these texts, "bf16" or "4096".
[[nodiscard]] std::string value_text(const Field&, std::int64_t value);

/// Inverse of to_string; fields with a default may be left out, in any order, each once. On failure `error`
/// names the field, the value and what is allowed (with the nearest known name for a misspelt one).
[[nodiscard]] std::optional<Problem> parse_problem(std::string_view text, std::string* error = nullptr);
/// The same for a known family and a text without its name.
[[nodiscard]] std::optional<Problem> parse_problem(const Family&, std::string_view fields,
                                                   std::string* error = nullptr);

/// Whether the field is a constant of the kernel.
[[nodiscard]] constexpr bool is_static(const Field& field) {
    return field.kind == Field::Kind::choice || field.kind == Field::Kind::extent;
}

/// Most dynamic fields of a family, and most of all that are not static.
inline constexpr std::size_t max_dynamic_fields = 2;
inline constexpr std::size_t max_run_time_fields = 4;
/// Indices of a family's fields of one or two kinds, in declared order.
struct FieldIndices {
    std::array<std::uint8_t, max_run_time_fields> items{};
    std::size_t count = 0;

    [[nodiscard]] const std::uint8_t* begin() const { return items.data(); }
    [[nodiscard]] const std::uint8_t* end() const { return items.data() + count; }
    [[nodiscard]] std::uint8_t operator[](std::size_t i) const { return items[i]; }
};
/// Those whose buckets decide which kernel runs.
[[nodiscard]] FieldIndices dynamic_fields(const Family& family);
/// Those and the free ones: what a call says anew each time.
[[nodiscard]] FieldIndices run_time_fields(const Family& family);

/// Values of a family's run-time fields, in declared order; those past them are 0.
using Sizes = std::array<std::int64_t, max_run_time_fields>;

/// Same problem with another value of a field (by index).
[[nodiscard]] Problem with(Problem problem, std::size_t field, std::int64_t value);
/// Same problem at other sizes.
[[nodiscard]] Problem with(Problem problem, const Sizes& sizes);
[[nodiscard]] Sizes sizes_of(const Problem& problem);
/// Same static fields, the others zeroed: identifies an image's share of the problem.
[[nodiscard]] Problem static_part(Problem problem);

/// Upper edges at which a dynamic dimension up to `max` is tuned: 1, 2, 4, ... and max itself. A problem of
/// value v belongs to the first edge >= v.
[[nodiscard]] std::vector<std::int64_t> bucket_edges(std::int64_t max);
/// Whether a winner of this size may have a bucket of its own beside them, in a field that has finer ones: 5,
/// 6 or 7 fourths of a power of two from 128 on. Which tile is best changes there with every few rows.
[[nodiscard]] bool is_finer_edge(std::int64_t size);
/// Index of the dynamic field that has them, or -1: at most one has.
[[nodiscard]] int finer_field(const Family& family);

}  // namespace hone
