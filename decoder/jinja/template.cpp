#include "decoder/jinja/template.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "decoder/error.h"
#include "decoder/jinja/fault.h"
#include "decoder/jinja/lexer.h"
#include "decoder/jinja/limits.h"
#include "decoder/jinja/parser.h"
#include "decoder/jinja/refused.h"
#include "decoder/jinja/renderer.h"
#include "decoder/text/utf8.h"
#include "runtime/system/short_text.h"

namespace hone::decoder::jinja {
namespace {

[[noreturn]] void refuse(int line, const char* why) {
    throw DecoderError(fmt::format("line {}: {}", line, runtime::with_short_words(why)));
}

}  // namespace

struct Template::State {
    Statements statements{};
    std::vector<std::string> names{};  ///< sorted
};

Template Template::read(std::string_view text) {
    if (text.size() > max_template_bytes)
        throw DecoderError(fmt::format("longer than {} bytes, the most that is read", max_template_bytes));
    if (!is_utf8(text)) throw DecoderError("the template is no UTF-8");
    auto state = std::make_shared<State>();
    try {
        const std::vector<Token> tokens = read_tokens(text);
        state->statements = read_statements(tokens);
        for (const Token& token : tokens)
            if (token.kind == TokenKind::name) state->names.push_back(token.text);
    } catch (const Fault& fault) {
        refuse(fault.line(), fault.what());
    }
    std::ranges::sort(state->names);
    const auto rest = std::ranges::unique(state->names);
    state->names.erase(rest.begin(), rest.end());
    return Template(std::move(state));
}

bool Template::mentions(std::string_view name) const {
    return std::ranges::binary_search(state_->names, name);
}

std::string Template::render(const nlohmann::ordered_json& variables, const std::tm& now) const {
    Renderer renderer(variables, now);
    try {
        return renderer.run(state_->statements);
    } catch (const Fault& fault) {
        refuse(renderer.line(), fault.what());
    } catch (const Refusal& refusal) {
        throw Refused(refusal.what());
    }
}

}  // namespace hone::decoder::jinja
