// Chat templates: the first line is what a user says, the rest a template in Jinja. It is read or refused,
// and what it makes of a conversation is well-formed, and the same each time.
#include <ctime>
#include <nlohmann/json.hpp>
#include <vector>

#include "decoder/error.h"
#include "decoder/jinja/template.h"
#include "decoder/text/utf8.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace hone::decoder;
using hone::fuzz::require;
using hone::fuzz::Seed;

nlohmann::ordered_json variables_of(const std::string& said) {
    const auto message = [](const char* role, const std::string& content) {
        return nlohmann::ordered_json{{"role", role}, {"content", content}};
    };
    return {{"messages",
             {message("system", "Be brief."), message("user", said), message("assistant", "Yes."),
              message("user", said)}},
            {"bos_token", "<s>"},
            {"eos_token", "</s>"},
            {"tools", nullptr},
            {"add_generation_prompt", true},
            {"xs", {3, 1.5, nullptr, "a", {"b"}}}};
}

/// The text, or why there is none.
std::string made_of(const jinja::Template& read, const nlohmann::ordered_json& variables) {
    try {
        const std::tm now{};
        const std::string text = read.render(variables, now);
        require(is_utf8(text), "a text is well-formed");
        hone::fuzz::count_read();
        return text;
    } catch (const DecoderError& error) {
        require(!std::string_view(error.what()).empty(), "a refusal says why");
        return error.what();
    }
}

constexpr const char* chatml =
    "Hello\n{% for message in messages %}\n{{ '<|im_start|>' + message['role'] + '\\n' + message.content | "
    "trim + "
    "'<|im_end|>\\n' }}\n{%- endfor %}\n{% if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% "
    "endif %}";

constexpr const char* alternating =
    "</think> a, b\n{{ bos_token }}{% set ns = namespace(last=0, x=[]) %}{%- for m in messages[1:] if m.role "
    "!= "
    "'tool' -%}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('alternate') }}{% "
    "elif "
    "loop.last and not m.content is none %}{% set ns.last = loop.index ~ ',' ~ ns.last %}{% endif %}"
    "{{ m.content.split('</think>')[-1].strip('\\n').replace('a', 'b').upper()[::-1] }}{% endfor %}{{ "
    "ns.last }}";

constexpr const char* macros =
    "x\n{# c #}{% macro turn(role, text='', n=2 * 3 // 4) %}<{{ role }}>{{ text | default('-', true) }}{{ n "
    "}}"
    "{{ caller() if caller else '' }}{% endmacro %}{{ turn('a', n=-1) }}{% call turn(messages[0].role) %}y{% "
    "endcall %}"
    "{% set t %}{{ xs | tojson(indent=1) }}{% endset %}{% filter upper %}{{ t }}{% endfilter %}{% for k, v "
    "in "
    "{'a': [1, (2,)]}.items() %}{{ k }}{{ v | join('|') }}{% break %}{% endfor %}{% raw %}{{ }}{% "
    "endraw %}"
    "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | list | length }}{{ "
    "xs[1:3] }}";

}  // namespace

const int hone::fuzz::mutations = 20000;

std::vector<Seed> hone::fuzz::seeds() {
    return {{"chatml", chatml}, {"alternating", alternating}, {"macros", macros}};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto [said, text] = hone::fuzz::first_line(hone::fuzz::text_of(data, size));
    try {
        const jinja::Template read = jinja::Template::read(text);
        const nlohmann::ordered_json variables = variables_of(lossy_utf8(said));
        require(made_of(read, variables) == made_of(read, variables), "a template makes one text");
    } catch (const DecoderError& error) {
        require(!std::string_view(error.what()).empty(), "a refusal says why");
    }
    return 0;
}
