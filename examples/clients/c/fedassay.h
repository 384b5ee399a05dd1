/* A client for devices: answers locally private fedassay surveys with nothing but libc. */
#ifndef FEDASSAY_H
#define FEDASSAY_H

#include <stddef.h>
#include <stdint.h>

/* Room for the reason of a refusal; no reason ever holds a score, a label or a row. */
#define FA_WHY_BYTES 200
#define FA_FINGERPRINT_BYTES 32

/* A survey that was read and checked; it belongs to whoever read it. */
typedef struct fa_survey fa_survey;

/* An exact rational; 5 is {5, 1}. */
typedef struct {
    uint64_t top, bottom;
} fa_fraction;

typedef struct {
    int label;         /* 0 or 1 */
    double score;      /* from 0 to 1 */
    double second;     /* where the survey asks for two models: the second one's score */
    const char *group; /* where it tells groups apart: UTF-8, or NULL for none */
} fa_row;

/* Fills bytes with randomness that nobody can predict; 0 where that fails. */
typedef int (*fa_random)(void *context, unsigned char *bytes, size_t count);

/* What the owner of a device allows, and what the survey is answered with.
 * All zeros is a closed client: without a largest epsilon nothing is answered. */
typedef struct {
    fa_fraction largest_epsilon; /* the most that a survey may spend, at most 10 */
    uint64_t smallest_cohort;    /* the fewest honest reports; 0 and 1 for any */
    const char *model_digest;    /* the one model that is assessed; NULL for any */
    const char *client_id;       /* UTF-8; NULL where the survey does not need one */
    /* Where a device keeps account of its epsilons: called after all checks and before any
     * noise is drawn; 0 refuses, and nothing is sent. NULL for none. */
    int (*charge)(void *context, const fa_survey *survey);
    void *charge_context;
    fa_random random; /* NULL for the system's own randomness */
    void *random_context;
} fa_owner;

/* "5" or "1/3", in lowest terms; 0 where the text is another. */
int fa_fraction_read(const char *text, fa_fraction *fraction);

/* Read and check the bytes of a survey file; NULL with a reason where it is refused. */
fa_survey *fa_survey_read(const unsigned char *bytes, size_t count, char why[FA_WHY_BYTES]);
void fa_survey_free(fa_survey *survey);

/* SHA-256 of the survey's canonical JSON: it names the survey in every report. */
const unsigned char *fa_survey_fingerprint(const fa_survey *survey);
/* What one unit spends on this survey, and on the other one where it is one of two; of shuffled
 * reports what each spends alone. */
fa_fraction fa_survey_epsilon(const fa_survey *survey);
/* Whether rows carry a second score, and a group. */
int fa_survey_is_pair(const fa_survey *survey);
int fa_survey_has_groups(const fa_survey *survey);
/* Whether a device without rows answers too. */
int fa_survey_allows_empty(const fa_survey *survey);

/* All that may leave the device: the bytes of a report file, 68 for one row and one value.
 *
 * Keep them before the first attempt to send, and send these same bytes again until they have
 * arrived: their report id is fixed here, so a repeat counts once. Free them with free().
 * NULL with a reason where the answer is refused; then nothing was drawn and nothing may leave. */
unsigned char *fa_answer(const fa_survey *survey, const fa_row *rows, size_t count,
                         const fa_owner *owner, size_t *length, char why[FA_WHY_BYTES]);

/* Whether bytes begin like an answer to this survey. */
int fa_is_answer_to(const fa_survey *survey, const unsigned char *bytes, size_t count);

#endif
