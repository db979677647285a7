#include "checkpoints/pack/model_config.h"

#include "runtime/system/strict_json.h"
#include "runtime/system/text_file.h"

namespace hone::checkpoints {
namespace {

constexpr std::size_t max_config_bytes = std::size_t{4} << 20;

}  // namespace

nlohmann::json model_config(const Checkpoint& checkpoint) {
    const std::filesystem::path file = checkpoint.folder() / "config.json";
    if (!runtime::has_entry(file)) return nlohmann::json::object();
    return runtime::parse_json_object(runtime::read_text_file(file, max_config_bytes), file.string());
}

Dtype model_dtype(const nlohmann::json& config) {
    for (const char* key : {"torch_dtype", "dtype"}) {
        const auto found = config.find(key);
        if (found != config.end() && runtime::is_text(*found, "float16")) return Dtype::fp16;
    }
    return Dtype::bf16;
}

}  // namespace hone::checkpoints
