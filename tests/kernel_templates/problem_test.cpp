#include "kernel_templates/problem.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "kernel_templates/catalog.h"

using namespace hone;

namespace {

std::string error_of(const std::string& text) {
    std::string error;
    CHECK_FALSE(parse_problem(text, &error));
    return error;
}

bool mentions(const std::string& text, const std::string& part) {
    INFO(text);
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("fields with a default may be left out, and any order is understood") {
    const auto a = parse_problem("rmsnorm rows=7 hidden=4096 dtype=bf16");
    const auto b = parse_problem("rmsnorm dtype=bf16 output=same residual=no hidden=4096 rows=7");
    REQUIRE(a);
    CHECK(a == b);
    CHECK(to_string(*a) == "rmsnorm dtype=bf16 output=same residual=no hidden=4096 rows=7");
}

TEST_CASE("an unknown family is refused with the nearest known name") {
    CHECK(mentions(error_of("rmsnrom dtype=bf16 hidden=8 rows=1"), "did you mean 'rmsnorm'"));
    CHECK(mentions(error_of(""), "known: "));
}

TEST_CASE("an unknown field is refused with the nearest known name") {
    CHECK(mentions(error_of("rmsnorm dtype=bf16 hiden=4096 rows=1"), "did you mean 'hidden'"));
}

TEST_CASE("a bad value is refused naming field, value and what is allowed") {
    const std::string dtype = error_of("rmsnorm dtype=bf61 hidden=4096 rows=1");
    CHECK(mentions(dtype, "'dtype'"));
    CHECK(mentions(dtype, "'bf61'"));
    CHECK(mentions(dtype, "fp32, fp16, bf16"));
    for (const char* hidden :
         {"0", "-1", "999999999999", "99999999999999999999999", "4096x", "4.5", "0x10", "+5"}) {
        const std::string error = error_of(std::string("rmsnorm dtype=bf16 rows=1 hidden=") + hidden);
        CHECK(mentions(error, "'hidden'"));
        CHECK(mentions(error, std::string("'") + hidden + "'"));
        CHECK(mentions(error, "from 1 to "));
    }
}

TEST_CASE("a missing, repeated or malformed field is refused") {
    CHECK(mentions(error_of("rmsnorm hidden=4096 rows=1"), "needs the field 'dtype'"));
    CHECK(mentions(error_of("rmsnorm dtype=bf16 dtype=bf16 hidden=4096 rows=1"), "given twice"));
    CHECK(mentions(error_of("rmsnorm dtype= hidden=4096 rows=1"), "name=value"));
    CHECK(mentions(error_of("rmsnorm bf16"), "name=value"));
}

TEST_CASE("a product that would overflow is refused by the family") {
    CHECK(mentions(error_of("rmsnorm dtype=bf16 hidden=262144 rows=1073741824"), "2^40"));
}

TEST_CASE("bucket edges rise from one to the maximum, and every value has an edge at or above it") {
    CHECK(bucket_edges(1) == std::vector<std::int64_t>{1});
    CHECK(bucket_edges(6) == std::vector<std::int64_t>{1, 2, 4, 6});
    CHECK(bucket_edges(0).empty());
    CHECK(rc::check("edges", [] {
        const auto max = *rc::gen::inRange<std::int64_t>(1, 1 << 20);
        const std::vector<std::int64_t> edges = bucket_edges(max);
        RC_ASSERT(edges.back() == max);
        RC_ASSERT(std::is_sorted(edges.begin(), edges.end()));
        RC_ASSERT(std::adjacent_find(edges.begin(), edges.end()) == edges.end());
    }));
}

TEST_CASE("finer edges are fourths of powers of two above 128") {
    std::vector<std::int64_t> finer;
    for (std::int64_t size = -1; size <= 1100; ++size) {
        if (is_finer_edge(size)) finer.push_back(size);
    }
    CHECK(finer == std::vector<std::int64_t>{160, 192, 224, 320, 384, 448, 640, 768, 896});
    CHECK(is_finer_edge(7 << 20));
    CHECK(finer_field(*parse_problem("layernorm dtype=fp16 bias=no hidden=768 rows=12")->family) == -1);
    const Problem product = *parse_problem("linear dtype=bf16 in=64 out=64 tokens=12");
    CHECK(product[static_cast<std::size_t>(finer_field(*product.family))] == 12);
}

TEST_CASE("the static part forgets the dynamic fields and nothing else") {
    const Problem problem = *parse_problem("layernorm dtype=fp16 bias=no hidden=768 rows=12");
    CHECK(static_text(static_part(problem)) == static_text(problem));
    CHECK(static_part(problem) == static_part(with(problem, dynamic_fields(*problem.family)[0], 99)));
}

TEST_CASE("a field that is left out may be as another one") {
    static constexpr Field fields[] = {
        {"batch", Field::Kind::dynamic, "sequences", 1, 64},
        {"q_len", Field::Kind::dynamic, "queries", 1, 64},
        {.name = "kv_len", .kind = Field::Kind::free, .meaning = "keys", .max = 64, .default_as = "q_len"}};
    const Family family{
        .name = "made_up", .fields = fields, .validate = [](const Problem&) { return std::string(); }};
    CHECK((*parse_problem(family, "q_len=7 batch=2"))[2] == 7);
    CHECK((*parse_problem(family, "q_len=7 kv_len=9 batch=2"))[2] == 9);
    std::string error;
    CHECK_FALSE(parse_problem(family, "kv_len=9 batch=2", &error));
    CHECK(mentions(error, "needs the field 'q_len'"));
    CHECK(dynamic_fields(family).count == 2);
    CHECK(run_time_fields(family).count == 3);
    CHECK(dynamic_text(*parse_problem(family, "q_len=7 batch=2")) == "batch=2 q_len=7 kv_len=7");
}
