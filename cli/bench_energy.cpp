#include "cli/bench_energy.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernel_templates/catalog.h"
#include "kernel_templates/text.h"
#include "runtime/cuda/driver.h"
#include "runtime/nvml/nvml.h"
#include "tuner/report/report_text.h"

namespace hone::cli {
namespace {

bool measured(const EnergyRow& row) { return row.sustained.power_w > 0; }

double calls_per_joule(const tuner::Sustained& sustained) { return 1e3 / sustained.energy_mj(); }

}  // namespace

void check_energy(const tuner::DeviceInfo& device) {
    const std::shared_ptr<const runtime::Driver> driver = runtime::Driver::load();
    const auto nvml = runtime::NvmlDevice::open(runtime::pci_bus_id(*driver, device.ordinal));
    if (nvml != nullptr && (nvml->energy_mj() || nvml->power_w())) return;
    const char* why = nvml == nullptr ? "NVML is missing or does not know it"
                                      : "its NVML gives neither nvmlDeviceGetTotalEnergyConsumption nor "
                                        "nvmlDeviceGetPowerUsage";
    throw Failure(
        ExitCode::nothing_valid,
        {"no_energy", fmt::format("--energy: GPU {} does not say what it takes: {}", device.ordinal, why),
         "hone doctor shows what NVML says of each GPU"});
}

std::optional<Problem> dense_problem(const Problem& problem) {
    const Family* dense = find_family("linear");
    if (dense == nullptr || problem.family->name != "quantized_linear") return std::nullopt;
    const std::string all = static_text(problem) + ' ' + dynamic_text(problem);
    const std::vector<KeyValue> fields = parse_key_values(all, nullptr).value();
    std::string kept;
    for (const KeyValue& field : fields) {
        const auto is_it = [&](const Field& of_dense) { return of_dense.name == field.key; };
        if (std::ranges::any_of(dense->fields, is_it)) kept += fmt::format("{}={} ", field.key, field.value);
    }
    return parse_problem(*dense, kept, nullptr);
}

Json energy_json(const std::vector<EnergyRow>& rows) {
    Json list = Json::array();
    for (const EnergyRow& row : rows) {
        const tuner::Sustained& taken = row.sustained;
        Json entry{{"which", row.part},
                   {"problem", to_string(row.problem)},
                   {"candidate", to_string(row.candidate)},
                   {"status", cache::name(taken.verdict.status)},
                   {"detail", taken.verdict.detail},
                   {"seconds", taken.seconds},
                   {"calls", taken.calls},
                   {"us", taken.us},
                   {"source", nullptr},
                   {"power_w", nullptr},
                   {"energy_mj", nullptr},
                   {"calls_per_joule", nullptr}};
        if (measured(row)) {
            entry["source"] = taken.counted ? "counter" : "power";
            entry["power_w"] = taken.power_w;
            entry["energy_mj"] = taken.energy_mj();
            entry["calls_per_joule"] = calls_per_joule(taken);
        }
        list.push_back(std::move(entry));
    }
    return list;
}

std::string energy_text(const std::vector<EnergyRow>& rows, const tuner::Page& page) {
    using tuner::Align;
    tuner::Table table({{"energy"},
                        {"candidate"},
                        {"us", Align::right},
                        {"W", Align::right},
                        {"mJ a call", Align::right},
                        {"calls a joule", Align::right},
                        {"from"},
                        {""}});
    for (const EnergyRow& row : rows) {
        const tuner::Sustained& taken = row.sustained;
        if (!measured(row)) {
            table.add({row.part, to_string(row.candidate), "-", "-", "-", "-", "-", taken.verdict.detail});
            continue;
        }
        table.add({row.part, to_string(row.candidate), tuner::format_us(taken.us),
                   fmt::format("{:.1f}", taken.power_w), fmt::format("{:.4g}", taken.energy_mj()),
                   fmt::format("{:.4g}", calls_per_joule(taken)),
                   fmt::format("{} over {:.1f} s", taken.counted ? "counter" : "power", taken.seconds),
                   taken.verdict.detail});
    }
    return table.render(page, "  ");
}

}  // namespace hone::cli
