#include "cache/compression.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace hone::cache {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::size_t shortest_match = 4;
constexpr std::size_t farthest = 65535;
constexpr std::size_t last_literals = 5;  ///< a block ends with as many bytes that are no match
constexpr std::size_t last_match = 12;    ///< and no match begins closer to its end
constexpr std::size_t nibble = 15;        ///< a length of 15 and more goes on in bytes of its own
constexpr int hash_bits = 15;
constexpr int most_tries = 64;

std::uint32_t word_at(Bytes bytes, std::size_t at) {
    std::uint32_t word = 0;
    std::memcpy(&word, &bytes[at], sizeof word);
    return word;
}

struct Match {
    std::size_t length = 0;
    std::size_t distance = 0;
};

/// Earlier places of the four bytes at each place, the latest first.
class Places {
  public:
    explicit Places(Bytes bytes)
        : bytes_(bytes), latest_(std::size_t{1} << hash_bits, nowhere), earlier_(bytes.size(), nowhere) {}

    void add(std::size_t at) {
        std::uint32_t& slot = latest_[hash(at)];
        earlier_[at] = slot;
        slot = static_cast<std::uint32_t>(at);
    }

    [[nodiscard]] Match longest(std::size_t at) const {
        Match best;
        std::uint32_t place = latest_[hash(at)];
        for (int tries = 0; place != nowhere && at - place <= farthest && tries < most_tries; ++tries) {
            const std::size_t length = common(place, at);
            if (length > best.length) best = {.length = length, .distance = at - place};
            place = earlier_[place];
        }
        return best.length >= shortest_match ? best : Match{};
    }

  private:
    static constexpr std::uint32_t nowhere = 0xffffffff;

    [[nodiscard]] std::size_t hash(std::size_t at) const {
        return word_at(bytes_, at) * 2654435761U >> (32 - hash_bits);
    }

    [[nodiscard]] std::size_t common(std::size_t a, std::size_t b) const {
        const std::size_t end = bytes_.size() - last_literals;
        std::size_t length = 0;
        while (b + length < end && bytes_[a + length] == bytes_[b + length]) ++length;
        return length;
    }

    Bytes bytes_;
    std::vector<std::uint32_t> latest_;  // 128 KiB: as much as some threads have of a stack
    std::vector<std::uint32_t> earlier_;
};

void put(std::vector<std::byte>& to, std::size_t value) { to.push_back(static_cast<std::byte>(value)); }

void put_rest_of_length(std::vector<std::byte>& to, std::size_t length) {
    if (length < nibble) return;
    for (length -= nibble; length >= 255; length -= 255) put(to, 255);
    put(to, length);
}

/// Literals, then a match; without one at the block's end.
void put_sequence(std::vector<std::byte>& to, Bytes literals, const Match& match) {
    const std::size_t more = match.length == 0 ? 0 : match.length - shortest_match;
    put(to, std::min(literals.size(), nibble) << 4 | std::min(more, nibble));
    put_rest_of_length(to, literals.size());
    to.insert(to.end(), literals.begin(), literals.end());
    if (match.length == 0) return;
    put(to, match.distance & 0xff);
    put(to, match.distance >> 8);
    put_rest_of_length(to, more);
}

/// Reads a block and checks every step.
class Reader {
  public:
    explicit Reader(Bytes block) : block_(block) {}

    [[nodiscard]] bool at_end() const { return block_.empty(); }

    std::optional<std::size_t> byte() {
        if (block_.empty()) return std::nullopt;
        const auto value = static_cast<std::size_t>(block_.front());
        block_ = block_.subspan(1);
        return value;
    }

    /// A length whose first four bits are known.
    std::optional<std::size_t> length(std::size_t first) {
        std::size_t sum = first;
        for (bool more = first == nibble; more;) {
            const auto next = byte();
            if (!next) return std::nullopt;
            sum += *next;
            more = *next == 255;
        }
        return sum;
    }

    std::optional<Bytes> bytes(std::size_t count) {
        if (count > block_.size()) return std::nullopt;
        const Bytes taken = block_.first(count);
        block_ = block_.subspan(count);
        return taken;
    }

  private:
    Bytes block_;
};

/// Appends the match's bytes one by one: it may reach into itself.
bool read_match(Reader& from, std::size_t first, std::size_t limit, std::vector<std::byte>& to) {
    const auto low = from.byte();
    const auto high = from.byte();
    const auto length = from.length(first);
    if (!low || !high || !length) return false;
    const std::size_t distance = *low | *high << 8;
    const std::size_t count = *length + shortest_match;
    if (distance == 0 || distance > to.size() || count > limit - to.size()) return false;
    for (std::size_t i = 0; i < count; ++i) to.push_back(to[to.size() - distance]);
    return true;
}

}  // namespace

std::vector<std::byte> compress(Bytes bytes) {
    std::vector<std::byte> block;
    std::size_t literals_from = 0;
    if (bytes.size() > last_match && bytes.size() < 0xffffffff) {
        Places places(bytes);
        const std::size_t end = bytes.size() - last_match;
        for (std::size_t at = 0; at < end;) {
            const Match match = places.longest(at);
            places.add(at);
            // A better match one byte further is worth a literal.
            const bool wait =
                match.length > 0 && at + 1 < end && places.longest(at + 1).length > match.length + 1;
            if (match.length == 0 || wait) {
                ++at;
                continue;
            }
            put_sequence(block, bytes.subspan(literals_from, at - literals_from), match);
            literals_from = at + match.length;
            for (++at; at < literals_from && at < end; ++at) places.add(at);
            at = literals_from;
        }
    }
    put_sequence(block, bytes.subspan(literals_from), {});
    return block;
}

std::optional<std::vector<std::byte>> decompress(Bytes block, std::size_t length) {
    // A byte of a block stands for 255 bytes at most: a length that lies is not believed with memory.
    if (length / 255 > block.size()) return std::nullopt;
    Reader from(block);
    std::vector<std::byte> bytes;
    bytes.reserve(length);
    while (const auto token = from.byte()) {
        const auto count = from.length(*token >> 4);
        const auto literals = count ? from.bytes(*count) : std::nullopt;
        if (!literals || literals->size() > length - bytes.size()) return std::nullopt;
        bytes.insert(bytes.end(), literals->begin(), literals->end());
        if (from.at_end()) break;  // the last sequence has no match
        if (!read_match(from, *token & nibble, length, bytes)) return std::nullopt;
    }
    if (bytes.size() != length) return std::nullopt;
    return bytes;
}

}  // namespace hone::cache
