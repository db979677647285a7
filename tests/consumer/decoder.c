/* The installed decoder, as a C program uses it: without a model it says what is missing. */
#include <hone_decoder.h>

#include <string.h>

int main(void) {
    hone_decoder* decoder = NULL;
    if (hone_decoder_create("/nowhere", NULL, &decoder) != HONE_BAD_ARGUMENT || decoder != NULL) return 1;
    return strstr(hone_decoder_last_error(), "/nowhere") == NULL;
}
