// Frames between a process and its workers over one socket: a versioned header, a JSON object, and a
// binary blob. Either side treats the other as untrusted: what does not parse is a ProtocolError, never a
// crash. One thread a channel.
//
//   frame = u32 magic ("HNE" and the version) | u32 bytes of JSON | u32 bytes of blob | JSON | blob
//
// in the host's byte order.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/system/file_descriptor.h"
#include "runtime/workers/deadline.h"

namespace hone::runtime {

using Clock = std::chrono::steady_clock;

inline constexpr std::uint32_t frame_magic = 0x484E4501;  // "HNE", version 1
inline constexpr std::size_t max_frame_bytes = std::size_t{64} << 20;

struct FrameHeader {
    std::uint32_t magic = frame_magic;
    std::uint32_t json_bytes = 0;
    std::uint32_t blob_bytes = 0;
};

/// The peer broke the protocol: wrong magic, too large, no JSON object, a missing or mistyped member, a
/// closed pipe.
class ProtocolError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

struct Message {
    nlohmann::json head;
    std::vector<std::byte> blob;
};

enum class Received : std::uint8_t { message, end_of_file, timed_out, cancelled };

class Channel {
  public:
    Channel() = default;
    explicit Channel(UniqueFd socket);

    /// Throws ProtocolError when the peer is gone, does not read until `deadline`, or the frame is too large.
    void send(const nlohmann::json& head, std::span<const std::byte> blob, Clock::time_point deadline);
    /// Waits for one frame. `cancel_fd` (or -1) ends the wait when it becomes readable. Throws ProtocolError.
    [[nodiscard]] Received receive(Message& message, Clock::time_point deadline, int cancel_fd = -1);
    [[nodiscard]] int fd() const { return socket_.get(); }

  private:
    /// Fills `out` completely, or says why it could not.
    Received read_all(std::span<std::byte> out, Deadline& deadline, int cancel_fd);
    void write_all(std::span<const std::byte> bytes, Deadline& deadline);

    UniqueFd socket_;
};

/// A connected pair of non-blocking sockets that are not inherited by other programs.
[[nodiscard]] std::pair<UniqueFd, UniqueFd> socket_pair();

/// Members of an untrusted object; each throws ProtocolError naming the member when it is missing, of another
/// type or out of the type's range. A number that is not finite travels as null and comes back as NaN.
[[nodiscard]] const nlohmann::json& member(const nlohmann::json& object, const char* name);
[[nodiscard]] std::int64_t integer(const nlohmann::json& object, const char* name);
[[nodiscard]] std::uint64_t bits(const nlohmann::json& object, const char* name);
[[nodiscard]] int small_integer(const nlohmann::json& object, const char* name);
[[nodiscard]] double number(const nlohmann::json& object, const char* name);
[[nodiscard]] bool boolean(const nlohmann::json& object, const char* name);
[[nodiscard]] std::string text(const nlohmann::json& object, const char* name);
[[nodiscard]] const nlohmann::json& list(const nlohmann::json& object, const char* name);

}  // namespace hone::runtime
