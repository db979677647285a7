#include "decoder/tokenizer/token_decoder.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <utility>

#include "decoder/text/utf8.h"
#include "decoder/tokenizer/byte_alphabet.h"
#include "decoder/tokenizer/pattern.h"
#include "decoder/tokenizer/space_mark.h"

namespace hone::decoder {
namespace {

constexpr std::int64_t max_stripped = 1024;

/// Bytes that replacements may make of a token, however many of them a file has one behind the other. A piece
/// that is longer already does not grow at all.
constexpr std::size_t max_replaced_bytes = std::size_t{64} << 10;

std::string replaced(const Pattern& pattern, std::string_view token, std::string_view content) {
    return pattern.replaced(token, content, std::max(max_replaced_bytes, token.size()));
}

class JoinState final : public DecoderState {
  public:
    void push(std::string token, std::vector<std::string>& out) override {
        if (!std::exchange(first_, false)) out.emplace_back(" ");
        out.push_back(std::move(token));
    }

  private:
    bool first_ = true;
};

class ByteLevelState final : public DecoderState {
  public:
    explicit ByteLevelState(Decoding decoding) : as_bytes_(decoding == Decoding::bytes) {}
    void push(std::string token, std::vector<std::string>& out) override {
        std::string bytes = bytes_of_characters(token).value_or(token);
        out.push_back(as_bytes_ ? std::move(bytes) : stream_.push(bytes));
    }
    void finish(std::vector<std::string>& out) override { out.push_back(stream_.finish()); }

  private:
    Utf8Stream stream_;
    bool as_bytes_;
};

class ReplaceState final : public DecoderState {
  public:
    ReplaceState(std::shared_ptr<const Pattern> pattern, std::string content)
        : pattern_(std::move(pattern)), content_(std::move(content)) {}
    void push(std::string token, std::vector<std::string>& out) override {
        out.push_back(replaced(*pattern_, token, content_));
    }

  private:
    std::shared_ptr<const Pattern> pattern_;
    std::string content_;
};

/// "<0x41>": the byte.
std::optional<char> byte_of(std::string_view token) {
    if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
    unsigned value = 0;
    const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, value, 16);
    if (error != std::errc() || end != token.data() + 5) return std::nullopt;
    return static_cast<char>(static_cast<unsigned char>(value));
}

std::string replacements(std::size_t count) {
    std::string out;
    for (std::size_t i = 0; i < count; ++i) out += replacement_character;
    return out;
}

/// A run of byte tokens is text, or each of its bytes is U+FFFD.
class ByteFallbackState final : public DecoderState {
  public:
    explicit ByteFallbackState(Decoding decoding) : decoding_(decoding) {}

    void push(std::string token, std::vector<std::string>& out) override {
        if (const std::optional<char> byte = byte_of(token)) {
            run_ += *byte;
            if (decoding_ == Decoding::streamed) give_characters(out);
            if (decoding_ == Decoding::bytes) out.push_back(std::exchange(run_, {}));
            return;
        }
        finish(out);
        out.push_back(std::move(token));
    }

    void finish(std::vector<std::string>& out) override {
        if (run_.empty()) return;
        out.push_back(is_utf8(run_) ? run_ : replacements(run_.size()));
        run_.clear();
    }

  private:
    void give_characters(std::vector<std::string>& out) {
        while (!run_.empty()) {
            const Sequence sequence = first_sequence(run_);
            if (sequence.state == SequenceState::cut) return;
            const bool whole = sequence.state == SequenceState::whole;
            out.push_back(whole ? run_.substr(0, sequence.length) : replacements(sequence.length));
            run_.erase(0, sequence.length);
        }
    }

    std::string run_;
    Decoding decoding_;
};

struct Stripped {
    std::string character{};
    std::size_t start = 0;  ///< as many at the beginning
    std::size_t stop = 0;   ///< and at the end
};

std::size_t leading(std::string_view text, std::string_view character, std::size_t most) {
    std::size_t count = 0;
    for (; count < most && text.starts_with(character); ++count) text.remove_prefix(character.size());
    return count;
}

std::size_t trailing(std::string_view text, std::string_view character, std::size_t most) {
    std::size_t count = 0;
    for (; count < most && text.ends_with(character); ++count) text.remove_suffix(character.size());
    return count;
}

/// Each token on its own.
class StripState final : public DecoderState {
  public:
    explicit StripState(Stripped stripped) : stripped_(std::move(stripped)) {}
    void push(std::string token, std::vector<std::string>& out) override {
        token.erase(0, leading(token, stripped_.character, stripped_.start) * stripped_.character.size());
        token.resize(token.size() -
                     trailing(token, stripped_.character, stripped_.stop) * stripped_.character.size());
        out.push_back(std::move(token));
    }

  private:
    Stripped stripped_;
};

/// One token that comes in pieces.
class FusedStripState final : public DecoderState {
  public:
    explicit FusedStripState(Stripped stripped) : stripped_(std::move(stripped)) {}
    void push(std::string token, std::vector<std::string>& out) override {
        if (token.empty()) return;
        const std::size_t bytes = stripped_.character.size();
        const std::size_t cut = leading(token, stripped_.character, stripped_.start);
        token.erase(0, cut * bytes);
        stripped_.start = token.empty() ? stripped_.start - cut : 0;
        held_ += token;
        const std::size_t kept = held_.size() - trailing(held_, stripped_.character, stripped_.stop) * bytes;
        out.push_back(held_.substr(0, kept));
        held_.erase(0, kept);
    }

  private:
    Stripped stripped_;
    std::string held_;  ///< what is stripped if nothing else comes
};

class MetaspaceState final : public DecoderState {
  public:
    MetaspaceState(std::string replacement, bool drop_in_first, bool fused)
        : replacement_(Pattern::of_text(std::move(replacement))), drop_(drop_in_first), fused_(fused) {}
    void push(std::string token, std::vector<std::string>& out) override {
        out.push_back(replaced(replacement_, token, drop_ ? "" : " "));
        if (!fused_) drop_ = false;
    }

  private:
    Pattern replacement_;
    bool drop_;
    bool fused_;
};

constexpr const char* known_decoders =
    "a decoder that is not understood; known are Sequence, ByteLevel, Replace, ByteFallback, Fuse, Strip and "
    "Metaspace";
constexpr const char* behind_fused =
    "cannot come behind Fuse or ByteLevel: text would have to wait for its end";

}  // namespace

template <class State, class... Values>
void TokenDecoder::add_step(Values... values) {
    steps_.push_back([values...](Decoding) { return std::make_unique<State>(values...); });
}

template <class State>
void TokenDecoder::add_decoding_step() {
    steps_.push_back([](Decoding decoding) { return std::make_unique<State>(decoding); });
}

TokenDecoder::TokenDecoder() { add_step<JoinState>(); }

TokenDecoder TokenDecoder::byte_level() {
    TokenDecoder out{Empty{}};
    out.add_decoding_step<ByteLevelState>();
    return out;
}

TokenDecoder TokenDecoder::sentencepiece(bool strip_first) {
    TokenDecoder out{Empty{}};
    out.add_step<ReplaceState>(std::make_shared<const Pattern>(Pattern::of_text(std::string(space_mark))),
                               std::string(" "));
    out.add_decoding_step<ByteFallbackState>();
    if (strip_first) out.add_step<FusedStripState>(Stripped{" ", 1, 0});
    return out;
}

TokenDecoder TokenDecoder::read(const JsonPlace& json) {
    TokenDecoder out{Empty{}};
    out.add(json);
    return out;
}

void TokenDecoder::add(const JsonPlace& json) {
    const JsonPlace type = json.at("type");
    const std::string& name = type.text();
    if (name == "Sequence") {
        const JsonPlace parts = json.at("decoders");
        for (std::size_t i = 0; i < parts.array_size(); ++i) add(parts.at(i));
    } else if (name == "Replace") {
        add_replace(json);
    } else if (name == "Strip") {
        add_strip(json);
    } else if (name == "Metaspace") {
        add_metaspace(json);
    } else if (name == "Fuse") {
        fused_ = true;
    } else if (name == "ByteLevel" || name == "ByteFallback") {
        if (fused_) type.refuse(behind_fused);
        fused_ = name == "ByteLevel";
        if (fused_) return add_decoding_step<ByteLevelState>();
        add_decoding_step<ByteFallbackState>();
    } else {
        type.refuse(known_decoders);
    }
}

void TokenDecoder::add_replace(const JsonPlace& json) {
    const auto pattern = std::make_shared<const Pattern>(Pattern::read(json.at("pattern")));
    if (fused_ && !pattern->is_one_character()) json.at("type").refuse(behind_fused);
    add_step<ReplaceState>(pattern, json.at("content").text());
}

void TokenDecoder::add_strip(const JsonPlace& json) {
    const auto count = [&](const char* key) {
        return static_cast<std::size_t>(json.at(key).integer(0, max_stripped));
    };
    Stripped stripped{json.at("content").text(), count("start"), count("stop")};
    if (stripped.character.empty()) json.at("content").refuse("has to be one character");
    if (fused_) return add_step<FusedStripState>(std::move(stripped));
    add_step<StripState>(std::move(stripped));
}

void TokenDecoder::add_metaspace(const JsonPlace& json) {
    const std::string replacement = json.at("replacement").text();
    if (replacement.empty()) json.at("replacement").refuse("has to be one character");
    const std::optional<JsonPlace> scheme = json.find("prepend_scheme");
    const bool drops = scheme ? scheme->text() != "never" : json.boolean_or("add_prefix_space", true);
    add_step<MetaspaceState>(replacement, drops, fused_);
}

std::vector<std::unique_ptr<DecoderState>> TokenDecoder::start(Decoding decoding) const {
    std::vector<std::unique_ptr<DecoderState>> states;
    for (const Step& step : steps_) states.push_back(step(decoding));
    return states;
}

std::string TokenStream::pass(std::vector<std::string> tokens, std::size_t first) {
    for (std::size_t i = first; i < states_.size(); ++i) {
        std::vector<std::string> out;
        for (std::string& token : tokens) states_[i]->push(std::move(token), out);
        tokens = std::move(out);
    }
    std::string text;
    for (const std::string& token : tokens) text += token;
    return text;
}

std::string TokenStream::push(std::string_view token) {
    std::vector<std::string> tokens;
    tokens.emplace_back(token);
    return pass(std::move(tokens), 0);
}

std::string TokenStream::finish() {
    std::string text;
    for (std::size_t i = 0; i < states_.size(); ++i) {
        std::vector<std::string> out;
        states_[i]->finish(out);
        text += pass(std::move(out), i + 1);
    }
    return text;
}

}  // namespace hone::decoder
