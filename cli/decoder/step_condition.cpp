#include "cli/decoder/step_condition.h"

#include <fmt/format.h>

#include <algorithm>

namespace hone::cli {
namespace {

constexpr int replays = 50;

std::string clocks_text(const StepCondition& condition) {
    if (!condition.clocks) return "";
    std::string text = fmt::format(" at {} MHz", condition.clocks->sm_mhz);
    if (condition.max_sm_mhz) text += fmt::format(" of {}", *condition.max_sm_mhz);
    if (condition.power_w) text += fmt::format(", {:.0f} W", *condition.power_w);
    if (condition.clocks->throttled()) text += ", slowed down by heat or power supply";
    return text;
}

/// This process has a context, and so is one of those that NVML lists; in a container under a number that it
/// does not know.
std::size_t other_processes(const runtime::NvmlDevice& nvml) {
    return std::max<std::size_t>(nvml.foreign_processes({}).size(), 1) - 1;
}

}  // namespace

StepCondition condition_of(decoder::RunningModel& model, int device, const decoder::StepSizes& sizes) {
    const auto nvml = runtime::NvmlDevice::open(runtime::pci_bus_id(model.gpu().driver(), device));
    StepCondition condition;
    condition.graph_ms = 1e-3 * model.forward().graph_us(sizes.sequences, sizes.kv_len, replays);
    if (nvml) {
        condition.clocks = nvml->clocks();
        condition.max_sm_mhz = nvml->max_sm_mhz();
        condition.power_w = nvml->power_w();
        condition.other_processes = other_processes(*nvml);
    }
    for (decoder::StepKernel& kernel : model.forward().step_kernels(sizes)) {
        ++condition.kernels;
        if (kernel.origin != Origin::exact) condition.not_measured.push_back(std::move(kernel));
    }
    return condition;
}

Json as_json(const StepCondition& condition) {
    Json not_measured = Json::array();
    for (const decoder::StepKernel& kernel : condition.not_measured)
        not_measured.push_back({{"part", decoder::name(kernel.part)},
                                {"problem", to_string(kernel.problem)},
                                {"candidate", to_string(kernel.candidate)},
                                {"origin", name(kernel.origin)}});
    Json json{{"graph_ms", condition.graph_ms},
              {"other_processes", condition.other_processes},
              {"kernels", condition.kernels},
              {"not_measured", std::move(not_measured)}};
    if (condition.clocks) {
        json["sm_mhz"] = condition.clocks->sm_mhz;
        json["throttled"] = condition.clocks->throttled();
    }
    if (condition.max_sm_mhz) json["max_sm_mhz"] = *condition.max_sm_mhz;
    if (condition.power_w) json["power_w"] = *condition.power_w;
    return json;
}

std::string text_of(const StepCondition& condition) {
    std::string text =
        fmt::format("a step's graph alone {:.3f} ms{}", condition.graph_ms, clocks_text(condition));
    if (condition.other_processes > 0)
        text += fmt::format("; {} other process{} on this GPU", condition.other_processes,
                            condition.other_processes == 1 ? "" : "es");
    text += fmt::format("\n{} of its {} kernels were measured on this kind of GPU\n",
                        condition.kernels - condition.not_measured.size(), condition.kernels);
    for (const decoder::StepKernel& kernel : condition.not_measured)
        text += fmt::format("  {} ({}): {}\n", decoder::name(kernel.part), name(kernel.origin),
                            to_string(kernel.problem));
    return text;
}

}  // namespace hone::cli
