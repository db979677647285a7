// The statements of a chat template in one form, whatever its makers' spelling: what ChatFormat is read from.
#pragma once

#include <string>
#include <string_view>

namespace hone::decoder {

struct TemplateCode {
    /// Tags one after the other, "{{...}}" and "{%...%}", without comments, whitespace control and the spaces
    /// around their parts. Literals stand between backticks with their line ends as such; those that are
    /// added to each other are one. "message['role']" is "message.role", and the same goes for "content".
    std::string code{};
    /// Whether text stands between the tags, as transformers trims it: it would be in every conversation.
    bool has_text = false;
};

[[nodiscard]] TemplateCode template_code(std::string_view chat_template);

}  // namespace hone::decoder
