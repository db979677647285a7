// One chat template in many threads, as a server has it.
// Starts threads: the thread sanitizer runs this file, too.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "decoder/jinja/template.h"

using namespace hone::decoder;
using nlohmann::ordered_json;

TEST_CASE("one template makes texts in many threads") {
    const auto read = jinja::Template::read(
        "{% macro m(x) %}<{{ x }}>{% endmacro %}{% set n = namespace(c=0) %}"
        "{% for a in xs | map('upper') %}{% set n.c = n.c + 1 %}{{ m(a) }}{% endfor %}{{ n.c }}");
    std::vector<std::thread> threads;
    std::vector<std::string> made(8);
    for (std::size_t i = 0; i < made.size(); ++i)
        threads.emplace_back([&, i] {
            const ordered_json variables{{"xs", {"a", std::to_string(i)}}};
            for (int round = 0; round < 200; ++round) made[i] = read.render(variables, std::tm{});
        });
    for (std::thread& thread : threads) thread.join();
    for (std::size_t i = 0; i < made.size(); ++i) CHECK(made[i] == fmt::format("<A><{}>2", i));
}
