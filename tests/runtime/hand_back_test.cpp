// Kernels that give shared memory back to a copy by an arrival at a barrier, through the real NVRTC: no
// arrival is issued before the loads of what it gives back are over (device/hand_back.cuh). ptxas does not
// see to it, and results are wrong so rarely that no test of them can.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "kernel_templates/catalog.h"
#include "kernel_templates/space.h"
#include "runtime/compile/compiler.h"
#include "tests/runtime/machine_code.h"

namespace hone::runtime {
namespace {

constexpr Arch arch{9, 0, true};

Arrivals arrivals_in(const Nvrtc& nvrtc, const std::string& body) {
    const std::string source = R"(
__device__ unsigned load(unsigned from) {
    unsigned word;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(from) : "memory");
    return word;
}
__device__ void arrive(unsigned barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
extern "C" __global__ void kernel(unsigned* out, unsigned from, unsigned barrier, int count) {
    unsigned sum = 0;
)" + body + "    out[threadIdx.x] = sum;\n}\n";
    return arrivals_of(
        nvrtc.compile(source, "kernel.cu", {}, {"--gpu-architecture=sm_90a", "--std=c++20"}).cubin);
}

TEST_CASE("an arrival beside loads that are under way is seen, and one behind their use is not") {
    const auto nvrtc = Nvrtc::load();
    const Arrivals beside = arrivals_in(*nvrtc, "sum = load(from); arrive(barrier);");
    CHECK(beside.all == 1);
    CHECK(beside.early.size() == 1);
    CHECK(arrivals_in(*nvrtc, R"(sum = load(from); asm volatile("bar.arrive 1, 64;" ::: "memory");)")
              .early.size() == 1);
    const Arrivals behind = arrivals_in(
        *nvrtc, "sum = load(from); arrive(barrier | (sum & static_cast<unsigned>(count >> 31)));");
    CHECK(behind.all == 1);
    CHECK(behind.early.empty());
}

TEST_CASE("a load that is under way is followed around a loop and across branches") {
    const auto nvrtc = Nvrtc::load();
    const Arrivals around = arrivals_in(*nvrtc, R"(
    unsigned last = load(from);
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
        if (out[i] != 0) arrive(barrier);
        sum += last * load(from + 8 * i);
        last = load(from + 4 * i);
    }
    sum += last;
)");
    CHECK(around.all > 0);
    CHECK(!around.early.empty());
    const Arrivals used = arrivals_in(*nvrtc, R"(
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
        const unsigned word = load(from + 4 * i);
        sum += word;
        if (word != 0) arrive(barrier);
    }
)");
    CHECK(used.all > 0);
    CHECK(used.early.empty());
}

struct Kernel {
    std::string problem;
    std::string candidate;
};

// Stages that the copy engine fills. The products of wgmma_w16 and two_widths are not among them: codes that
// they read ahead, of a stage that they keep, are under way when another goes back. Of what else gives a
// stage back most reads it by tensor cores alone.
const std::vector<Kernel> kernels = {
    {"attention_decode dtype=bf16 heads=32 kv_heads=8 head_dim=128 batch=8 kv_len=2048",
     "ring rows=8 warps=8 unit=32 stages=8 producers=0 cluster=1 join=0 side_by_side=0 "
     "blocks_per_sm=1 ahead=0"},
    {"attention_decode dtype=bf16 heads=28 kv_heads=4 head_dim=128 batch=512 kv_len=256",
     "ring rows=8 warps=8 unit=32 stages=8 producers=0 cluster=1 join=1 side_by_side=1 "
     "blocks_per_sm=1 ahead=0"},
    {"attention_decode dtype=bf16 heads=4 kv_heads=1 head_dim=256 batch=8 kv_len=256",
     "ring rows=8 warps=4 unit=16 stages=4 producers=0 cluster=8 join=0 side_by_side=0 "
     "blocks_per_sm=1 ahead=0"},
    {"attention_append dtype=bf16 page_size=16 heads=32 kv_heads=8 head_dim=128 "
     "rotary_dim=128 batch=2 kv_len=4096",
     "ring rows=8 warps=4 unit=32 stages=4 producers=0 cluster=8 join=0 side_by_side=0 "
     "blocks_per_sm=1 ahead=0"},
    {"attention_prefill dtype=bf16 heads=16 kv_heads=16 head_dim=128 batch=1 q_len=16384 "
     "kv_len=16384",
     "wgmma consumers=2 tile_n=128 stages=3 query_stages=1 blocks_per_sm=1 "
     "query_in_registers=1 section_mib=24 dynamic=0 softmax_first=0 late_maxima=1 "
     "programmatic=0"},
    {"attention_prefill dtype=bf16 causal=yes lengths=paged page_size=128 heads=32 kv_heads=8 "
     "head_dim=128 batch=1 q_len=2048 kv_len=2048",
     "wgmma consumers=2 tile_n=128 stages=3 query_stages=1 blocks_per_sm=1 "
     "query_in_registers=1 section_mib=4 dynamic=0 softmax_first=0 late_maxima=1 "
     "programmatic=1"},
    {"quantized_linear dtype=bf16 format=w4a16 group=128 in=10240 out=2560 tokens=8",
     "ring tokens=8 rows=128 warp_rows=32 k_warps=2 stage_columns=256 stages=4 cluster_k=8 "
     "tiles=1 blocks_per_sm=1 x_streams=1 programmatic=1"},
    {"quantized_linear dtype=bf16 format=w4a16 group=128 in=4096 out=2048 tokens=8",
     "ring tokens=8 rows=128 warp_rows=32 k_warps=1 stage_columns=256 stages=4 cluster_k=8 "
     "tiles=1 blocks_per_sm=2 x_streams=0 programmatic=1"},
    {"quantized_linear dtype=fp16 format=w4a16 group=128 bias=yes in=2560 out=2560 tokens=8",
     "ring tokens=8 rows=64 warp_rows=32 k_warps=2 stage_columns=256 stages=6 cluster_k=4 "
     "tiles=1 blocks_per_sm=2 x_streams=1 programmatic=1"},
};

TEST_CASE("stages of rings go back when what was loaded from them has come") {
    const auto nvrtc = Nvrtc::load();
    const DeviceTraits traits = *representative_device(arch);
    for (const Kernel& kernel : kernels) {
        CAPTURE(kernel.problem);
        CAPTURE(kernel.candidate);
        const Problem problem = *parse_problem(kernel.problem);
        const Candidate candidate = parse_candidate(*problem.family, kernel.candidate).value();
        REQUIRE(allowed(problem, candidate, traits));
        const Arrivals arrivals =
            arrivals_of(compile(*nvrtc, candidate_request(problem, candidate, arch)).cubin);
        CHECK(arrivals.all > 0);
        for (const std::string& early : arrivals.early) CHECK_MESSAGE(false, early);
    }
}

}  // namespace
}  // namespace hone::runtime
