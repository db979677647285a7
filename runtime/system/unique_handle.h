// Sole owner of a C handle. `Traits` says what the handle is, which value means none, and how it is
// destroyed:
//   struct ModuleTraits {
//       using Handle = CUmodule;
//       static constexpr Handle none = nullptr;
//       const Driver* driver = nullptr;
//       void destroy(Handle handle) const noexcept { driver->cuModuleUnload(handle); }
//   };
// Not thread-safe, like the handles it owns.
#pragma once

#include <utility>

namespace hone::runtime {

template <class Traits>
class UniqueHandle {
  public:
    using Handle = typename Traits::Handle;

    UniqueHandle() = default;
    [[nodiscard]] explicit UniqueHandle(Handle handle, Traits traits = {})
        : handle_(handle), traits_(traits) {}
    UniqueHandle(UniqueHandle&& other) noexcept
        : handle_(std::exchange(other.handle_, Traits::none)), traits_(other.traits_) {}
    UniqueHandle& operator=(UniqueHandle&& other) noexcept {
        if (this != &other) {
            reset();
            handle_ = std::exchange(other.handle_, Traits::none);
            traits_ = other.traits_;
        }
        return *this;
    }
    ~UniqueHandle() { reset(); }

    [[nodiscard]] Handle get() const { return handle_; }
    [[nodiscard]] explicit operator bool() const { return handle_ != Traits::none; }
    [[nodiscard]] Handle release() { return std::exchange(handle_, Traits::none); }
    void reset() noexcept {
        if (handle_ != Traits::none) traits_.destroy(std::exchange(handle_, Traits::none));
    }

  private:
    Handle handle_ = Traits::none;
    [[no_unique_address]] Traits traits_{};
};

}  // namespace hone::runtime
