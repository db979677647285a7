// What a chat template says. Templates are programs in Jinja, of which models publish a few over and over;
// those are known by fragments that tell them apart, and what differs between them is read out of them.
// Another one is refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hone::decoder {

enum class ChatFamily : std::uint8_t { llama3, chatml, mistral, gemma, phi3 };

struct ChatFormat {
    ChatFamily family{};
    bool begins_with_bos = false;
    // Llama 3.1 and later: a system message with dates comes first.
    bool says_dates = false;
    std::string date{};       ///< the fixed one; empty: today's
    bool takes_date = false;  ///< date_string, where it is set
    // ChatML.
    bool has_separator = false;    ///< Phi-4: <|im_sep|> behind the role, and no line ends
    bool opens_answers = false;    ///< fine-tuned ones: a question brings the answer's header with it
    std::string default_system{};  ///< for conversations that begin without one
    bool has_default_system = false;
    bool drops_thoughts = false;     ///< Qwen3: <think>...</think> of earlier answers
    bool takes_thoughts = false;     ///< also those that an answer has beside its content
    std::string no_thoughts{};       ///< what an answer begins with where enable_thinking is false
    bool continues_answers = false;  ///< behind an answer of the assistant no other one begins
    // Mistral: what stands around messages.
    std::string open{};
    std::string close{};
    std::string before_answer{};
    std::string behind_answer{};  ///< and its EOS token
    bool trims_answer = false;
    enum class System : std::uint8_t {
        refused,
        with_first,
        with_last
    } system{};  ///< with which user message
    // Phi-3.5.
    bool skips_empty_system = false;
};

/// Throws DecoderError, without the file's name.
[[nodiscard]] ChatFormat read_chat_format(std::string_view chat_template);

}  // namespace hone::decoder
