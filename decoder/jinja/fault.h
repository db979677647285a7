// Why a template cannot be read, or what it asks for cannot be done. Leaves this room as a DecoderError.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace hone::decoder::jinja {

/// A fault of the template; `line` is 0 where whoever catches it knows the line.
class Fault : public std::runtime_error {
  public:
    explicit Fault(const std::string& what, int line = 0) : std::runtime_error(what), line_(line) {}
    [[nodiscard]] int line() const { return line_; }

  private:
    int line_;
};

/// What the template itself says of a conversation, with raise_exception().
class Refusal : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

}  // namespace hone::decoder::jinja
