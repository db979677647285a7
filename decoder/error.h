// The accidents of this layer.
#pragma once

#include <string>
#include <string_view>

#include "runtime/hone/error.h"
#include "runtime/system/input_error.h"
#include "runtime/system/short_text.h"

namespace hone::decoder {

/// A model's folder that cannot be read, a part of it that is not understood, or text that it has no tokens
/// for. `what()` starts with the file and the place in it, names the value, and says what is allowed. Control
/// characters of tokens and texts are escaped in it: at a NUL it would end.
class DecoderError : public runtime::InputError {
  public:
    explicit DecoderError(std::string_view what) : InputError(runtime::escape_controls(what, true)) {}
};

/// The GPU or the driver failed, or hangs: no token follows, and no request is taken. Nothing that was given
/// is to blame.
class EngineFailure : public Error {
  public:
    explicit EngineFailure(const std::string& why) : Error(why, "", "") {}
};

}  // namespace hone::decoder
