#include "runtime/system/file_descriptor.h"

#include <unistd.h>

namespace hone::runtime {

void FdTraits::destroy(Handle fd) const noexcept { ::close(fd); }

}  // namespace hone::runtime
