#include "decoder/tokenizer/pre_tokenizer.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "decoder/text/utf8.h"
#include "decoder/tokenizer/pattern.h"
#include "decoder/tokenizer/space_mark.h"
#include "decoder/tokenizer/split.h"

namespace hone::decoder {
namespace {

class SplitStep final : public PreTokenizerStep {
  public:
    SplitStep(Pattern pattern, SplitBehavior behavior, bool invert)
        : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

    void apply(Pieces& pieces) const override {
        std::vector<Piece> out;
        std::vector<Span> matches;
        for (const Piece& piece : pieces.list) {
            pattern_.find_all(piece.text, matches);
            for (const Span& span : split(piece.text.size(), matches, behavior_, invert_))
                out.push_back(
                    {piece.text.substr(span.begin, span.end - span.begin), piece.first && span.begin == 0});
        }
        pieces.list = std::move(out);
    }

  private:
    Pattern pattern_;
    SplitBehavior behavior_;
    bool invert_;
};

/// A space in front of each piece that has none.
class SpaceStep final : public PreTokenizerStep {
  public:
    void apply(Pieces& pieces) const override {
        for (Piece& piece : pieces.list)
            if (!piece.text.starts_with(' '))
                piece.text = pieces.made.emplace_back(' ' + std::string(piece.text));
    }
};

enum class Prefix : std::uint8_t { always, first, never };

/// Spaces as `replacement`, and one in front.
class MetaspaceStep final : public PreTokenizerStep {
  public:
    MetaspaceStep(std::string replacement, Prefix prefix)
        : replacement_(std::move(replacement)), prefix_(prefix) {}

    void apply(Pieces& pieces) const override {
        const Pattern space = Pattern::of_text(" ");
        for (Piece& piece : pieces.list) {
            std::string text = space.replaced(piece.text, replacement_, max_grown_bytes(piece.text.size()));
            const bool prefixed = prefix_ == Prefix::always || (prefix_ == Prefix::first && piece.first);
            if (prefixed && !text.starts_with(replacement_)) text.insert(0, replacement_);
            piece.text = pieces.made.emplace_back(std::move(text));
        }
    }

  private:
    std::string replacement_;
    Prefix prefix_;
};

/// Before each run of marks.
class MarkStep final : public PreTokenizerStep {
  public:
    void apply(Pieces& pieces) const override {
        std::vector<Piece> out;
        for (const Piece& piece : pieces.list) cut(piece, out);
        pieces.list = std::move(out);
    }

  private:
    /// Where the next word begins.
    static std::size_t next_cut(std::string_view text) {
        std::size_t from = 0;
        while (text.substr(from).starts_with(space_mark)) from += space_mark.size();
        return text.find(space_mark, from);
    }

    static void cut(Piece piece, std::vector<Piece>& out) {
        for (std::size_t at = next_cut(piece.text); at != std::string_view::npos; at = next_cut(piece.text)) {
            out.push_back({piece.text.substr(0, at), std::exchange(piece.first, false)});
            piece.text.remove_prefix(at);
        }
        out.push_back(piece);
    }
};

Prefix read_prefix(const JsonPlace& json) {
    const std::optional<JsonPlace> scheme = json.find("prepend_scheme");
    if (!scheme) return json.boolean_or("add_prefix_space", true) ? Prefix::always : Prefix::never;
    if (scheme->text() == "always") return Prefix::always;
    if (scheme->text() == "first") return Prefix::first;
    if (scheme->text() == "never") return Prefix::never;
    scheme->refuse("has to be always, first or never");
}

std::string read_character(const JsonPlace& json) {
    const std::string& text = json.text();
    if (text.empty() || first_length(text) != text.size()) json.refuse("has to be one character");
    return text;
}

}  // namespace

std::string_view gpt2_regex() {
    return R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
}

PreTokenizer PreTokenizer::read(const JsonPlace& json) {
    PreTokenizer pre_tokenizer;
    pre_tokenizer.add(json);
    return pre_tokenizer;
}

PreTokenizer PreTokenizer::byte_level(std::string_view regex, bool add_prefix_space) {
    PreTokenizer out;
    if (add_prefix_space) out.steps_.push_back(std::make_shared<SpaceStep>());
    out.steps_.push_back(
        std::make_shared<SplitStep>(Pattern::of_regex(regex), SplitBehavior::isolated, false));
    out.byte_level_ = true;
    return out;
}

void PreTokenizer::add(const JsonPlace& json) {
    const JsonPlace type = json.at("type");
    const std::string& name = type.text();
    if (byte_level_) json.refuse("comes behind ByteLevel, which has to be the last one");
    if (name == "Sequence") {
        const JsonPlace parts = json.at("pretokenizers");
        for (std::size_t i = 0; i < parts.array_size(); ++i) add(parts.at(i));
    } else if (name == "ByteLevel") {
        add_byte_level(json);
    } else if (name == "Split") {
        steps_.push_back(std::make_shared<SplitStep>(Pattern::read(json.at("pattern")),
                                                     read_split_behavior(json.at("behavior")),
                                                     json.boolean_or("invert", false)));
    } else if (name == "Digits") {
        const bool individual = json.boolean_or("individual_digits", false);
        const SplitBehavior behavior = individual ? SplitBehavior::isolated : SplitBehavior::contiguous;
        steps_.push_back(std::make_shared<SplitStep>(Pattern::of_regex(R"(\p{N})"), behavior, false));
    } else if (name == "Metaspace") {
        const std::string replacement = read_character(json.at("replacement"));
        steps_.push_back(std::make_shared<MetaspaceStep>(replacement, read_prefix(json)));
        if (!json.boolean_or("split", true)) return;
        steps_.push_back(std::make_shared<SplitStep>(Pattern::of_text(replacement),
                                                     SplitBehavior::merged_with_next, false));
    } else {
        type.refuse(
            "a pre_tokenizer that is not understood; known are Sequence, ByteLevel, Split, Digits and "
            "Metaspace");
    }
}

void PreTokenizer::add_byte_level(const JsonPlace& json) {
    byte_level_ = true;
    if (json.boolean_or("add_prefix_space", true)) steps_.push_back(std::make_shared<SpaceStep>());
    if (!json.boolean_or("use_regex", true)) return;
    steps_.push_back(
        std::make_shared<SplitStep>(Pattern::of_regex(gpt2_regex()), SplitBehavior::isolated, false));
}

void PreTokenizer::cut_at_marks() { steps_.push_back(std::make_shared<MarkStep>()); }

void PreTokenizer::apply(Pieces& pieces) const {
    for (const auto& step : steps_) step->apply(pieces);
    std::erase_if(pieces.list, [](const Piece& piece) { return piece.text.empty(); });
}

}  // namespace hone::decoder
