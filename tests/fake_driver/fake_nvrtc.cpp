// libfake_nvrtc.so: "compiles" at once into a FakeImage (image.h) that the fake driver loads. It finds
// the kernels (`extern "C" __global__ ... name(`) of the source and of the headers it includes, and makes up
// a ptxas report from a hash. It knows no C++: everything compiles, unless HONE_FAKE_SCRIPT (script.h) says
// otherwise. Thread-safe.
#include <nvrtc.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/fake_driver/image.h"
#include "tests/fake_driver/script.h"

struct _nvrtcProgram {
    std::string source;
    std::string name;
    std::map<std::string, std::string> headers;
    std::string log;
    std::string image;
};

namespace {

using namespace hone::fake;

// The process's script, with its counters; read again when the variable has changed.
std::mutex mutex;

Script& script() {
    static Script current = Script::from_environment();
    const char* value = std::getenv("HONE_FAKE_SCRIPT");
    if (current.text() != (value == nullptr ? "" : value)) current = Script::from_environment();
    return current;
}

// The source with every header it includes, each once.
void append_with_includes(const nvrtcProgram program, const std::string& text, std::set<std::string>& seen,
                          std::string& out) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const auto open = line.find('"');
        if (line.starts_with("#include") && open != std::string::npos) {
            const std::string header = line.substr(open + 1, line.find('"', open + 1) - open - 1);
            const auto found = program->headers.find(header);
            if (found != program->headers.end() && seen.insert(header).second) {
                append_with_includes(program, found->second, seen, out);
            }
            continue;
        }
        out += line + "\n";
    }
}

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::size_t behind_parentheses(const std::string& text, std::size_t open) {
    int depth = 0;
    for (std::size_t i = open; i < text.size(); ++i) {
        if (text[i] == '(') ++depth;
        if (text[i] == ')' && --depth == 0) return i + 1;
    }
    return text.size();
}

// Bytes of a type as it stands in a declaration, "const float*" or "hone::TensorMap"; 0: not plain to see.
int bytes_of_type(const std::string& type) {
    static const std::map<std::string, int> sizes = {
        {"int", 4},    {"unsigned", 4}, {"float", 4},       {"int32", 4},
        {"uint32", 4}, {"double", 8},   {"int64", 8},       {"uint64", 8},
        {"size_t", 8}, {"long", 8},     {"TensorMap", 128}, {"hone::TensorMap", 128},
    };
    if (type.find('*') != std::string::npos) return 8;
    std::istringstream words(type);
    for (std::string word; words >> word;) {
        if (const auto found = sizes.find(word); found != sizes.end()) return found->second;
    }
    return 0;
}

// "8,8,4" for "const float* x, long long rows, int n": ends at the first type it does not know.
std::string parameter_bytes(const std::string& parameters) {
    std::string bytes;
    std::istringstream list(parameters);
    for (std::string parameter; std::getline(list, parameter, ',');) {
        const int size = bytes_of_type(parameter);
        if (size == 0) break;
        bytes += (bytes.empty() ? "" : ",") + std::to_string(size);
    }
    return bytes;
}

// A list that the constants' header names, in place of HONE_PARAMETERS(kernel).
std::string expanded(const std::string& text, const std::string& parameters) {
    const std::string macro = "HONE_PARAMETERS(";
    if (!parameters.starts_with(macro)) return parameters;
    const std::string kernel = parameters.substr(macro.size(), parameters.find(')') - macro.size());
    const std::string definition = "#define HONE_PARAMETERS_" + kernel + " ";
    const auto at = text.find(definition);
    if (at == std::string::npos) return {};
    const auto from = at + definition.size();
    return text.substr(from, text.find('\n', from) - from);
}

// The function behind `extern "C" __global__`: its name is the first word before a parenthesis that is no
// attribute.
ImageKernel kernel_at(const std::string& text, std::size_t from) {
    for (auto open = text.find('(', from); open != std::string::npos; open = text.find('(', from)) {
        auto end = open;
        while (end > from && std::isspace(static_cast<unsigned char>(text[end - 1])) != 0) --end;
        auto begin = end;
        while (begin > from && is_name_character(text[begin - 1])) --begin;
        ImageKernel kernel;
        kernel.name = text.substr(begin, end - begin);
        from = behind_parentheses(text, open);
        if (kernel.name.starts_with("__")) continue;
        const std::string bytes = parameter_bytes(expanded(text, text.substr(open + 1, from - open - 2)));
        if (!bytes.empty()) kernel.parameter_bytes = bytes;
        return kernel;
    }
    return {};
}

std::vector<ImageKernel> kernels_of(const std::string& text) {
    const std::string start = "extern \"C\" __global__";
    std::vector<ImageKernel> kernels;
    for (auto at = text.find(start); at != std::string::npos; at = text.find(start, at + 1)) {
        const ImageKernel kernel = kernel_at(text, at + start.size());
        if (!kernel.name.empty()) kernels.push_back(kernel);
    }
    return kernels;
}

// "static constexpr long long threads = 128;" lines as "threads=128" words.
std::string constants_of(const std::string& text) {
    const std::string start = "static constexpr long long ";
    std::string words;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const auto at = line.find(start);
        const auto equals = line.find(" = ");
        if (at == std::string::npos || equals == std::string::npos) continue;
        const auto name = at + start.size();
        words += (words.empty() ? "" : " ") + line.substr(name, equals - name) + "=" +
                 line.substr(equals + 3, line.find(';') - equals - 3);
    }
    return words;
}

std::string option_value(int count, const char* const* options, const std::string& key) {
    for (int i = 0; i < count; ++i) {
        if (std::string(options[i]).starts_with(key)) return options[i] + key.size();
    }
    return {};
}

FakeImage compile(const nvrtcProgram program, const std::string& arch) {
    std::string text;
    std::set<std::string> seen;
    append_with_includes(program, program->source, seen, text);
    const auto constants = program->headers.find("hone_constants.h");
    FakeImage image;
    image.source = program->name.starts_with("/hone/") ? program->name.substr(6) : program->name;
    image.arch = arch;
    image.constants = constants == program->headers.end() ? "" : constants_of(constants->second);
    image.kernels = kernels_of(text);
    // Whoever has shared memory of a size that the launch says has all of it there, up to the device's limit.
    const bool dynamic = text.find("extern __shared__") != std::string::npos;
    for (ImageKernel& kernel : image.kernels) {
        const auto hash = stable_hash(kernel.name + " " + image.constants);
        kernel.registers = 24 + static_cast<int>(hash % 40);
        kernel.shared_bytes = dynamic ? 0 : static_cast<int>(hash >> 8 & 0x3f) * 16;
    }
    return image;
}

std::string ptxas_report(const FakeImage& image) {
    std::ostringstream log;
    log << "ptxas info    : 0 bytes gmem\n";
    for (const ImageKernel& kernel : image.kernels) {
        log << "ptxas info    : Compiling entry function '" << kernel.name << "' for '" << image.arch << "'\n"
            << "ptxas info    : Function properties for " << kernel.name << "\n"
            << "ptxas         .     " << kernel.spill_bytes << " bytes stack frame, " << kernel.spill_bytes
            << " bytes spill stores, " << kernel.spill_bytes << " bytes spill loads\n"
            << "ptxas info    : Used " << kernel.registers << " registers, used 1 barriers, "
            << kernel.shared_bytes << " bytes smem\n"
            << "ptxas info    : Compile time = 0.000 ms\n";
    }
    return log.str();
}

long lines_of(const std::string& path) {
    std::ifstream file(path);
    return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
}

// False: so many compiles were not under way, or done, within half a minute.
bool meets(const std::string& log, long wanted) {
    for (int tried = 0; tried < 15'000; ++tried) {
        if (lines_of(log) >= wanted) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return false;
}

void write_line(const std::string& log, const FakeImage& image) {
    std::ofstream file(log, std::ios::app);
    file << std::to_string(getpid()) + ' ' + image.source + ' ' + image.constants + '\n';
}

// Changes the image, or ends the process, as the rules say. False: the compile fails.
bool apply(const Rule& rule, FakeImage& image) {
    if (rule.has("log")) write_line(rule.text("log"), image);
    if (rule.has("meet") && !meets(rule.text("log"), rule.number("meet"))) return false;
    act_on_process(rule);
    while (rule.has("hang")) pause();
    for (ImageKernel& kernel : image.kernels) {
        kernel.spill_bytes = static_cast<int>(rule.number("spill", kernel.spill_bytes));
        kernel.registers = static_cast<int>(rule.number("registers", kernel.registers));
        kernel.shared_bytes = static_cast<int>(rule.number("shared", kernel.shared_bytes));
    }
    return !rule.has("fail");
}

std::vector<int> archs() {
    std::vector<int> list = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
    const std::lock_guard lock(mutex);
    if (const Rule* rule = script().setting("nvrtc", "archs")) {
        list.clear();
        std::istringstream words(rule->text("archs"));
        for (std::string word; std::getline(words, word, '+');) list.push_back(std::atoi(word.c_str()));
    }
    return list;
}

nvrtcResult copy_out(const std::string& text, char* to) {
    std::memcpy(to, text.c_str(), text.size() + 1);
    return NVRTC_SUCCESS;
}

}  // namespace

extern "C" {

nvrtcResult nvrtcVersion(int* major, int* minor) {
    const std::lock_guard lock(mutex);
    const Rule* rule = script().setting("nvrtc", "version");
    const std::string version = rule == nullptr ? "13.0" : rule->text("version");
    *major = std::atoi(version.c_str());
    *minor = std::atoi(version.c_str() + version.find('.') + 1);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
    *count = static_cast<int>(archs().size());
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int* list) {
    const std::vector<int> all = archs();
    std::copy(all.begin(), all.end(), list);
    return NVRTC_SUCCESS;
}

const char* nvrtcGetErrorString(nvrtcResult result) {
    return result == NVRTC_SUCCESS ? "NVRTC_SUCCESS" : "NVRTC_ERROR_COMPILATION";
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* source, const char* name, int header_count,
                               const char* const* headers, const char* const* header_names) {
    *program = new _nvrtcProgram{.source = source, .name = name, .headers = {}, .log = {}, .image = {}};
    for (int i = 0; i < header_count; ++i) (*program)->headers[header_names[i]] = headers[i];
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
    delete *program;
    *program = nullptr;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int option_count, const char* const* options) {
    FakeImage image = compile(program, option_value(option_count, options, "--gpu-architecture="));
    std::vector<Rule> fired;  // copied: a rule may hang, and that not under the lock
    {
        const std::lock_guard lock(mutex);
        for (const Rule* rule : script().fire("compile", subject_of(image, ""))) fired.push_back(*rule);
    }
    bool compiled = true;
    for (const Rule& rule : fired) compiled = apply(rule, image) && compiled;
    if (!compiled) {
        program->log =
            program->name + "(1): error: the script says that this does not compile\n\n1 error detected.\n";
        return NVRTC_ERROR_COMPILATION;
    }
    program->log = ptxas_report(image);
    program->image = render(image);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* size) {
    *size = program->image.size() + 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* to) { return copy_out(program->image, to); }

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* size) {
    *size = program->log.size() + 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* to) { return copy_out(program->log, to); }

}  // extern "C"
