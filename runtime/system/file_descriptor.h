// Sole owner of a file descriptor.
#pragma once

#include "runtime/system/unique_handle.h"

namespace hone::runtime {

struct FdTraits {
    using Handle = int;
    static constexpr Handle none = -1;
    void destroy(Handle fd) const noexcept;
};
using UniqueFd = UniqueHandle<FdTraits>;

}  // namespace hone::runtime
