#include "tests/fake_driver/image.h"

#include <sstream>

namespace hone::fake {
namespace {

constexpr const char* first_line = "hone fake image 1";

// The rest of the line after "key ", or nothing when the line begins otherwise.
std::optional<std::string> value_of(const std::string& line, const std::string& key) {
    if (!line.starts_with(key + " ")) return std::nullopt;
    return line.substr(key.size() + 1);
}

}  // namespace

std::string render(const FakeImage& image) {
    std::ostringstream text;
    text << first_line << "\nsource " << image.source << "\narch " << image.arch << "\nconstants "
         << image.constants << "\n";
    for (const ImageKernel& kernel : image.kernels) {
        text << "kernel " << kernel.name << " " << kernel.registers << " " << kernel.shared_bytes << " "
             << kernel.spill_bytes << " " << kernel.parameter_bytes << "\n";
    }
    return text.str();
}

std::optional<FakeImage> parse_image(const std::string& text) {
    std::istringstream lines(text);
    std::string line;
    if (!std::getline(lines, line) || line != first_line) return std::nullopt;
    FakeImage image;
    while (std::getline(lines, line)) {
        if (const auto source = value_of(line, "source")) {
            image.source = *source;
        } else if (const auto arch = value_of(line, "arch")) {
            image.arch = *arch;
        } else if (const auto constants = value_of(line, "constants")) {
            image.constants = *constants;
        } else if (const auto kernel = value_of(line, "kernel")) {
            std::istringstream fields(*kernel);
            ImageKernel& added = image.kernels.emplace_back();
            fields >> added.name >> added.registers >> added.shared_bytes >> added.spill_bytes >>
                added.parameter_bytes;
        }
    }
    return image;
}

Subject subject_of(const FakeImage& image, const std::string& kernel) {
    Subject subject{.words = "source=" + image.source + " arch=" + image.arch + " " + image.constants,
                    .names = image.source};
    for (const ImageKernel& candidate : image.kernels) {
        if (!kernel.empty() && candidate.name != kernel) continue;
        subject.words += " kernel=" + candidate.name;
        subject.names += " " + candidate.name;
    }
    return subject;
}

unsigned long long stable_hash(const std::string& text) {
    unsigned long long hash = 0xcbf29ce484222325ull;
    for (const char byte : text) {
        hash ^= static_cast<unsigned char>(byte);
        hash *= 0x100000001b3ull;
    }
    // FNV leaves the high bits of short texts alike.
    hash ^= hash >> 32;
    hash *= 0x9E3779B97F4A7C15ull;
    return hash ^ (hash >> 29);
}

}  // namespace hone::fake
