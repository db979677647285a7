// What is thrown for input from outside: files, models, options. Layers derive their own errors from it, so
// that a program catches one type and shows its text.
#pragma once

#include <stdexcept>

namespace hone::runtime {

/// Input from outside that cannot be read or makes no sense. `what()` starts with file and line where there
/// are any, and says what is wrong and what is allowed.
class InputError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

}  // namespace hone::runtime
