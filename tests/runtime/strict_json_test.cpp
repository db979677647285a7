#include "runtime/system/strict_json.h"

#include <doctest/doctest.h>

#include <string>

#include "runtime/system/input_error.h"

using namespace hone::runtime;

namespace {

std::string refusal_of(const std::string& text) {
    try {
        static_cast<void>(parse_json_object(text, "f.json"));
        return "none";
    } catch (const InputError& error) {
        return error.what();
    }
}

std::string repeated(const std::string& text, std::size_t count) {
    std::string all;
    for (std::size_t i = 0; i < count; ++i) all += text;
    return all;
}

}  // namespace

TEST_CASE("a value is a text, or it is not") {
    CHECK(is_text("a", "a"));
    CHECK_FALSE(is_text("a", "b"));
    CHECK_FALSE(is_text(nlohmann::json(1), "1"));
    CHECK_FALSE(is_text(nullptr, ""));
}

TEST_CASE("what a tree would hide or suffer from is refused by name") {
    CHECK(refusal_of(R"({"a": 1, "b": {"a": 2}})") == "none");
    CHECK(refusal_of(R"({"b": {"a": 1, "a": 2}})") == "f.json: key \"a\" stands twice");
    CHECK(refusal_of(R"([1])") == "f.json: the top level is not an object");
    CHECK(refusal_of("{\n\"a\": 1,}").starts_with("f.json:2: not valid JSON"));
    CHECK(refusal_of(R"({"a": 1e999})") == "f.json: not valid JSON: number overflow parsing '1e999'");
    CHECK(refusal_of(std::string("{\"a\": 1}\0 }", 12)) == "f.json: byte 9 is zero, which JSON has nowhere");
    CHECK(refusal_of("{").starts_with("f.json:1: not valid JSON: parse error at line 1, column 2: "));
    const auto nested = [](std::size_t depth) {
        return R"({"a":)" + repeated("[", depth - 1) + repeated("]", depth - 1) + "}";
    };
    CHECK(refusal_of(nested(32)) == "none");
    CHECK(refusal_of(nested(33)) == "f.json: nested deeper than 32 levels");
    CHECK(refusal_of(R"({"a":)" + repeated("[", 1'000'000)) == "f.json: nested deeper than 32 levels");
}

TEST_CASE("many objects side by side are read once each") {
    constexpr std::size_t count = 500'000;  // by a parser that looks back at all siblings: minutes
    const nlohmann::json root =
        parse_json_object(R"({"a":[{})" + repeated(",{}", count - 1) + "]}", "f.json");
    CHECK(root["a"].size() == count);
}
