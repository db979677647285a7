#include "runtime/c_api/handle.h"

#include <algorithm>
#include <cstring>

#include <pthread.h>

namespace hone::c_api {
namespace {

std::atomic<std::uint32_t> forks{0};

/// Registered when the library is loaded, before there can be a handle.
const int fork_handler =
    ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

std::uint32_t forks_seen() noexcept {
    static_cast<void>(fork_handler);
    return forks.load(std::memory_order_relaxed);
}

hone_status hand_out(const std::string& text, char* buffer, std::size_t capacity,
                     std::size_t* length) noexcept {
    if (length != nullptr) *length = text.size();
    if (capacity == 0) return HONE_OK;
    if (buffer == nullptr) return fail(HONE_NULL_POINTER, "text is NULL, and capacity is not 0");
    const std::size_t copied = std::min(text.size(), capacity - 1);
    std::memcpy(buffer, text.data(), copied);
    buffer[copied] = '\0';
    return HONE_OK;
}

}  // namespace hone::c_api
