// A template's tokens to its statements.
#pragma once

#include <span>

#include "decoder/jinja/lexer.h"
#include "decoder/jinja/syntax.h"

namespace hone::decoder::jinja {

/// Throws Fault.
[[nodiscard]] Statements read_statements(std::span<const Token> tokens);

}  // namespace hone::decoder::jinja
