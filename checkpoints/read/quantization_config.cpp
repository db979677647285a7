#include "checkpoints/read/quantization_config.h"

#include <fmt/format.h>

#include "checkpoints/error.h"
#include "runtime/system/strict_json.h"
#include "runtime/system/text_file.h"

namespace hone::checkpoints {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_file_bytes = std::size_t{4} << 20;

nlohmann::json read_object(const fs::path& file) {
    return runtime::parse_json_object(runtime::read_text_file(file, max_file_bytes), file.string());
}

}  // namespace

bool QuantizationConfig::is_of_cache_alone(const nlohmann::json& values) {
    if (!values.is_object()) return false;
    const auto value = [&](const char* key) { return values.value(key, nlohmann::json()); };
    if (value("kv_cache_scheme").is_null()) return false;
    if (value("quant_method") == "modelopt") return value("quant_algo").is_null();
    return value("quant_method") == "compressed-tensors" &&
           value("config_groups") == nlohmann::json::object();
}

std::optional<QuantizationConfig> QuantizationConfig::read(const fs::path& folder) {
    if (const fs::path file = folder / "config.json"; runtime::has_entry(file)) {
        nlohmann::json root = read_object(file);
        const auto found = root.find("quantization_config");
        if (found != root.end() && !found->is_null() && !is_of_cache_alone(*found))
            return QuantizationConfig(std::move(*found), file.string() + ": quantization_config");
    }
    for (const auto& [name, method] :
         {std::pair{"quantize_config.json", "gptq"}, {"quant_config.json", "awq"}}) {
        if (const fs::path file = folder / name; runtime::has_entry(file))
            return QuantizationConfig(read_object(file), file.string(), method);
    }
    return of_modelopt(folder / "hf_quant_config.json");
}

std::optional<QuantizationConfig> QuantizationConfig::of_modelopt(const fs::path& file) {
    if (!runtime::has_entry(file)) return std::nullopt;
    nlohmann::json root = read_object(file);
    nlohmann::json& values = root["quantization"];
    // Without an algorithm of the weights the file is of the cache alone.
    if (values.is_object() && values.value("quant_algo", nlohmann::json()).is_null()) return std::nullopt;
    return QuantizationConfig(std::move(values), file.string() + ": quantization", "modelopt");
}

QuantizationConfig::QuantizationConfig(nlohmann::json values, std::string place,
                                       std::string_view default_method)
    : values_(std::move(values)), place_(std::move(place)) {
    if (!values_.is_object()) throw CheckpointError(fmt::format("{}: not an object", place_));
    method_ = text({"quant_method"}).value_or(std::string(default_method));
    if (method_.empty()) throw CheckpointError(fmt::format("{}: no quant_method", place_));
}

const nlohmann::json* QuantizationConfig::find(const char* key) const {
    const auto found = values_.find(key);
    return found == values_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<std::int64_t> QuantizationConfig::integer(std::initializer_list<const char*> spellings) const {
    for (const char* key : spellings) {
        const nlohmann::json* value = find(key);
        if (value == nullptr) continue;
        const bool fits = value->is_number_integer() &&
                          (!value->is_number_unsigned() || value->get<std::uint64_t>() <= INT64_MAX);
        if (!fits) refuse(key, "an integer");
        return value->get<std::int64_t>();
    }
    return std::nullopt;
}

std::optional<bool> QuantizationConfig::boolean(const char* key) const {
    const nlohmann::json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_boolean()) refuse(key, "true and false");
    return value->get<bool>();
}

std::optional<std::string> QuantizationConfig::text(std::initializer_list<const char*> spellings) const {
    for (const char* key : spellings) {
        const nlohmann::json* value = find(key);
        if (value == nullptr) continue;
        if (!value->is_string()) refuse(key, "text");
        return value->get<std::string>();
    }
    return std::nullopt;
}

void QuantizationConfig::require_method(std::string_view method) const {
    if (method_ != method) refuse("quant_method", method);
}

void QuantizationConfig::refuse(std::string_view key, std::string_view allowed) const {
    using Json = nlohmann::json;
    const auto found = values_.find(key);
    std::string value =
        found == values_.end() ? "missing" : found->dump(-1, ' ', true, Json::error_handler_t::replace);
    if (constexpr std::size_t most = 200; value.size() > most) value = value.substr(0, most) + "...";
    throw CheckpointError(fmt::format("{}: {} is {}; allowed: {}", place_, key, value, allowed));
}

std::int64_t group_of(const QuantizationConfig& config, std::initializer_list<const char*> spellings) {
    const std::optional<std::int64_t> group = config.integer(spellings);
    if (group == -1) return 0;
    if (group == 32 || group == 64 || group == 128) return *group;
    const char* spelling = *spellings.begin();
    for (const char* key : spellings) {
        if (config.find(key) != nullptr) spelling = key;
    }
    config.refuse(spelling, "-1 (whole rows), 32, 64 and 128");
}

}  // namespace hone::checkpoints
