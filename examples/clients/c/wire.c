/* The bytes of reports, version 2; docs/formats.md has the table. */
#include <string.h>

#include "internal.h"

static const unsigned char MAGIC[8] = {'F', 'A', 'S', 'R', 2, 2, 0, 0};

static void put32(unsigned char *to, uint32_t value) {
    for (int i = 0; i < 4; i++) to[i] = (unsigned char)(value >> 8 * i);
}

/* CRC-32, as zlib has it. */
static uint32_t crc32(const unsigned char *bytes, size_t count) {
    uint32_t word = 0xffffffff;
    for (size_t i = 0; i < count; i++) {
        word ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) word = word >> 1 ^ (0xedb88320 & (0 - (word & 1)));
    }
    return ~word;
}

size_t message_seal(unsigned char *message, const fa_survey *survey, uint32_t at_level,
                    uint32_t rows, dice *drawn) {
    size_t end = HEADER_BYTES + (size_t)rows * survey->levels[at_level].row_bytes;
    memcpy(message, MAGIC, sizeof MAGIC);
    message[6] = (unsigned char)at_level;
    memcpy(message + 8, survey->fingerprint, FA_FINGERPRINT_BYTES);
    for (int i = 0; i < REPORT_ID_BYTES; i++) message[40 + i] = (unsigned char)dice_word(drawn, 1);
    put32(message + 56, rows);
    put32(message + end, crc32(message, end));
    return end + CRC_BYTES;
}

int fa_is_answer_to(const fa_survey *survey, const unsigned char *bytes, size_t count) {
    return count >= HEADER_BYTES + CRC_BYTES && memcmp(bytes, MAGIC, 6) == 0 &&
           memcmp(bytes + 8, survey->fingerprint, FA_FINGERPRINT_BYTES) == 0;
}
