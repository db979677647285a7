#include "decoder/tokenizer/normalizer.h"

#include <optional>
#include <utility>

#include "decoder/text/normal_form.h"
#include "decoder/tokenizer/pattern.h"

namespace hone::decoder {
namespace {

std::optional<NormalForm> normal_form(std::string_view type) {
    if (type == "NFC") return NormalForm::nfc;
    if (type == "NFD") return NormalForm::nfd;
    if (type == "NFKC") return NormalForm::nfkc;
    if (type == "NFKD") return NormalForm::nfkd;
    return std::nullopt;
}

}  // namespace

Normalizer Normalizer::read(const JsonPlace& json) {
    Normalizer normalizer;
    normalizer.add(json);
    return normalizer;
}

Normalizer Normalizer::of_form(NormalForm form) {
    Normalizer normalizer;
    normalizer.steps_.push_back(
        [form](std::string_view text, std::size_t) { return normalized(text, form); });
    return normalizer;
}

void Normalizer::add(const JsonPlace& json) {
    if (json.at("type").text() != "Sequence") {
        steps_.push_back(step(json));
        return;
    }
    const JsonPlace parts = json.at("normalizers");
    for (std::size_t i = 0; i < parts.array_size(); ++i) add(parts.at(i));
}

Normalizer::Step Normalizer::step(const JsonPlace& json) {
    const JsonPlace type = json.at("type");
    if (const std::optional<NormalForm> form = normal_form(type.text()))
        return [form](std::string_view text, std::size_t) { return normalized(text, *form); };
    if (type.text() == "Prepend") {
        return [prefix = json.at("prepend").text()](std::string_view text, std::size_t max_bytes) {
            require_room(prefix.size() + text.size(), max_bytes);
            return text.empty() ? std::string() : prefix + std::string(text);
        };
    }
    if (type.text() == "Replace") {
        return [pattern = Pattern::read(json.at("pattern")), content = json.at("content").text()](
                   std::string_view text, std::size_t max_bytes) {
            return pattern.replaced(text, content, max_bytes);
        };
    }
    type.refuse(
        "a normalizer that is not understood; known are Sequence, Prepend, Replace, NFC, NFD, NFKC and NFKD");
}

std::string Normalizer::apply(std::string_view text) const {
    std::string out(text);
    const std::size_t max_bytes = max_grown_bytes(text.size());
    for (const Step& step : steps_) out = step(out, max_bytes);
    return out;
}

}  // namespace hone::decoder
