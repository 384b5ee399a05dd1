/* Which level a client reports on, and which of two surveys it answers: never by its data. */
#include <string.h>

#include "internal.h"

/* c_k, the shares of the levels up to k added up, as ends on 32-bit and 64-bit words. */
static int add_up(fa_survey *survey, const json *file, const fa_fraction *shares) {
    big common, sum, part;
    uint32_t last = survey->level_count - 1;
    int is_exact;
    big_set(&common, 1);
    big_set(&sum, 0);
    for (uint32_t k = 0; k <= last; k++) {
        big_copy(&part, &common);
        uint64_t rest = big_divide(&part, shares[k].bottom);
        big_multiply(&common, shares[k].bottom / greatest_divisor(shares[k].bottom, rest));
    }
    for (uint32_t k = 0; k <= last; k++) {
        big_copy(&part, &common);
        big_divide(&part, shares[k].bottom);
        big_multiply(&part, shares[k].top);
        big_add(&sum, &part);
        CHECK(file->why, big_compare(&sum, &common) < 0 || k == last,
              "the levels' shares of clients must be positive and add up to 1");
        if (k == last) break;
        survey->end32[k] = big_ratio(&sum, &common, 32, &is_exact);
        survey->end64[k] = big_ratio(&sum, &common, 64, &is_exact);
        /* mark / 2^64 < c exactly where the mark is below this one; c < 1, so it cannot wrap. */
        if (!is_exact) survey->end64[k]++;
    }
    survey->end32[last] = UINT64_C(1) << 32;
    CHECK(file->why, big_compare(&sum, &common) == 0,
          "the levels' shares of clients must be positive and add up to 1");
    return 1;
}

int policy_read(fa_survey *survey, const json *file, uint32_t node) {
    fa_fraction shares[MOST_LEVELS];
    uint32_t list, at;
    if (json_kind_is(file, node, "every")) {
        survey->every_level = 1;
        return json_exactly(file, node, "kind", "level_policy");
    }
    CHECK(file->why, json_kind_is(file, node, "one"),
          "a client reports on every level or on one");
    if (!json_exactly(file, node, "kind client_fractions by_hash", "level_policy")) return 0;
    list = json_find(file, node, "client_fractions");
    CHECK(file->why,
          file->nodes[list].kind == '[' && file->nodes[list].count == survey->level_count,
          "there must be one share of clients for each of %u levels", survey->level_count);
    at = list + 1;
    for (uint32_t k = 0; k < survey->level_count; k++) {
        if (!json_fraction(file, at, "client_fractions", &shares[k])) return 0;
        CHECK(file->why, shares[k].top > 0,
              "the levels' shares of clients must be positive and add up to 1");
        at = file->nodes[at].next;
    }
    return json_boolean(file, json_find(file, node, "by_hash"), "by_hash", &survey->by_hash) &&
           add_up(survey, file, shares);
}

static void read_hex(const char *text, unsigned char *bytes) {
    for (int i = 0; i < 2 * FA_FINGERPRINT_BYTES; i++) {
        int digit = text[i] <= '9' ? text[i] - '0' : text[i] - 'a' + 10;
        bytes[i / 2] = (unsigned char)(i % 2 == 0 ? 16 * digit : bytes[i / 2] + digit);
    }
}

int step_read(fa_survey *survey, const json *file, uint32_t node) {
    static const fa_fraction whole = {1, 1};
    step *made = &survey->step;
    fa_fraction total, share;
    int is_exact, is_object = file->nodes[node].kind == '{';
    made->is_there = 1;
    made->is_first = json_kind_is(file, node, "first");
    CHECK(file->why, is_object, "step: expected an object");
    CHECK(file->why, made->is_first || json_kind_is(file, node, "second"),
          "a survey is the first or the second of two");
    if (!json_exactly(file, node,
                      made->is_first ? "kind total_epsilon client_fraction"
                                     : "kind total_epsilon client_fraction first",
                      "step") ||
        !json_fraction(file, json_find(file, node, "total_epsilon"), "total_epsilon", &total) ||
        !json_fraction(file, json_find(file, node, "client_fraction"), "client_fraction", &share))
        return 0;
    CHECK(file->why, total.top > 0, "the epsilon of both surveys must be positive");
    CHECK(file->why, share.top > 0 && fraction_compare(share, whole) <= 0,
          "a step's share of the clients must be above 0 and at most 1");
    CHECK(file->why, share.bottom < 1000000,
          "a step's share of the clients must be a simple fraction");
    if (!made->is_first) {
        uint32_t first = json_find(file, node, "first");
        CHECK(file->why, json_hex64(file, first),
              "a survey's fingerprint has 64 lower-case hexadecimal digits");
        read_hex(file->text + file->nodes[first].start, made->first);
    }
    CHECK(file->why,
          fraction_compare(total, survey->epsilon) == 0 && fraction_compare(share, whole) < 0,
          "under local privacy a client answers one of the two, with the whole epsilon");
    /* Of the second survey: one less its share is the end of the first one's. */
    if (!made->is_first) share.top = share.bottom - share.top;
    made->end = fraction_bits(share, &is_exact);
    if (!is_exact) made->end++;
    return 1;
}

int answers_step(const fa_survey *survey, const char *name) {
    const step *of = &survey->step;
    if (!of->is_there) return 1;
    int below = hash_mark(of->is_first ? survey->fingerprint : of->first, "step", name) < of->end;
    return of->is_first ? below : !below;
}

uint32_t hashed_level(const fa_survey *survey, const char *client_id) {
    uint64_t mark = hash_mark(survey->fingerprint, "", client_id);
    uint32_t k = 0;
    while (k + 1 < survey->level_count && mark >= survey->end64[k]) k++;
    return k;
}

uint32_t level_of_word(const fa_survey *survey, uint32_t word) {
    uint32_t k = 0;
    while (k + 1 < survey->level_count && word >= survey->end32[k]) k++;
    return k;
}
