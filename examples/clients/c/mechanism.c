/* What happens to one example before it leaves: a row that protects itself.
 *
 * Probabilities are whole numbers over a power of two, rounded to the side that keeps epsilon,
 * and every draw compares whole numbers: the law is exact to the last bit. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

#define SCALE_BITS 192

/* A whole number just below e^epsilon 2^192: the power series, each term rounded down. */
void scaled_exp(fa_fraction epsilon, big *made) {
    big term;
    big_set(&term, 1);
    big_shift(&term, SCALE_BITS);
    big_copy(made, &term);
    for (uint64_t k = 1; term.used > 0; k++) {
        big_multiply(&term, epsilon.top);
        big_divide(&term, epsilon.bottom * k);
        big_add(made, &term);
    }
}

/* OUE: q = 1 / (e^epsilon + 1), rounded up; its numerator over 2^24. */
uint64_t unary_numerator(fa_fraction epsilon) {
    big scale, bottom;
    int is_exact;
    big_set(&scale, 1);
    big_shift(&scale, SCALE_BITS);
    scaled_exp(epsilon, &bottom);
    big_add(&bottom, &scale);
    uint64_t down = big_ratio(&scale, &bottom, 24, &is_exact);
    return is_exact ? down : down + 1;
}

/* GRR: p = e^epsilon / (e^epsilon + values - 1), rounded down; its numerator over 2^64. */
uint64_t response_numerator(fa_fraction epsilon, uint32_t values) {
    big power, others;
    int is_exact;
    scaled_exp(epsilon, &power);
    big_set(&others, values - 1);
    big_shift(&others, SCALE_BITS);
    big_add(&others, &power);
    return big_ratio(&power, &others, 64, &is_exact);
}

/* The probability of a file must be the one that follows from its epsilon. */
static int must_be(const json *file, uint32_t node, uint64_t numerator, const char *over,
                   const char *name) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "%" PRIu64 "/%s", numerator, over);
    CHECK(file->why, json_is(file, node, wanted), "\"%s\" must be \"%s\", as epsilon has it", name,
          wanted);
    return 1;
}

int epsilon_read(const json *file, uint32_t node, fa_fraction *epsilon) {
    static const fa_fraction most = {50, 1};
    if (!json_fraction(file, json_find(file, node, "epsilon"), "epsilon", epsilon)) return 0;
    CHECK(file->why, epsilon->top > 0 && fraction_compare(*epsilon, most) <= 0,
          "epsilon must be above 0 and at most 50");
    CHECK(file->why, epsilon->bottom <= 1000000000, "epsilon must be a simple fraction");
    return 1;
}

int mechanism_read(fa_survey *survey, level *at, const json *file, uint32_t node,
                   fa_fraction *epsilon) {
    uint32_t places = 2 * at->cells;
    int is_shared = json_kind_is(file, node, "exact") || json_kind_is(file, node, "polya");
    CHECK(file->why, !is_shared, "local privacy goes with oue or grr mechanisms");
    if (json_kind_is(file, node, "oue")) {
        if (!json_exactly(file, node, "kind epsilon q", "mechanism")) return 0;
        if (!epsilon_read(file, node, epsilon)) return 0;
        at->is_unary = 1;
        at->numerator = unary_numerator(*epsilon);
        at->row_bytes = (places + 7) / 8;
        return must_be(file, json_find(file, node, "q"), at->numerator, "16777216", "q");
    }
    CHECK(file->why, json_kind_is(file, node, "grr"), "mechanisms are exact, polya, oue, grr");
    if (!json_exactly(file, node, "kind epsilon p", "mechanism")) return 0;
    if (!epsilon_read(file, node, epsilon)) return 0;
    at->values = places + (survey->allow_empty ? 1 : 0);
    at->numerator = response_numerator(*epsilon, at->values);
    at->row_bytes = 4;
    return must_be(file, json_find(file, node, "p"), at->numerator, "18446744073709551616", "p");
}

/* OUE: the own bit is a fair coin, any other is 1 with probability q. */
static void draw_bits(const level *at, int64_t place, dice *drawn, unsigned char *row) {
    memset(row, 0, at->row_bytes);
    for (int64_t i = 0; i < 2 * (int64_t)at->cells; i++) {
        int bit = i == place ? (int)(dice_word(drawn, 1) & 1) : dice_word(drawn, 3) < at->numerator;
        if (bit) row[i / 8] |= (unsigned char)(1 << i % 8);
    }
}

/* GRR: the own value with probability p, else one of the others uniformly. */
static void draw_value(const level *at, int64_t place, dice *drawn, unsigned char *row) {
    /* A client with nothing sends the value behind all places, or any other. */
    uint64_t own = place < 0 ? 2 * (uint64_t)at->cells : (uint64_t)place, value = own;
    if (dice_word(drawn, 8) >= at->numerator) {
        value = dice_below(drawn, at->values - 1);
        if (value >= own) value++;
    }
    for (int i = 0; i < 4; i++) row[i] = (unsigned char)(value >> 8 * i);
}

void draw_row(const level *at, int64_t place, dice *drawn, unsigned char *row) {
    if (at->is_unary) {
        draw_bits(at, place, drawn, row);
    } else {
        draw_value(at, place, drawn, row);
    }
}
