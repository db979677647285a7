// Every kernel of every family through the real NVRTC, for every architecture: what the GPU machines would
// otherwise be the first to find. Problems and configs are drawn with a fixed seed.
#include <doctest/doctest.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel_templates/catalog.h"
#include "kernel_templates/space.h"
#include "runtime/compile/compiler.h"
#include "tests/support/drawn_problem.h"

namespace hone::runtime {
namespace {

constexpr int processes = 2;  // NVRTC does not scale over threads

/// One translation unit and what its image must satisfy.
struct Job {
    std::string name;
    CompileRequest request;
    Plan plan;
    DeviceTraits traits;
    bool may_spill = false;
};

using Random = std::mt19937;

std::int64_t draw(Random& random, std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(high - low + 1));
}

std::optional<Problem> draw_problem(Random& random, const Family& family) {
    return test::ProblemDraw([&](std::int64_t low, std::int64_t high) { return draw(random, low, high); })
        .problem(family);
}

Job candidate_job(const Problem& problem, const Candidate& candidate, const DeviceTraits& traits,
                  bool may_spill) {
    return {.name = to_string(problem) + ": " + to_string(candidate) + " for " + to_string(traits.arch()),
            .request = candidate_request(problem, candidate, traits.arch()),
            .plan = candidate.variant->plan(problem, candidate.config, traits),
            .traits = traits,
            .may_spill = may_spill};
}

// Draws of their own for everything that is compiled: a new variant changes none of the others'.
Random random_for(std::string_view source, Arch arch) {
    const std::string name = std::string(source) + " " + to_string(arch);
    std::seed_seq seed(name.begin(), name.end());
    return Random(seed);
}

// The variant's fallback for a problem that has one, and a random config for a problem that has any.
void add_variant_jobs(const Family& family, const Variant& variant, const DeviceTraits& traits,
                      std::vector<Job>& jobs) {
    Random random = random_for(variant.source, traits.arch());
    bool has_fallback = false;
    bool has_config = false;
    for (int attempt = 0; attempt < 200 && !(has_fallback && has_config); ++attempt) {
        const std::optional<Problem> problem = draw_problem(random, family);
        REQUIRE_MESSAGE(problem.has_value(), "no valid problem of family " << family.name);
        const std::optional<Config> fallback = variant.fallback(*problem, traits);
        if (!has_fallback && fallback && allowed(*problem, {&variant, *fallback}, traits)) {
            jobs.push_back(candidate_job(*problem, {&variant, *fallback}, traits, false));
            has_fallback = true;
        }
        const std::vector<Config> configs =
            has_config ? std::vector<Config>() : enumerate(*problem, variant, traits);
        if (!configs.empty()) {
            const Config& config = configs[random() % configs.size()];
            jobs.push_back(candidate_job(*problem, {&variant, config}, traits, true));
            has_config = true;
        }
    }
    CHECK_MESSAGE(has_config,
                  variant.source << " has no config for any problem on " << to_string(traits.arch()));
}

std::vector<Job> all_jobs() {
    std::vector<Job> jobs;
    for (const Family* family : families()) {
        for (const Arch arch : supported_archs()) {
            const DeviceTraits traits = *representative_device(arch);
            Random random = random_for(family->name, arch);
            const std::optional<Problem> problem = draw_problem(random, *family);
            REQUIRE(problem.has_value());
            jobs.push_back({.name = to_string(*problem) + ": reference for " + to_string(arch),
                            .request = reference_request(*problem, arch),
                            .plan = family->reference_plan(*problem),
                            .traits = traits,
                            .may_spill = true});
            for (const Variant* variant : family->variants) {
                if (runs_on(*variant, traits)) add_variant_jobs(*family, *variant, traits, jobs);
            }
        }
    }
    return jobs;
}

bool has_kernel(const CompiledImage& image, std::string_view kernel) {
    const std::string_view cubin(reinterpret_cast<const char*>(image.cubin.data()), image.cubin.size());
    return cubin.find(".text." + std::string(kernel) + '\0') != std::string_view::npos;
}

template <class T>
T at(std::span<const std::byte> bytes, std::size_t offset) {
    T value{};
    REQUIRE(offset + sizeof(T) <= bytes.size());
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
}

/// Whether the machine code for sm_90a waits for its predecessor: instructions have 16 bytes there, and this
/// one, which has no operand, is alone in its first eight.
bool waits_for_predecessor(std::span<const std::byte> cubin) {
    constexpr std::uint64_t wait = 0x782e;
    const auto file = at<Elf64_Ehdr>(cubin, 0);
    for (std::size_t i = 0; i < file.e_shnum; ++i) {
        const auto section = at<Elf64_Shdr>(cubin, file.e_shoff + i * sizeof(Elf64_Shdr));
        if (section.sh_type != SHT_PROGBITS || (section.sh_flags & SHF_EXECINSTR) == 0) continue;
        for (std::size_t code = 0; code < section.sh_size; code += 16)
            if (at<std::uint64_t>(cubin, section.sh_offset + code) == wait) return true;
    }
    return false;
}

// What is wrong with the image; empty when nothing is.
std::string fault_of(const Job& job, const CompiledImage& image) {
    // A few bytes outside of the loops, which stay in level 1, cost nothing.
    constexpr int harmless_bytes = 32;
    if (!job.may_spill && image.resources.spill_bytes > harmless_bytes) {
        return "spills " + std::to_string(image.resources.spill_bytes) + " bytes";
    }
    for (int i = 0; i < job.plan.launch_count; ++i) {
        const Launch& launch = job.plan.launches[static_cast<std::size_t>(i)];
        if (!has_kernel(image, launch.kernel->name)) return std::string("no kernel ") + launch.kernel->name;
        const auto threads = std::int64_t{launch.block.x} * launch.block.y * launch.block.z;
        if (threads * image.resources.registers > job.traits.registers_per_sm) {
            return std::to_string(image.resources.registers) + " registers for " + std::to_string(threads) +
                   " threads";
        }
        if (image.resources.shared_bytes + std::int64_t{launch.shared_bytes} >
            job.traits.max_shared_bytes_per_block) {
            return "too much shared memory";
        }
    }
    return {};
}

std::string compile_fault(const Nvrtc& nvrtc, const Job& job) {
    try {
        return fault_of(job, compile(nvrtc, job.request));
    } catch (const NvrtcError& error) {
        return error.what();
    }
}

// Compiles every `processes`-th job and writes a line for each that has a fault, then "done".
void work(const std::vector<Job>& jobs, std::size_t share, std::FILE* out) {
    const auto nvrtc = Nvrtc::load();
    for (std::size_t i = share; i < jobs.size(); i += processes) {
        const std::string fault = compile_fault(*nvrtc, jobs[i]);
        if (!fault.empty()) std::fprintf(out, "%s: %s\n", jobs[i].name.c_str(), fault.c_str());
    }
    std::fputs("done\n", out);
    std::fclose(out);
}

// The stream of lines of a forked worker, which loads NVRTC by itself.
std::FILE* start_worker(const std::vector<Job>& jobs, std::size_t share) {
    std::array<int, 2> pipe_ends{};
    REQUIRE(pipe2(pipe_ends.data(), O_CLOEXEC) == 0);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        work(jobs, share, fdopen(pipe_ends[1], "w"));
        _exit(0);
    }
    close(pipe_ends[1]);
    return fdopen(pipe_ends[0], "r");
}

bool read_faults(std::FILE* worker, std::vector<std::string>& faults) {
    std::array<char, 4096> line{};
    bool done = false;
    while (std::fgets(line.data(), static_cast<int>(line.size()), worker) != nullptr) {
        done = std::string_view(line.data()) == "done\n";
        if (!done) faults.emplace_back(line.data());
    }
    std::fclose(worker);
    return done;
}

TEST_CASE("every variant and reference compiles for every architecture, fallbacks with hardly a spill") {
    const std::vector<Job> jobs = all_jobs();
    std::vector<std::FILE*> workers;
    for (std::size_t share = 0; share < processes; ++share) workers.push_back(start_worker(jobs, share));
    std::vector<std::string> faults;
    for (std::FILE* worker : workers) CHECK_MESSAGE(read_faults(worker, faults), "a worker died");
    while (wait(nullptr) > 0) {
    }
    for (const std::string& fault : faults) CHECK_MESSAGE(false, fault);
    MESSAGE(jobs.size() << " compiles");
}

// It ends behind that launch, for the sake of who follows; a plain launch has the same image.
TEST_CASE("a kernel of prompts that may run beside a launch waits for it, programmatic or not") {
    const Arch arch{9, 0, true};
    const DeviceTraits traits = *representative_device(arch);
    const auto nvrtc = Nvrtc::load();
    const Problem problem = *parse_problem(
        "attention_prefill dtype=bf16 lengths=paged page_size=16 causal=yes heads=2 kv_heads=1 head_dim=64 "
        "batch=1 q_len=64 kv_len=64");
    for (const std::string programmatic : {"0", "1"}) {
        const Candidate candidate =
            parse_candidate(*problem.family,
                            "wgmma consumers=1 tile_n=64 stages=2 query_stages=1 blocks_per_sm=1 "
                            "query_in_registers=0 section_mib=4 dynamic=0 softmax_first=0 late_maxima=0 "
                            "programmatic=" +
                                programmatic)
                .value();
        CAPTURE(to_string(candidate));
        REQUIRE(allowed(problem, candidate, traits));
        REQUIRE(candidate.variant->plan(problem, candidate.config, traits).runs_beside);
        CHECK(waits_for_predecessor(compile(*nvrtc, candidate_request(problem, candidate, arch)).cubin));
    }
    const CompiledImage harness =
        compile(*nvrtc, {.source = "harness/harness.cu", .constants = "", .arch = arch});
    CHECK_FALSE(waits_for_predecessor(harness.cubin));
}

TEST_CASE("the measuring harness compiles for every architecture") {
    const auto nvrtc = Nvrtc::load();
    for (const Arch arch : supported_archs()) {
        CAPTURE(to_string(arch));
        const CompiledImage image =
            compile(*nvrtc, {.source = "harness/harness.cu", .constants = "", .arch = arch});
        CHECK(has_kernel(image, "hone_compare"));
    }
}

}  // namespace
}  // namespace hone::runtime
