/* fedassay-report SURVEY REPORT --largest-epsilon E [options] [LABEL SCORE]...
 *
 * Writes one answer, once: where REPORT answers the survey already it stays as it is, so that a
 * retry sends the same bytes. */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fedassay.h"

#define MOST_FILE (4u << 20)

static int fail(const char *why) {
    fprintf(stderr, "refused: %s\n", why);
    return 1;
}

/* At most one byte more than a survey may have; NULL where the file cannot be read. */
static unsigned char *read_file(const char *path, size_t *count) {
    FILE *file = fopen(path, "rb");
    unsigned char *bytes = file == NULL ? NULL : malloc(MOST_FILE + 1);
    if (bytes != NULL) *count = fread(bytes, 1, MOST_FILE + 1, file);
    if (file != NULL) fclose(file);
    return bytes;
}

/* Whole or not at all, and only for its owner to read. */
static int write_file(const char *path, const unsigned char *bytes, size_t count) {
    char part[4096];
    int file, is_written;
    size_t sent = 0;
    if (snprintf(part, sizeof part, "%s.part", path) >= (int)sizeof part) return 0;
    unlink(part);
    file = open(part, O_WRONLY | O_CREAT | O_EXCL, S_IRUSR | S_IWUSR);
    if (file < 0) return 0;
    while (sent < count) {
        ssize_t got = write(file, bytes + sent, count - sent);
        if (got <= 0) break;
        sent += (size_t)got;
    }
    is_written = sent == count && fsync(file) == 0;
    is_written = close(file) == 0 && is_written;
    /* A link, unlike a rename, never takes the place of a file that is there. */
    is_written = is_written && link(part, path) == 0;
    unlink(part);
    return is_written;
}

/* A number and nothing else; what is none lies outside of [0, 1]. */
static double number(const char *text) {
    char *end;
    double value = strtod(text, &end);
    return end == text || *end != '\0' ? -1.0 : value;
}

static fa_row *read_rows(const fa_survey *survey, char **words, int count, size_t *rows) {
    int width = 2 + fa_survey_is_pair(survey) + fa_survey_has_groups(survey);
    fa_row *made = calloc((size_t)count / (size_t)width + 1, sizeof *made);
    if (count % width != 0 || made == NULL) {
        free(made);
        fprintf(stderr, "refused: each row of this survey has %d values: LABEL SCORE%s%s\n", width,
                fa_survey_is_pair(survey) ? " SECOND-SCORE" : "",
                fa_survey_has_groups(survey) ? " GROUP" : "");
        return NULL;
    }
    for (*rows = 0; count > 0; count -= width, words += width) {
        fa_row *row = &made[(*rows)++];
        double label = number(words[0]);
        row->label = label == 0 ? 0 : label == 1 ? 1 : -1;
        row->score = number(words[1]);
        if (fa_survey_is_pair(survey)) row->second = number(words[2]);
        if (fa_survey_has_groups(survey)) row->group = words[width - 1];
    }
    return made;
}

static int answer_once(const fa_survey *survey, const fa_owner *owner, const char *path,
                       char **words, int count) {
    char why[FA_WHY_BYTES];
    size_t rows, length;
    unsigned char *report = read_file(path, &length);
    if (report != NULL) {
        int is_answered = fa_is_answer_to(survey, report, length);
        free(report);
        if (!is_answered) return fail("the report's file is there and holds something else");
        fprintf(stderr, "answered already: send the same bytes again\n");
        return 0;
    }
    fa_row *made = read_rows(survey, words, count, &rows);
    if (made == NULL) return 1;
    report = fa_answer(survey, made, rows, owner, &length, why);
    free(made);
    if (report == NULL) return fail(why);
    int is_written = write_file(path, report, length);
    free(report);
    return is_written ? 0 : fail("the report cannot be written");
}

int main(int argc, char **argv) {
    static const char USAGE[] =
        "usage: fedassay-report SURVEY REPORT --largest-epsilon E [--smallest-cohort N]\n"
        "       [--model-digest HEX] [--client-id ID] [LABEL SCORE [SECOND-SCORE] [GROUP]]...";
    char why[FA_WHY_BYTES];
    fa_owner owner = {0};
    int at = 3, has_epsilon = 0, ended;
    size_t count = 0;
    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        if (strcmp(argv[at], "--largest-epsilon") == 0) {
            has_epsilon = fa_fraction_read(argv[at + 1], &owner.largest_epsilon);
        } else if (strcmp(argv[at], "--smallest-cohort") == 0) {
            owner.smallest_cohort = strtoull(argv[at + 1], NULL, 10);
        } else if (strcmp(argv[at], "--model-digest") == 0) {
            owner.model_digest = argv[at + 1];
        } else if (strcmp(argv[at], "--client-id") == 0) {
            owner.client_id = argv[at + 1];
        } else {
            return fail(USAGE);
        }
    }
    if (argc < 4 || !has_epsilon) return fail(USAGE);
    unsigned char *bytes = read_file(argv[1], &count);
    if (bytes == NULL) return fail("the survey cannot be read");
    fa_survey *survey = fa_survey_read(bytes, count, why);
    free(bytes);
    if (survey == NULL) return fail(why);
    ended = answer_once(survey, &owner, argv[2], argv + at, argc - at);
    fa_survey_free(survey);
    return ended;
}
