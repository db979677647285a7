#include "tests/tuner/planted.h"

#include <map>
#include <stdexcept>

namespace hone::test {
namespace {

constexpr std::int64_t width = 1024;

// Every kernel: y[rows, 1024] = 2 x.
constexpr std::string_view body_start = R"(
extern "C" __global__ void planted(const float* x, float* y, long long rows) {
    const long long n = rows * 1024;
    const long long first = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (long long i = first; i < n; i += static_cast<long long>(gridDim.x) * blockDim.x) y[i] = 2.0f * x[i];
)";

const std::map<std::string, std::string, std::less<>> endings{
    {"good", "}"},
    {"reference", "}"},
    {"fault", "    if (first == 0) *reinterpret_cast<volatile int*>(16) = 1;\n}"},
    {"fault_at_seventh",
     "    if (first == 0 && atomicAdd(&launches, 1) == 6) *reinterpret_cast<volatile int*>(16) = 1;\n}"},
    {"endless", "    if (first == 0) while (atomicAdd(&launches, 0) >= 0) {}\n}"},
    {"out_of_bounds", "    if (first == 0) y[n] = 1.0f;\n}"},
    {"before_bounds", "    if (first == 0) y[-1] = 1.0f;\n}"},
    {"wrong", "    if (first == 7) y[7] += 1.0f;\n}"},  // in the thread that wrote it: no race to be right
    {"unwritten", "    if (first == 5) y[5] = __int_as_float(0x7fffffff);\n}"},
    {"changes_input", "    if (first == 0) const_cast<float*>(x)[n - 1] = 0.0f;\n}"},
    {"disagrees", "    if (first == 0) y[0] *= 1.0f + 1e-6f * static_cast<float>(clock64() & 15);\n}"},
    {"slow", "    for (int i = 0; i < 2000; ++i) __nanosleep(1000);\n}"},
    {"does_not_compile", "    this is no C++\n}"},
    {"compile_bomb", "    y[0] = Bomb<0, 24>::value;\n}"},
};

/// Two to the power of `depth` instantiations: it would compile for hours.
constexpr std::string_view bomb = R"(
template <int id, int depth> struct Bomb {
    static constexpr long long value = Bomb<2 * id, depth - 1>::value + Bomb<2 * id + 1, depth - 1>::value;
};
template <int id> struct Bomb<id, 0> { static constexpr long long value = id; };
)";

std::string source_text(std::string_view name) {
    const auto ending = endings.find(name);
    if (ending == endings.end()) throw std::runtime_error("no planted kernel " + std::string(name));
    std::string text = "__device__ int launches;\n";
    if (name == "compile_bomb") text += bomb;
    return text + std::string(body_start) + ending->second;
}

constexpr KernelArg planted_args[] = {pointer_arg(0, "x"), pointer_arg(1, "y"), scalar_arg(0, "rows")};
constexpr Kernel planted_kernels[] = {{"planted", planted_args}};

Plan plan_for(const Problem& problem, unsigned threads) {
    Plan plan{.launch_count = 1};
    plan.launches[0].kernel = &planted_kernels[0];
    plan.launches[0].grid = {.x = static_cast<std::uint32_t>(problem[0]) * 4};
    plan.launches[0].block = {.x = threads};
    return plan;
}

Plan plan(const Problem& problem, const Config& config, const DeviceTraits&) {
    return plan_for(problem, static_cast<unsigned>(config[0]));
}

Plan reference_plan(const Problem& problem) { return plan_for(problem, 256); }

std::optional<Config> fallback_config(const Problem&, const DeviceTraits&) { return Config{{64}}; }

double predict_us(const Problem&, const Config&, const DeviceTraits&) { return 1; }

const Tunable threads{.name = "threads", .meaning = "threads a block", .values = {64}};
const Tunable good_threads{.name = "threads", .meaning = "threads a block", .values = {64, 128, 256}};

Variant variant(std::string_view name, std::string_view source) {
    const bool good = name == "good";
    return {.name = name,
            .summary = "planted",
            .source = source,
            .tunables = std::span(good ? &good_threads : &threads, 1),
            .constraints = {},
            .kernels = planted_kernels,
            .plan = &plan,
            .fallback = good ? &fallback_config : nullptr,
            .predict_us = &predict_us};
}

const Variant variants[] = {variant("good", "planted/good"),
                            variant("fault", "planted/fault"),
                            variant("fault_at_seventh", "planted/fault_at_seventh"),
                            variant("endless", "planted/endless"),
                            variant("out_of_bounds", "planted/out_of_bounds"),
                            variant("before_bounds", "planted/before_bounds"),
                            variant("wrong", "planted/wrong"),
                            variant("unwritten", "planted/unwritten"),
                            variant("changes_input", "planted/changes_input"),
                            variant("disagrees", "planted/disagrees"),
                            variant("slow", "planted/slow"),
                            variant("does_not_compile", "planted/does_not_compile"),
                            variant("compile_bomb", "planted/compile_bomb")};
const Variant* const variant_list[] = {&variants[0],  &variants[1],  &variants[2], &variants[3], &variants[4],
                                       &variants[5],  &variants[6],  &variants[7], &variants[8], &variants[9],
                                       &variants[10], &variants[11], &variants[12]};

const Field fields[] = {
    {.name = "rows", .kind = Field::Kind::dynamic, .meaning = "rows", .min = 1, .max = 65536}};

std::vector<Argument> arguments(const Problem& problem) {
    return {{.name = "x", .role = Role::input, .shape = {1, 1, problem[0], width}},
            {.name = "y", .role = Role::output, .shape = {1, 1, problem[0], width}}};
}

std::vector<ScalarArgument> scalars(const Problem& problem) {
    return {{.name = "rows", .tuning_value = Scalar::of(problem[0])}};
}

const Family family{.name = "planted",
                    .summary = "y = 2 x",
                    .fields = fields,
                    .variants = variant_list,
                    .validate = [](const Problem&) { return std::string(); },
                    .arguments = &arguments,
                    .scalars = &scalars,
                    .tolerance =
                        [](const Problem&, int) {
                            return Tolerance{1e-6, 1e-6, 1e-6};
                        },
                    .work =
                        [](const Problem& problem) {
                            return Work{.bytes = 8.0 * static_cast<double>(problem[0] * width), .flops = 0};
                        },
                    .reference_source = "planted/reference",
                    .reference_plan = &reference_plan};

}  // namespace

const Family& planted_family() { return family; }

Candidate planted(std::string_view name) {
    for (const Variant& one : variants) {
        if (one.name == name) return {&one, Config{{64}}};
    }
    throw std::runtime_error("no planted variant " + std::string(name));
}

Problem planted_problem(std::int64_t rows) { return {.family = &family, .values = {rows}}; }

runtime::CompiledImage compile_planted(const runtime::Nvrtc& nvrtc, const runtime::CompileRequest& request) {
    constexpr std::string_view folder = "planted/";
    if (!std::string_view(request.source).starts_with(folder)) return runtime::compile(nvrtc, request);
    const std::string text = source_text(std::string_view(request.source).substr(folder.size()));
    const std::vector<std::string> options{"--gpu-architecture=" + to_string(request.arch), "--std=c++20",
                                           "--ptxas-options=-v"};
    runtime::Nvrtc::Output output = nvrtc.compile(text, request.source + ".cu", {}, options);
    return {.cubin = std::move(output.cubin),
            .resources = runtime::parse_ptxas_report(output.log),
            .log = output.log};
}

}  // namespace hone::test
