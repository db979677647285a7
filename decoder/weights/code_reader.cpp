#include "decoder/weights/code_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "decoder/error.h"
#include "runtime/system/parallel.h"

namespace hone::decoder {
namespace {

void require_layer(const checkpoints::LayerOutline& layer, const WantedTensor& wanted) {
    const PackedShape& shape = layer.shape;
    if (shape.out == wanted.rows && shape.in == wanted.columns) return;
    throw DecoderError(
        fmt::format("layer {} has codes of a weight [{}, {}]; as config.json says, it has to be [{}, {}]",
                    checkpoints::shown(layer.name), shape.out, shape.in, wanted.rows, wanted.columns));
}

/// Codes and scales on both sides of a cut stay what they are only between whole parts.
void require_cut(const checkpoints::LayerOutline& layer, std::int64_t row) {
    const std::int64_t whole = rows_of_part(layer.shape);
    if (row % whole == 0) return;
    throw DecoderError(fmt::format(
        "layer {}: its codes would have to be cut, or put behind others, at row {}; allowed with {} are "
        "multiples of {}",
        checkpoints::shown(layer.name), row, name(layer.shape.format), whole));
}

}  // namespace

bool are_coded(const WeightSource& source, const std::vector<WantedTensor>& tensors) {
    const auto is_coded = [&](const WantedTensor& tensor) { return source.coded(tensor.name) != nullptr; };
    const auto other = std::ranges::find(tensors, !is_coded(tensors.front()), is_coded);
    if (other == tensors.end()) return is_coded(tensors.front());
    throw DecoderError(
        fmt::format("{} has {} and {} has {}; the decoder computes them as one product, which takes codes of "
                    "all or of none",
                    tensors.front().name, is_coded(*other) ? "numbers" : "codes", other->name,
                    is_coded(*other) ? "codes" : "numbers"));
}

CodedRows coded_rows(const WeightSource& source, const std::vector<WantedTensor>& tensors, std::int64_t first,
                     std::int64_t rows) {
    CodedRows coded{.shape = source.coded(tensors.front().name)->shape, .parts = {}};
    coded.shape.out = rows;
    coded.shape.one_scale = false;
    std::int64_t begin = 0;  // of the tensor, among all rows
    for (const WantedTensor& tensor : tensors) {
        const checkpoints::LayerOutline& layer = *source.coded(tensor.name);
        require_layer(layer, tensor);
        const std::int64_t from = std::max(first, begin);
        const std::int64_t end = std::min(first + rows, begin + tensor.rows);
        if (from < end) {
            require_cut(layer, from - begin);
            require_cut(layer, from - first);
            if (end != begin + tensor.rows) require_cut(layer, end - begin);
            coded.parts.push_back({&layer, from - begin, end - from, from - first});
        }
        begin += tensor.rows;
    }
    return coded;
}

void CodeReader::add(const CodedRows& rows, const CodesOnGpu& to) {
    for (const RowsOfLayer& part : rows.parts) wanted_.push_back({part, to});
}

void CodeReader::read(int threads, const std::function<void(std::int64_t)>& on_bytes) {
    runtime::for_each_piece(static_cast<std::int64_t>(wanted_.size()), threads, [&](std::int64_t i) {
        const runtime::CurrentContext current(gpu_.driver(), gpu_.context());
        on_bytes(read(wanted_[static_cast<std::size_t>(i)]));
    });
    wanted_.clear();
}

std::int64_t CodeReader::read(const Wanted& wanted) const {
    QuantizedWeight weight = source_.read_codes(*wanted.rows.layer);
    spread_scale(weight);
    const PackedBytes begin = bytes_of_rows(weight.shape, wanted.rows.first);
    const PackedBytes end = bytes_of_rows(weight.shape, wanted.rows.first + wanted.rows.count);
    const PackedBytes place = bytes_of_rows(weight.shape, wanted.rows.place);
    const auto send = [&](const std::vector<std::uint8_t>& from, const CodesOnGpu::Span& to,
                          std::int64_t PackedBytes::*kind) {
        const auto first = static_cast<std::size_t>(begin.*kind);
        const std::size_t count = static_cast<std::size_t>(end.*kind) - first;
        staging_.send(to.subspan(static_cast<std::size_t>(place.*kind), count),
                      std::as_bytes(std::span(from)).subspan(first, count));
    };
    send(weight.codes, wanted.to.codes, &PackedBytes::codes);
    send(weight.scales, wanted.to.scales, &PackedBytes::scales);
    send(weight.zeros, wanted.to.zeros, &PackedBytes::zeros);
    return end.all() - begin.all();
}

}  // namespace hone::decoder
