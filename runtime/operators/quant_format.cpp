#include "hone/quant_format.h"

#include "runtime/operators/words.h"

namespace hone {

std::string_view name(QuantFormat format) { return runtime::word(format); }

}  // namespace hone
