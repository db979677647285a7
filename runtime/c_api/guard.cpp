#include "runtime/c_api/guard.h"

#include <pthread.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include <fmt/format.h>

namespace hone::c_api {
namespace {

constexpr char no_memory[] = "out of memory, also for the text of the error";

/// The text of each thread, by the C library's keys. No thread_local: a library that is opened late gets
/// memory for those at their first use in a thread, and where there is none the loader ends the process.
class LastError {
  public:
    LastError() noexcept { has_key_ = ::pthread_key_create(&key_, &LastError::release) == 0; }
    LastError(const LastError&) = delete;
    LastError& operator=(const LastError&) = delete;
    /// The library may be closed before its threads end.
    ~LastError() {
        if (has_key_) ::pthread_key_delete(key_);
    }

    [[nodiscard]] const char* get() const noexcept {
        const void* const text = has_key_ ? ::pthread_getspecific(key_) : nullptr;
        return text == nullptr ? "" : static_cast<const char*>(text);
    }
    void set(std::string_view text) noexcept {
        if (!has_key_) return;
        void* const former = ::pthread_getspecific(key_);
        char* const copy = static_cast<char*>(std::malloc(text.size() + 1));
        if (copy != nullptr) {
            std::memcpy(copy, text.data(), text.size());
            copy[text.size()] = '\0';
        }
        const void* const now = copy == nullptr ? no_memory : copy;
        if (::pthread_setspecific(key_, now) == 0) {
            release(former);
        } else {
            std::free(copy);
        }
    }

  private:
    static void release(void* text) noexcept {
        if (text != no_memory) std::free(text);
    }

    pthread_key_t key_{};
    bool has_key_ = false;
};

/// Made when the library is loaded: a function's static would ask at each call whether it is.
LastError last_error;

hone_status status_of(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::bad_argument: return HONE_BAD_ARGUMENT;
        case ErrorKind::no_gpu: return HONE_NO_GPU;
        case ErrorKind::compile_failed: return HONE_COMPILE_FAILED;
        case ErrorKind::frozen: return HONE_FROZEN;
        case ErrorKind::failed: break;
    }
    return HONE_FAILED;
}

}  // namespace

hone_status fail(hone_status status, std::string_view text) noexcept {
    last_error.set(text.empty() ? hone_status_string(status) : text);
    return status;
}

hone_status fail_with_current_exception(std::string_view where) noexcept {
    try {
        try {
            throw;
        } catch (const Error& error) {
            const std::string hint = error.hint().empty() ? std::string() : '\n' + error.hint();
            return fail(status_of(error.kind()), fmt::format("{}: {}{}", where, error.what(), hint));
        } catch (const std::bad_alloc&) {
            return fail(HONE_OUT_OF_MEMORY);
        } catch (const std::exception& error) {
            return fail(HONE_FAILED, fmt::format("{}: {}", where, error.what()));
        } catch (...) {
            return fail(HONE_FAILED);
        }
    } catch (...) {
        return fail(HONE_OUT_OF_MEMORY);
    }
}

}  // namespace hone::c_api

const char* hone_last_error(void) { return hone::c_api::last_error.get(); }
