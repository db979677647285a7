#include "decoder/serve/freed_memory.h"

#include <malloc.h>

namespace hone::decoder {

FreedMemory::~FreedMemory() {
    if (is_much_) malloc_trim(0);  // of all threads
}

}  // namespace hone::decoder
