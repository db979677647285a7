// Quantizing weights on a GPU, with a status for what the public function throws.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "hone/quantize.h"
#include "runtime/dispatch/dispatcher.h"
#include "runtime/operators/quantize_weights.h"

namespace hone::runtime {

/// What is stored of a weight of `out` rows.
[[nodiscard]] PackedShape packed_shape(const QuantizeWeights& weights, std::int64_t out);

/// Waits for the stream in place of the driver, which waits without end.
using WaitForStream = std::function<void()>;

class DeviceQuantizer {
  public:
    /// Loads what weights up to `max_out` rows need, once a dispatcher. Throws as Dispatcher::prepare().
    DeviceQuantizer(Dispatcher& dispatcher, const QuantizeWeights& weights, std::int64_t out);

    /// Quantizes and waits. Throws std::invalid_argument for weights that have no code, CudaError when the
    /// driver reports an error meanwhile, and what `wait` throws.
    [[nodiscard]] Status run(CUstream stream, const QuantizeWeightsArgs& args,
                             const WaitForStream& wait = {}) const;
    /// Why run() refuses such a call.
    [[nodiscard]] std::string refusal(const QuantizeWeightsArgs& args) const;
    [[nodiscard]] std::int64_t workspace_bytes() const { return kernels_->workspace_bytes({out_}); }

  private:
    void check_rows(const QuantizeWeightsArgs& args) const;

    std::shared_ptr<const PreparedOperator> kernels_;
    QuantizeWeights weights_;
    std::int64_t out_ = 0;
};

/// hone::quantize_on_device(), which waits as `wait` does.
void quantize_on_device(Runtime& runtime, const QuantizeWeights& weights, const QuantizeWeightsArgs& args,
                        std::int64_t out, CUstream stream, const WaitForStream& wait);

}  // namespace hone::runtime
