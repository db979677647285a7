// Models with more than a language model, of which only that is read: text_config, by the entry of its own
// model_type or, where it names none, by the one here.
#include "models/architecture.h"

namespace hone::models {
namespace {

const std::vector<Architecture> entries{
    {.model_type = "gemma3", .says = "Gemma 3 with images", .language_model = "gemma3_text"},
    {.model_type = "llama4", .says = "Llama 4 with images", .language_model = "llama4_text"},
    {.model_type = "mistral3", .says = "Mistral Small 3.1", .language_model = "mistral"},
    {.model_type = "llava", .says = "LLaVA", .language_model = "llama"},
    {.model_type = "llava_next", .says = "LLaVA 1.6", .language_model = "llama"},
};

}  // namespace

std::span<const Architecture> multimodal_architectures() { return entries; }

}  // namespace hone::models
