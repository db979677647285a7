// A template in Jinja, as transformers sets Jinja up for chat templates: an immutable sandbox, trim_blocks,
// lstrip_blocks, and loops that can be left. Chat templates are files from the internet: whatever stands in
// one, reading and rendering it end soon, in little memory (limits.h), in a text or a DecoderError. Const
// access from many threads is fine.
#pragma once

#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace hone::decoder::jinja {

class Template {
  public:
    /// Throws DecoderError, with the line, for what is no template in Jinja or not known here.
    [[nodiscard]] static Template read(std::string_view text);

    /// Whether a name of its statements is this one: a variable that is none of them changes no text.
    [[nodiscard]] bool mentions(std::string_view name) const;
    /// `variables` is an object, whose texts are well-formed UTF-8; `now` is what strftime_now() tells.
    /// Throws Refused for what the template refuses, and another DecoderError for a fault of the template.
    [[nodiscard]] std::string render(const nlohmann::ordered_json& variables, const std::tm& now) const;

  private:
    struct State;
    explicit Template(std::shared_ptr<const State> state) : state_(std::move(state)) {}

    std::shared_ptr<const State> state_;
};

}  // namespace hone::decoder::jinja
