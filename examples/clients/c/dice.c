/* Exact draws: uniform whole numbers from the system's own randomness, and nothing else. */
#include <string.h>

#include "internal.h"

#if defined(__APPLE__) || defined(__FreeBSD__) || defined(__OpenBSD__) || defined(__NetBSD__)
#include <stdlib.h>
void arc4random_buf(void *bytes, size_t count);
static int system_random(void *context, unsigned char *bytes, size_t count) {
    (void)context;
    arc4random_buf(bytes, count);
    return 1;
}
#elif defined(__linux__)
#include <errno.h>
#include <sys/random.h>
static int system_random(void *context, unsigned char *bytes, size_t count) {
    (void)context;
    while (count > 0) {
        ssize_t got = getrandom(bytes, count, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return 0;
        bytes += got;
        count -= (size_t)got;
    }
    return 1;
}
#else
/* On another system an owner names its source; without one nothing is answered. */
static int system_random(void *context, unsigned char *bytes, size_t count) {
    (void)context;
    (void)bytes;
    (void)count;
    return 0;
}
#endif

void dice_begin(dice *drawn, fa_random random, void *context) {
    drawn->random = random == NULL ? system_random : random;
    drawn->context = context;
    drawn->failed = 0;
    drawn->left = 0;
}

static unsigned char take_byte(dice *drawn) {
    unsigned char byte;
    if (drawn->left == 0) {
        if (!drawn->random(drawn->context, drawn->pool, sizeof drawn->pool)) drawn->failed = 1;
        drawn->left = sizeof drawn->pool;
    }
    byte = drawn->pool[sizeof drawn->pool - drawn->left];
    /* What was drawn is never used again, nor left lying about. */
    drawn->pool[sizeof drawn->pool - drawn->left--] = 0;
    return byte;
}

uint64_t dice_word(dice *drawn, int bytes) {
    uint64_t word = 0;
    for (int i = 0; i < bytes; i++) word = word << 8 | take_byte(drawn);
    return word;
}

uint64_t dice_below(dice *drawn, uint64_t limit) {
    /* 2^64 mod limit words at the top would make small numbers likelier. */
    uint64_t excess = (UINT64_MAX % limit + 1) % limit, word;
    do {
        word = dice_word(drawn, 8);
    } while (word > UINT64_MAX - excess && !drawn->failed);
    return word % limit;
}
