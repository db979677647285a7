#include "checkpoints/pack/weight_format.h"

#include "checkpoints/pack/coded_methods.h"

namespace hone::checkpoints {

WeightFormat weight_format(const QuantizationConfig& config) { return coded_method(config).format(config); }

}  // namespace hone::checkpoints
