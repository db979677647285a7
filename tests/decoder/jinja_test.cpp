// The template engine, against what Jinja makes of statements (data/chats.json, made by make_chats.py), and
// what a template from the internet may try.
#include "decoder/jinja/template.h"

#include <fmt/format.h>

#include <ctime>

#include "decoder/error.h"
#include "decoder/jinja/limits.h"
#include "decoder/text/utf8.h"
#include "tests/decoder/support.h"

using namespace hone;
using namespace hone::decoder;
using namespace hone::test;
using nlohmann::ordered_json;

namespace {

std::tm january() {
    std::tm date{};
    date.tm_year = 126;
    date.tm_mday = 5;
    date.tm_wday = 1;
    date.tm_yday = 4;
    return date;
}

std::string rendered(std::string_view text, const ordered_json& variables = ordered_json::object()) {
    return jinja::Template::read(text).render(variables, january());
}

/// The text, or "refused: " and why.
std::string tried(std::string_view text, const ordered_json& variables = ordered_json::object()) {
    try {
        return rendered(text, variables);
    } catch (const DecoderError& error) {
        return std::string("refused: ") + error.what();
    }
}

std::string repeated(std::string_view text, std::size_t times) {
    std::string all;
    all.reserve(text.size() * times);
    for (std::size_t i = 0; i < times; ++i) all += text;
    return all;
}

/// `open` and `close` so many times around `inner`.
std::string nested(std::string_view open, std::string_view close, std::string_view inner, std::size_t times) {
    return repeated(open, times) + std::string(inner) + repeated(close, times);
}

}  // namespace

TEST_CASE("statements write what Jinja writes, and those that it refuses are refused") {
    const ordered_json data = ordered_json::parse(std::ifstream(data_folder("chats.json")));
    REQUIRE(data.at("statements").size() > 100);
    for (const ordered_json& expected : data.at("statements")) {
        const auto text = expected.at("template").get<std::string>();
        CAPTURE(text);
        const std::string made = tried(text, data.at("variables"));
        if (expected.contains("error"))
            CHECK(made.starts_with("refused: "));
        else
            CHECK(made == expected.at("text").get<std::string>());
    }
}

TEST_CASE("what is not known, or where Jinja's text is another version's, is refused by name") {
    CHECK(tried("a\n{% include 'x' %}")
              .starts_with("refused: line 2: the statement \"include\" is not known here"));
    CHECK(tried("{{ 'a' | urlize }}") == "refused: line 1: not known here is the filter \"urlize\"");
    CHECK(tried("{{ 'a' | nofilter }}") == "refused: line 1: there is no filter \"nofilter\"");
    CHECK(tried("{{ 'a'.zfill(3) }}") == "refused: line 1: the method zfill of a text is not known here");
    CHECK(tried("{{ 'Gr\xC3\xBC\xC3\x9F' | upper }}") ==
          "refused: line 1: the other case of \"\xC3\x9F\" is not known here");
    CHECK(tried("{{ range(3) }}").starts_with("refused: line 1: a range has no text to be written"));
    CHECK(tried("{{ ('<' | safe) + '>' }}")
              .starts_with("refused: line 1: + between a text of the filter \"safe\""));
    CHECK(tried("{{ 9223372036854775807 + 1 }}") == "refused: line 1: a whole number of more than 64 bits");
    CHECK(tried("{{ raise_exception('no \x1b[31m') }}") == "refused: no \\x1b[31m");
    CHECK(tried("x\n\n{{ a.b }}") == "refused: line 3: 'a' is undefined");
    CHECK(tried("{{ 'half a %' % 1 }}") ==
          "refused: line 1: a lone % ends a text that is formatted; known are %s, %d, %r and %%");
}

TEST_CASE("names of statements are mentioned, and not what stands in texts and literals") {
    const auto read = jinja::Template::read("one {% if two %}{{ 'three' + four.five }}{# six #}{% endif %}");
    for (const char* name : {"two", "four", "five"}) CHECK(read.mentions(name));
    for (const char* name : {"one", "three", "six", "tw", "twoo", ""}) CHECK_FALSE(read.mentions(name));
}

TEST_CASE("nesting is bounded, whatever is nested") {
    constexpr std::size_t deep = 100'000;
    for (const std::string& text :
         {nested("{{ (", ") }}", "1", 1), nested("{% if 1 %}", "{% endif %}", "x", 40),
          "{{ 'a'" + repeated("|trim", 40) + " }}"})
        CHECK_FALSE(tried(text).starts_with("refused"));
    for (const std::string& text : {
             "{{ " + nested("(", ")", "1", deep) + " }}",
             "{{ " + nested("[", "]", "1", deep) + " }}",
             "{{ " + nested("{1:", "}", "1", deep) + " }}",
             "{{ " + repeated("not ", deep) + "1 }}",
             "{{ " + repeated("- ", deep) + "1 }}",
             "{{ a" + repeated(".a", deep) + " }}",
             "{{ a" + repeated("[0]", deep) + " }}",
             "{{ a" + repeated("()", deep) + " }}",
             "{{ a" + repeated("|trim", deep) + " }}",
             "{{ 1" + repeated("**1", deep) + " }}",
             "{{ 1" + repeated(" if 1 else 1", deep / 4) + " }}",
             nested("{% if 1 %}", "{% endif %}", "x", deep / 4),
             nested("{% for a in b %}", "{% endfor %}", "x", deep / 4),
             nested("{% macro a() %}", "{% endmacro %}", "x", deep / 4),
             nested("{% set a %}", "{% endset %}", "x", deep / 4),
             nested("{% filter trim %}", "{% endfilter %}", "x", deep / 4),
             repeated("{% for a in b %}", deep / 2),
             "{% set " + nested("(", ")", "a", deep) + " = 1 %}",
         }) {
        CAPTURE(text.substr(0, 40));
        CHECK(tried(text).starts_with("refused: line 1: more than 100 levels of brackets, statements"));
    }
    CHECK(tried("{{ " + repeated("(", deep)) == "refused: line 1: the tag has no end");
    // What is long and not deep is no fault.
    CHECK(rendered("{{ 'a'" + repeated("+'a'", deep) + " }}").size() == deep + 1);
    CHECK(rendered("{{ 1" + repeated("+1", deep) + " }}") == std::to_string(deep + 1));
    CHECK(rendered("{{ 1" + repeated(" and 1", deep) + " }}") == "1");
    CHECK(rendered("{% if 0 %}" + repeated("{% elif 0 %}", deep / 2) + "{% endif %}").empty());
}

TEST_CASE("macros that call themselves, and lists that hold themselves, come to an end") {
    for (const char* text : {
             "{% macro a(x) %}{{ a(x) }}{% endmacro %}{{ a(1) }}",
             "{% macro a(x) %}{{ x ~ a(x ~ '1') }}{% endmacro %}{{ a('1') }}",
             "{% macro a() %}{{ b() }}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
             "{% macro a() %}{{ caller() }}{% endmacro %}{% macro b() %}{% call a() %}{{ b() }}{% endcall %}"
             "{% endmacro %}{{ b() }}",
             "{% for i in [1, 2] recursive %}{{ loop([1, 2]) }}{% endfor %}",
             "{% macro a(x) %}{% for i in [1] %}{% if 1 %}{{ [a(x)|trim] }}{% endif %}{% endfor %}{% "
             "endmacro %}{{ a(1) }}",
         }) {
        CAPTURE(text);
        CHECK(tried(text).find("macros and statements are more than 800 deep in each other") !=
              std::string::npos);
    }
    CHECK(tried("{% set n = namespace(s=[1]) %}{% for i in range(100000) %}{% set n.s = [n.s] %}{% endfor %}")
              .find("lists and objects are more than 100 deep in each other") != std::string::npos);
    CHECK(rendered("{% set n = namespace() %}{% set n.a = n %}{% set n.b = [n] %}{{ n.a.a.b[0].a == n }}") ==
          "True");
    CHECK(tried("{% set n = namespace() %}{{ [n] | tojson }}").starts_with("refused: "));
}

TEST_CASE("time and memory are bounded, whatever a template asks for") {
    for (const std::string_view text : {
             "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
             "{% set n = namespace(s='x') %}{% for i in range(100) %}{% set n.s = n.s + n.s %}{% endfor %}",
             "{% set n = namespace(s='x') %}{% for i in range(100) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
             "{% set n = namespace(s=[1]) %}{% for i in range(100) %}{% set n.s = n.s + n.s %}{% endfor %}",
             "{% set n = namespace(s='x') %}{% for i in range(100) %}{% set n.s %}{{ n.s }}{{ n.s }}{% "
             "endset %}{% endfor %}",
             "{% set n = namespace(s=[1]) %}{% for i in range(90) %}{% set n.s = [n.s, n.s] %}{% endfor %}{{ "
             "n.s }}",
             "{% set n = namespace(s=[1]) %}{% for i in range(90) %}{% set n.s = [n.s, n.s] %}{% endfor %}{{ "
             "n.s | tojson }}",
             "{% set n = namespace(s=[1]) %}{% for i in range(90) %}{% set n.s = [n.s, n.s] %}{% endfor %}"
             "{% set n.t = [1] %}{% for i in range(90) %}{% set n.t = [n.t, n.t] %}{% endfor %}{{ n.s == n.t "
             "}}",
             "{{ 'x' * 1000000000000 }}",
             "{{ [1] * 9223372036854775807 }}",
             "{{ range(100001) | list }}",
             "{{ range(9223372036854775807, -9223372036854775807, -1) | list }}",
             "{% set s = 'a' * 1000000 %}{{ s.replace('a', s) }}",
             "{% set s = 'a' * 60000000 %}{{ s.split('a') | length }}",
             "{% set s = 'a' * 1000000 %}{% for i in range(100000) %}{{ 'b' in s }}{% endfor %}",
             "{% set s = 'b' * 10000000 %}{{ s.strip('a' * 1000000 ~ 'b') }}",
             "{{ range(100000) | join('b' * 100000) }}",
             "{{ range(100000) | unique | list }}",
             "{% set s = 'a' * 1000000 %}{{ ([s] * 10000) | sort | length }}",
             "{{ ('a\n' * 1000000) | indent(900) }}{{ 'a' | indent(1000000000) }}",
             "{{ '%1000000000d' % 1 }}",
             "{{ '{:>1000000000}'.format(1) }}",
             "{{ 1.5 | round(1000000) }}",
             "{{ [1] | tojson(indent=1000000000) }}",
             "{{ strftime_now('%c' * 1000000) }}",
             "{{ 10 ** 30 }}{{ 2 ** 9223372036854775807 }}",
             "{{ 99999999999999999999 }}",
             "{{ 1e999 }}",
             "{{ (-9223372036854775807 - 1) // -1 }}",
             "{{ -(-9223372036854775807 - 1) }}",
             "{{ (-9223372036854775807 - 1) | abs }}",
             "{{ 'abc'[::0] }}",
             "{{ messages | map(attribute='a.' * 1000000) | list }}{{ range(100000) | map(attribute='.' * "
             "1000000) | list }}",
             "{{ ('{x}' * 300000).format(**dict(range(90000) | map('string') | map('list') | map('list') | "
             "list)) }}",
         }) {
        CAPTURE(text);
        CHECK(tried(text).starts_with("refused: line "));
    }
    std::string names;
    std::string parameters;
    for (int i = 0; i < 20'000; ++i) {
        names += fmt::format("{}a{}=1", i == 0 ? "" : ",", i);
        parameters += fmt::format("{}a{}", i == 0 ? "" : ",", i);
    }
    for (const std::string& text : {"{% macro m(" + parameters + ") %}{% endmacro %}{{ m(" + names + ") }}",
                                    "{{ namespace(" + names + ") }}{{ dict(" + names + ") | length }}"}) {
        CAPTURE(text.substr(0, 20));
        CHECK(tried(text).starts_with("refused: line 1: "));
    }
    CHECK(rendered("{{ 'abcdef'[-100:100:-9223372036854775807] }}{{ 'abc'[::9223372036854775807] }}") == "a");
    CHECK(rendered("{{ ('a' * 4000000 ~ 'b') in 'a' * 8000000 }}") == "False");
}

TEST_CASE("broken templates are refused, and none is read behind its end") {
    for (const char* text : {"{{",
                             "{%",
                             "{%-",
                             "{{ a",
                             "{% if a",
                             "{# a",
                             "{#",
                             "{% raw %} a",
                             "{{ 'a",
                             "{{ 'a\\",
                             "{{ 'a\\x",
                             "{{ '\\ud800' }}",
                             "{{ '\\U00110000' }}",
                             "{{ }}",
                             "{% %}",
                             "{{ a b }}",
                             "{{ (a] }}",
                             "{{ a) }}",
                             "{% endif %}",
                             "{% else %}",
                             "{% if a %}{% endfor %}",
                             "{% for a b %}",
                             "{% set %}",
                             "{% set a.b.c = 1 %}",
                             "{% macro %}",
                             "{% call 1 %}{% endcall %}",
                             "{% break %}",
                             "{{ a[] }}",
                             "{{ a[1:2, 3] }}",
                             "{{ a. }}",
                             "{{ a | }}",
                             "{{ a is }}",
                             "{{ \xC3 }}",
                             "\xFF",
                             "{{ \xC3\xA4 }}",
                             "{{ 007 }}",
                             "{% filter %}"}) {
        CAPTURE(text);
        std::string copy = text;  // with nothing behind it
        copy.shrink_to_fit();
        CHECK(tried(copy).starts_with("refused: "));
    }
    CHECK(tried(std::string("{{ a\0b }}", 9)).starts_with("refused: line 1: "));
    CHECK(rendered(std::string("a\0{{ 'b\0' }}", 12)) == std::string("a\0b\0", 4));
    CHECK(rendered("{").ends_with("{"));
    CHECK(rendered("a } }} %} #}") == "a } }} %} #}");
    CHECK(tried(std::string(jinja::max_template_bytes + 1, 'a')) ==
          "refused: longer than 1048576 bytes, the most that is read");
    for (const std::string& text :
         {repeated("{% if a %}", 90'000), repeated("{", 1'000'000), repeated("{# a #}", 140'000),
          "{% raw %}" + repeated("{% ", 300'000), "{{" + repeated(" ", 1'000'000),
          "{%" + repeated(" -", 500'000), repeated("{{ a }}", 140'000)})
        static_cast<void>(tried(text));  // soon
}
