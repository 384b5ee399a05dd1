/* Numbers as ECMAScript writes them: the fewest digits that read back as the same double.
 *
 * In whole numbers and without the C library's own readers, whose decimal point depends on the
 * language of the device. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

#define MOST_DIGITS 17

/* digits x 10^power */
typedef struct {
    uint64_t digits;
    int power;
} decimal;

static void ten_to(big *a, int power) {
    for (; power >= 19; power -= 19) big_multiply(a, UINT64_C(10000000000000000000));
    for (; power > 0; power--) big_multiply(a, 10);
}

static int is_digit(char c) { return c >= '0' && c <= '9'; }

/* The double that is nearest, and the even one of two. */
static double nearest(decimal of) {
    big top, bottom;
    int exponent, keep = 53, is_exact;
    uint64_t bits;
    if (of.digits == 0) return 0.0;
    big_set(&top, of.digits);
    big_set(&bottom, 1);
    ten_to(of.power >= 0 ? &top : &bottom, of.power >= 0 ? of.power : -of.power);
    exponent = big_bits(&top) - big_bits(&bottom);
    big_shift(exponent > 0 ? &bottom : &top, exponent > 0 ? exponent : -exponent);
    if (big_compare(&top, &bottom) >= 0) {
        big_shift(&bottom, 1);
        exponent++;
    }
    /* Now the value is top / bottom x 2^exponent, with a ratio from 1/2 to below 1. */
    if (exponent < -1021) keep = 53 - (-1021 - exponent);
    if (keep < 0) return 0.0;
    bits = big_ratio(&top, &bottom, keep + 1, &is_exact);
    bits = (bits >> 1) + ((bits & 1) != 0 && (!is_exact || (bits & 2) != 0));
    return ldexp((double)bits, exponent - keep);
}

/* Compares digits x 10^power with twice a double. */
static int compare_with_twice(decimal of, double value) {
    int exponent;
    big left, right;
    big_set(&left, of.digits);
    big_set(&right, (uint64_t)ldexp(frexp(value, &exponent), 53));
    exponent -= 52;
    ten_to(of.power >= 0 ? &left : &right, of.power >= 0 ? of.power : -of.power);
    big_shift(exponent < 0 ? &left : &right, exponent < 0 ? -exponent : exponent);
    return big_compare(&left, &right);
}

/* Whether no text with fewer digits, and none with as many that is closer, is this double. */
static int is_shortest(decimal of, double value) {
    decimal shorter = {of.digits / 10, of.power + 1}, below = of, above = of, middle = of;
    int side;
    if (of.digits >= 10) {
        if (nearest(shorter) == value) return 0;
        shorter.digits++;
        if (nearest(shorter) == value) return 0;
    }
    below.digits--;
    middle.digits = 2 * of.digits - 1;
    side = compare_with_twice(middle, value);
    if ((side > 0 || (side == 0 && (of.digits & 1) != 0)) && nearest(below) == value) return 0;
    above.digits++;
    middle.digits = 2 * of.digits + 1;
    side = compare_with_twice(middle, value);
    return !((side < 0 || (side == 0 && (of.digits & 1) != 0)) && nearest(above) == value);
}

/* 0.digits x 10^point, laid out as ECMAScript does it. */
static void lay_out(const char *digits, int count, int point, char *text) {
    if (count <= point && point <= 21) {
        sprintf(text, "%s%.*s", digits, point - count, "000000000000000000000");
    } else if (0 < point && point <= 21) {
        sprintf(text, "%.*s.%s", point, digits, digits + point);
    } else if (-6 < point && point <= 0) {
        sprintf(text, "0.%.*s%s", -point, "00000", digits);
    } else {
        sprintf(text, "%c%s%se%+d", digits[0], count > 1 ? "." : "", digits + 1, point - 1);
    }
}

int number_read(const char *text, size_t count, double *value) {
    char digits[MOST_DIGITS + 1], wanted[MOST_DIGITS + 32];
    int kept = 0, point = 0, seen_point = 0, zeros = 0, exponent = 0;
    size_t at = 0, sign = count > 0 && text[0] == '-';
    decimal read = {0, 0};
    if (count - sign == 1 && text[sign] == '0') {
        *value = 0.0;
        return sign == 0;
    }
    for (at = sign; at < count && (is_digit(text[at]) || (text[at] == '.' && !seen_point)); at++) {
        if (text[at] == '.') {
            seen_point = 1;
        } else if (text[at] == '0') {
            if (kept == 0 && seen_point) point--;
            if (kept > 0) zeros++;
            if (kept > 0 && !seen_point) point++;
        } else {
            if (kept + zeros >= MOST_DIGITS) return 0;
            for (; zeros > 0; zeros--) digits[kept++] = '0';
            digits[kept++] = text[at];
            if (!seen_point) point++;
        }
        if (at - sign > 30) return 0;
    }
    if (at < count && text[at] == 'e') {
        int is_negative = at + 1 < count && text[at + 1] == '-';
        for (at += 2; at < count && is_digit(text[at]); at++) {
            exponent = 10 * exponent + (text[at] - '0');
            if (exponent > 400) return 0;
        }
        if (is_negative) exponent = -exponent;
    }
    if (at != count || kept == 0) return 0;
    digits[kept] = '\0';
    point += exponent;
    if (point > 310 || point < -330) return 0;
    lay_out(digits, kept, point, wanted);
    if (strlen(wanted) != count - sign || memcmp(wanted, text + sign, count - sign) != 0) return 0;
    for (int i = 0; i < kept; i++) read.digits = 10 * read.digits + (uint64_t)(digits[i] - '0');
    read.power = point - kept;
    *value = nearest(read);
    if (!isfinite(*value) || *value == 0.0 || !is_shortest(read, *value)) return 0;
    if (sign != 0) *value = -*value;
    return 1;
}
