// A conversation, as a chat has it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hone::decoder {

enum class Role : std::uint8_t { system, user, assistant };

/// "developer" is what newer clients call the system.
[[nodiscard]] inline std::optional<Role> role_of(std::string_view name) {
    if (name == "system" || name == "developer") return Role::system;
    if (name == "user") return Role::user;
    if (name == "assistant") return Role::assistant;
    return std::nullopt;
}

struct Message {
    Role role = Role::user;
    std::string content{};
    /// Of an answer, where they do not stand in its content.
    std::optional<std::string> thoughts{};
};

using Conversation = std::vector<Message>;

/// Variables of a chat template that a request may set.
struct ChatVariables {
    bool enable_thinking = true;  ///< false: an answer begins behind thoughts that are none
    std::string date_string{};    ///< the day that the model is told; empty: as the template has it
};

}  // namespace hone::decoder
