// A conversation, as a chat has it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
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

[[nodiscard]] inline const char* name_of(Role role) {
    return role == Role::system ? "system" : role == Role::user ? "user" : "assistant";
}

struct Message {
    Role role = Role::user;
    std::string content{};
    /// Of an answer, where they do not stand in its content.
    std::optional<std::string> thoughts{};
};

using Conversation = std::vector<Message>;

/// Variables of a chat template that a request sets, by name: an object, or null for none. An answer begins
/// without thoughts where `enable_thinking` is false and the template knows such a choice.
using ChatVariables = nlohmann::json;

}  // namespace hone::decoder
