#include "runtime/nvrtc/nvrtc.h"

#include <nvrtc.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "runtime/nvrtc/locations.h"
#include "runtime/system/environment.h"
#include "runtime/system/unique_handle.h"

namespace hone::runtime {

#define HONE_NVRTC_FUNCTIONS(X)  \
    X(nvrtcVersion)              \
    X(nvrtcGetNumSupportedArchs) \
    X(nvrtcGetSupportedArchs)    \
    X(nvrtcGetErrorString)       \
    X(nvrtcCreateProgram)        \
    X(nvrtcDestroyProgram)       \
    X(nvrtcCompileProgram)       \
    X(nvrtcGetCUBINSize)         \
    X(nvrtcGetCUBIN)             \
    X(nvrtcGetProgramLogSize)    \
    X(nvrtcGetProgramLog)

struct Nvrtc::Functions {
#define HONE_DECLARE(function) decltype(&::function) function = nullptr;
    HONE_NVRTC_FUNCTIONS(HONE_DECLARE)
#undef HONE_DECLARE
};

namespace {

constexpr const char* hint =
    "Install a CUDA toolkit (12.0 or later) or the Python package nvidia-cuda-nvrtc, or set CUDA_HOME to a "
    "toolkit, or "
    "HONE_NVRTC_LIBRARY to the library itself.";

struct ProgramTraits {
    using Handle = nvrtcProgram;
    static constexpr Handle none = nullptr;
    const Nvrtc::Functions* functions = nullptr;
    void destroy(Handle handle) const noexcept { functions->nvrtcDestroyProgram(&handle); }
};
using Program = UniqueHandle<ProgramTraits>;

void check(const Nvrtc::Functions& functions, nvrtcResult result, std::string_view what) {
    if (result == NVRTC_SUCCESS) return;
    throw NvrtcError(fmt::format("{}: {}", what, functions.nvrtcGetErrorString(result)), {});
}

Program create_program(const Nvrtc::Functions& functions, const std::string& source, const std::string& name,
                       const std::vector<Nvrtc::Header>& headers) {
    std::vector<const char*> names;
    std::vector<const char*> texts;
    for (const Nvrtc::Header& header : headers) {
        names.push_back(header.name.c_str());
        texts.push_back(header.text);
    }
    nvrtcProgram program = nullptr;
    check(functions,
          functions.nvrtcCreateProgram(&program, source.c_str(), name.c_str(),
                                       static_cast<int>(headers.size()), texts.data(), names.data()),
          name);
    return Program(program, {&functions});
}

std::string program_log(const Nvrtc::Functions& functions, const Program& program) {
    std::size_t size = 0;
    if (functions.nvrtcGetProgramLogSize(program.get(), &size) != NVRTC_SUCCESS || size == 0) return {};
    std::string log(size, '\0');
    if (functions.nvrtcGetProgramLog(program.get(), log.data()) != NVRTC_SUCCESS) return {};
    log.erase(std::find(log.begin(), log.end(), '\0'), log.end());
    return log;
}

std::vector<std::byte> program_cubin(const Nvrtc::Functions& functions, const Program& program,
                                     const std::string& name) {
    std::size_t size = 0;
    check(functions, functions.nvrtcGetCUBINSize(program.get(), &size), name);
    if (size == 0) throw NvrtcError(name + ": no binary code; the target must be an sm_ architecture", {});
    std::vector<std::byte> cubin(size);
    check(functions, functions.nvrtcGetCUBIN(program.get(), reinterpret_cast<char*>(cubin.data())), name);
    return cubin;
}

// The first line that says what is wrong, else the first line.
std::string first_error(const std::string& log) {
    for (const std::string_view word : {"error", "fatal"}) {
        if (const auto at = log.find(word); at != std::string::npos) {
            const auto begin = log.rfind('\n', at) + 1;
            return log.substr(begin, log.find('\n', at) - begin);
        }
    }
    return log.substr(0, log.find('\n'));
}

// The target of `--gpu-architecture=sm_90a`; nothing when the options name none.
std::optional<Arch> target_of(const std::vector<std::string>& options) {
    constexpr std::string_view key = "--gpu-architecture=";
    for (const std::string& option : options) {
        if (option.starts_with(key)) return arch_from_name(std::string_view(option).substr(key.size()));
    }
    return std::nullopt;
}

std::shared_ptr<const Nvrtc::Functions> resolve_functions(const SharedLibrary& library) {
    const auto functions = std::make_shared<Nvrtc::Functions>();
    const auto resolve = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.symbol(name));
        if (function != nullptr) return;
        throw LibraryError(
            fmt::format("NVRTC too old: {} has no {}, needs at least 12.0", library.path(), name), hint);
    };
#define HONE_RESOLVE(name) resolve(functions->name, #name);
    HONE_NVRTC_FUNCTIONS(HONE_RESOLVE)
#undef HONE_RESOLVE
    return functions;
}

// libnvrtc-builtins lies beside libnvrtc, but libnvrtc asks the loader for it by name, which only knows the
// loader's path. Once it is open under that name, the loader is content. Toolkits on the loader's path, and
// fakes, do without.
SharedLibrary open_builtins(const std::string& library_path, const std::string& version) {
    const std::string folder = library_path.substr(0, library_path.rfind('/') + 1);
    const std::array<std::string, 1> file = {folder + "libnvrtc-builtins.so." + version};
    try {
        return SharedLibrary::open_first("NVRTC's built-in functions", file, hint);
    } catch (const LibraryError&) {
        return {};
    }
}

}  // namespace

std::shared_ptr<const Nvrtc> Nvrtc::load() {
    const std::shared_ptr<Nvrtc> nvrtc(new Nvrtc);
    nvrtc->library_ = SharedLibrary::open_first("NVRTC, the CUDA run-time compiler,",
                                                nvrtc_locations(read_environment()), hint);
    const auto functions = resolve_functions(nvrtc->library_);
    nvrtc->functions_ = functions;
    check(*functions, functions->nvrtcVersion(&nvrtc->major_, &nvrtc->minor_), "nvrtcVersion");
    if (nvrtc->major_ < 12) {
        throw LibraryError(fmt::format("NVRTC too old: {} is version {}, needs at least 12.0",
                                       nvrtc->library_path(), nvrtc->version()),
                           hint);
    }
    nvrtc->builtins_ = open_builtins(nvrtc->library_path(), nvrtc->version());
    int count = 0;
    check(*functions, functions->nvrtcGetNumSupportedArchs(&count), "nvrtcGetNumSupportedArchs");
    nvrtc->archs_.resize(static_cast<std::size_t>(count));
    check(*functions, functions->nvrtcGetSupportedArchs(nvrtc->archs_.data()), "nvrtcGetSupportedArchs");
    return nvrtc;
}

std::string Nvrtc::version() const { return fmt::format("{}.{}", major_, minor_); }

const std::string& Nvrtc::library_path() const { return library_.path(); }

bool Nvrtc::supports(Arch arch) const {
    return std::find(archs_.begin(), archs_.end(), arch.major * 10 + arch.minor) != archs_.end();
}

std::string Nvrtc::supported_archs() const {
    std::string text;
    for (const int arch : archs_) text += fmt::format("{}sm_{}", text.empty() ? "" : " ", arch);
    return text;
}

Nvrtc::Output Nvrtc::compile(const std::string& source, const std::string& source_name,
                             const std::vector<Header>& headers,
                             const std::vector<std::string>& options) const {
    if (const std::optional<Arch> arch = target_of(options); arch && !supports(*arch)) {
        throw NvrtcError(fmt::format("{}: NVRTC {} cannot compile for {}; it supports {}", source_name,
                                     version(), to_string(*arch), supported_archs()),
                         {});
    }
    std::vector<const char*> arguments;
    for (const std::string& option : options) arguments.push_back(option.c_str());
    // None of them changes the code: the first keeps compile times honest, the second keeps the working
    // directory's files out, the third saves 4 ms of declarations that no template uses.
    if (major_ > 12 || minor_ >= 9) arguments.insert(arguments.end(), {"--no-cache", "--no-source-include"});
    if (major_ > 12) arguments.push_back("--minimal");
    // Older versions look for includes beside the source: give it a folder that does not exist.
    const Program program = create_program(*functions_, source, "/hone/" + source_name, headers);
    const nvrtcResult result =
        functions_->nvrtcCompileProgram(program.get(), static_cast<int>(arguments.size()), arguments.data());
    std::string log = program_log(*functions_, program);
    if (result != NVRTC_SUCCESS) {
        const std::string cause = log.empty() ? functions_->nvrtcGetErrorString(result) : first_error(log);
        throw NvrtcError(fmt::format("{}: {}", source_name, cause), std::move(log));
    }
    return {.cubin = program_cubin(*functions_, program, source_name), .log = std::move(log)};
}

}  // namespace hone::runtime
