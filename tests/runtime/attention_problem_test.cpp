#include "runtime/operators/attention_problem.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace hone::runtime {
namespace {

std::vector<std::string> texts(const Attention& attention) {
    const AttentionProblems problems = attention_problems(attention);
    std::vector<std::string> texts;
    for (const std::optional<Problem>& problem : problems.decode) {
        if (problem) texts.push_back(to_string(*problem));
    }
    if (problems.prefill) texts.push_back(to_string(*problems.prefill));
    return texts;
}

TEST_CASE("an operator is problems of decode for 1, 2, 4, 8, 16 queries, and one of prefill") {
    const std::vector<std::string> all =
        texts({.heads = 32, .kv_heads = 8, .head_dim = 128, .lengths = true});
    REQUIRE(all.size() == 6);
    CHECK(all[0] ==
          "attention_decode dtype=bf16 kv_dtype=same causal=no window=0 softcap=no lse=no lengths=yes "
          "page_size=0 heads=32 kv_heads=8 head_dim=128 q_tokens=1 batch=64 kv_len=8192 q_len=1");
    CHECK(all[1].find("causal=yes window=0") != std::string::npos);
    CHECK(all[4].ends_with("q_tokens=16 batch=64 kv_len=8192 q_len=16"));
    CHECK(all[5] ==
          "attention_prefill dtype=bf16 causal=yes window=0 softcap=no lse=no lengths=kv heads=32 kv_heads=8 "
          "head_dim=128 batch=64 q_len=8192 kv_len=8192");
}

TEST_CASE("only what calls can reach is prepared") {
    CHECK(texts({.heads = 2, .head_dim = 64, .max_q_len = 1}).size() == 1);
    CHECK(texts({.heads = 2, .head_dim = 64, .max_q_len = 3}).size() == 3);
    CHECK(texts({.heads = 2, .head_dim = 64, .max_q_len = 16}).size() == 5);
    CHECK(texts({.heads = 2, .head_dim = 64, .max_q_len = 17}).size() == 6);
    CHECK(texts({.heads = 2, .head_dim = 64, .max_q_len = 16, .min_q_len = 5}).size() == 2);
    CHECK(texts({.heads = 2, .head_dim = 64, .max_q_len = 17, .min_q_len = 16}).size() == 2);
    CHECK(texts({.heads = 2, .head_dim = 64, .min_q_len = 17}).size() == 1);
    const std::vector<std::string> packed =
        texts({.heads = 2, .head_dim = 64, .max_q_len = 4, .packed = true});
    REQUIRE(packed.size() == 1);
    CHECK(packed[0].find("lengths=cumulative heads=2 kv_heads=2") != std::string::npos);
    const std::vector<std::string> cache = texts(
        {.heads = 2, .head_dim = 64, .max_q_len = 1, .kv_dtype = KvDtype::fp8, .window = 9, .page_size = 16});
    CHECK(cache[0].find("kv_dtype=fp8_e4m3 causal=yes window=9") != std::string::npos);
    CHECK(cache[0].find("page_size=16") != std::string::npos);
}

TEST_CASE("pages are read by prefill, too: by packed queries with lengths of their keys, and by others") {
    for (const bool lengths : {false, true}) {
        const std::vector<std::string> packed =
            texts({.heads = 2, .head_dim = 64, .lengths = lengths, .packed = true, .page_size = 16});
        REQUIRE(packed.size() == 2);
        CHECK(packed[0] ==
              "attention_decode dtype=bf16 kv_dtype=same causal=no window=0 softcap=no lse=no lengths=packed "
              "page_size=16 heads=2 kv_heads=2 head_dim=64 q_tokens=1 batch=64 kv_len=8192 q_len=1");
        CHECK(packed[1] ==
              "attention_prefill dtype=bf16 causal=yes window=0 softcap=no lse=no lengths=paged page_size=16 "
              "heads=2 kv_heads=2 head_dim=64 batch=64 q_len=8192 kv_len=8192");
    }
    const std::vector<std::string> prompts =
        texts({.heads = 2, .head_dim = 64, .lengths = true, .page_size = 48});
    REQUIRE(prompts.size() == 6);
    CHECK(prompts[5].find("lengths=kv page_size=48") != std::string::npos);
}

TEST_CASE("codes and sinks are for all calls, and problems without them have their old texts") {
    const std::vector<std::string> codes = texts({.heads = 2, .head_dim = 64, .kv_dtype = KvDtype::fp8});
    REQUIRE(codes.size() == 6);
    CHECK(codes[4].find("kv_dtype=fp8_e4m3") != std::string::npos);
    CHECK(codes[5] ==
          "attention_prefill dtype=bf16 causal=yes window=0 softcap=no lse=no lengths=none kv_dtype=fp8_e4m3 "
          "heads=2 kv_heads=2 head_dim=64 batch=64 q_len=8192 kv_len=8192");
    const std::vector<std::string> packed =
        texts({.heads = 2, .head_dim = 64, .kv_dtype = KvDtype::fp8, .packed = true, .page_size = 16});
    REQUIRE(packed.size() == 2);
    CHECK(packed[0].find("lengths=packed page_size=16 heads") != std::string::npos);
    CHECK(packed[1].find("lengths=paged page_size=16 kv_dtype=fp8_e4m3 heads") != std::string::npos);
    const std::vector<std::string> sinks = texts({.heads = 2, .head_dim = 64, .sinks = true});
    REQUIRE(sinks.size() == 6);
    for (const std::string& text : sinks) CHECK(text.find("sinks=yes") != std::string::npos);
    for (const std::string& text : texts({.heads = 2, .head_dim = 64}))
        CHECK(text.find("sinks") == std::string::npos);
}

TEST_CASE("descriptions that no kernel could serve are refused by name") {
    const auto refused = [](Attention attention, const char* text) {
        CHECK_THROWS_WITH(static_cast<void>(attention_problems(attention)), doctest::Contains(text));
    };
    refused({.heads = 6, .kv_heads = 4, .head_dim = 64}, "heads=6 is no multiple of kv_heads=4");
    refused({.heads = 0, .head_dim = 64}, "'heads' has the value '0'");
    refused({.heads = 2, .head_dim = 264}, "'head_dim' has the value '264'");
    refused({.heads = 2, .head_dim = 64, .max_batch = 0}, "max_batch is 0; allowed: 1 to");
    refused({.heads = 2, .head_dim = 64, .max_q_len = 0}, "max_q_len is 0; allowed: from 1");
    refused({.heads = 2, .head_dim = 64, .max_q_len = 8, .min_q_len = 9},
            "min_q_len is 9; allowed: 1 to max_q_len, 8");
    refused({.heads = 2, .head_dim = 64, .min_q_len = 0}, "min_q_len is 0");
    refused({.heads = 2, .head_dim = 64, .max_kv_len = -1}, "max_kv_len is -1; allowed: 1 to");
    refused({.heads = 2, .head_dim = 64, .dtype = Dtype::int8}, "'dtype' has the value 'int8'");
    refused({.heads = 2, .head_dim = 64, .causal = false, .window = 5},
            "window is 5; allowed without causal: 0");
    refused({.heads = 2, .head_dim = 64, .max_q_len = 1, .causal = false, .window = 5}, "window is 5");
    refused({.heads = 2, .head_dim = 64, .lengths = true, .packed = true}, "lengths is true");
    refused({.heads = 2, .head_dim = 64, .page_size = -1}, "'page_size' has the value '-1'");
    refused({.heads = 2, .head_dim = 64, .packed = true, .page_size = 65537}, "'page_size' has the value");
}

}  // namespace
}  // namespace hone::runtime
