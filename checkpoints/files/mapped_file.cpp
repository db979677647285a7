#include "checkpoints/files/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "checkpoints/error.h"
#include "runtime/system/file_descriptor.h"

namespace hone::checkpoints {
namespace {

[[noreturn]] void fail(const std::filesystem::path& file, int error) {
    throw CheckpointError(
        fmt::format("{}: cannot be read: {}", file.string(), std::generic_category().message(error)));
}

}  // namespace

void MappedFile::MappingTraits::destroy(Handle address) const noexcept { ::munmap(address, size_bytes); }

MappedFile MappedFile::open(const std::filesystem::path& file) {
    // O_NONBLOCK: opening a pipe would wait for its writer.
    const runtime::UniqueFd descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!descriptor) fail(file, errno);
    struct stat status {};
    if (::fstat(descriptor.get(), &status) != 0) fail(file, errno);
    if (!S_ISREG(status.st_mode)) throw CheckpointError(fmt::format("{}: not a regular file", file.string()));
    MappedFile mapped;
    const auto size = static_cast<std::size_t>(status.st_size);
    if (size == 0) return mapped;  // which mmap refuses
    void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor.get(), 0);
    if (address == MAP_FAILED) fail(file, errno);
    mapped.mapping_ = runtime::UniqueHandle<MappingTraits>(address, {size});
    mapped.bytes_ = {static_cast<const std::byte*>(address), size};
    return mapped;
}

}  // namespace hone::checkpoints
