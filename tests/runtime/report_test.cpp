#include "hone/report.h"

#include <doctest/doctest.h>

using namespace hone;

namespace {

PrepareReport made_report() {
    return {.part = "second",
            .problem = "attention_decode dtype=bf16",
            .buckets = {{.sizes = {{"batch", 1, 1}, {"kv_len", 1025, 2048}},
                         .candidate = "split threads=128",
                         .origin = Origin::neighbour,
                         .trust = Trust::compatible,
                         .measured_at = "batch=1 kv_len=1024",
                         .image = ImageOrigin::cached,
                         .load_ms = 1.25,
                         .note = "split threads=256 does not load"}},
            .tune_command = "hone tune --op attention_decode",
            .elapsed_ms = 12.34};
}

}  // namespace

TEST_CASE(
    "a report of one prepare() says for each bucket what runs, why it is trusted and where it came from") {
    PrepareReport report = made_report();
    CHECK(to_string(report) ==
          "second: attention_decode dtype=bf16: prepared in 12.3 ms\n"
          "  batch 1 kv_len 1025-2048  neighbour  compatible  cached        1.2 ms  split threads=128\n"
          "               split threads=256 does not load\n"
          "  to measure what is missing: hone tune --op attention_decode\n");
    report.part.clear();
    report.buckets = {{.sizes = {{"rows", 8, 8}}, .candidate = "simple", .image = ImageOrigin::shared}};
    report.tune_command.clear();
    CHECK(to_string(report) ==
          "attention_decode dtype=bf16: prepared in 12.3 ms\n"
          "            8  fallback   none        shared        0.0 ms  simple\n");
}

TEST_CASE("an explanation says where a choice was measured, and how far that is from here") {
    Explanation explanation{.problem = "rmsnorm rows=7",
                            .bucket = {.sizes = {{"rows", 5, 8}},
                                       .candidate = "a",
                                       .origin = Origin::neighbour,
                                       .trust = Trust::compatible,
                                       .measured_at = "rows=16"},
                            .measured_us = 2,
                            .measured_on = "H100",
                            .layer = "site",
                            .fallback = "b",
                            .passed_over = {"c is stale"}};
    CHECK(
        to_string(explanation) ==
        "rmsnorm rows=7\n"
        "  bucket:     5-8\n"
        "  runs:       a\n"
        "  because:    measured for a neighbouring size on this kind of GPU (at rows=16; trust: compatible)\n"
        "  measured:   2.00 us on H100, known from the site layer\n"
        "  default:    b\n"
        "  not taken:  c is stale\n");
    explanation.measured_at_mhz = 1755;
    CHECK(to_string(explanation).find("measured:   2.00 us at 1755 MHz on H100, known") != std::string::npos);
    explanation.bucket.origin = Origin::foreign;
    explanation.bucket.trust = Trust::foreign;
    CHECK(to_string(explanation)
              .find("measured on another GPU of the same compute capability (at rows=16; "
                    "trust: foreign)") != std::string::npos);
}

TEST_CASE("numbers that are no origin or trust are called unknown") {
    CHECK(name(static_cast<Origin>(9)) == "unknown");
    CHECK(name(static_cast<Trust>(9)) == "unknown");
    CHECK(name(static_cast<ImageOrigin>(9)) == "unknown");
    CHECK(name(Origin::foreign) == "foreign");
}
