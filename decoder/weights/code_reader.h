// Codes that a checkpoint has, brought to the GPU: rows of one layer or of several, one below the other, as
// the operators take them. No code and no scale changes on the way.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "decoder/gpu/gpu.h"
#include "decoder/weights/packed_rows.h"
#include "decoder/weights/staging.h"
#include "decoder/weights/weight_source.h"

namespace hone::decoder {

/// Rows of a layer, and where the first of them goes.
struct RowsOfLayer {
    const checkpoints::LayerOutline* layer = nullptr;
    std::int64_t first = 0;
    std::int64_t count = 0;
    std::int64_t place = 0;
};

/// A weight that is made of them.
struct CodedRows {
    PackedShape shape;
    std::vector<RowsOfLayer> parts;
};

/// Whether the source has these tensors of one product as codes. Throws DecoderError where it has some of
/// them.
[[nodiscard]] bool are_coded(const WeightSource& source, const std::vector<WantedTensor>& tensors);

/// Rows from the `first` on of the tensors, as if they were one; all are coded. Throws DecoderError for
/// layers of another size, and where codes or scales would have to change.
[[nodiscard]] CodedRows coded_rows(const WeightSource& source, const std::vector<WantedTensor>& tensors,
                                   std::int64_t first, std::int64_t rows);

/// Memory of a weight.
struct CodesOnGpu {
    using Span = runtime::DeviceSpan<std::byte>;
    Span codes;
    Span scales;
    Span zeros;
};

class CodeReader {
  public:
    CodeReader(const Gpu& gpu, const WeightSource& source, Staging& staging)
        : gpu_(gpu), source_(source), staging_(staging) {}

    void add(const CodedRows& rows, const CodesOnGpu& to);
    /// All that were added, a layer a thread; `on_bytes` hears from any of them. Throws CheckpointError, and
    /// as Staging::send().
    void read(int threads, const std::function<void(std::int64_t)>& on_bytes);

  private:
    struct Wanted {
        RowsOfLayer rows;
        CodesOnGpu to;
    };
    std::int64_t read(const Wanted& wanted) const;

    const Gpu& gpu_;
    const WeightSource& source_;
    Staging& staging_;
    std::vector<Wanted> wanted_;
};

}  // namespace hone::decoder
