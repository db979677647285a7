// hone doctor: what this machine has, what is missing, and what to do about it. Exit code 0: tuning works
// here.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "cache/layers.h"
#include "cli/command_list.h"
#include "cli/devices.h"
#include "cli/stored.h"
#include "runtime/compile/compiler_count.h"
#include "runtime/cuda/driver.h"
#include "runtime/nvml/nvml.h"
#include "runtime/system/environment.h"
#include "runtime/system/short_text.h"
#include "tuner/data_files.h"
#include "tuner/report/report_text.h"

namespace hone::cli {
namespace {

enum class Level : std::uint8_t { ok, warning, missing };

struct Finding {
    std::string what;
    Level level = Level::ok;
    std::string text;
    std::string hint{};
};
using Findings = std::vector<Finding>;

std::string_view name(Level level) {
    switch (level) {
        case Level::ok: return "ok";
        case Level::warning: return "warning";
        case Level::missing: return "missing";
    }
    return "ok";
}

/// Everything that Hone reads, as README.md lists it.
constexpr std::array environment_variables{"HONE_CACHE",
                                           "HONE_SITE_CACHE",
                                           "HONE_PACKAGED",
                                           "HONE_DATA_DIR",
                                           "HONE_CAPTURE",
                                           "HONE_CHECK_INDICES",
                                           "HONE_SENTENCEPIECE_LIBRARY",
                                           "HONE_HTTP_LIBRARY",
                                           "HONE_CUDA_LIBRARY",
                                           "HONE_NVRTC_LIBRARY",
                                           "HONE_NVML_LIBRARY",
                                           "CUDA_HOME",
                                           "CUDA_PATH",
                                           "VIRTUAL_ENV",
                                           "CONDA_PREFIX",
                                           "CUDA_VISIBLE_DEVICES",
                                           "XDG_CACHE_HOME",
                                           "HOME",
                                           "NO_COLOR",
                                           "TERM",
                                           "HONE_WORKER_EXECUTABLE"};

void check_compiler(Findings& findings) {
    const CompilerInfo compiler = find_compiler();
    if (compiler.nvrtc == nullptr) {
        findings.push_back({"NVRTC", Level::missing, compiler.why_none, compiler.hint});
        return;
    }
    std::vector<std::string> archs;
    for (const Arch& arch : supported_archs()) {
        if (compiler.nvrtc->supports(arch)) archs.push_back(to_string(arch));
    }
    findings.push_back({"NVRTC", Level::ok,
                        fmt::format("{} at {}, compiles for {}", compiler.version,
                                    compiler.nvrtc->library_path(), fmt::join(archs, " "))});
}

void check_clocks(const runtime::NvmlDevice& nvml, const std::string& what, Findings& findings) {
    if (const auto clocks = nvml.clocks()) {
        const bool throttled = clocks->throttled();
        findings.push_back(
            {what + " clocks", throttled ? Level::warning : Level::ok,
             fmt::format("SM {} of {} MHz, memory {} of {} MHz{}", clocks->sm_mhz,
                         nvml.max_sm_mhz().value_or(0), clocks->memory_mhz, nvml.max_memory_mhz().value_or(0),
                         throttled ? ", throttled" : ""),
             throttled ? "let it cool, or look for a power limit: samples taken now are discarded" : ""});
    }
    std::string state;
    if (const auto celsius = nvml.temperature_c()) state += fmt::format("{} C", *celsius);
    if (const auto watts = nvml.power_w())
        state += fmt::format("{}{:.0f} W", state.empty() ? "" : ", ", *watts);
    if (!state.empty()) findings.push_back({what + " state", Level::ok, state});
    const std::vector<std::int64_t> others = nvml.foreign_processes({getpid()});
    findings.push_back({what + " tenants", others.empty() ? Level::ok : Level::warning,
                        others.empty() ? "no other process computes on it"
                                       : fmt::format("processes {} compute on it", fmt::join(others, ", ")),
                        others.empty() ? "" : "their work disturbs measurements: stop them while tuning"});
}

void check_gpus(const Gpus& gpus, Findings& findings) {
    if (gpus.devices.empty()) {
        findings.push_back({"GPU", Level::missing, gpus.why_none, gpus.hint});
        return;
    }
    findings.push_back({"driver", Level::ok, fmt::format("{} at {}", gpus.driver_version, gpus.library)});
    const std::shared_ptr<const runtime::Driver> driver = runtime::Driver::load();
    for (const tuner::DeviceInfo& device : gpus.devices) {
        const std::string what = fmt::format("GPU {}", device.ordinal);
        findings.push_back({what, Level::ok,
                            fmt::format("{}, {} memory, {:.2f} TB/s", describe(device.gpu),
                                        tuner::format_bytes(device.traits.memory_bytes),
                                        device.traits.memory_bytes_per_s / 1e12)});
        const auto nvml = runtime::NvmlDevice::open(runtime::pci_bus_id(*driver, device.ordinal));
        if (nvml == nullptr) {
            findings.push_back({what + " NVML", Level::warning, without_nvml(),
                                "tuning works, but cannot see throttling or other processes"});
            continue;
        }
        check_clocks(*nvml, what, findings);
    }
}

std::string permissions(const std::filesystem::path& file) {
    struct stat status {};
    if (stat(file.c_str(), &status) != 0) return "not there yet";
    return fmt::format("mode {:03o}, owner {}{}", status.st_mode & 0777, status.st_uid,
                       status.st_uid == geteuid() ? "" : " (another user)");
}

void check_cache(Findings& findings) {
    try {
        const cache::LayerPaths paths = cache::layer_paths();
        findings.push_back({"cache", Level::ok,
                            fmt::format("{} ({}; folder {})", paths.user.string(), permissions(paths.user),
                                        permissions(paths.user.parent_path()))});
        if (paths.site)
            findings.push_back({"site cache", Level::ok,
                                fmt::format("{} ({})", paths.site->string(), permissions(*paths.site))});
        const cache::Cache cache = open_user_cache();
        const cache::Stats stats = cache.stats();
        findings.push_back(
            {"cache file system", stats.network_file_system ? Level::warning : Level::ok,
             fmt::format("{}, journal {}", stats.network_file_system ? "network" : "local",
                         stats.journal_mode),
             stats.network_file_system ? "slower; HONE_CACHE can name a file on a local disk" : ""});
        if (!cache.writable()) {
            findings.push_back({"cache writable", Level::warning, "read-only",
                                "tuning needs a writable cache: set HONE_CACHE"});
        }
    } catch (const cache::CacheError& error) {
        findings.push_back({"cache", Level::missing, error.what(), error.hint()});
    }
}

void check_rest(Findings& findings) {
    findings.push_back(
        {"compile workers", Level::ok, fmt::format("{} processes", runtime::compiler_count())});
    const std::filesystem::path data = tuner::data_dir();
    findings.push_back(
        {"data", data.empty() ? Level::warning : Level::ok,
         data.empty() ? "no configs/ folder" : data.string(),
         data.empty() ? "HONE_DATA_DIR can name it; without it no model is known by name" : ""});
    std::vector<std::string> set;
    for (const char* variable : environment_variables) {
        const std::string value = runtime::environment_variable(variable);
        if (!value.empty()) set.push_back(fmt::format("{}={}", variable, value));
    }
    findings.push_back({"environment", Level::ok, fmt::format("{}", fmt::join(set, " "))});
}

constexpr std::string_view indent = "                            ";

/// Control characters escaped; further lines stand below the first.
std::string indented(const std::string& text) {
    std::string lines = runtime::escape_controls(text, true);
    for (std::size_t at = lines.find('\n'); at != std::string::npos; at = lines.find('\n', at + 1)) {
        lines.insert(at + 1, indent);
    }
    return lines;
}

Outcome report(const Findings& findings, const Console& console) {
    Outcome outcome{.data = {{"version", HONE_VERSION}, {"findings", Json::array()}}};
    outcome.text = fmt::format("hone {}\n", HONE_VERSION);
    for (const Finding& finding : findings) {
        outcome.data["findings"].push_back({{"what", finding.what},
                                            {"level", name(finding.level)},
                                            {"text", finding.text},
                                            {"hint", finding.hint}});
        const char* colour = !console.page.colour ? "" : finding.level == Level::ok ? "\033[32m" : "\033[33m";
        outcome.text +=
            fmt::format("{}{:<8}{} {:<18} {}\n", colour, name(finding.level),
                        console.page.colour ? "\033[0m" : "", finding.what, indented(finding.text));
        if (!finding.hint.empty()) outcome.text += fmt::format("{}-> {}\n", indent, indented(finding.hint));
    }
    for (const Finding& finding : findings) {
        if (finding.level != Level::missing) continue;
        outcome.exit = finding.what == "cache" ? ExitCode::cache_unusable : ExitCode::no_gpu;
        outcome.error = {finding.what == "cache" ? "cache_unusable" : "no_gpu",
                         "tuning does not work here: " + finding.what +
                             (finding.what == "cache" ? " cannot be used" : " is missing"),
                         finding.hint};
        break;
    }
    return outcome;
}

Outcome doctor(const Console& console) {
    Findings findings;
    check_gpus(find_gpus(), findings);
    check_compiler(findings);
    check_cache(findings);
    check_rest(findings);
    return report(findings, console);
}

}  // namespace

Runner declare_doctor(const Arguments&) { return doctor; }

}  // namespace hone::cli
