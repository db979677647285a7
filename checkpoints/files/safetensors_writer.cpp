#include "checkpoints/files/safetensors_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "checkpoints/error.h"
#include "checkpoints/files/safetensors_header.h"

namespace hone::checkpoints {
namespace {

namespace fs = std::filesystem;

/// The bytes behind the header begin at a multiple of this, for whoever maps the file.
constexpr std::size_t data_alignment = 64;

std::string place_of(const std::string& file_name, const std::string& tensor) {
    return fmt::format("{}: tensor {}", file_name, shown(tensor));
}

/// Bytes of a tensor that may stand in a file.
std::uint64_t checked_bytes(const TensorOutline& tensor, const std::string& file_name) {
    const std::string place = place_of(file_name, tensor.name);
    if (tensor.name.empty() || tensor.name == metadata_key)
        throw CheckpointError(fmt::format("{}: no tensor may have this name", place));
    if (tensor.shape.size() > max_tensor_rank)
        throw CheckpointError(fmt::format("{}: more than {} dimensions", place, max_tensor_rank));
    const std::optional<std::uint64_t> bytes = tensor_bytes(tensor.type, tensor.shape);
    if (!bytes) throw CheckpointError(fmt::format("{}: shape {} is too large", place, shown(tensor.shape)));
    return *bytes;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const fs::path& file, const std::vector<TensorOutline>& tensors,
                                     const std::map<std::string, std::string>& metadata)
    : file_name_(file.string()), places_(places_of(tensors, file_name_)), file_(file) {
    write_header(metadata);
}

/// Offsets from the first byte behind the header.
std::map<std::string, SafetensorsWriter::Place> SafetensorsWriter::places_of(
    std::vector<TensorOutline> tensors, const std::string& file_name) {
    std::ranges::sort(tensors, [](const TensorOutline& left, const TensorOutline& right) {
        const std::size_t left_bytes = bytes_of(left.type);
        const std::size_t right_bytes = bytes_of(right.type);
        return left_bytes != right_bytes ? left_bytes > right_bytes : left.name < right.name;
    });
    std::map<std::string, Place> places;
    std::uint64_t offset = 0;
    for (TensorOutline& tensor : tensors) {
        const std::uint64_t bytes = checked_bytes(tensor, file_name);
        const std::string name = tensor.name;
        if (!places.emplace(name, Place{std::move(tensor), offset, bytes}).second)
            throw CheckpointError(fmt::format("{} stands twice", place_of(file_name, name)));
        offset += bytes;
    }
    return places;
}

void SafetensorsWriter::write_header(const std::map<std::string, std::string>& metadata) {
    nlohmann::json header = nlohmann::json::object();
    if (!metadata.empty()) header[std::string(metadata_key)] = metadata;
    for (const auto& [name, place] : places_) {
        header[name] = {{"dtype", name_of(place.outline.type)},
                        {"shape", place.outline.shape},
                        {"data_offsets", {place.offset, place.offset + place.bytes}}};
    }
    std::string text(sizeof(std::uint64_t), '\0');
    try {
        text += header.dump();
    } catch (const nlohmann::json::type_error&) {
        throw CheckpointError(fmt::format("{}: a name or the metadata is not UTF-8", file_name_));
    }
    text.resize((text.size() + data_alignment - 1) / data_alignment * data_alignment, ' ');
    const std::uint64_t length = text.size() - sizeof(std::uint64_t);
    if (length > max_header_bytes || places_.size() > max_tensors) {
        throw CheckpointError(
            fmt::format("{}: a header of {} bytes for {} tensors is more than can be read again", file_name_,
                        length, places_.size()));
    }
    std::memcpy(text.data(), &length, sizeof(length));
    file_.write_at(0, std::as_bytes(std::span(text)));
    for (auto& [_, place] : places_) place.offset += text.size();
}

SafetensorsWriter::Place& SafetensorsWriter::take(const std::string& name, std::uint64_t bytes) {
    const auto found = places_.find(name);
    if (found == places_.end() || found->second.written) {
        throw CheckpointError(
            fmt::format("{}: {}", place_of(file_name_, name),
                        found == places_.end() ? "the file has no such" : "is written already"));
    }
    Place& place = found->second;
    if (bytes != place.bytes) {
        throw CheckpointError(fmt::format("{}: {} bytes do not fill {} of shape {}",
                                          place_of(file_name_, name), bytes, name_of(place.outline.type),
                                          shown(place.outline.shape)));
    }
    place.written = true;
    return place;
}

void SafetensorsWriter::write(const std::string& name, std::span<const std::byte> bytes) {
    file_.write_at(take(name, bytes.size()).offset, bytes);
}

void SafetensorsWriter::copy(const std::string& name, const StoredTensor& from) {
    constexpr std::uint64_t piece_bytes = std::uint64_t{8} << 20;
    const Place& place = take(name, from.size_bytes);
    std::vector<std::byte> piece(std::min(piece_bytes, from.size_bytes));
    for (std::uint64_t done = 0; done < from.size_bytes; done += piece.size()) {
        piece.resize(std::min(piece_bytes, from.size_bytes - done));
        from.read_at(done, piece);
        file_.write_at(place.offset + done, piece);
    }
}

void SafetensorsWriter::publish() {
    for (const auto& [name, place] : places_) {
        if (!place.written)
            throw CheckpointError(fmt::format("{}: is not written yet", place_of(file_name_, name)));
    }
    file_.publish();
}

void write_safetensors(const fs::path& file, const std::vector<TensorToWrite>& tensors,
                       const std::map<std::string, std::string>& metadata) {
    std::vector<TensorOutline> outlines;
    for (const TensorToWrite& tensor : tensors) outlines.push_back({tensor.name, tensor.type, tensor.shape});
    SafetensorsWriter writer(file, outlines, metadata);
    for (const TensorToWrite& tensor : tensors) writer.write(tensor.name, tensor.bytes);
    writer.publish();
}

}  // namespace hone::checkpoints
