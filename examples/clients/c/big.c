/* Whole numbers of any size that a survey leads to: no probability is ever rounded twice. */
#include <string.h>

#include "internal.h"

static void trim(big *a) {
    while (a->used > 0 && a->limb[a->used - 1] == 0) a->used--;
}

void big_set(big *a, uint64_t value) {
    a->limb[0] = (uint32_t)value;
    a->limb[1] = (uint32_t)(value >> 32);
    a->used = 2;
    trim(a);
}

void big_copy(big *a, const big *b) {
    a->used = b->used;
    memcpy(a->limb, b->limb, sizeof a->limb[0] * (size_t)b->used);
}

void big_add(big *a, const big *b) {
    uint64_t carry = 0;
    int most = a->used > b->used ? a->used : b->used;
    for (int i = 0; i < most; i++) {
        carry += (i < a->used ? a->limb[i] : 0u);
        carry += (i < b->used ? b->limb[i] : 0u);
        a->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    a->used = most;
    if (carry != 0) a->limb[a->used++] = (uint32_t)carry;
}

static void multiply_small(big *a, uint32_t by) {
    uint64_t carry = 0;
    for (int i = 0; i < a->used; i++) {
        carry += (uint64_t)a->limb[i] * by;
        a->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry != 0) a->limb[a->used++] = (uint32_t)carry;
    trim(a);
}

void big_multiply(big *a, uint64_t by) {
    big high;
    big_copy(&high, a);
    multiply_small(a, (uint32_t)by);
    if (by >> 32 == 0) return;
    multiply_small(&high, (uint32_t)(by >> 32));
    big_shift(&high, 32);
    big_add(a, &high);
}

uint64_t big_divide(big *a, uint64_t by) {
    uint64_t left = 0;
    for (int i = a->used - 1; i >= 0; i--) {
        uint32_t quotient = 0;
        for (int bit = 31; bit >= 0; bit--) {
            left = 2 * left + (a->limb[i] >> bit & 1);
            if (left >= by) {
                left -= by;
                quotient |= UINT32_C(1) << bit;
            }
        }
        a->limb[i] = quotient;
    }
    trim(a);
    return left;
}

void big_shift(big *a, int bits) {
    int limbs = bits / 32, rest = bits % 32;
    if (a->used == 0 || bits == 0) return;
    a->limb[a->used] = 0;
    for (int i = a->used; i >= 0; i--) {
        uint64_t both = (uint64_t)a->limb[i] << 32 | (i > 0 ? a->limb[i - 1] : 0);
        a->limb[i + limbs] = (uint32_t)(both << rest >> 32);
    }
    memset(a->limb, 0, sizeof a->limb[0] * (size_t)limbs);
    a->used += limbs + 1;
    trim(a);
}

int big_bits(const big *a) {
    int bits = 32 * a->used;
    if (bits == 0) return 0;
    for (uint32_t top = a->limb[a->used - 1]; top >> 31 == 0; top <<= 1) bits--;
    return bits;
}

int big_compare(const big *a, const big *b) {
    if (a->used != b->used) return a->used < b->used ? -1 : 1;
    for (int i = a->used - 1; i >= 0; i--) {
        if (a->limb[i] != b->limb[i]) return a->limb[i] < b->limb[i] ? -1 : 1;
    }
    return 0;
}

/* a - b, where a is not below b. */
static void subtract(big *a, const big *b) {
    uint64_t borrow = 0;
    for (int i = 0; i < a->used; i++) {
        uint64_t taken = (i < b->used ? b->limb[i] : 0u) + borrow;
        borrow = a->limb[i] < taken;
        a->limb[i] = (uint32_t)(a->limb[i] - taken);
    }
    trim(a);
}

uint64_t big_ratio(const big *top, const big *bottom, int bits, int *is_exact) {
    big left;
    uint64_t made = 0;
    big_copy(&left, top);
    for (int i = 0; i < bits; i++) {
        big_shift(&left, 1);
        made <<= 1;
        if (big_compare(&left, bottom) >= 0) {
            subtract(&left, bottom);
            made |= 1;
        }
    }
    *is_exact = left.used == 0;
    return made;
}

int fraction_compare(fa_fraction a, fa_fraction b) {
    big left, right;
    big_set(&left, a.top);
    big_multiply(&left, b.bottom);
    big_set(&right, b.top);
    big_multiply(&right, a.bottom);
    return big_compare(&left, &right);
}

uint64_t greatest_divisor(uint64_t a, uint64_t b) {
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

uint64_t fraction_bits(fa_fraction a, int *is_exact) {
    big top, bottom;
    big_set(&top, a.top);
    big_set(&bottom, a.bottom);
    return big_ratio(&top, &bottom, 64, is_exact);
}
