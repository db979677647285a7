// Arguments of a call by the names of a function's parameters.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "decoder/jinja/value.h"

namespace hone::decoder::jinja {

/// What is given for each parameter. Throws Fault for more than there are, unknown names and two values for
/// one.
class Bound {
  public:
    Bound(std::string_view function, const Arguments& given,
          std::initializer_list<std::string_view> parameters);

    [[nodiscard]] const std::optional<Value>& at(std::size_t parameter) const { return values_[parameter]; }
    // Throw Fault where it is missing, or of another type.
    [[nodiscard]] Value need(std::size_t parameter) const;
    [[nodiscard]] std::string_view text(std::size_t parameter) const;
    [[nodiscard]] std::string_view text_or(std::size_t parameter, std::string_view otherwise) const;
    [[nodiscard]] std::int64_t whole_or(std::size_t parameter, std::int64_t otherwise) const;
    [[nodiscard]] bool truth_or(std::size_t parameter, bool otherwise) const;
    /// Neither missing nor none.
    [[nodiscard]] bool has(std::size_t parameter) const;

  private:
    std::string_view function_;
    std::vector<std::optional<Value>> values_;
};

}  // namespace hone::decoder::jinja
