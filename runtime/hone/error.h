// Errors of the public API. prepare() and constructors throw hone::Error; run() returns hone::Status and
// never throws, but for QuantizeWeightsKernel's.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hone {

enum class ErrorKind : std::uint8_t {
    bad_argument,    ///< a size, dtype or option that the operator does not take
    no_gpu,          ///< no driver, too old a driver, no such device
    compile_failed,  ///< NVRTC is missing or refused the kernel
    frozen,          ///< a compile was needed after freeze() or with allow_compile = false
    failed,          ///< anything else: out of memory, a dead device, ...
};

/// `what()` names the thing and the value that is wrong and what is allowed; `where()` the operation;
/// `hint()` what to do.
class Error : public std::runtime_error {
  public:
    Error(const std::string& what, std::string where, std::string hint, ErrorKind kind = ErrorKind::failed)
        : std::runtime_error(what), where_(std::move(where)), hint_(std::move(hint)), kind_(kind) {}
    [[nodiscard]] const std::string& where() const { return where_; }
    [[nodiscard]] const std::string& hint() const { return hint_; }
    [[nodiscard]] ErrorKind kind() const { return kind_; }

  private:
    std::string where_;
    std::string hint_;
    ErrorKind kind_;
};

enum class Status : int {
    ok = 0,
    bad_rows,       ///< rows, or a size of the call, is negative or above the prepared maximum
    null_pointer,   ///< a tensor that this operator needs is nullptr
    misaligned,     ///< a pointer or row stride is not a multiple of the kernel's vector width
    bad_stride,     ///< a row stride is smaller than a row, or not one that goes with the others
    bad_epsilon,    ///< epsilon is negative, infinite or no number
    launch_failed,  ///< the driver refused; Runtime::last_launch_error() says what
    not_prepared,   ///< the kernel object is empty: default-constructed or moved from
    bad_scale,      ///< scale is infinite or no number, or softcap is not above 0
    bad_lengths,    ///< RuntimeOptions::check_indices: a length or position past its room, decreasing starts
    bad_pages,      ///< a paged cache without pages; check_indices: a page or slot outside of the cache
    capturing,      ///< check_indices, QuantizeWeights: not possible under stream capture
};

/// One sentence; "unknown status" for a number that is none.
[[nodiscard]] std::string_view describe(Status status);

}  // namespace hone
