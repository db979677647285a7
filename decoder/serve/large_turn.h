// Requests of many bytes take their turns: as JSON, as a conversation's text and on its way to tokens each is
// up to a hundred times its size. What that took goes back to the system with the turn's end.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>

namespace hone::decoder {

/// From as many bytes on, of a body or of a text.
inline constexpr std::size_t large_text_bytes = std::size_t{64} << 10;

/// Of one request; nobody else's thread.
class LargeTurn {
  public:
    explicit LargeTurn(std::mutex& turns) : lock_(turns, std::defer_lock) {}
    LargeTurn(const LargeTurn&) = delete;
    LargeTurn& operator=(const LargeTurn&) = delete;
    /// The memory of what stood behind it is free by then.
    ~LargeTurn();

    /// Waits for the turn where so many bytes need one and it has not come yet. `check` is called now and
    /// then meanwhile, and may throw.
    void take_for(std::size_t bytes, const std::function<void()>& check);

  private:
    std::unique_lock<std::mutex> lock_;
};

/// Blocks of a megabyte and more go back to the system when they are freed from now on, also once larger ones
/// have been, and threads share a few heaps for the others: else each of a server's hundreds of threads would
/// keep some. For the whole process, in front of its threads.
void keep_large_blocks_apart();

}  // namespace hone::decoder
