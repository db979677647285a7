// What each Status means, in a sentence. Generated from generate/enums.py by `./hone generate`.
#include "hone/error.h"

namespace hone {

std::string_view describe(Status status) {
    switch (status) {
        case Status::ok: return "ok";
        case Status::bad_rows:
            return "the number of rows, or a size of the call, is negative or above the prepared maximum";
        case Status::null_pointer: return "a tensor that this operator needs is a null pointer";
        case Status::misaligned:
            return "a pointer or row stride is not a multiple of the kernel's access width; 16 bytes always "
                   "are";
        case Status::bad_stride:
            return "a row stride is smaller than a row, or those of k and v differ in a call that needs them "
                   "alike";
        case Status::bad_epsilon: return "epsilon is negative, infinite or NaN";
        case Status::launch_failed:
            return "the driver refused the launch; Runtime::last_launch_error() says why";
        case Status::not_prepared: return "the kernel object is empty; Runtime::prepare() makes one";
        case Status::bad_scale: return "scale is infinite or NaN, or softcap is not above 0";
        case Status::bad_lengths:
            return "a length or position is negative or beyond what there is room for, or starts decrease";
        case Status::bad_pages: return "the cache has no pages, or a page or slot is not within it";
        case Status::capturing:
            return "neither can indices be checked nor weights quantized while a stream is captured";
        case Status::bad_indices:
            return "an id or position has no row in its table, or the rows of a routing are not each pair "
                   "once";
    }
    return "unknown status";
}

}  // namespace hone
