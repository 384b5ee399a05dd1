/* SHA-256, FIPS 180-4. */
#include <string.h>

#include "internal.h"

static const uint32_t ROUND[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t word, int bits) { return word >> bits | word << (32 - bits); }

static void mix(sha256 *hash) {
    uint32_t word[64], s[8];
    for (int i = 0; i < 16; i++) {
        const unsigned char *at = hash->block + 4 * i;
        word[i] = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
    }
    for (int i = 16; i < 64; i++) {
        uint32_t x = word[i - 15], y = word[i - 2];
        word[i] = word[i - 16] + (turn(x, 7) ^ turn(x, 18) ^ x >> 3) + word[i - 7] +
                  (turn(y, 17) ^ turn(y, 19) ^ y >> 10);
    }
    memcpy(s, hash->state, sizeof s);
    for (int i = 0; i < 64; i++) {
        uint32_t one = s[7] + (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25)) +
                       ((s[4] & s[5]) ^ (~s[4] & s[6])) + ROUND[i] + word[i];
        uint32_t two = (turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22)) +
                       ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof s[0]);
        s[4] += one;
        s[0] = one + two;
    }
    for (int i = 0; i < 8; i++) hash->state[i] += s[i];
}

void sha256_begin(sha256 *hash) {
    static const uint32_t START[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(hash->state, START, sizeof START);
    hash->bytes = 0;
}

void sha256_add(sha256 *hash, const void *bytes, size_t count) {
    const unsigned char *from = bytes;
    for (size_t i = 0; i < count; i++) {
        hash->block[hash->bytes++ % 64] = from[i];
        if (hash->bytes % 64 == 0) mix(hash);
    }
}

void sha256_end(sha256 *hash, unsigned char digest[32]) {
    uint64_t bits = 8 * hash->bytes;
    unsigned char length[8];
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)(bits >> (56 - 8 * i));
    sha256_add(hash, "\x80", 1);
    while (hash->bytes % 64 != 56) sha256_add(hash, "", 1);
    sha256_add(hash, length, sizeof length);
    for (int i = 0; i < 32; i++) digest[i] = (unsigned char)(hash->state[i / 4] >> (24 - i % 4 * 8));
}

uint64_t hash_mark(const unsigned char *fingerprint, const char *word, const char *name) {
    unsigned char digest[32];
    uint64_t mark = 0;
    sha256 hash;
    sha256_begin(&hash);
    sha256_add(&hash, fingerprint, FA_FINGERPRINT_BYTES);
    sha256_add(&hash, word, strlen(word));
    sha256_add(&hash, name, strlen(name));
    sha256_end(&hash, digest);
    for (int i = 0; i < 8; i++) mark = mark << 8 | digest[i];
    return mark;
}
