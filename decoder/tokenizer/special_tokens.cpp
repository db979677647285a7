#include "decoder/tokenizer/special_tokens.h"

#include <charconv>
#include <system_error>

#include "decoder/tokenizer/json_file.h"
#include "decoder/tokenizer/vocabulary.h"
#include "runtime/system/text_file.h"

namespace hone::decoder {
namespace {

namespace fs = std::filesystem;

void take_names(const JsonPlace& json, SpecialTokens& out) {
    if (!out.bos) out.bos = token_text(json, "bos_token");
    if (!out.eos) out.eos = token_text(json, "eos_token");
    if (!out.unknown) out.unknown = token_text(json, "unk_token");
}

int id_of_key(const JsonPlace& table, const std::string& key) {
    int id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0 || id >= max_vocabulary)
        table.at(key).refuse("its key has to be an id");
    return id;
}

std::vector<AddedToken> added_tokens(const JsonPlace& json) {
    const std::optional<JsonPlace> table = json.find("added_tokens_decoder");
    std::vector<AddedToken> out;
    if (!table) return out;
    table->require_object();
    for (const auto& item : table->value().items())
        out.push_back(AddedToken::read(table->at(item.key()), id_of_key(*table, item.key())));
    return out;
}

std::optional<bool> optional_boolean(const JsonPlace& json, const char* key) {
    const std::optional<JsonPlace> value = json.find(key);
    return value ? std::optional(value->boolean()) : std::nullopt;
}

void take_config(const JsonPlace& json, SpecialTokens& out) {
    take_names(json, out);
    if (const std::optional<JsonPlace> name = json.find("tokenizer_class"))
        out.tokenizer_class = name->text();
    out.add_bos = optional_boolean(json, "add_bos_token");
    out.add_eos = optional_boolean(json, "add_eos_token");
    out.add_prefix_space = json.boolean_or("add_prefix_space", false);
    out.added = added_tokens(json);
}

int token_id(const JsonPlace& json) { return static_cast<int>(json.integer(0, max_vocabulary - 1)); }

/// One id or an array of them.
void take_ids(const JsonPlace& json, SpecialTokens& out) {
    if (const std::optional<JsonPlace> bos = json.find("bos_token_id");
        bos && !out.bos_id && !bos->value().is_array())
        out.bos_id = token_id(*bos);
    const std::optional<JsonPlace> eos = json.find("eos_token_id");
    if (!eos || !out.eos_ids.empty()) return;
    if (!eos->value().is_array()) return out.eos_ids.push_back(token_id(*eos));
    for (std::size_t i = 0; i < eos->array_size(); ++i) out.eos_ids.push_back(token_id(eos->at(i)));
}

template <class Take>
void read_if_there(const fs::path& file, SpecialTokens& out, const Take& take) {
    if (!runtime::has_entry(file)) return;
    const nlohmann::json json = read_json_file(file);
    take(JsonPlace(json, place_of(file)), out);
}

}  // namespace

std::optional<std::string> token_text(const JsonPlace& json, const char* key) {
    const std::optional<JsonPlace> token = json.find(key);
    if (!token) return std::nullopt;
    return token->value().is_object() ? token->at("content").text() : token->text();
}

SpecialTokens read_special_tokens(const fs::path& folder) {
    SpecialTokens out;
    read_if_there(folder / "tokenizer_config.json", out, take_config);
    read_if_there(folder / "special_tokens_map.json", out, take_names);
    read_if_there(folder / "generation_config.json", out, take_ids);
    read_if_there(folder / "config.json", out, take_ids);
    return out;
}

}  // namespace hone::decoder
