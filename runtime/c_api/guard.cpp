#include "runtime/c_api/guard.h"

#include <pthread.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include <fmt/format.h>

namespace hone::c_api {
namespace {

/// The last error's text of each thread. A thread_local object with a destructor would end the process where
/// its first use finds no memory; these are two slots that every thread has.
class LastError {
  public:
    LastError() noexcept {
        usable_ = pthread_key_create(&owned_, std::free) == 0 && pthread_key_create(&shown_, nullptr) == 0;
    }

    [[nodiscard]] const char* text() const noexcept {
        const void* shown = usable_ ? pthread_getspecific(shown_) : nullptr;
        return shown == nullptr ? "" : static_cast<const char*>(shown);
    }

    /// Keeps a copy; `otherwise`, which lives for ever, where there is no memory for one.
    void keep(std::string_view text, const char* otherwise) const noexcept {
        if (!usable_) return;
        auto* copy = text.empty() ? nullptr : static_cast<char*>(std::malloc(text.size() + 1));
        if (copy != nullptr) {
            std::memcpy(copy, text.data(), text.size());
            copy[text.size()] = '\0';
        }
        void* old = pthread_getspecific(owned_);
        if (pthread_setspecific(owned_, copy) != 0) {
            std::free(copy);
            copy = nullptr;
            (void)pthread_setspecific(owned_, nullptr);
        }
        (void)pthread_setspecific(shown_, copy != nullptr ? copy : otherwise);
        std::free(old);
    }

  private:
    pthread_key_t owned_{};  ///< freed at the thread's end
    pthread_key_t shown_{};  ///< what is owned, or a text that lives for ever
    bool usable_ = false;
};

const LastError last_error;

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
    last_error.keep(text, hone_status_string(status));
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

const char* hone_last_error(void) { return hone::c_api::last_error.text(); }
