// What a checkpoint says about how it was quantized: the object quantization_config of config.json, or the
// file quantize_config.json (GPTQ), quant_config.json (AWQ) or hf_quant_config.json (ModelOpt) beside older
// ones. Knows where it stands and how its values are typed; gptq.h, awq.h and fp8.h know what they mean.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace hone::checkpoints {

class QuantizationConfig {
  public:
    /// nullopt where the folder says nothing, and where what it says is of the cache of keys and values alone
    /// (kv_cache_scheme, and ModelOpt's without a quant_algo). Throws InputError for JSON that cannot be parsed.
    [[nodiscard]] static std::optional<QuantizationConfig> read(const std::filesystem::path& folder);
    /// What such an object says: scales were made for a cache of keys and values, and the weights are
    /// numbers.
    [[nodiscard]] static bool is_of_cache_alone(const nlohmann::json& values);
    /// `place` stands in front of messages. `default_method` where `values` has no quant_method; throws
    /// CheckpointError when that is empty.
    QuantizationConfig(nlohmann::json values, std::string place, std::string_view default_method = "");

    /// "gptq", "awq", "fp8", "compressed-tensors", ...
    [[nodiscard]] const std::string& method() const { return method_; }
    [[nodiscard]] const std::string& place() const { return place_; }
    /// By the first of the spellings that is there and not null; nullopt: none is. Throw CheckpointError for
    /// a value of another type.
    [[nodiscard]] std::optional<std::int64_t> integer(std::initializer_list<const char*> spellings) const;
    [[nodiscard]] std::optional<bool> boolean(const char* key) const;
    [[nodiscard]] std::optional<std::string> text(std::initializer_list<const char*> spellings) const;
    /// nullptr when it is not there or null.
    [[nodiscard]] const nlohmann::json* find(const char* key) const;

    /// Throws CheckpointError unless method() is this one.
    void require_method(std::string_view method) const;
    /// CheckpointError: the key's value, and what is allowed.
    [[noreturn]] void refuse(std::string_view key, std::string_view allowed) const;

  private:
    [[nodiscard]] static std::optional<QuantizationConfig> of_modelopt(const std::filesystem::path& file);

    nlohmann::json values_;
    std::string place_;
    std::string method_;
};

/// group_size, of GPTQ and AWQ: 32, 64 or 128 columns, or 0 where the file says -1: the whole row is one
/// group.
[[nodiscard]] std::int64_t group_of(const QuantizationConfig& config,
                                    std::initializer_list<const char*> spellings);

}  // namespace hone::checkpoints
