// Accidents of the cache layer.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>

namespace hone::cache {

/// The cache cannot be used as asked. `what()` names the file and the cause; `hint` says what to do.
class CacheError : public std::runtime_error {
  public:
    enum class Kind {
        unusable,
        busy,
        read_only,
        full,
        newer_schema,
        not_a_cache,
        damaged,
        unsafe_permissions
    };

    CacheError(Kind kind, const std::string& what, std::string hint)
        : std::runtime_error(what), kind_(kind), hint_(std::move(hint)) {}
    [[nodiscard]] Kind kind() const { return kind_; }
    [[nodiscard]] const std::string& hint() const { return hint_; }

  private:
    Kind kind_;
    std::string hint_;
};

/// A bundle was refused as a whole; nothing was imported. `what()` names file, row and field.
class BundleError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

}  // namespace hone::cache
