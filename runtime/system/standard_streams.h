// Descriptors 0, 1 and 2 of a process that was started without them.
#pragma once

namespace hone::runtime {

/// Opens /dev/null for each that is closed. To be called before anything else is opened: the next file would
/// take a free number, and what is printed would go into it. Ends the process with 1 where that is
/// impossible.
void open_standard_streams() noexcept;

}  // namespace hone::runtime
