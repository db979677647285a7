// What Python's operators do with values. Throw Fault for what they do not do, and where a limit is reached.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "decoder/jinja/memory.h"
#include "decoder/jinja/value.h"

namespace hone::decoder::jinja {

/// `why` of an undefined value is thrown.
void require_defined(const Value& value);

[[nodiscard]] bool equal(Memory& memory, const Value& a, const Value& b);
/// a < b, of numbers, texts and lists.
[[nodiscard]] bool less(Memory& memory, const Value& a, const Value& b);
/// "==", "!=", "<", "<=", ">", ">=", "in" or "not in".
[[nodiscard]] bool compare(Memory& memory, std::string_view sign, const Value& a, const Value& b);
[[nodiscard]] bool contains(Memory& memory, const Value& holder, const Value& item);

/// "+", "-", "*", "/", "//", "%" or "**".
[[nodiscard]] Value compute(Memory& memory, std::string_view sign, const Value& a, const Value& b);
[[nodiscard]] Value negated(const Value& value);

/// What changes is no key: lists and objects.
void require_key(const Value& key);
/// The value behind a key, or none.
[[nodiscard]] const Value* find(Memory& memory, const Dict& dict, const Value& key);
[[nodiscard]] Value* find(Memory& memory, Space& space, std::string_view name);
/// What a loop goes over, one by one.
[[nodiscard]] std::vector<Value> items_of(Memory& memory, const Value& value);
/// len().
[[nodiscard]] std::int64_t length_of(const Value& value);

/// Whole numbers, and booleans, which count as such.
[[nodiscard]] std::optional<std::int64_t> whole(const Value& value);
[[nodiscard]] std::optional<double> real(const Value& value);

/// value[from:to:step], where each may be none.
[[nodiscard]] Value slice(Memory& memory, const Value& value, const Value& from, const Value& to,
                          const Value& step);
/// value[index], and an undefined value where there is none.
[[nodiscard]] Value element(Memory& memory, const Value& value, const Value& index);

}  // namespace hone::decoder::jinja
