// Whether a request's bytes have the form that HTTP gives them, to the letter. cpp-httplib passes over lines
// of a head that are none, takes folded ones apart, and reads sizes of pieces as strtoul() does: a proxy in
// front that reads them otherwise would see other requests than we do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hone::decoder {

class RequestForm {
  public:
    /// A head comes next.
    void begin();
    /// A body in pieces, each behind its size, comes next.
    void begin_pieces();
    /// Bytes as they come, wherever they are cut.
    void see(std::string_view bytes);

    /// Of all that came since begin().
    [[nodiscard]] bool is_strict() const { return is_strict_; }
    /// Whether `next`, the byte that comes next, is one of the fields behind the last piece, and not of the
    /// empty line that ends the body.
    [[nodiscard]] bool is_of_trailer(char next) const;
    /// Fields or that empty line come next.
    [[nodiscard]] bool is_behind_pieces() const { return is_behind_pieces_ && at_ != At::nothing; }
    /// Lines of the head that say where the body ends: Content-Length and Transfer-Encoding.
    [[nodiscard]] int lengths() const { return lengths_; }

  private:
    enum class At : std::uint8_t {
        nothing,  ///< behind the head, or the body
        request_line,
        name,  ///< of a header, or of a field behind the pieces
        value,
        size,
        padding,
        extension,
        piece,
        piece_end,
    };
    void see(char c);
    void see_in_head(char c);
    void see_in_pieces(char c);
    void end_line();
    void add_digit(char c);

    At at_ = At::nothing;
    bool is_strict_ = true;
    bool behind_cr_ = false;  ///< a line ends with CR and LF, and has neither elsewhere
    int lengths_ = 0;
    bool is_behind_pieces_ = false;
    bool has_digits_ = false;  ///< of a size
    bool is_length_ = false;   ///< the line says where the body ends
    std::uint64_t left_ = 0;   ///< bytes of a piece
    std::string name_{};       ///< of a header, in small letters, as much of it as counts
};

}  // namespace hone::decoder
