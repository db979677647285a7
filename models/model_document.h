// A model file as keys with values, whatever its syntax: Hugging Face's config.json, or YAML with the same
// keys. Reads syntax only; read_architecture.cpp and model.cpp know what the keys mean. Nothing in a file can
// make reading it slow or deep.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "checkpoints/read/quantization_config.h"

namespace hone::models {

class ModelDocument {
  public:
    struct Object {};
    /// A list of other things than scalars.
    struct Other {};
    using Scalar = std::variant<bool, std::int64_t, double, std::string>;
    using List = std::vector<Scalar>;
    /// monostate: null.
    using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Object, Other>;
    struct Entry {
        std::string key;
        Value value;
        int line = 0;  ///< 0: not known
    };

    /// By extension: .yaml and .yml as YAML, anything else as JSON (// and /* */ comments allowed). Throws
    /// InputError with file and line for files above 4 MiB, nesting above 32 levels, repeated keys, and what
    /// is not an object at the top; for a quantization_config that is no object or does not say quant_method.
    [[nodiscard]] static ModelDocument read(const std::filesystem::path& file);
    [[nodiscard]] static ModelDocument from_json(const std::string& text, const std::string& file_name);
    [[nodiscard]] static ModelDocument from_yaml(const std::string& text, const std::string& file_name);

    /// The first of `spellings` that is there and not null; in `text_config` first, then at the top level.
    [[nodiscard]] const Entry* find(std::span<const std::string_view> spellings) const;
    /// The same, null or not.
    [[nodiscard]] const Entry* find_or_null(std::span<const std::string_view> spellings) const;
    /// Outside of `text_config`.
    [[nodiscard]] const Entry* find_at_top(std::string_view key) const;
    /// All that are not null, those of `text_config` first, by name. Members of `rope_parameters` and of its
    /// `full_attention` and `sliding_attention`, of `rope_scaling` and `attn_config` stand besides as
    /// "attn_config.alibi".
    [[nodiscard]] std::vector<const Entry*> entries() const;
    /// The object quantization_config, which says how weights are stored; found as other keys are. None where
    /// it speaks of the cache of keys and values alone.
    [[nodiscard]] const std::optional<checkpoints::QuantizationConfig>& quantization() const {
        return quantization_;
    }
    [[nodiscard]] const std::string& file_name() const { return file_name_; }

    /// "config.json:12: ", for messages.
    [[nodiscard]] std::string place(const Entry& entry) const;

  private:
    using Entries = std::map<std::string, Entry, std::less<>>;
    std::string file_name_;
    Entries top_;
    std::optional<checkpoints::QuantizationConfig> quantization_;
    Entries nested_;  ///< keys in `text_config`, where multimodal models keep the language model
};

/// A value as messages have it: 4096.5, "4096", true, a list of 3, an object.
[[nodiscard]] std::string shown(const ModelDocument::Value& value);

}  // namespace hone::models
