#include "decoder/serve/large_turn.h"

#include <malloc.h>

#include <chrono>
#include <thread>

namespace hone::decoder {

LargeTurn::~LargeTurn() {
    if (!lock_.owns_lock()) return;
    lock_.unlock();
    malloc_trim(0);  // of all threads
}

void LargeTurn::take_for(std::size_t bytes, const std::function<void()>& check) {
    if (bytes < large_text_bytes || lock_.owns_lock()) return;
    // A wait with a limit is a function that glibc has since 2.34.
    while (!lock_.try_lock()) {
        check();
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

void keep_large_blocks_apart() {
    constexpr int large_block_bytes = 1 << 20;
    constexpr int most_arenas = 8;  // each keeps some 10 MB of the largest request that it has seen
    mallopt(M_MMAP_THRESHOLD, large_block_bytes);
    mallopt(M_ARENA_MAX, most_arenas);
}

}  // namespace hone::decoder
