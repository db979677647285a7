// Files of tensors in the safetensors format: 8 bytes with the header's length, little-endian; the header, a
// JSON object {name: {"dtype", "shape", "data_offsets": [begin, end]}} with text under "__metadata__"; then
// the tensors' bytes, which lie side by side and fill the rest of the file. Nothing in a file can make
// reading it slow, large or wrong: whatever is not exactly so is a CheckpointError that names file, tensor
// and value. Reading keeps no state: const access from many threads is fine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoints/files/source_file.h"

namespace hone::checkpoints {

/// Bytes of a header that are read at the most; the format's own limit.
inline constexpr std::uint64_t max_header_bytes = 100'000'000;
inline constexpr std::size_t max_tensor_rank = 16;
inline constexpr std::size_t max_tensors = std::size_t{1} << 20;

enum class StoredType : std::uint8_t {
    f64,
    f32,
    f16,
    bf16,
    i64,
    i32,
    i16,
    i8,
    u64,
    u32,
    u16,
    u8,
    boolean,
    f8_e4m3,
    f8_e5m2,
};
/// As headers spell it: "F8_E4M3".
[[nodiscard]] std::string_view name_of(StoredType type);
[[nodiscard]] std::optional<StoredType> stored_type(std::string_view name);
/// Bytes of one element.
[[nodiscard]] std::size_t bytes_of(StoredType type);
/// "F64, F32, ...", for messages.
[[nodiscard]] std::string stored_type_names();
/// Bytes of a tensor; nullopt when they are more than 64 bits can count.
[[nodiscard]] std::optional<std::uint64_t> tensor_bytes(StoredType type,
                                                        std::span<const std::uint64_t> shape);

/// A tensor of an open file. Its bytes, row-major, are read when they are asked for.
struct StoredTensor {
    StoredType type = StoredType::u8;
    std::vector<std::uint64_t> shape;  ///< empty: one number
    std::uint64_t offset = 0;          ///< of its first byte in the file
    std::uint64_t size_bytes = 0;
    std::string place;                         ///< "model.safetensors: tensor 'a.weight'", for messages
    std::shared_ptr<const SourceFile> file{};  ///< none after parse_safetensors()

    /// Throw CheckpointError where the file cannot be read or has become shorter.
    [[nodiscard]] std::vector<std::byte> bytes() const;
    /// The bytes from the n-th on, as many as `out` has.
    void read_at(std::uint64_t first, std::span<std::byte> out) const;
};

struct SafetensorsContents {
    std::map<std::string, StoredTensor, std::less<>> tensors;
    std::map<std::string, std::string, std::less<>> metadata;
};

/// What stands in a file of `file_bytes` of which `start` is the beginning, with the whole header at least.
/// Throws CheckpointError.
[[nodiscard]] SafetensorsContents parse_safetensors(std::span<const std::byte> start,
                                                    std::uint64_t file_bytes, const std::string& file_name);

/// A file of tensors whose header is in memory.
class SafetensorsFile {
  public:
    /// Throws CheckpointError.
    [[nodiscard]] static SafetensorsFile open(const std::filesystem::path& file);

    /// Lives as long as this; its tensors keep the file open themselves.
    [[nodiscard]] const SafetensorsContents& contents() const { return contents_; }

  private:
    explicit SafetensorsFile(SafetensorsContents contents) : contents_(std::move(contents)) {}

    SafetensorsContents contents_;
};

/// Text from a file as messages show it: quoted, short, and without control characters.
[[nodiscard]] std::string shown(std::string_view text);
/// "[4096, 128]"
[[nodiscard]] std::string shown(std::span<const std::uint64_t> shape);

}  // namespace hone::checkpoints
