// Every variant of attention_prefill and attention_decode on the GPU against double arithmetic on the host:
// masks, lengths, layouts, pages, codes, head dimensions, and NaN wherever nobody may look.
#include <doctest/doctest.h>

#include <string>

#include "kernel_templates/attention_decode/attention_decode.h"
#include "tests/runtime/attention_case.h"

using namespace hone;
using namespace hone::test;

namespace {

void check_problem(const std::string& text, std::size_t each, AttentionLayout layout = {},
                   bool in_place = false) {
    const AttentionCase attention(text, layout);
    for (const Candidate& candidate : sample_of(attention, each)) {
        INFO(text << " | " << to_string(candidate));
        CHECK(attention.fault_of(attention.run(candidate, in_place)) == "");
    }
}

/// One candidate, which must be among those that the rules allow.
void check_candidate(const std::string& text, const std::string& written, AttentionLayout layout = {}) {
    const AttentionCase attention(text, layout);
    const Candidate candidate = parse_candidate(*attention.problem().family, written).value();
    if (!runs_on(*candidate.variant, Bench::get().traits)) return;
    REQUIRE(allowed(attention.problem(), candidate, Bench::get().traits));
    INFO(text << " | " << to_string(candidate));
    CHECK(attention.fault_of(attention.run(candidate, false)) == "");
}

void check_wgmma(const std::string& text, const std::string& config, AttentionLayout layout = {}) {
    check_candidate(text, "wgmma " + config, layout);
}

std::string prefill(const std::string& rest) { return "attention_prefill " + rest; }
std::string decode(const std::string& rest) { return "attention_decode " + rest; }

void check_page_size(const std::string& page_size) {
    check_problem(
        prefill(
            "dtype=bf16 causal=yes lengths=paged lse=yes heads=4 kv_heads=2 head_dim=128 batch=7 q_len=200 "
            "kv_len=600 page_size=" +
            page_size),
        1);
}

}  // namespace

// Compiling takes most of the time: about 20 images a case, so that all cases together take as long as one.

// Small enough to run under a sanitizer (tests/run_gpu_tests.py --sanitize).
TEST_CASE("small calls of every variant are right") {
    const std::string prompt = " lse=yes heads=2 kv_heads=1 head_dim=64 batch=2 q_len=70 kv_len=100";
    check_problem(prefill("dtype=bf16 causal=yes lengths=kv" + prompt), 1);
    check_problem(prefill("dtype=fp16 lengths=cumulative" + prompt), 1);
    check_problem(prefill("dtype=fp32 causal=yes lengths=kv" + prompt), 1);
    const std::string step = " lse=yes heads=4 kv_heads=2 head_dim=64 batch=2 kv_len=200";
    check_problem(decode("dtype=bf16 lengths=yes page_size=16 q_tokens=2 q_len=2" + step), 1);
    check_problem(decode("dtype=fp16 kv_dtype=fp8_e4m3 lengths=yes q_tokens=1 q_len=1" + step), 1);
    check_problem(decode("dtype=fp32 lengths=yes q_tokens=1 q_len=1" + step), 1);
}

TEST_CASE("small calls from pages are right in every variant of prefill") {
    const std::string packed = " lengths=paged lse=yes heads=2 kv_heads=1 batch=6 q_len=70 kv_len=150";
    check_problem(prefill("dtype=bf16 causal=yes head_dim=64 page_size=16" + packed), 1);
    check_problem(prefill("dtype=fp16 causal=yes window=40 head_dim=64 page_size=64" + packed), 1);
    check_problem(prefill("dtype=bf16 causal=yes head_dim=64 page_size=1" + packed), 1);
    check_problem(prefill("dtype=fp32 causal=yes head_dim=40 page_size=16" + packed), 1);
    check_problem(prefill("dtype=bf16 causal=yes lengths=kv page_size=32 heads=2 kv_heads=2 head_dim=64 "
                          "batch=3 q_len=40 kv_len=100"),
                  1);
}

TEST_CASE("small calls of single tokens among packed ones are right in every variant, others left alone") {
    const std::string packed = " lengths=packed lse=yes heads=4 kv_heads=2 batch=9 kv_len=150";
    check_problem(decode("dtype=bf16 page_size=16 head_dim=64" + packed), 1);
    check_problem(decode("dtype=fp32 page_size=16 head_dim=64" + packed), 1);
    const std::string prompts =
        " lengths=paged page_size=16 lse=yes heads=2 kv_heads=1 batch=6 q_len=70 kv_len=150";
    check_problem(prefill("dtype=bf16 causal=yes head_dim=64" + prompts), 1, {.least_queries = 2});
    check_problem(prefill("dtype=fp32 causal=yes head_dim=40" + prompts), 1, {.least_queries = 2});
}

TEST_CASE("small calls over codes and with sinks are right in every variant") {
    const std::string codes = " kv_dtype=fp8_e4m3 lse=yes heads=4 kv_heads=2 head_dim=64 q_len=70 kv_len=150";
    check_problem(prefill("dtype=bf16 causal=yes lengths=paged page_size=16 batch=6" + codes), 1);
    check_problem(prefill("dtype=fp16 causal=yes lengths=kv batch=2" + codes), 1);
    check_problem(decode("dtype=bf16 kv_dtype=fp8_e4m3 lengths=yes page_size=16 lse=yes heads=4 kv_heads=2 "
                         "head_dim=64 q_tokens=1 q_len=1 batch=2 kv_len=200"),
                  1);
    check_problem(
        prefill("dtype=bf16 causal=yes lengths=paged page_size=16 kv_dtype=fp8_e4m3 lse=yes heads=2 "
                "kv_heads=1 head_dim=128 batch=3 q_len=70 kv_len=150"),
        1);
    const std::string sinks = " sinks=yes lse=yes heads=4 kv_heads=2 head_dim=64 batch=2";
    check_problem(prefill("dtype=bf16 causal=yes lengths=kv q_len=70 kv_len=100" + sinks), 1);
    check_problem(prefill("dtype=fp32 causal=yes lengths=cumulative q_len=70 kv_len=100" + sinks), 1);
    check_problem(decode("dtype=bf16 lengths=yes q_tokens=2 q_len=2 kv_len=200" + sinks), 1);
    check_problem(decode("dtype=fp32 lengths=yes q_tokens=1 q_len=1 kv_len=200" + sinks), 1);
}

TEST_CASE("prefill of 16-bit elements is right with and without a mask, at sizes that no tile divides") {
    for (const char* dtype : {"dtype=bf16", "dtype=fp16"}) {
        const std::string dims = std::string(dtype) + " head_dim=64 ";
        check_problem(prefill(dims + "heads=4 kv_heads=2 batch=2 q_len=200 kv_len=333"), 1);
        check_problem(prefill(dims + "heads=3 kv_heads=1 causal=yes batch=2 q_len=257 kv_len=300"), 1);
        check_problem(prefill(dims + "heads=2 kv_heads=2 causal=yes lse=yes batch=1 q_len=1 kv_len=70"), 1);
    }
}

TEST_CASE("prefill is right in tiles of three warpgroups") {
    const std::string three =
        " consumers=3 stages=2 query_stages=1 blocks_per_sm=1 section_mib=24 dynamic=0 "
        "softmax_first=0 late_maxima=0 programmatic=1";
    const std::string sizes = " lse=yes heads=4 kv_heads=2 head_dim=64 batch=3 q_len=200 kv_len=333";
    check_wgmma(prefill("dtype=fp16" + sizes), "tile_n=128 query_in_registers=0" + three);
    check_wgmma(prefill("dtype=bf16 causal=yes" + sizes), "tile_n=96 query_in_registers=1" + three);
    check_wgmma(prefill("dtype=bf16 causal=yes lengths=cumulative" + sizes),
                "tile_n=96 query_in_registers=0" + three);
}

TEST_CASE("prefill with late maxima is right, also where they grow by more than weights can hold") {
    const std::string late =
        "stages=2 query_stages=1 blocks_per_sm=1 section_mib=24 dynamic=0 softmax_first=0 late_maxima=1 "
        "programmatic=0 ";
    const std::string sizes = " lse=yes heads=4 kv_heads=2 batch=2 q_len=300 kv_len=433";
    for (const AttentionLayout layout : {AttentionLayout{}, AttentionLayout{.uneven_queries = true}}) {
        const auto check = [&](const std::string& problem, const std::string& config) {
            check_wgmma(prefill(problem + sizes), late + config, layout);
        };
        check("dtype=bf16 causal=yes head_dim=128", "consumers=2 tile_n=128 query_in_registers=0");
        check("dtype=fp16 causal=yes head_dim=128", "consumers=2 tile_n=64 query_in_registers=1");
        check("dtype=bf16 head_dim=128", "consumers=2 tile_n=176 query_in_registers=0");
        check("dtype=fp16 head_dim=64 sinks=yes", "consumers=3 tile_n=128 query_in_registers=0");
        check("dtype=bf16 causal=yes head_dim=72 softcap=yes", "consumers=1 tile_n=96 query_in_registers=1");
        check("dtype=bf16 causal=yes window=90 head_dim=128", "consumers=2 tile_n=96 query_in_registers=0");
        check("dtype=fp16 causal=yes lengths=kv head_dim=128", "consumers=2 tile_n=80 query_in_registers=0");
        check("dtype=bf16 causal=yes lengths=cumulative head_dim=64",
              "consumers=1 tile_n=64 query_in_registers=1");
        const std::string pages = "dtype=bf16 causal=yes lengths=paged head_dim=128 page_size=";
        check(pages + "16", "consumers=2 tile_n=128 query_in_registers=1");
        check(pages + "8 window=90", "consumers=2 tile_n=112 query_in_registers=0");
        check(pages + "256", "consumers=2 tile_n=128 query_in_registers=0");
        check(pages + "1", "consumers=2 tile_n=64 query_in_registers=0");
        check("dtype=fp16 lengths=kv page_size=64 head_dim=64",
              "consumers=1 tile_n=128 query_in_registers=1");
    }
}

TEST_CASE("prefill with late maxima is right in three stages, with more tiles than multiprocessors") {
    const auto check = [](const std::string& problem, const std::string& dynamic) {
        check_wgmma(prefill("dtype=bf16 causal=yes lse=yes heads=16 kv_heads=4 head_dim=128 batch=5 "
                            "q_len=150 kv_len=400" +
                            problem),
                    "consumers=2 tile_n=128 stages=3 query_stages=1 blocks_per_sm=1 query_in_registers=1 "
                    "section_mib=24 softmax_first=0 late_maxima=1 programmatic=0 dynamic=" +
                        dynamic);
    };
    check("", "1");
    check(" lengths=cumulative", "1");
    check(" lengths=paged page_size=256", "1");
    check(" lengths=paged page_size=64", "0");
    check(" lengths=paged page_size=32", "0");
    check(" lengths=paged page_size=16", "0");
}

// Of so few blocks of keys the producer waits for room for the next tile's queries from the moment on when it
// has brought these: what gives room too early shows in few launches, and in few rows.
TEST_CASE("prefill of many short tiles is right, and the same in every launch") {
    const AttentionCase attention(
        "attention_prefill dtype=bf16 causal=yes lse=yes heads=32 kv_heads=8 head_dim=128 batch=4 q_len=256 "
        "kv_len=256");
    for (const char* stages : {"2", "3"}) {
        const std::string written =
            std::string(
                "wgmma consumers=2 tile_n=128 query_stages=1 blocks_per_sm=1 query_in_registers=1 "
                "section_mib=24 dynamic=0 softmax_first=0 late_maxima=1 programmatic=0 stages=") +
            stages;
        const Candidate candidate = parse_candidate(*attention.problem().family, written).value();
        if (!runs_on(*candidate.variant, Bench::get().traits)) return;
        INFO(written);
        const std::vector<HostTensor> first = attention.run(candidate);
        CHECK(attention.fault_of(first) == "");
        int others = 0;
        for (int launch = 0; launch < 60; ++launch)
            others += attention.differs(attention.run(candidate), first) ? 1 : 0;
        CHECK(others == 0);
    }
}

// Queries in registers are given back before any key has come: a warp that only brings keys may find two
// phases of that barrier over. Codes: fewer warps copy keys than widen values.
TEST_CASE("prefill over pages comes to an end whichever of the warps that copy is late at a barrier") {
    const std::string sizes =
        " causal=yes lengths=paged lse=yes heads=8 kv_heads=2 head_dim=128 batch=9 q_len=300 "
        "kv_len=300 page_size=";
    const std::string config =
        "consumers=2 tile_n=128 stages=3 query_stages=1 blocks_per_sm=1 section_mib=24 "
        "dynamic=0 softmax_first=0 programmatic=0 ";
    const auto check = [&](int late, const std::string& pages, const std::string& rest) {
        CAPTURE(late);
        Bench::get().late_warp = late;
        check_wgmma(prefill("dtype=bf16" + sizes + pages), config + rest);
        Bench::get().late_warp = std::nullopt;
    };
    for (const int late : {1, 2, 3}) check(late, "16", "query_in_registers=1 late_maxima=1");
    for (const int late : {2, 5, 7})
        check(late, "64 kv_dtype=fp8_e4m3", "query_in_registers=0 late_maxima=0");
}

TEST_CASE("prefill of float32 is right with and without a mask, at sizes that no tile divides") {
    const std::string dims = "dtype=fp32 head_dim=64 ";
    check_problem(prefill(dims + "heads=4 kv_heads=2 batch=2 q_len=200 kv_len=333"), 2);
    check_problem(prefill(dims + "heads=3 kv_heads=1 causal=yes batch=2 q_len=257 kv_len=300"), 2);
    check_problem(prefill(dims + "heads=2 kv_heads=2 causal=yes lse=yes batch=1 q_len=1 kv_len=70"), 1);
}

TEST_CASE("prefill is right for every head dimension") {
    for (const char* head_dim :
         {"head_dim=8", "head_dim=40", "head_dim=96", "head_dim=128", "head_dim=192", "head_dim=256"}) {
        check_problem(
            prefill(std::string("dtype=bf16 causal=yes heads=2 kv_heads=1 batch=1 q_len=150 kv_len=211 ") +
                    head_dim),
            1);
    }
    check_problem(prefill("dtype=fp16 causal=yes heads=2 kv_heads=1 head_dim=7 batch=2 q_len=33 kv_len=65"),
                  1);
}

TEST_CASE("prefill of float32 is right for every head dimension") {
    for (const char* head_dim :
         {"head_dim=1", "head_dim=8", "head_dim=36", "head_dim=96", "head_dim=128", "head_dim=256"}) {
        check_problem(
            prefill(std::string("dtype=fp32 causal=yes heads=2 kv_heads=1 batch=1 q_len=150 kv_len=211 ") +
                    head_dim),
            1);
    }
}

TEST_CASE("prefill with windows, softcap and log-sum-exp is right, also for rows that see nothing") {
    const std::string sizes = " heads=4 kv_heads=2 head_dim=128 batch=2 q_len=300 kv_len=270";
    check_problem(prefill("dtype=bf16 causal=yes lse=yes" + sizes), 1);
    check_problem(prefill("dtype=bf16 causal=yes window=1 lse=yes" + sizes), 1);
    check_problem(prefill("dtype=fp16 causal=yes window=70 softcap=yes lse=yes" + sizes), 1);
    check_problem(prefill("dtype=fp32 causal=yes window=70 softcap=yes lse=yes" + sizes), 1);
    check_problem(prefill("dtype=bf16 softcap=yes lse=yes" + sizes), 1);
}

TEST_CASE("prefill of sequences with lengths is right, and what lies behind them does not leak") {
    const std::string sizes = " lengths=kv heads=4 kv_heads=1 head_dim=64 batch=5 q_len=140 kv_len=260";
    check_problem(prefill("dtype=bf16 lse=yes" + sizes), 1);
    check_problem(prefill("dtype=bf16 causal=yes lse=yes" + sizes), 1);
    check_problem(prefill("dtype=fp32 causal=yes lse=yes" + sizes), 1);
    check_problem(prefill("dtype=fp16 causal=yes window=33 softcap=yes" + sizes), 1);
}

TEST_CASE("prefill of packed sequences is right, and what lies behind them does not leak") {
    const std::string sizes =
        " lengths=cumulative heads=4 kv_heads=2 head_dim=128 batch=5 q_len=140 kv_len=260";
    check_problem(prefill("dtype=bf16 lse=yes" + sizes), 1);
    check_problem(prefill("dtype=bf16 causal=yes lse=yes" + sizes), 1);
    check_problem(prefill("dtype=fp32 causal=yes lse=yes" + sizes), 1);
    check_problem(prefill("dtype=fp16 causal=yes window=33 softcap=yes" + sizes), 1);
}

TEST_CASE("prefill from pages smaller than a tile is right, whatever stands in pages of others") {
    for (const char* page_size : {"1", "8", "16", "32", "48"}) check_page_size(page_size);
}

TEST_CASE("prefill from pages of a tile and more is right, whatever stands in pages of others") {
    for (const char* page_size : {"64", "128", "256", "1024"}) check_page_size(page_size);
}

TEST_CASE("prefill from pages is right in every dtype, with windows, softcap and without a mask") {
    const std::string sizes =
        " lengths=paged lse=yes heads=4 kv_heads=1 head_dim=64 batch=6 q_len=140 kv_len=400 page_size=16";
    check_problem(prefill("dtype=fp16 causal=yes" + sizes), 1);
    check_problem(prefill("dtype=fp32 causal=yes" + sizes), 1);
    check_problem(prefill("dtype=bf16" + sizes), 1);
    check_problem(prefill("dtype=bf16 causal=yes window=33" + sizes), 1);
    check_problem(prefill("dtype=bf16 causal=yes window=1" + sizes), 1);
    check_problem(prefill("dtype=fp16 causal=yes window=70 softcap=yes" + sizes), 1);
    check_problem(prefill("dtype=fp32 causal=yes window=70 softcap=yes" + sizes), 1);
}

TEST_CASE("prefill from pages is right for every head dimension") {
    const std::string sizes = " causal=yes lengths=paged heads=2 kv_heads=1 batch=5 q_len=150 kv_len=300";
    for (const char* head_dim : {"head_dim=8", "head_dim=40", "head_dim=96", "head_dim=192", "head_dim=256"})
        check_problem(prefill("dtype=bf16 page_size=32 " + std::string(head_dim) + sizes), 1);
    check_problem(prefill("dtype=fp16 page_size=16 head_dim=7" + sizes), 1);
    check_problem(prefill("dtype=fp32 page_size=16 head_dim=128" + sizes), 1);
}

TEST_CASE("prefill from pages is right for many short sequences, most of them single tokens") {
    const std::string sizes =
        " causal=yes lengths=paged lse=yes heads=8 kv_heads=2 head_dim=128 page_size=16";
    check_problem(prefill("dtype=bf16 batch=40 q_len=1 kv_len=90" + sizes), 1);
    check_problem(prefill("dtype=bf16 batch=33 q_len=130 kv_len=170" + sizes), 1);
}

TEST_CASE("prefill from pages leaves sequences of fewer queries alone, wherever they stand") {
    const std::string sizes = " causal=yes lengths=paged lse=yes heads=8 kv_heads=2 page_size=16";
    check_problem(prefill("dtype=bf16 head_dim=128 batch=40 q_len=3 kv_len=90" + sizes), 2,
                  {.least_queries = 2});
    check_problem(prefill("dtype=bf16 head_dim=128 batch=12 q_len=130 kv_len=170" + sizes), 2,
                  {.least_queries = 60});
    check_problem(prefill("dtype=fp16 kv_dtype=fp8_e4m3 head_dim=64 batch=9 q_len=130 kv_len=170" + sizes), 2,
                  {.least_queries = 2});
}

TEST_CASE("prefill from pages is right where queries are not packed") {
    const std::string sizes = " heads=4 kv_heads=2 head_dim=64 batch=4 q_len=140 kv_len=260 page_size=16";
    check_problem(prefill("dtype=bf16 causal=yes lengths=kv lse=yes" + sizes), 1);
    check_problem(prefill("dtype=bf16 causal=yes" + sizes), 1, {.padding = 8, .heads_first = true});
    check_problem(prefill("dtype=fp16 window=33 causal=yes" + sizes), 1);
    check_problem(prefill("dtype=fp32 lengths=kv lse=yes" + sizes), 1, {.padding = 4, .heads_first = true});
}

TEST_CASE("prefill over codes in pages is right") {
    const std::string sizes =
        " kv_dtype=fp8_e4m3 causal=yes lengths=paged lse=yes heads=8 kv_heads=2 head_dim=128 batch=6 "
        "q_len=200 kv_len=600";
    for (const char* page_size : {"page_size=1", "page_size=16", "page_size=48", "page_size=256"})
        check_problem(prefill("dtype=bf16 " + std::string(page_size) + sizes), 1);
    check_problem(prefill("dtype=fp16 page_size=16" + sizes), 1);
}

TEST_CASE("prefill over codes is right in every order of the cache") {
    const std::string sizes = " kv_dtype=fp8_e4m3 causal=yes lse=yes heads=8 kv_heads=2 head_dim=128 batch=5";
    check_problem(prefill("dtype=bf16 lengths=kv q_len=140 kv_len=700" + sizes), 1);
    check_problem(prefill("dtype=bf16 lengths=cumulative q_len=200 kv_len=400" + sizes), 1);
    check_problem(prefill("dtype=fp16 lengths=none q_len=130 kv_len=257" + sizes), 2,
                  {.padding = 16, .heads_first = true});
}

TEST_CASE("prefill over codes is right with windows, softcap and sinks") {
    const std::string codes =
        " kv_dtype=fp8_e4m3 lengths=paged page_size=16 lse=yes heads=4 kv_heads=1 batch=6";
    check_problem(prefill("dtype=bf16 causal=yes window=33 head_dim=64 q_len=140 kv_len=400" + codes), 1);
    check_problem(
        prefill("dtype=bf16 causal=yes window=70 softcap=yes sinks=yes head_dim=128 q_len=140 kv_len=400" +
                codes),
        1);
    check_problem(prefill("dtype=fp16 softcap=yes head_dim=128 q_len=140 kv_len=400" + codes), 1);
    check_problem(prefill("dtype=fp32 causal=yes sinks=yes head_dim=64 q_len=70 kv_len=200" + codes), 1);
}

TEST_CASE("prefill over codes is right for every head dimension") {
    const std::string codes =
        " kv_dtype=fp8_e4m3 causal=yes lengths=paged page_size=16 lse=yes heads=4 kv_heads=1 batch=6 "
        "q_len=150 kv_len=300";
    for (const char* head_dim :
         {"head_dim=16", "head_dim=72", "head_dim=80", "head_dim=96", "head_dim=192", "head_dim=256"})
        check_problem(prefill("dtype=bf16 " + std::string(head_dim) + codes), 1);
}

TEST_CASE("prefill over codes is right for many short sequences, most of them single tokens") {
    const std::string sizes =
        " kv_dtype=fp8_e4m3 causal=yes lengths=paged lse=yes heads=8 kv_heads=2 head_dim=128 page_size=16";
    check_problem(prefill("dtype=bf16 batch=40 q_len=1 kv_len=90" + sizes), 1);
    check_problem(prefill("dtype=bf16 batch=33 q_len=130 kv_len=170" + sizes), 1);
}

TEST_CASE("sinks count in every variant of prefill, also for rows that see nothing") {
    const std::string sizes =
        " sinks=yes lse=yes heads=4 kv_heads=2 head_dim=128 batch=2 q_len=300 kv_len=270";
    check_problem(prefill("dtype=bf16 causal=yes" + sizes), 1);
    check_problem(prefill("dtype=fp16 causal=yes window=70 softcap=yes" + sizes), 1);
    check_problem(prefill("dtype=fp32 causal=yes" + sizes), 1);
    check_problem(
        prefill("dtype=bf16 lengths=paged page_size=16 causal=yes window=128 sinks=yes lse=yes heads=8 "
                "kv_heads=1 head_dim=64 batch=6 q_len=200 kv_len=400"),
        1);
}

TEST_CASE("sinks count in every variant of decode, whole or split, also for rows that see nothing") {
    const std::string sinks = " sinks=yes lse=yes heads=8 kv_heads=2 head_dim=64";
    check_problem(decode("dtype=bf16 lengths=yes q_tokens=1 q_len=1 batch=3 kv_len=700" + sinks), 2);
    check_problem(
        decode("dtype=bf16 lengths=yes page_size=16 q_tokens=4 q_len=3 causal=yes window=128 batch=5 "
               "kv_len=600" +
               sinks),
        1);
    check_problem(
        decode("dtype=fp16 kv_dtype=fp8_e4m3 lengths=yes q_tokens=1 q_len=1 batch=3 kv_len=500" + sinks), 1);
    check_problem(decode("dtype=fp32 lengths=yes softcap=yes q_tokens=2 q_len=2 batch=3 kv_len=300" + sinks),
                  1);
    check_problem(decode("dtype=bf16 lengths=yes q_tokens=1 q_len=1 batch=1 kv_len=9000" + sinks), 2);
}

TEST_CASE("prefill takes any strides, and leaves what stands between rows alone") {
    const std::string sizes = " causal=yes heads=4 kv_heads=2 head_dim=64 batch=2 q_len=99 kv_len=140";
    check_problem(prefill("dtype=bf16" + sizes), 1, {.padding = 8});
    check_problem(prefill("dtype=bf16" + sizes), 1, {.padding = 64, .heads_first = true});
    check_problem(prefill("dtype=fp32" + sizes), 1, {.padding = 4, .heads_first = true});
    check_problem(prefill("dtype=bf16" + sizes), 1, {}, true);
}

TEST_CASE("decode is right for every number of queries") {
    for (const char* queries : {"q_tokens=1 q_len=1", "q_tokens=2 q_len=2", "q_tokens=8 q_len=5",
                                "q_tokens=16 q_len=16", "q_tokens=16 q_len=9"}) {
        check_problem(
            decode(std::string("dtype=bf16 causal=yes lengths=yes heads=8 kv_heads=2 head_dim=128 batch=3 "
                               "kv_len=700 ") +
                   queries),
            1);
    }
}

TEST_CASE("decode is right in every dtype") {
    for (const char* queries : {"q_tokens=1 q_len=1", "q_tokens=4 q_len=3", "q_tokens=16 q_len=16"}) {
        const std::string sizes =
            std::string(" causal=yes heads=8 kv_heads=2 head_dim=64 batch=3 kv_len=700 ") + queries;
        check_problem(decode("dtype=fp16 lse=yes" + sizes), 1);
        check_problem(decode("dtype=fp32 lengths=yes lse=yes" + sizes), 1);
    }
}

TEST_CASE("decode is right for every head dimension") {
    for (const char* head_dim :
         {"head_dim=8", "head_dim=80", "head_dim=96", "head_dim=192", "head_dim=256"}) {
        check_problem(
            decode(std::string("dtype=bf16 lengths=yes heads=4 kv_heads=2 q_tokens=1 q_len=1 batch=3 "
                               "kv_len=300 ") +
                   head_dim),
            1);
    }
    check_problem(
        decode("dtype=fp16 lengths=yes heads=2 kv_heads=1 head_dim=7 q_tokens=4 q_len=3 batch=3 kv_len=100"),
        1);
}

TEST_CASE("decode is right for every number of heads that share one") {
    for (const char* heads : {"heads=16 kv_heads=16", "heads=5 kv_heads=1", "heads=32 kv_heads=1"}) {
        check_problem(
            decode(std::string("dtype=bf16 causal=yes lengths=yes head_dim=64 q_tokens=2 q_len=2 batch=2 "
                               "kv_len=513 ") +
                   heads),
            1);
    }
}

TEST_CASE("decode from pages is right, whatever stands in pages of others") {
    for (const char* page_size :
         {"page_size=1", "page_size=16", "page_size=32", "page_size=64", "page_size=128", "page_size=48"}) {
        check_problem(
            decode(std::string("dtype=bf16 lengths=yes heads=8 kv_heads=2 head_dim=128 q_tokens=1 q_len=1 "
                               "batch=5 kv_len=600 ") +
                   page_size),
            1);
    }
}

TEST_CASE("decode from pages is right in any layout, and for several queries") {
    const std::string sizes = " heads=4 kv_heads=2 head_dim=64 batch=4 kv_len=200 page_size=16";
    check_problem(decode("dtype=fp16 causal=yes lengths=yes lse=yes q_tokens=4 q_len=3" + sizes), 1);
    check_problem(decode("dtype=fp32 lengths=yes q_tokens=1 q_len=1" + sizes), 1);
    check_problem(decode("dtype=bf16 q_tokens=1 q_len=1" + sizes), 1, {.padding = 8, .heads_first = true});
}

TEST_CASE("single tokens among packed ones are right in every variant, whole or split") {
    const std::string packed = " lengths=packed lse=yes heads=8 kv_heads=2";
    check_problem(decode("dtype=bf16 page_size=16 head_dim=128 batch=40 kv_len=600" + packed), 2);
    check_problem(decode("dtype=fp16 page_size=48 head_dim=64 batch=5 kv_len=3000" + packed), 2);
    check_problem(decode("dtype=bf16 window=70 causal=yes softcap=yes sinks=yes page_size=1 head_dim=128 "
                         "batch=9 kv_len=400" +
                         packed),
                  2);
    check_problem(
        decode("dtype=bf16 kv_dtype=fp8_e4m3 page_size=16 head_dim=128 batch=9 kv_len=700" + packed), 2);
    check_problem(decode("dtype=fp32 page_size=16 head_dim=77 batch=9 kv_len=300" + packed), 1);
    check_problem(decode("dtype=bf16 head_dim=128 batch=4 kv_len=9000" + packed), 2);
}

TEST_CASE("decode of codes is right") {
    for (const char* cache :
         {"page_size=0 head_dim=64", "page_size=0 head_dim=128", "page_size=16 head_dim=128"}) {
        check_problem(
            decode(std::string("dtype=bf16 kv_dtype=fp8_e4m3 lengths=yes heads=8 kv_heads=2 q_tokens=1 "
                               "q_len=1 batch=3 kv_len=500 ") +
                   cache),
            1);
    }
    check_problem(
        decode("dtype=fp16 kv_dtype=fp8_e4m3 causal=yes lengths=yes heads=4 kv_heads=4 q_tokens=4 q_len=4 "
               "batch=3 kv_len=300 head_dim=128"),
        1);
}

TEST_CASE(
    "decode of codes is right with several queries, windows, softcap, sinks and in heads of any width") {
    const std::string codes = "dtype=bf16 kv_dtype=fp8_e4m3 lengths=yes lse=yes batch=4 ";
    const std::string pages = codes + "page_size=16 heads=8 kv_heads=2 kv_len=700 ";
    check_problem(decode(pages + "causal=yes q_tokens=4 q_len=3 head_dim=128"), 1);
    check_problem(decode(pages + "causal=yes window=100 softcap=yes q_tokens=4 q_len=3 head_dim=64"), 1);
    check_problem(decode(pages + "sinks=yes q_tokens=1 q_len=1 head_dim=128"), 1);
    for (const char* head_dim : {"head_dim=16", "head_dim=80", "head_dim=96", "head_dim=192", "head_dim=256"})
        check_problem(decode(codes + "heads=4 kv_heads=2 q_tokens=1 q_len=1 kv_len=300 " + head_dim), 1);
    check_problem(decode(codes + "page_size=1 heads=4 kv_heads=1 q_tokens=1 q_len=1 kv_len=300 head_dim=128"),
                  1);
}

// A warp's queries become fp16 together, by one power of two, and the maximum of scores follows them late.
TEST_CASE("decode of codes is right where queries are of very different sizes") {
    const std::string codes = "dtype=bf16 kv_dtype=fp8_e4m3 lengths=yes lse=yes heads=8 kv_heads=2 ";
    check_problem(decode(codes + "page_size=16 q_tokens=1 q_len=1 batch=4 kv_len=900 head_dim=128"), 4,
                  {.uneven_queries = true});
    check_problem(decode(codes + "causal=yes q_tokens=4 q_len=4 batch=3 kv_len=300 head_dim=64"), 2,
                  {.uneven_queries = true});
}

TEST_CASE("decode with windows, softcap and strides is right") {
    const std::string sizes =
        " lengths=yes heads=4 kv_heads=2 head_dim=64 q_tokens=4 q_len=3 batch=4 kv_len=400";
    check_problem(decode("dtype=bf16 causal=yes window=100 softcap=yes lse=yes" + sizes), 1);
    check_problem(decode("dtype=fp32 causal=yes window=1 lse=yes" + sizes), 1);
    check_problem(decode("dtype=bf16 softcap=yes lse=yes" + sizes), 1);
    check_problem(decode("dtype=bf16 causal=yes" + sizes), 1, {.padding = 8, .heads_first = true});
    check_problem(decode("dtype=bf16 causal=yes" + sizes), 1, {.padding = 64});
}

TEST_CASE("decode whose lists are cut into few pieces and into many is right, whoever adds them") {
    for (const std::string join : {"0", "1"}) {
        const std::string rest = " cluster=1 join=" + join + " side_by_side=";
        for (const char* heads : {"heads=4 kv_heads=1", "heads=32 kv_heads=8", "heads=40 kv_heads=40"}) {
            const std::string text =
                decode(std::string("dtype=bf16 lse=yes head_dim=64 q_tokens=1 q_len=1 batch=1 kv_len=2200 ") +
                       heads);
            check_candidate(text, "ring rows=8 warps=4 unit=16 stages=8 producers=4" + rest +
                                      "0 blocks_per_sm=1 ahead=0");
            check_candidate(text, "registers rows=8 warps=4 unit=16 join=" + join +
                                      " side_by_side=0 load_hint=2 blocks_per_sm=1");
        }
        check_candidate(
            decode("dtype=bf16 lengths=yes heads=16 kv_heads=8 head_dim=128 q_tokens=1 q_len=1 "
                   "batch=3 kv_len=1500"),
            "ring rows=8 warps=8 unit=32 stages=8 producers=0" + rest + "1 blocks_per_sm=1 ahead=0");
    }
}

TEST_CASE("decode that asks for its first tokens while the call ahead ends is right") {
    for (const char* way :
         {"producers=4 cluster=8 join=0 side_by_side=0", "producers=0 cluster=8 join=0 side_by_side=0",
          "producers=4 cluster=1 join=0 side_by_side=0", "producers=4 cluster=1 join=1 side_by_side=1"}) {
        // Fewer tokens than a block asks for, just as many, and some more; parts of windows.
        for (const char* sizes : {"batch=1 kv_len=130", "batch=1 kv_len=1024", "batch=3 kv_len=2200",
                                  "batch=2 kv_len=1100 window=700"}) {
            const std::string text =
                decode("dtype=bf16 lse=yes heads=16 kv_heads=4 head_dim=128 q_tokens=1 q_len=1 " +
                       std::string(sizes));
            check_candidate(text, "ring rows=8 warps=4 unit=16 stages=12 " + std::string(way) +
                                      " blocks_per_sm=1 ahead=1");
        }
    }
}

TEST_CASE("decode of long caches is right where they are split, and gives the same bits each time") {
    const AttentionCase attention(decode(
        "dtype=bf16 lengths=yes heads=8 kv_heads=1 head_dim=128 q_tokens=1 q_len=1 batch=3 kv_len=9000"));
    for (const Candidate& candidate : sample(attention.problem(), 3)) {
        INFO(to_string(candidate));
        const std::vector<HostTensor> results = attention.run(candidate);
        CHECK(attention.fault_of(results) == "");
        CHECK(attention.run(candidate)[attention_decode::out].bytes == results[attention_decode::out].bytes);
    }
}
