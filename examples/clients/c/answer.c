/* The client: the owner's limits, the order of checks, one report for each unit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define MOST_ANSWER_BYTES (1u << 28)
#define MOST_ID 1000

/* No client answers a survey that spends more, whatever its owner says: e^10 is 22,026 to 1. */
static const fa_fraction CEILING = {10, 1};

static int check_owner(const fa_survey *survey, const fa_owner *owner, char *why) {
    fa_fraction most = owner->largest_epsilon;
    CHECK(why, most.top > 0 && most.bottom > 0, "say the largest epsilon that a survey may spend");
    CHECK(why, fraction_compare(most, CEILING) <= 0, "a client's largest epsilon is at most 10");
    CHECK(why, survey->honest >= owner->smallest_cohort,
          "this client answers only in a crowd of at least %.0f", (double)owner->smallest_cohort);
    CHECK(why, fraction_compare(survey->epsilon, most) <= 0,
          "this client spends at most epsilon %.0f/%.0f on a survey", (double)most.top,
          (double)most.bottom);
    CHECK(why,
          owner->model_digest == NULL || strcmp(owner->model_digest, survey->model_digest) == 0,
          "this client assesses only models it knows");
    return 1;
}

/* Where a row counts: label * leaves + leaf. Reasons withhold its values. */
int find_hit(const fa_survey *survey, const fa_row *row, size_t i, int64_t *hit, char *why) {
    uint32_t leaf;
    CHECK(why, row->label == 0 || row->label == 1, "labels must be 0 or 1; item %lu is not",
          (unsigned long)i + 1);
    CHECK(why, row->score >= 0 && row->score <= 1,
          "scores must lie in [0, 1]; item %lu does not", (unsigned long)i + 1);
    leaf = grid_cell(&survey->grid, row->score);
    if (survey->is_pair) {
        CHECK(why, row->second >= 0 && row->second <= 1,
              "second scores must lie in [0, 1]; item %lu does not", (unsigned long)i + 1);
        leaf = leaf * survey->second.cells + grid_cell(&survey->second, row->second);
    }
    if (survey->groups.count > 0) {
        leaf += groups_part(&survey->groups, row->group) * survey->grid.cells;
    }
    *hit = (int64_t)row->label * survey->leaves + leaf;
    return 1;
}

/* Whose turn it is: by the client's id, and the row's number where a row is the unit. */
static int is_asked(const fa_survey *survey, const char *client_id, size_t row) {
    char name[MOST_ID + 32];
    if (!survey->step.is_there) return 1;
    if (survey->unit_is_client) return answers_step(survey, client_id);
    sprintf(name, "%s:%lu", client_id, (unsigned long)row);
    return answers_step(survey, name);
}

/* The places of all rows that are asked, or -1 for a device with nothing. */
static int find_hits(const fa_survey *survey, const fa_row *rows, size_t count,
                     const char *client_id, int64_t *hits, size_t *found, char *why) {
    int64_t hit;
    *found = 0;
    for (size_t i = 0; i < count; i++) {
        if (!find_hit(survey, &rows[i], i, &hit, why)) return 0;
    }
    CHECK(why, client_id != NULL || !survey->by_hash,
          "this survey draws a client's level from its id; found none");
    CHECK(why, client_id != NULL || !survey->step.is_there,
          "each row answers one of two surveys, by its client's id and its number; found no id");
    for (size_t i = 0; i < count; i++) {
        find_hit(survey, &rows[i], i, &hit, why);
        if (is_asked(survey, client_id, i)) hits[(*found)++] = hit;
    }
    CHECK(why,
          !survey->step.is_there ||
              (count > 0 ? *found > 0 : answers_step(survey, client_id)),
          "of two surveys a client, or each of its rows, answers one; nothing of this client is "
          "asked by this one. Answer the other");
    CHECK(why, count > 0 || survey->allow_empty,
          "this survey is for clients that hold an example; this one has none");
    if (count == 0) hits[(*found)++] = -1;
    return 1;
}

/* The order of reports must not tell: neither that of the table nor that of the cells. */
static void shuffle(int64_t *hits, size_t count, dice *drawn) {
    for (size_t last = count; last-- > 1;) {
        size_t other = (size_t)dice_below(drawn, last + 1);
        int64_t kept = hits[last];
        hits[last] = hits[other];
        hits[other] = kept;
    }
}

/* One report for each unit, gathered into one or more blocks per level; returns their bytes. */
static size_t write_blocks(const fa_survey *survey, const int64_t *hits, const uint32_t *level_of,
                           size_t count, dice *drawn, unsigned char *to) {
    size_t length = 0;
    for (uint32_t k = 0; k < survey->level_count; k++) {
        const level *at = &survey->levels[k];
        uint32_t rows = 0;
        for (size_t i = 0; i < count; i++) {
            if (level_of[i] != k) continue;
            int64_t place = -1;
            if (hits[i] >= 0) {
                int label = (int)(hits[i] / survey->leaves);
                uint32_t leaf = (uint32_t)(hits[i] % survey->leaves);
                place = (int64_t)label * at->cells + level_cell(at, leaf, label);
            }
            if (rows == MOST_BLOCK_BYTES / at->row_bytes) {
                length += message_seal(to + length, survey, k, rows, drawn);
                rows = 0;
            }
            draw_row(at, place, drawn, to + length + HEADER_BYTES + (size_t)rows * at->row_bytes);
            rows++;
        }
        if (rows > 0) length += message_seal(to + length, survey, k, rows, drawn);
    }
    return length;
}

static size_t most_bytes(const fa_survey *survey, size_t count) {
    size_t widest = 4;
    for (uint32_t k = 0; k < survey->level_count; k++) {
        if (survey->levels[k].row_bytes > widest) widest = survey->levels[k].row_bytes;
    }
    if (count > MOST_ANSWER_BYTES / widest) return 0;
    /* A block on every level, and one more for each that is full. */
    return count * widest + (survey->level_count + count * widest / (MOST_BLOCK_BYTES / 2) + 1) *
                                (HEADER_BYTES + CRC_BYTES);
}

/* Everything is checked; from here on noise is drawn. */
static unsigned char *draw_answer(const fa_survey *survey, int64_t *hits, uint32_t *level_of,
                                  size_t count, const fa_owner *owner, size_t *length, char *why) {
    dice drawn;
    unsigned char *report;
    dice_begin(&drawn, owner->random, owner->random_context);
    /* Where a client is the unit it sends one report, on one of its rows, whatever it holds. */
    if (survey->unit_is_client) {
        hits[0] = hits[dice_below(&drawn, count)];
        count = 1;
    }
    report = malloc(most_bytes(survey, count));
    if (report == NULL) {
        refuse(why, "there is not enough memory for this answer");
        return NULL;
    }
    shuffle(hits, count, &drawn);
    for (size_t i = 0; i < count; i++) {
        level_of[i] = survey->by_hash       ? hashed_level(survey, owner->client_id)
                      : survey->every_level ? 0
                                            : level_of_word(survey, (uint32_t)dice_word(&drawn, 4));
    }
    *length = write_blocks(survey, hits, level_of, count, &drawn, report);
    if (drawn.failed) {
        memset(report, 0, *length);
        free(report);
        refuse(why, "the system gives no randomness; nothing was sent");
        return NULL;
    }
    return report;
}

unsigned char *fa_answer(const fa_survey *survey, const fa_row *rows, size_t count,
                         const fa_owner *owner, size_t *length, char why[FA_WHY_BYTES]) {
    int64_t *hits = NULL;
    uint32_t *level_of = NULL;
    size_t found = 0, sent = survey->unit_is_client ? 1 : count;
    unsigned char *report = NULL;
    int is_fine = check_owner(survey, owner, why);
    why[is_fine ? 0 : strlen(why)] = '\0';
    *length = 0;
    if (is_fine && (most_bytes(survey, sent) == 0 || count > MOST_ANSWER_BYTES)) {
        is_fine = refuse(why, "an answer has at most %u bytes", MOST_ANSWER_BYTES);
    }
    if (is_fine && owner->client_id != NULL && strlen(owner->client_id) > MOST_ID) {
        is_fine = refuse(why, "a client's id has at most %d bytes", MOST_ID);
    }
    if (is_fine) {
        hits = malloc((count + 1) * sizeof *hits);
        level_of = malloc((count + 1) * sizeof *level_of);
        is_fine = hits != NULL && level_of != NULL;
        if (!is_fine) refuse(why, "there is not enough memory for this answer");
    }
    is_fine = is_fine && find_hits(survey, rows, count, owner->client_id, hits, &found, why);
    if (is_fine && owner->charge != NULL && !owner->charge(owner->charge_context, survey)) {
        is_fine = refuse(why, "this device's account does not allow it");
    }
    if (is_fine) report = draw_answer(survey, hits, level_of, found, owner, length, why);
    free(hits);
    free(level_of);
    return report;
}
