// Writes files of tensors in the safetensors format (safetensors.h). A file appears under its name whole or
// not at all, also when the machine goes down meanwhile. One thread a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "checkpoints/files/safetensors.h"
#include "runtime/system/atomic_file.h"

namespace hone::checkpoints {

/// A tensor that a file is to have.
struct TensorOutline {
    std::string name;
    StoredType type = StoredType::u8;
    std::vector<std::uint64_t> shape;
};

/// A file whose tensors are known before their bytes are: these come one tensor after the other, in any
/// order. Names are sorted in the header; the bytes of wide types stand first, so that each tensor is aligned
/// to its type.
class SafetensorsWriter {
  public:
    /// Throws CheckpointError, with nothing left behind, as the functions below do: for a name that is empty,
    /// twice or "__metadata__", and for a header that could not be read again; InputError and WriteError as
    /// AtomicFile does when the file cannot be written.
    SafetensorsWriter(const std::filesystem::path& file, const std::vector<TensorOutline>& tensors,
                      const std::map<std::string, std::string>& metadata = {});

    /// All bytes of a tensor, row-major. Throws CheckpointError for one that the file is not to have or has,
    /// and for bytes that do not fit its shape.
    void write(const std::string& name, std::span<const std::byte> bytes);
    /// The same, with the bytes of another file's tensor, of the same type and shape: a piece at a time.
    void copy(const std::string& name, const StoredTensor& from);
    /// Replaces a file that is there. Throws CheckpointError while a tensor is missing.
    void publish();

  private:
    struct Place {
        TensorOutline outline;
        std::uint64_t offset = 0;  ///< in the file
        std::uint64_t bytes = 0;
        bool written = false;
    };
    static std::map<std::string, Place> places_of(std::vector<TensorOutline> tensors,
                                                  const std::string& file_name);
    /// Where the bytes of a tensor go that is not written yet; it counts as written from now on.
    Place& take(const std::string& name, std::uint64_t bytes);
    void write_header(const std::map<std::string, std::string>& metadata);

    std::string file_name_;
    std::map<std::string, Place> places_;
    runtime::AtomicFile file_;
};

/// `bytes`: row-major, as many as type and shape need.
struct TensorToWrite {
    std::string name;
    StoredType type = StoredType::u8;
    std::vector<std::uint64_t> shape;
    std::span<const std::byte> bytes;
};

/// A whole file at once. Throws CheckpointError as SafetensorsWriter does.
void write_safetensors(const std::filesystem::path& file, const std::vector<TensorToWrite>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace hone::checkpoints
