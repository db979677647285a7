// What the decoder calls of libsentencepiece, as C functions of a module of its own,
// libhone_sentencepiece.so: that library comes as a shared one alone, and the program is to start without it.
// The module is opened when a model has a tokenizer.model and nothing else.
#pragma once

#include <cstddef>

extern "C" {

struct hone_sentencepiece;

/// nullptr: not a model that it takes; `error` gets why.
hone_sentencepiece* hone_sentencepiece_load(const char* bytes, std::size_t size, char* error,
                                            std::size_t error_size);
void hone_sentencepiece_free(hone_sentencepiece* model);

int hone_sentencepiece_size(const hone_sentencepiece* model);
/// Its bytes live as long as the model.
const char* hone_sentencepiece_piece(const hone_sentencepiece* model, int id, std::size_t* size);
/// 0: neither a control token nor the unknown one.
int hone_sentencepiece_is_special(const hone_sentencepiece* model, int id);
/// -1: none.
int hone_sentencepiece_bos(const hone_sentencepiece* model);
int hone_sentencepiece_eos(const hone_sentencepiece* model);

/// Calls `take` for every id of the text. False: it has no ids; `error` gets why.
bool hone_sentencepiece_encode(const hone_sentencepiece* model, const char* text, std::size_t size,
                               void (*take)(void* user, int id), void* user, char* error,
                               std::size_t error_size);

}  // extern "C"
