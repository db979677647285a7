// What a model file can get wrong.
#pragma once

#include "runtime/system/input_error.h"

namespace hone::models {

/// A model file that makes no sense, or that Hone does not understand. `what()` names file, key and value.
class ModelError : public runtime::InputError {
  public:
    using InputError::InputError;
};

}  // namespace hone::models
