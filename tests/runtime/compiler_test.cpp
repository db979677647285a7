#include "runtime/compile/compiler.h"

#include <doctest/doctest.h>

#include <fmt/format.h>

#include <string>

#include "kernel_templates/catalog.h"
#include "tests/support/fake_machine.h"

namespace hone::runtime {
namespace {

TEST_CASE("the ptxas report gives the maximum over all kernels") {
    const std::string report =
        "ptxas info    : 0 bytes gmem\n"
        "ptxas info    : Compiling entry function 'combine' for 'sm_90a'\n"
        "ptxas info    : Function properties for combine\n"
        "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 96 registers, used 0 barriers\n"
        "ptxas info    : Compile time = 2.642 ms\n"
        "ptxas info    : Compiling entry function 'split' for 'sm_90a'\n"
        "ptxas info    : Function properties for split\n"
        "ptxas         .     1536 bytes stack frame, 400 bytes spill stores, 412 bytes spill loads\n"
        "ptxas info    : Used 64 registers, used 1 barriers, 1536 bytes cumulative stack size, 4000 bytes "
        "smem\n"
        "ptxas info    : Compile time = 243.075 ms\n";
    const cache::Resources resources = parse_ptxas_report(report);
    CHECK(resources.registers == 96);
    CHECK(resources.spill_bytes == 812);
    CHECK(resources.shared_bytes == 4000);
}

TEST_CASE("a report of an older compiler, with constant memory, reads the same") {
    const cache::Resources resources =
        parse_ptxas_report("ptxas info    : Used 32 registers, 16 bytes smem, 360 bytes cmem[0]\n");
    CHECK(resources.registers == 32);
    CHECK(resources.shared_bytes == 16);
    CHECK(resources.spill_bytes == 0);
}

TEST_CASE("a log without a report has no resources") {
    CHECK(parse_ptxas_report("") == cache::Resources{});
    CHECK(parse_ptxas_report("nothing of interest, registers\n bytes smem") == cache::Resources{});
}

TEST_CASE("options name the target and nothing of the machine") {
    CHECK(compile_options(Arch{9, 0, true}) ==
          "--gpu-architecture=sm_90a --std=c++20 -default-device --ptxas-options=-v");
}

TEST_CASE("an image's key tells problems, candidates, targets and compilers apart") {
    std::string error;
    const auto problem = parse_problem("rmsnorm dtype=bf16 hidden=4096 rows=16", &error);
    REQUIRE_MESSAGE(problem.has_value(), error);
    const auto traits = representative_device(Arch{9, 0, true});
    const auto candidate = fallback(*problem, *traits);
    REQUIRE(candidate.has_value());

    const auto key = candidate_image_key(*problem, *candidate, Arch{9, 0, true}, "13.0");
    CHECK(key.template_hash == template_hash(*candidate->variant));
    CHECK(key.candidate == to_string(*candidate));
    CHECK(key.arch == "sm_90a");
    // The number of rows is a run-time argument: one image serves all of them.
    const auto rows = dynamic_fields(*problem->family)[0];
    CHECK(key == candidate_image_key(with(*problem, rows, 64), *candidate, Arch{9, 0, true}, "13.0"));
    CHECK(key != candidate_image_key(*problem, *candidate, Arch{8, 0, false}, "13.0"));
    CHECK(key != candidate_image_key(*problem, *candidate, Arch{9, 0, true}, "12.9"));
    CHECK(key != reference_image_key(*problem, Arch{9, 0, true}, "13.0"));
    CHECK(reference_image_key(*problem, Arch{9, 0, true}, "13.0").candidate.empty());
}

TEST_CASE("candidates that differ in how they are launched share an image, from sm_90 on") {
    const auto problem = parse_problem("linear dtype=bf16 in=4096 out=4096 tokens=512");
    REQUIRE(problem);
    const auto wgmma = [&](int programmatic) {
        return *parse_candidate(
            *problem->family,
            fmt::format("wgmma tile_m=128 tile_n=128 consumers=2 ping_pong=0 blocks_per_sm=1 swapped=0 "
                        "tail_split=0 cluster_k=1 staged=1 raster=8 l2_hint=0 programmatic={} neighbours=1",
                        programmatic));
    };
    const auto plain = [&](int programmatic) {
        return *parse_candidate(
            *problem->family,
            fmt::format("plain tile_tokens=16 tile_out=128 tile_in=8 thread_tokens=8 thread_out=4 "
                        "vector=4 programmatic={}",
                        programmatic));
    };
    const auto same_image = [&](const Candidate& a, const Candidate& b, Arch arch) {
        const bool same_key =
            candidate_image_key(*problem, a, arch, "13.0") == candidate_image_key(*problem, b, arch, "13.0");
        const bool same_source =
            candidate_request(*problem, a, arch).constants == candidate_request(*problem, b, arch).constants;
        CHECK(same_key == same_source);
        return same_key;
    };
    const Arch hopper{9, 0, true};
    const Arch ampere{8, 0, false};
    CHECK(same_image(wgmma(0), wgmma(2), hopper));  // both release their successors late
    CHECK_FALSE(same_image(wgmma(1), wgmma(2), hopper));
    CHECK(same_image(plain(0), plain(1), hopper));
    CHECK_FALSE(same_image(plain(0), plain(1), ampere));  // which has no programmatic launches
    CHECK(candidate_image_key(*problem, plain(0), ampere, "13.0").candidate == to_string(plain(0)));
}

TEST_CASE("a candidate compiles with the real NVRTC, and its report is read") {
    const auto problem = parse_problem("rmsnorm dtype=bf16 hidden=4096 rows=16");
    const auto candidate = fallback(*problem, *representative_device(Arch{9, 0, true}));
    const CompiledImage image =
        compile(*Nvrtc::load(), candidate_request(*problem, *candidate, Arch{9, 0, true}));
    CHECK(image.cubin.size() > 100);
    CHECK(image.resources.registers > 8);
    CHECK(image.resources.spill_bytes == 0);
}

TEST_CASE("the fake compiler finds the kernels that a candidate's plan launches") {
    const test::FakeMachine machine;
    const auto nvrtc = Nvrtc::load();
    for (const Family* family : families()) {
        for (const Variant* variant : family->variants) {
            CAPTURE(variant->source);
            const CompiledImage image = compile(
                *nvrtc, {.source = std::string(variant->source), .constants = "", .arch = Arch{9, 0, true}});
            const std::string text(reinterpret_cast<const char*>(image.cubin.data()));
            CHECK(text.find("\nkernel ") != std::string::npos);
        }
    }
}

}  // namespace
}  // namespace hone::runtime
