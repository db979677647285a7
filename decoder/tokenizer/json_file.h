// JSON files of a model's folder.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace hone::decoder {

/// Bytes of a file that are read at the most. The largest tokenizer.json in use has 35 MB.
inline constexpr std::size_t max_tokenizer_bytes = std::size_t{96} << 20;

/// The object that the file has. Throws runtime::InputError with its name when there is none.
[[nodiscard]] nlohmann::json read_json_file(const std::filesystem::path& file);
/// How messages begin about a place in it: "tokenizer.json: ", with its folder.
[[nodiscard]] std::string place_of(const std::filesystem::path& file);

}  // namespace hone::decoder
