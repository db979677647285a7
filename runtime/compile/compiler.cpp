#include "runtime/compile/compiler.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "kernel_templates/catalog.h"
#include "kernel_templates/source.h"

namespace hone::runtime {
namespace {

std::vector<std::string> option_list(Arch arch) {
    return {"--gpu-architecture=" + to_string(arch), "--std=c++20", "-default-device", "--ptxas-options=-v"};
}

// The generated header and every device header, under the names that templates include them by.
std::vector<Nvrtc::Header> headers(const std::string& constants, std::vector<std::string>& texts) {
    texts.clear();
    std::vector<Nvrtc::Header> headers;
    std::vector<std::string> names;
    texts.push_back(constants);
    names.emplace_back(constants_header_name);
    for (const EmbeddedSource& source : embedded_sources()) {
        if (!source.path.ends_with(".cuh")) continue;
        texts.emplace_back(source.text);  // NVRTC wants a terminating NUL, which a view does not promise
        names.emplace_back(source.path);
    }
    for (std::size_t i = 0; i < names.size(); ++i) headers.push_back({names[i], texts[i].c_str()});
    return headers;
}

// The number that stands before `unit`, as in "48 bytes spill stores"; 0 when `unit` does not occur, and the
// largest one for what is larger.
int number_before(std::string_view line, std::string_view unit) {
    const auto end = line.find(unit);
    if (end == std::string_view::npos) return 0;
    auto begin = end;
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(line[begin - 1])) != 0) --begin;
    int value = 0;
    const auto parsed = std::from_chars(line.data() + begin, line.data() + end, value);
    return parsed.ec == std::errc::result_out_of_range ? std::numeric_limits<int>::max() : value;
}

int saturated(std::int64_t value) {
    return static_cast<int>(std::min<std::int64_t>(value, std::numeric_limits<int>::max()));
}

const EmbeddedSource& embedded_source(const std::string& path) {
    if (const EmbeddedSource* source = find_source(path)) return *source;
    throw std::logic_error(fmt::format("no template {} in this build", path));
}

}  // namespace

std::string compile_options(Arch arch) {
    std::string text;
    for (const std::string& option : option_list(arch)) text += (text.empty() ? "" : " ") + option;
    return text;
}

CompiledImage compile(const Nvrtc& nvrtc, const CompileRequest& request) {
    const EmbeddedSource& source = embedded_source(request.source);
    std::vector<std::string> texts;
    const std::vector<Nvrtc::Header> all_headers = headers(request.constants, texts);
    Nvrtc::Output output =
        nvrtc.compile(std::string(source.text), request.source, all_headers, option_list(request.arch));
    const cache::Resources resources = parse_ptxas_report(output.log);
    return {.cubin = std::move(output.cubin), .resources = resources, .log = std::move(output.log)};
}

CompileRequest candidate_request(const Problem& problem, const Candidate& candidate, Arch arch) {
    return {.source = std::string(candidate.variant->source),
            .constants = render_constants(problem, image_candidate(candidate, arch)),
            .arch = arch};
}

CompileRequest reference_request(const Problem& problem, Arch arch) {
    return {.source = std::string(problem.family->reference_source),
            .constants = render_constants(problem),
            .arch = arch};
}

cache::ImageKey candidate_image_key(const Problem& problem, const Candidate& candidate, Arch arch,
                                    const std::string& nvrtc_version) {
    return {.template_hash = std::string(template_hash(*candidate.variant)),
            .static_fields = static_text(problem),
            .candidate = to_string(image_candidate(candidate, arch)),
            .arch = to_string(arch),
            .nvrtc = nvrtc_version,
            .options = compile_options(arch)};
}

cache::ImageKey reference_image_key(const Problem& problem, Arch arch, const std::string& nvrtc_version) {
    const EmbeddedSource* source = find_source(problem.family->reference_source);
    return {.template_hash = std::string(source == nullptr ? problem.family->reference_source : source->hash),
            .static_fields = static_text(problem),
            .candidate = {},
            .arch = to_string(arch),
            .nvrtc = nvrtc_version,
            .options = compile_options(arch)};
}

std::string key_text(const cache::ImageKey& key) {
    std::string joined;
    for (const std::string* part :
         {&key.template_hash, &key.static_fields, &key.candidate, &key.arch, &key.nvrtc, &key.options}) {
        joined += *part + '\n';
    }
    return joined;
}

cache::Resources parse_ptxas_report(const std::string& log) {
    cache::Resources resources;
    for (std::size_t begin = 0; begin < log.size();) {
        const auto end = std::min(log.find('\n', begin), log.size());
        const std::string_view line(log.data() + begin, end - begin);
        const std::int64_t spills = std::int64_t{number_before(line, " bytes spill stores")} +
                                    number_before(line, " bytes spill loads");
        resources.registers = std::max(resources.registers, number_before(line, " registers"));
        resources.shared_bytes = std::max(resources.shared_bytes, number_before(line, " bytes smem"));
        resources.spill_bytes = std::max(resources.spill_bytes, saturated(spills));
        begin = end + 1;
    }
    return resources;
}

}  // namespace hone::runtime
