#include "tuner/checkpoint/safetensors_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>

#include "tuner/checkpoint/safetensors_header.h"
#include "tuner/errors.h"
#include "tuner/worker/channel.h"

namespace hone::tuner {
namespace {

namespace fs = std::filesystem;

/// The bytes behind the header begin at a multiple of this, for whoever maps the file.
constexpr std::size_t data_alignment = 64;

[[noreturn]] void fail(const fs::path& file, int error) {
    throw ConfigError(
        fmt::format("{}: cannot be written: {}", file.string(), std::generic_category().message(error)));
}

void check(const TensorToWrite& tensor, const fs::path& file) {
    const std::string place = fmt::format("{}: tensor {}", file.string(), shown(tensor.name));
    if (tensor.name.empty() || tensor.name == metadata_key)
        throw ConfigError(fmt::format("{}: no tensor may have this name", place));
    if (tensor.shape.size() > max_tensor_rank)
        throw ConfigError(fmt::format("{}: more than {} dimensions", place, max_tensor_rank));
    const std::optional<std::uint64_t> needed = tensor_bytes(tensor.type, tensor.shape);
    if (!needed || *needed != tensor.bytes.size()) {
        throw ConfigError(fmt::format("{}: {} bytes do not fill {} of shape {}", place, tensor.bytes.size(),
                                      name_of(tensor.type), shown(tensor.shape)));
    }
}

/// Length and header of tensors that are written in this order.
std::string header_of(const std::vector<TensorToWrite>& tensors,
                      const std::map<std::string, std::string>& metadata, const fs::path& file) {
    nlohmann::json header = nlohmann::json::object();
    if (!metadata.empty()) header[std::string(metadata_key)] = metadata;
    std::uint64_t begin = 0;
    for (const TensorToWrite& tensor : tensors) {
        check(tensor, file);
        if (header.contains(tensor.name))
            throw ConfigError(fmt::format("{}: tensor {} stands twice", file.string(), shown(tensor.name)));
        const std::uint64_t end = begin + tensor.bytes.size();
        header[tensor.name] = {
            {"dtype", name_of(tensor.type)}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
        begin = end;
    }
    std::string text(sizeof(std::uint64_t), '\0');
    try {
        text += header.dump();
    } catch (const nlohmann::json::type_error&) {
        throw ConfigError(fmt::format("{}: a name or the metadata is not UTF-8", file.string()));
    }
    text.resize((text.size() + data_alignment - 1) / data_alignment * data_alignment, ' ');
    const std::uint64_t length = text.size() - sizeof(std::uint64_t);
    if (length > max_header_bytes || tensors.size() > max_tensors) {
        throw ConfigError(
            fmt::format("{}: a header of {} bytes for {} tensors is more than can be read again",
                        file.string(), length, tensors.size()));
    }
    std::memcpy(text.data(), &length, sizeof(length));
    return text;
}

/// A file under another name until it is whole; removed unless it is published.
class UnfinishedFile {
  public:
    explicit UnfinishedFile(const fs::path& file)
        : file_(file), temporary_(fmt::format("{}.part-{}", file.string(), ::getpid())) {
        descriptor_ =
            UniqueFd(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
        if (!descriptor_) fail(temporary_, errno);
    }
    UnfinishedFile(const UnfinishedFile&) = delete;
    UnfinishedFile& operator=(const UnfinishedFile&) = delete;
    ~UnfinishedFile() {
        if (!published_) ::unlink(temporary_.c_str());
    }

    void write(std::span<const std::byte> bytes) {
        while (!bytes.empty()) {
            const ssize_t written = ::write(descriptor_.get(), bytes.data(), bytes.size());
            if (written < 0 && errno == EINTR) continue;
            if (written < 0) fail(file_, errno);
            bytes = bytes.subspan(static_cast<std::size_t>(written));
        }
    }

    void publish() {
        if (::fsync(descriptor_.get()) != 0) fail(file_, errno);
        if (::rename(temporary_.c_str(), file_.c_str()) != 0) fail(file_, errno);
        published_ = true;
        // The name itself: without this, a crash may bring the old file back, which is whole as well.
        const fs::path folder = file_.has_parent_path() ? file_.parent_path() : fs::path(".");
        const UniqueFd directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (directory) ::fsync(directory.get());
    }

  private:
    fs::path file_;
    fs::path temporary_;
    UniqueFd descriptor_;
    bool published_ = false;
};

}  // namespace

void write_safetensors(const fs::path& file, std::vector<TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata) {
    std::ranges::sort(tensors, [](const TensorToWrite& left, const TensorToWrite& right) {
        const std::size_t left_bytes = bytes_of(left.type);
        const std::size_t right_bytes = bytes_of(right.type);
        return left_bytes != right_bytes ? left_bytes > right_bytes : left.name < right.name;
    });
    const std::string header = header_of(tensors, metadata, file);
    UnfinishedFile unfinished(file);
    unfinished.write(std::as_bytes(std::span(header)));
    for (const TensorToWrite& tensor : tensors) unfinished.write(tensor.bytes);
    unfinished.publish();
}

}  // namespace hone::tuner
