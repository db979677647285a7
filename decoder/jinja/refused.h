// A conversation that a template refuses, by its own words.
#pragma once

#include "decoder/error.h"

namespace hone::decoder::jinja {

class Refused : public DecoderError {
  public:
    using DecoderError::DecoderError;
};

}  // namespace hone::decoder::jinja
