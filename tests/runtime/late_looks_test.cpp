#include "tests/runtime/late_looks.h"

#include <doctest/doctest.h>

#include "kernel_templates/catalog.h"
#include "runtime/compile/compiler.h"

using namespace hone;

TEST_CASE("a late warp is one in the machine code of whoever waits for barriers, within clusters, too") {
    const std::shared_ptr<const runtime::Nvrtc> nvrtc = runtime::Nvrtc::load();
    const auto check = [&](const char* problem_text, const char* candidate_text) {
        CAPTURE(candidate_text);
        const Problem problem = parse_problem(problem_text).value();
        const Candidate candidate = parse_candidate(*problem.family, candidate_text).value();
        runtime::CompileRequest request = runtime::candidate_request(problem, candidate, {9, 0, true});
        const runtime::CompiledImage as_it_is = runtime::compile(*nvrtc, request);
        request.constants += test::late_looks(1);
        CHECK(runtime::compile(*nvrtc, request).cubin.size() > as_it_is.cubin.size());
    };
    check(
        "attention_prefill dtype=bf16 causal=yes lengths=paged page_size=16 heads=4 kv_heads=2 head_dim=64 "
        "batch=2 q_len=90 kv_len=90",
        "wgmma consumers=1 tile_n=64 stages=2 query_stages=1 blocks_per_sm=1 query_in_registers=0 "
        "section_mib=24 dynamic=0 softmax_first=0 late_maxima=0 programmatic=0");
    check("linear dtype=bf16 in=4096 out=4096 tokens=8",
          "ring tokens=8 rows=64 consumers=2 stage_columns=128 stages=10 cluster_k=2 early=2 spread=0 "
          "programmatic=1");
}
