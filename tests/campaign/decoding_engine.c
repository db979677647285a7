/* An engine that runs a model, through the decoder's C interface: makes a decoder, has one text made and
 * encodes another. Ends with 0 when all is well, 1 when the library refused something and said so, 3 when it
 * broke its contract: a failure without words, or a handle that is set after one. */
#include <hone_decoder.h>

#include <stdio.h>
#include <string.h>

static int refused;
static int broken;

/* Whether it went well; a refusal must have words. */
static int fine(hone_status status, const char* what, const void* made) {
    if (status == HONE_OK) return 1;
    refused = 1;
    const char* words = hone_decoder_last_error();
    if (words == NULL || words[0] == '\0' || made != NULL) broken = 1;
    fprintf(stderr, "%s: %d %s\n", what, (int)status, words == NULL ? "" : words);
    return 0;
}

static void make_a_text(hone_decoder* decoder) {
    const char* stops[] = {"never"};
    hone_decoder_request request = HONE_DECODER_REQUEST_INIT;
    request.prompt = "It is a truth universally acknowledged";
    request.prompt_bytes = strlen(request.prompt);
    request.max_tokens = 20;
    request.stops = stops;
    request.stop_count = 1;
    hone_decoder_text* text = NULL;
    if (!fine(hone_decoder_submit(decoder, &request, &text), "submit", text)) return;
    hone_decoder_piece piece = HONE_DECODER_PIECE_INIT;
    while (piece.end == HONE_DECODER_GOES_ON && fine(hone_decoder_next(text, 10000, &piece), "next", NULL)) {
    }
    hone_decoder_text_destroy(text);
}

int main(int count, char** words) {
    hone_decoder_options options = HONE_DECODER_OPTIONS_INIT;
    options.max_sequences = 2;
    options.max_context = 64;
    options.max_step_tokens = 16;
    hone_decoder* decoder = NULL;
    if (count != 2) return 2;
    if (fine(hone_decoder_create(words[1], &options, &decoder), "create", decoder)) {
        make_a_text(decoder);
        size_t ids = 0;
        fine(hone_decoder_encode(decoder, "It is", 5, 0, NULL, 0, &ids), "encode", NULL);
        make_a_text(decoder);
        hone_decoder_destroy(decoder);
    }
    return broken ? 3 : refused;
}
