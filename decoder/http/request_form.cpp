#include "decoder/http/request_form.h"

#include <algorithm>

namespace hone::decoder {
namespace {

constexpr std::size_t longest_name = 32;                      // above that of those that count
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 56;  // of a piece

bool is_control(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t' && c != '\r' && c != '\n') || byte == 0x7F;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
/// What names of headers are made of.
bool is_of_name(char c) {
    constexpr std::string_view others = "!#$%&'*+-.^_`|~";
    return is_letter(c) || is_digit(c) || (c != '\0' && others.find(c) != std::string_view::npos);
}
char small(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// -1: none.
int hex_digit(char c) {
    if (is_digit(c)) return c - '0';
    const char letter = small(c);
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

}  // namespace

void RequestForm::begin() {
    *this = {};
    at_ = At::request_line;
}

void RequestForm::begin_pieces() {
    at_ = At::size;
    behind_cr_ = false;
    has_digits_ = false;
    left_ = 0;
}

bool RequestForm::is_of_trailer(char next) const {
    const bool ends_body = at_ == At::name && name_.empty() && (next == '\r' || behind_cr_);
    return is_behind_pieces() && !ends_body;
}

void RequestForm::see(std::string_view bytes) {
    while (!bytes.empty() && at_ != At::nothing && is_strict_) {
        if (at_ == At::piece) {
            const std::size_t some = std::min<std::uint64_t>(left_, bytes.size());
            left_ -= some;
            bytes.remove_prefix(some);
            if (left_ == 0) at_ = At::piece_end;
            continue;
        }
        see(bytes.front());
        bytes.remove_prefix(1);
    }
}

void RequestForm::see(char c) {
    if (is_control(c) || behind_cr_ != (c == '\n')) {
        is_strict_ = false;
    } else if (c == '\n') {
        behind_cr_ = false;
        end_line();
    } else if (c == '\r') {
        behind_cr_ = true;
    } else if (at_ == At::request_line || at_ == At::name || at_ == At::value) {
        see_in_head(c);
    } else {
        see_in_pieces(c);
    }
}

void RequestForm::see_in_head(char c) {
    // cpp-httplib takes values for percent-encoded, which nobody else does.
    if (at_ == At::value && is_length_ && c == '%') is_strict_ = false;
    if (at_ != At::name) return;
    if (c == ':') {
        is_strict_ = !name_.empty();
        at_ = At::value;
        is_length_ = name_ == "content-length" || name_ == "transfer-encoding";
        if (is_length_) ++lengths_;
        if (is_length_ && is_behind_pieces_) is_strict_ = false;  // too late to say so
        return;
    }
    is_strict_ = is_of_name(c);
    if (name_.size() < longest_name) name_ += small(c);
}

void RequestForm::see_in_pieces(char c) {
    if (at_ == At::extension) return;
    const bool is_behind_size = at_ == At::padding || (at_ == At::size && has_digits_);
    if (is_behind_size && c == ';') {
        at_ = At::extension;
    } else if (is_behind_size && (c == ' ' || c == '\t')) {
        at_ = At::padding;
    } else if (at_ == At::size) {
        add_digit(c);
    } else {  // a line's end was to come
        is_strict_ = false;
    }
}

void RequestForm::add_digit(char c) {
    const int digit = hex_digit(c);
    is_strict_ = digit >= 0 && left_ < most_bytes;
    has_digits_ = true;
    left_ = 16 * left_ + static_cast<std::uint64_t>(digit);
}

void RequestForm::end_line() {
    switch (at_) {
        case At::request_line:
        case At::value:
            at_ = At::name;
            name_.clear();
            return;
        case At::name:  // an empty line, or one without a colon
            is_strict_ = name_.empty();
            at_ = At::nothing;
            return;
        case At::size: is_strict_ = has_digits_; [[fallthrough]];
        case At::padding:
        case At::extension:
            is_behind_pieces_ = left_ == 0;
            at_ = is_behind_pieces_ ? At::name : At::piece;
            name_.clear();
            return;
        case At::piece_end: begin_pieces(); return;
        default: at_ = At::nothing;
    }
}

}  // namespace hone::decoder
