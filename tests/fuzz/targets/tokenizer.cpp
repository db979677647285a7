// Tokenizers: the first line is a text, the rest a tokenizer.json. Tokens of the text are tokens that there
// are, the same ones each time, and what they are decoded to is well-formed.
#include "decoder/tokenizer/tokenizer.h"

#include <vector>

#include "decoder/text/utf8.h"
#include "runtime/system/input_error.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace hone::decoder;
using hone::fuzz::require;
using hone::fuzz::Seed;

void check_text(const Tokenizer& tokenizer, std::string_view text, EncodeOptions options) {
    const std::vector<int> ids = tokenizer.encode(text, options);
    require(tokenizer.encode(text, options) == ids, "a text has the same tokens each time");
    for (const int id : ids) require(tokenizer.token_of(id).has_value(), "a text has tokens that there are");
    for (const bool skip : {true, false}) {
        require(is_utf8(tokenizer.decode(ids, {skip})), "what is decoded is well-formed");
        TextStream stream = tokenizer.stream({skip});
        for (const int id : ids) require(is_utf8(stream.push(id)), "what is streamed is well-formed");
        require(is_utf8(stream.finish()), "and so is its end");
    }
}

void check(std::string_view text) {
    try {
        const Tokenizer tokenizer = Tokenizer::load(hone::fuzz::scratch_folder());
        static_cast<void>(tokenizer.encode(text));
        check_text(tokenizer, text, {.add_special_tokens = false});
        check_text(tokenizer, text, {.add_special_tokens = false, .parse_special_tokens = false});
        hone::fuzz::count_read();
    } catch (const hone::runtime::InputError& error) {
        require(!std::string_view(error.what()).empty(), "a refusal says why");
    }
}

// What seeds() is made of.

constexpr const char* added =
    R"([{"id":9,"content":"<s>","special":true},{"id":10,"content":"<x>","lstrip":true,"rstrip":true,"single_word":true}])";

std::string seed(const std::string& text, const std::string& parts, const std::string& model) {
    return text + "\n{\"added_tokens\":" + added + "," + parts + ",\"model\":{\"type\":\"BPE\"," + model +
           "}}";
}

std::string byte_level() {
    return seed(
        "ab <x> abc 12'S<s>\xC3\xA9",
        R"("normalizer":{"type":"NFC"},"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":)"
        R"({"Regex":"(?i:'s|'t)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|\\s+(?!\\S)|\\s+"},"behavior":"Isolated",)"
        R"("invert":false},{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]},)"
        R"("decoder":{"type":"ByteLevel"},"post_processor":{"type":"ByteLevel"})",
        R"("ignore_merges":true,"vocab":{"a":0,"b":1,"c":2,"ab":3,"abc":4,"Ġ":5,"Ġab":6,"Ã":7,"©":8},)"
        R"("merges":["a b","ab c",["Ġ","ab"]])");
}

std::string marks() {
    return seed(
        "ab  b\xE2\x96\x81 c<s> <x> \xF0\x9F\x98\x80",
        R"("normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},{"type":"Replace",)"
        R"("pattern":{"String":" "},"content":"▁"}]},"pre_tokenizer":null,"post_processor":{"type":)"
        R"("TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},{"Sequence":{"id":"A"}}],)"
        R"("special_tokens":{"<s>":{"ids":[9]}}},"decoder":{"type":"Sequence","decoders":[{"type":"Replace",)"
        R"("pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip",)"
        R"("content":" ","start":1,"stop":0}]})",
        R"("unk_token":"?","fuse_unk":true,"byte_fallback":true,"vocab":{"?":0,"▁":1,"a":2,"b":3,"▁a":4,"▁▁":5,)"
        R"("<0xF0>":6,"<0x9F>":7,"ab":8},"merges":["▁ a","▁ ▁","a b"])");
}

std::string metaspace() {
    return seed(
        "a1 b22",
        R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},)"
        R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":true}]},)"
        R"("decoder":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always"})",
        R"("vocab":{"a":0,"b":1,"1":2,"2":3,"▁":4},"merges":[])");
}

}  // namespace

const int hone::fuzz::mutations = 15000;

std::vector<Seed> hone::fuzz::seeds() {
    return {{"byte_level", byte_level()}, {"marks", marks()}, {"metaspace", metaspace()}};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto [text, json] = hone::fuzz::first_line(hone::fuzz::text_of(data, size));
    hone::fuzz::write_file(hone::fuzz::scratch_folder() / "tokenizer.json", json);
    check(text);
    return 0;
}
