// The accident of this layer.
#pragma once

#include "runtime/system/input_error.h"

namespace hone::checkpoints {

/// A checkpoint that is damaged, of a format that is not read, or does not fit what is asked of it; an output
/// that is there already. `what()` starts with the file or the place in it, names the tensor or key and its
/// value, and says what is allowed.
class CheckpointError : public runtime::InputError {
  public:
    using InputError::InputError;
};

}  // namespace hone::checkpoints
