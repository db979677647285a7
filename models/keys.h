// Typed look-ups of a model file's keys. Errors say file, line, key and what is allowed. Remembers which keys
// were asked for: all others are told to the user as not read.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/model_document.h"

namespace hone::models {

using Spellings = std::vector<std::string_view>;

/// A word of a file, and what it means here.
struct NamedValue {
    std::string_view spelling;
    std::string_view meaning;
};

class Keys {
  public:
    using Entry = ModelDocument::Entry;

    explicit Keys(const ModelDocument& document) : document_(document) {}

    /// nullopt: not there, or null. From 1 to max_model_size.
    [[nodiscard]] std::optional<std::int64_t> size(const Spellings& spellings) const;
    /// The same from 0.
    [[nodiscard]] std::optional<std::int64_t> count(const Spellings& spellings) const;
    [[nodiscard]] std::int64_t needed_size(const Spellings& spellings) const;
    /// null: 0.
    [[nodiscard]] std::int64_t needed_count(const Spellings& spellings) const;
    /// Empty: not there, or null.
    [[nodiscard]] std::string text(const Spellings& spellings) const;
    [[nodiscard]] std::optional<bool> flag(const Spellings& spellings) const;
    /// Above 0 and at most 1.
    [[nodiscard]] std::optional<double> fraction(const Spellings& spellings) const;
    /// Above 0 and finite.
    [[nodiscard]] std::optional<double> positive(const Spellings& spellings) const;
    /// nullptr: not there, or null.
    [[nodiscard]] const ModelDocument::List* list(const Spellings& spellings) const;
    /// What `text` stands for; `fallback` where there is none.
    [[nodiscard]] std::string_view one_of(const Spellings& spellings, std::span<const NamedValue> allowed,
                                          std::string_view fallback) const;

    /// There and not null.
    [[nodiscard]] bool has(const Spellings& spellings) const { return find(spellings) != nullptr; }
    /// There, and null.
    [[nodiscard]] bool is_null(const Spellings& spellings) const;
    [[nodiscard]] const Entry* find(const Spellings& spellings) const;
    /// Counts as read, whatever it says.
    void skip(const Spellings& spellings) const { static_cast<void>(find(spellings)); }

    /// Not null, and never asked for; by name.
    [[nodiscard]] std::vector<std::string> unread() const;

    [[noreturn]] void missing(const Spellings& spellings) const;
    /// Throws with the place and name of the key: "config.json:3: vocab_size has to be ...".
    [[noreturn]] void fail(const Spellings& spellings, const std::string& what) const;
    [[noreturn]] void fail_at(const Entry& entry, const std::string& what) const;
    /// With the value that the key has.
    [[noreturn]] void refuse(const Entry& entry, std::string_view allowed) const;

    [[nodiscard]] const ModelDocument& document() const { return document_; }

  private:
    [[nodiscard]] std::optional<std::int64_t> whole(const Spellings& spellings, std::int64_t least) const;

    const ModelDocument& document_;
    mutable std::set<std::string, std::less<>> asked_;
};

}  // namespace hone::models
