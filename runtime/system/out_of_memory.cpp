#include "runtime/system/out_of_memory.h"

#include <cxxabi.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <new>
#include <string_view>
#include <typeinfo>

namespace hone::runtime {
namespace {

constexpr std::string_view words =
    "error: out of memory\n  hint: free memory, or raise the limit of this process\n";
constexpr std::string_view json_words =
    R"({"schema": "hone.hone/1", "ok": false, "error": {"code": "out_of_memory", "message": "out of memory", )"
    R"("hint": "free memory, or raise the limit of this process"}})"
    "\n";

std::atomic<bool> in_main{false};
std::terminate_handler usual_end = nullptr;

void print(int fd, std::string_view text) noexcept {
    [[maybe_unused]] const auto ignored = ::write(fd, text.data(), text.size());
}

/// An exception that finds no memory for itself ends the process without one; before main() nothing else
/// does.
bool is_out_of_memory() noexcept {
    const std::type_info* const thrown = abi::__cxa_current_exception_type();
    return thrown == nullptr ? !in_main : *thrown == typeid(std::bad_alloc);
}

void end() {
    if (!is_out_of_memory()) usual_end();
    print(STDERR_FILENO, words);
    ::_exit(out_of_memory_exit);
}

}  // namespace

void end_in_words_without_memory() noexcept { usual_end = std::set_terminate(end); }

void static_objects_are_made() noexcept { in_main = true; }

int say_out_of_memory(bool json) noexcept {
    print(json ? STDOUT_FILENO : STDERR_FILENO, json ? json_words : words);
    return out_of_memory_exit;
}

}  // namespace hone::runtime
