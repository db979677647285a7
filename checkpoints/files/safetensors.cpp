#include "checkpoints/files/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "checkpoints/error.h"
#include "checkpoints/files/safetensors_header.h"

namespace hone::checkpoints {
namespace {

static_assert(std::endian::native == std::endian::little, "the format's numbers are read as they lie");

constexpr std::uint64_t length_bytes = 8;

struct TypeRow {
    std::string_view name;
    std::size_t bytes;
};
/// In the order of StoredType.
constexpr std::array<TypeRow, 15> types{{{"F64", 8},
                                         {"F32", 4},
                                         {"F16", 2},
                                         {"BF16", 2},
                                         {"I64", 8},
                                         {"I32", 4},
                                         {"I16", 2},
                                         {"I8", 1},
                                         {"U64", 8},
                                         {"U32", 4},
                                         {"U16", 2},
                                         {"U8", 1},
                                         {"BOOL", 1},
                                         {"F8_E4M3", 1},
                                         {"F8_E5M2", 1}}};
static_assert(types.size() == static_cast<std::size_t>(StoredType::f8_e5m2) + 1);

/// Bytes of the header, checked against the limit and the file. `start` has 8 bytes, or all of a shorter
/// file.
std::uint64_t header_length(std::span<const std::byte> start, std::uint64_t file_bytes,
                            const std::string& file_name) {
    if (file_bytes < length_bytes) {
        throw CheckpointError(fmt::format(
            "{}: {} bytes are too few for a safetensors file, which begins with 8 bytes of length", file_name,
            file_bytes));
    }
    std::uint64_t length = 0;
    std::memcpy(&length, start.data(), length_bytes);
    const std::uint64_t most = std::min<std::uint64_t>(max_header_bytes, file_bytes - length_bytes);
    if (length > most) {
        throw CheckpointError(fmt::format(
            "{}: a header of {} bytes; allowed are {}, {}", file_name, length, most,
            most == max_header_bytes ? "the format's limit" : "what the file has behind its first 8"));
    }
    return length;
}

/// The header's JSON.
std::string_view header_text(std::span<const std::byte> start, std::uint64_t file_bytes,
                             const std::string& file_name) {
    const std::uint64_t length = header_length(start, file_bytes, file_name);
    const auto* const text = reinterpret_cast<const char*>(start.data() + length_bytes);
    if (length == 0 || text[0] != '{')
        throw CheckpointError(fmt::format("{}: the header does not begin with '{{'", file_name));
    return {text, static_cast<std::size_t>(length)};
}

using Named = std::pair<const std::string, HeaderEntry>;

/// The bytes between a tensor's offsets are those that its shape needs.
void check_size(const Named& tensor, const std::string& file_name) {
    const auto& [name, entry] = tensor;
    const std::optional<std::uint64_t> needed = tensor_bytes(entry.type, entry.shape);
    if (!needed) {
        throw CheckpointError(fmt::format("{}: tensor {}: shape {} has more bytes than 64 bits can count",
                                          file_name, shown(name), shown(entry.shape)));
    }
    if (entry.end < entry.begin || entry.end - entry.begin != *needed) {
        throw CheckpointError(fmt::format(
            "{}: tensor {}: data_offsets [{}, {}]; {} of shape {} needs {} bytes", file_name, shown(name),
            entry.begin, entry.end, name_of(entry.type), shown(entry.shape), *needed));
    }
}

/// Tensors lie side by side from the first byte behind the header to the file's last: none is outside, no two
/// share bytes, and no byte is hidden.
void check_layout(const SafetensorsHeader& header, std::uint64_t data_bytes, const std::string& file_name) {
    std::vector<const Named*> in_order;
    in_order.reserve(header.entries.size());
    for (const Named& tensor : header.entries) {
        check_size(tensor, file_name);
        in_order.push_back(&tensor);
    }
    std::ranges::sort(in_order, {}, [](const Named* tensor) {
        return std::pair(tensor->second.begin, tensor->second.end);
    });
    std::uint64_t reached = 0;
    for (const Named* tensor : in_order) {
        const auto& [name, entry] = *tensor;
        if (entry.begin != reached) {
            throw CheckpointError(fmt::format(
                "{}: tensor {}: begins at {}, the tensor before it ends at {}: {}", file_name, shown(name),
                entry.begin, reached, entry.begin < reached ? "they overlap" : "a hole is between them"));
        }
        if (entry.end > data_bytes) {
            throw CheckpointError(
                fmt::format("{}: tensor {}: ends at {}, the file has {} bytes behind its header", file_name,
                            shown(name), entry.end, data_bytes));
        }
        reached = entry.end;
    }
    if (reached != data_bytes) {
        throw CheckpointError(fmt::format("{}: tensors end at {}, the file has {} bytes behind its header",
                                          file_name, reached, data_bytes));
    }
}

}  // namespace

std::string_view name_of(StoredType type) { return types[static_cast<std::size_t>(type)].name; }

std::optional<StoredType> stored_type(std::string_view name) {
    const auto found = std::ranges::find(types, name, &TypeRow::name);
    if (found == types.end()) return std::nullopt;
    return static_cast<StoredType>(found - types.begin());
}

std::size_t bytes_of(StoredType type) { return types[static_cast<std::size_t>(type)].bytes; }

std::string stored_type_names() {
    std::string names;
    for (const TypeRow& type : types) names.append(names.empty() ? "" : ", ").append(type.name);
    return names;
}

std::optional<std::uint64_t> tensor_bytes(StoredType type, std::span<const std::uint64_t> shape) {
    std::uint64_t bytes = bytes_of(type);
    for (const std::uint64_t extent : shape) {
        if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
    }
    return bytes;
}

std::vector<std::byte> StoredTensor::bytes() const {
    std::vector<std::byte> all(size_bytes);
    read_at(0, all);
    return all;
}

void StoredTensor::read_at(std::uint64_t first, std::span<std::byte> out) const {
    if (!out.empty()) file->read_at(offset + first, out);
}

SafetensorsContents parse_safetensors(std::span<const std::byte> start, std::uint64_t file_bytes,
                                      const std::string& file_name) {
    const std::string_view text = header_text(start, file_bytes, file_name);
    SafetensorsHeader header = parse_header(text, file_name);
    const std::uint64_t data_offset = length_bytes + text.size();
    check_layout(header, file_bytes - data_offset, file_name);
    SafetensorsContents contents{.tensors = {}, .metadata = std::move(header.metadata)};
    for (auto& [name, entry] : header.entries) {
        contents.tensors.emplace_hint(
            contents.tensors.end(), name,
            StoredTensor{.type = entry.type,
                         .shape = std::move(entry.shape),
                         .offset = data_offset + entry.begin,
                         .size_bytes = entry.end - entry.begin,
                         .place = fmt::format("{}: tensor {}", file_name, shown(name))});
    }
    return contents;
}

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& file) {
    const auto source = std::make_shared<const SourceFile>(file);
    const std::uint64_t file_bytes = source->size_bytes();
    std::vector<std::byte> start(std::min(file_bytes, length_bytes));
    source->read_at(0, start);
    start.resize(length_bytes + header_length(start, file_bytes, file.string()));
    source->read_at(length_bytes, std::span(start).subspan(length_bytes));
    SafetensorsContents contents = parse_safetensors(start, file_bytes, file.string());
    for (auto& [_, tensor] : contents.tensors) tensor.file = source;
    return SafetensorsFile(std::move(contents));
}

std::string shown(std::string_view text) {
    constexpr std::size_t most = 120;
    std::string quoted = "'";
    for (const char letter : text.substr(0, most)) {
        const bool printable = letter >= ' ' && letter <= '~';
        quoted.push_back(printable ? letter : '?');
    }
    return quoted + (text.size() > most ? "...'" : "'");
}

std::string shown(std::span<const std::uint64_t> shape) {
    return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace hone::checkpoints
