#include "decoder/tokenizer/post_processor.h"

#include <optional>

#include "decoder/tokenizer/vocabulary.h"

namespace hone::decoder {
namespace {

/// Tokens of a template, which each text gets.
constexpr std::size_t max_template_ids = 1024;

/// {"id": "<s>"} is a name of the table "special_tokens", which has the ids.
std::vector<int> special_ids(const JsonPlace& part, const JsonPlace& table) {
    const JsonPlace ids = table.at(part.at("id").text()).at("ids");
    std::vector<int> out;
    if (ids.array_size() > max_template_ids) ids.refuse("a template has up to 1024 tokens");
    for (std::size_t i = 0; i < ids.array_size(); ++i)
        out.push_back(static_cast<int>(ids.at(i).integer(0, max_vocabulary - 1)));
    return out;
}

PostProcessor read_template(const JsonPlace& json) {
    const JsonPlace single = json.at("single");
    PostProcessor out;
    bool behind = false;
    for (std::size_t i = 0; i < single.array_size(); ++i) {
        const JsonPlace part = single.at(i);
        if (const std::optional<JsonPlace> special = part.find("SpecialToken")) {
            const std::vector<int> ids = special_ids(*special, json.at("special_tokens"));
            std::vector<int>& side = behind ? out.behind : out.before;
            side.insert(side.end(), ids.begin(), ids.end());
            if (side.size() > max_template_ids) single.refuse("a template has up to 1024 tokens");
            continue;
        }
        const JsonPlace id = part.at("Sequence").at("id");
        if (behind || id.text() != "A") id.refuse("a template for one text has one sequence, A");
        behind = true;
    }
    if (!behind) single.refuse("a template has to have the sequence A");
    return out;
}

/// `outer` gets what `inner` made.
PostProcessor chained(const PostProcessor& inner, PostProcessor outer) {
    outer.before.insert(outer.before.end(), inner.before.begin(), inner.before.end());
    outer.behind.insert(outer.behind.begin(), inner.behind.begin(), inner.behind.end());
    return outer;
}

}  // namespace

PostProcessor PostProcessor::read(const JsonPlace& json) {
    const JsonPlace type = json.at("type");
    if (type.text() == "ByteLevel") return {};
    if (type.text() == "TemplateProcessing") return read_template(json);
    if (type.text() != "Sequence")
        type.refuse(
            "a post_processor that is not understood; known are Sequence, ByteLevel and TemplateProcessing");
    const JsonPlace parts = json.at("processors");
    PostProcessor out;
    for (std::size_t i = 0; i < parts.array_size(); ++i) {
        out = chained(out, read(parts.at(i)));
        if (std::max(out.before.size(), out.behind.size()) > max_template_ids)
            parts.refuse("templates have up to 1024 tokens together");
    }
    return out;
}

}  // namespace hone::decoder
