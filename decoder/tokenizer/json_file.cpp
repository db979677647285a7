#include "decoder/tokenizer/json_file.h"

#include "runtime/system/strict_json.h"
#include "runtime/system/text_file.h"

namespace hone::decoder {

nlohmann::json read_json_file(const std::filesystem::path& file) {
    return runtime::parse_json_object(runtime::read_text_file(file, max_tokenizer_bytes), file.string());
}

std::string place_of(const std::filesystem::path& file) { return file.string() + ": "; }

}  // namespace hone::decoder
