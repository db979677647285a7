// What reading a large request takes, given back to the system once it is freed: many small pieces would stay
// in the heap of the thread that had them, and a server has hundreds of threads. From any thread.
#pragma once

#include <cstddef>

namespace hone::decoder {

/// From as many bytes on, what is made of a body or a prompt on the way counts: it is some 40 times as large
/// at worst.
inline constexpr std::size_t large_text_bytes = std::size_t{64} << 10;

/// Stands in front of what works on a text of `bytes`: gives back what that has freed when the scope ends.
class FreedMemory {
  public:
    explicit FreedMemory(std::size_t bytes) : is_much_(bytes >= large_text_bytes) {}
    FreedMemory(const FreedMemory&) = delete;
    FreedMemory& operator=(const FreedMemory&) = delete;
    ~FreedMemory();

  private:
    bool is_much_;
};

}  // namespace hone::decoder
