#include "models/model_document.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <vector>

#include "kernel_templates/text.h"
#include "models/error.h"
#include "runtime/system/strict_json.h"
#include "runtime/system/text_file.h"

namespace hone::models {
namespace {

constexpr std::size_t max_file_bytes = std::size_t{4} << 20;
constexpr std::string_view nested_key = "text_config";
constexpr const char* quantization_key = "quantization_config";
/// Objects whose members count as keys, with a dot between.
constexpr std::array opened_keys =
    std::to_array<std::string_view>({"rope_parameters", "rope_parameters.full_attention",
                                     "rope_parameters.sliding_attention", "rope_scaling", "attn_config"});

bool is_opened(std::string_view key) { return std::ranges::find(opened_keys, key) != opened_keys.end(); }

/// Lines of all texts between two quotation marks, of each the first: one pass, however many keys there are.
std::unordered_map<std::string_view, int> lines_of_quoted(std::string_view text) {
    std::unordered_map<std::string_view, int> lines;
    int line = 1;
    std::size_t begin = std::min(text.find('"'), text.size());
    line += static_cast<int>(std::ranges::count(text.substr(0, begin), '\n'));
    for (std::size_t end = 0; begin < text.size(); begin = end) {
        end = std::min(text.find('"', begin + 1), text.size());
        const std::string_view quoted = text.substr(begin + 1, end - begin - 1);
        if (end < text.size()) lines.emplace(quoted, line);
        line += static_cast<int>(std::ranges::count(quoted, '\n'));
    }
    return lines;
}

ModelDocument::Value value_of(const nlohmann::json& json);
ModelDocument::Value value_of(const YAML::Node& node);

bool is_nested(const nlohmann::json& json) { return json.is_structured(); }
bool is_nested(const YAML::Node& node) { return node.IsSequence() || node.IsMap(); }

/// A list where all of `items` are scalars. Lists in it are not looked into: an alias of YAML may stand
/// within what it names.
template <class Items>
ModelDocument::Value list_of(const Items& items) {
    ModelDocument::List list;
    for (const auto& item : items) {
        if (is_nested(item)) return ModelDocument::Other{};
        const ModelDocument::Value value = value_of(item);
        const bool scalar = std::visit(
            [&](const auto& one) {
                if constexpr (std::is_constructible_v<ModelDocument::Scalar, decltype(one)>) {
                    list.emplace_back(one);
                    return true;
                }
                return false;
            },
            value);
        if (!scalar) return ModelDocument::Other{};
    }
    return list;
}

ModelDocument::Value value_of(const nlohmann::json& json) {
    if (json.is_null()) return std::monostate{};
    if (json.is_boolean()) return json.get<bool>();
    if (json.is_number_unsigned() && json.get<std::uint64_t>() > std::uint64_t{INT64_MAX})
        return json.get<double>();
    if (json.is_number_integer()) return json.get<std::int64_t>();
    if (json.is_number_float()) return json.get<double>();
    if (json.is_string()) return json.get<std::string>();
    if (json.is_array()) return list_of(json);
    return ModelDocument::Object{};
}

ModelDocument::Value value_of(const YAML::Node& node) {
    if (node.IsNull()) return std::monostate{};
    if (node.IsSequence()) return list_of(node);
    if (!node.IsScalar()) return ModelDocument::Object{};
    const std::string& text = node.Scalar();
    if (node.Tag() == "!") return text;  // quoted
    if (const std::optional<std::int64_t> integer = parse_integer(text)) return *integer;
    if (double number = 0; YAML::convert<double>::decode(node, number)) return number;
    if (bool flag = false; YAML::convert<bool>::decode(node, flag)) return flag;
    return text;
}

/// null for null.
nlohmann::json json_of(const ModelDocument::Value& value) {
    return std::visit(
        [](const auto& one) -> nlohmann::json {
            if constexpr (std::is_constructible_v<nlohmann::json, decltype(one)>) return one;
            return nullptr;
        },
        value);
}

/// A YAML map of scalars.
nlohmann::json object_of(const YAML::Node& map, const std::string& place) {
    if (!map.IsMap()) throw ModelError(fmt::format("{}: not a map", place));
    nlohmann::json object = nlohmann::json::object();
    for (const auto& item : map) {
        const std::string& key = item.first.Scalar();
        const ModelDocument::Value value = value_of(item.second);
        if (std::holds_alternative<ModelDocument::Object>(value) ||
            std::holds_alternative<ModelDocument::Other>(value) ||
            std::holds_alternative<ModelDocument::List>(value))
            throw ModelError(
                fmt::format("{}: {} is a list or a map; allowed in YAML are scalars", place, key));
        object[key] = json_of(value);
    }
    return object;
}

}  // namespace

ModelDocument ModelDocument::read(const std::filesystem::path& file) {
    const std::string text = runtime::read_text_file(file, max_file_bytes);
    const bool yaml = file.extension() == ".yaml" || file.extension() == ".yml";
    return yaml ? from_yaml(text, file.string()) : from_json(text, file.string());
}

ModelDocument ModelDocument::from_json(const std::string& text, const std::string& file_name) {
    const nlohmann::json root = runtime::parse_json_object(text, file_name);
    ModelDocument document;
    document.file_name_ = file_name;
    const std::unordered_map<std::string_view, int> lines = lines_of_quoted(text);
    const std::function<void(const std::string&, const nlohmann::json&, int, Entries&)> add =
        [&](const std::string& key, const nlohmann::json& value, int line, Entries& entries) {
            entries[key] = {key, value_of(value), line};
            if (!is_opened(key) || !value.is_object()) return;
            for (const auto& [inner, of_inner] : value.items())
                add(key + '.' + inner, of_inner, line, entries);
        };
    const auto fill = [&](const nlohmann::json& object, Entries& entries) {
        for (const auto& [key, value] : object.items()) {
            const auto line = lines.find(key);
            add(key, value, line == lines.end() ? 0 : line->second, entries);
        }
    };
    fill(root, document.top_);
    const auto read_quantization = [&](const nlohmann::json& object) {
        const auto found = object.find(quantization_key);
        if (found == object.end() || found->is_null() || document.quantization_) return;
        if (checkpoints::QuantizationConfig::is_of_cache_alone(*found)) return;
        document.quantization_.emplace(*found, fmt::format("{}: {}", file_name, quantization_key));
    };
    if (const auto nested = root.find(nested_key); nested != root.end() && nested->is_object()) {
        fill(*nested, document.nested_);
        read_quantization(*nested);
    }
    read_quantization(root);
    return document;
}

ModelDocument ModelDocument::from_yaml(const std::string& text, const std::string& file_name) {
    ModelDocument document;
    document.file_name_ = file_name;
    const std::function<void(const std::string&, const YAML::Node&, int, Entries&)> add =
        [&](const std::string& key, const YAML::Node& value, int line, Entries& entries) {
            if (!entries.emplace(key, Entry{key, value_of(value), line}).second)
                throw ModelError(fmt::format("{}:{}: key \"{}\" stands twice", file_name, line, key));
            if (!is_opened(key) || !value.IsMap()) return;
            for (const auto& inner : value)
                add(key + '.' + inner.first.Scalar(), inner.second, line, entries);
        };
    const auto fill = [&](const YAML::Node& map, Entries& entries) {
        for (const auto& item : map) {
            const int line = item.first.Mark().line + 1;
            if (!item.first.IsScalar())
                throw ModelError(fmt::format("{}:{}: a key is not a word", file_name, line));
            add(item.first.Scalar(), item.second, line, entries);
        }
    };
    try {
        const std::vector<YAML::Node> documents = YAML::LoadAll(text);
        if (documents.size() > 1)
            throw ModelError(fmt::format("{}: has {} documents; allowed: one", file_name, documents.size()));
        const YAML::Node root = documents.empty() ? YAML::Node() : documents.front();
        if (!root.IsMap()) throw ModelError(fmt::format("{}: the top level is not a map", file_name));
        fill(root, document.top_);
        const auto read_quantization = [&](const YAML::Node& map) {
            const YAML::Node found = map[quantization_key];
            if (!found || found.IsNull() || document.quantization_) return;
            const std::string place =
                fmt::format("{}:{}: {}", file_name, found.Mark().line + 1, quantization_key);
            document.quantization_.emplace(object_of(found, place), place);
        };
        if (const YAML::Node nested = root[std::string(nested_key)]; nested && nested.IsMap()) {
            fill(nested, document.nested_);
            read_quantization(nested);
        }
        read_quantization(root);
    } catch (const YAML::Exception& error) {
        throw ModelError(fmt::format("{}:{}: not valid YAML: {}", file_name, error.mark.line + 1, error.msg));
    }
    return document;
}

const ModelDocument::Entry* ModelDocument::find(std::span<const std::string_view> spellings) const {
    for (const Entries* entries : {&nested_, &top_}) {
        for (const std::string_view spelling : spellings) {
            const auto found = entries->find(spelling);
            if (found == entries->end() || std::holds_alternative<std::monostate>(found->second.value))
                continue;
            return &found->second;
        }
    }
    return nullptr;
}

const ModelDocument::Entry* ModelDocument::find_or_null(std::span<const std::string_view> spellings) const {
    if (const Entry* entry = find(spellings)) return entry;
    for (const Entries* entries : {&nested_, &top_}) {
        for (const std::string_view spelling : spellings) {
            const auto found = entries->find(spelling);
            if (found != entries->end()) return &found->second;
        }
    }
    return nullptr;
}

const ModelDocument::Entry* ModelDocument::find_at_top(std::string_view key) const {
    const auto found = top_.find(key);
    return found == top_.end() ? nullptr : &found->second;
}

std::vector<const ModelDocument::Entry*> ModelDocument::entries() const {
    std::vector<const Entry*> all;
    for (const Entries* entries : {&nested_, &top_}) {
        for (const auto& [key, entry] : *entries) {
            if (!std::holds_alternative<std::monostate>(entry.value)) all.push_back(&entry);
        }
    }
    return all;
}

std::string ModelDocument::place(const Entry& entry) const {
    return entry.line > 0 ? fmt::format("{}:{}: ", file_name_, entry.line) : fmt::format("{}: ", file_name_);
}

std::string shown(const ModelDocument::Value& value) {
    struct Shown {
        std::string operator()(std::monostate) const { return "null"; }
        std::string operator()(bool flag) const { return flag ? "true" : "false"; }
        std::string operator()(std::int64_t number) const { return fmt::format("{}", number); }
        std::string operator()(double number) const { return fmt::format("{}", number); }
        std::string operator()(const std::string& text) const {
            return fmt::format("\"{}\"", printable(text));
        }
        std::string operator()(const ModelDocument::List& list) const {
            return fmt::format("a list of {}", list.size());
        }
        std::string operator()(ModelDocument::Object) const { return "an object"; }
        std::string operator()(ModelDocument::Other) const { return "a list of lists or objects"; }
    };
    return std::visit(Shown{}, value);
}

}  // namespace hone::models
