/* The C client's parts, asked line by line: a command and its values between tabs, one line back.
 *
 * `planted` puts a bug into the survey at hand, so that the tests of laws are seen to catch it. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../examples/clients/c/internal.h"

static fa_survey *survey;
static const char *next; /* what is left of the line */

static char *value(void) {
    static char text[1 << 23];
    size_t length = next == NULL ? 0 : strcspn(next, "\t");
    if (next == NULL) return NULL;
    memcpy(text, next, length);
    text[length] = '\0';
    next = next[length] == '\t' ? next + length + 1 : NULL;
    return text;
}

static void print_hex(const unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) printf("%02x", bytes[i]);
}

static void print_starts(const level *at, int label) {
    int shown = 0;
    for (uint32_t leaf = 0; leaf < survey->leaves && shown < 20; leaf++) {
        if (leaf > 0 && level_cell(at, leaf, label) == level_cell(at, leaf - 1, label)) continue;
        printf("%s%u", shown++ > 0 ? "," : "[", leaf);
    }
    printf("]");
}

static void read_survey(const char *text) {
    char why[FA_WHY_BYTES];
    sha256 hash;
    unsigned char digest[32];
    fa_survey_free(survey);
    survey = fa_survey_read((const unsigned char *)text, strlen(text), why);
    if (survey == NULL) {
        printf("refused: %s", why);
        return;
    }
    printf("{\"fingerprint\":\"");
    print_hex(fa_survey_fingerprint(survey), FA_FINGERPRINT_BYTES);
    sha256_begin(&hash);
    for (uint32_t i = 0; i <= survey->grid.cells; i++) {
        uint64_t bits;
        memcpy(&bits, &survey->grid.edges[i], sizeof bits);
        for (int byte = 0; byte < 8; byte++) {
            unsigned char one = (unsigned char)(bits >> (56 - 8 * byte));
            sha256_add(&hash, &one, 1);
        }
    }
    sha256_end(&hash, digest);
    printf("\",\"edges_sha256\":\"");
    print_hex(digest, sizeof digest);
    fa_fraction spent = fa_survey_epsilon(survey);
    printf("\",\"epsilon\":[\"%" PRIu64 "\",\"%" PRIu64 "\"],\"levels\":[", spent.top, spent.bottom);
    for (uint32_t k = 0; k < survey->level_count; k++) {
        const level *at = &survey->levels[k];
        printf("%s{\"cells\":%u,\"starts\":", k > 0 ? "," : "", at->cells);
        print_starts(at, 0);
        if (at->kind == CUTS) {
            printf(",\"starts_of_positives\":");
            print_starts(at, 1);
        }
        printf(",\"probability\":\"%" PRIu64 "\"}", at->numerator);
    }
    printf("]}");
}

typedef struct {
    const unsigned char *bytes;
    size_t left;
} script;

/* What was recorded, in place of randomness; zeros behind it are never used. */
static int scripted(void *context, unsigned char *bytes, size_t count) {
    script *from = context;
    size_t taken = from->left < count ? from->left : count;
    memcpy(bytes, from->bytes, taken);
    memset(bytes + taken, 0, count - taken);
    from->bytes += taken;
    from->left -= taken;
    return 1;
}

static int no_randomness(void *context, unsigned char *bytes, size_t count) {
    (void)context;
    memset(bytes, 0, count);
    return 0;
}

static int charged;

/* An account that lets the first answer through. */
static int charge_once(void *context, const fa_survey *asked) {
    (void)context;
    (void)asked;
    return charged++ == 0;
}

static size_t read_rows(fa_row *rows, char **texts) {
    size_t count = 0;
    while (next != NULL) {
        rows[count].label = atoi(value());
        rows[count].score = strtod(value(), NULL);
        if (survey->is_pair) rows[count].second = strtod(value(), NULL);
        if (survey->groups.count > 0) {
            char *group = value();
            rows[count].group = texts[count] = group[0] == '\0' ? NULL : strdup(group);
        }
        count++;
    }
    return count;
}

/* answer SCRIPT ID LABEL SCORE ...; a script of - is the system's randomness, of ! none. */
static void answer(int with_account) {
    static unsigned char bytes[1 << 20];
    static fa_row rows[1 << 10];
    static char *texts[1 << 10];
    char id[64], why[FA_WHY_BYTES], *text = value();
    script from = {bytes, strlen(text) / 2};
    fa_owner owner = {{10, 1}, 1, NULL, id, with_account ? charge_once : NULL, NULL, scripted, &from};
    size_t length;
    for (size_t i = 0; i < from.left; i++) {
        unsigned byte;
        sscanf(text + 2 * i, "%2x", &byte);
        bytes[i] = (unsigned char)byte;
    }
    if (text[0] == '-') owner.random = NULL;
    if (text[0] == '!') owner.random = no_randomness;
    strcpy(id, value());
    if (strcmp(id, "-") == 0) owner.client_id = NULL;
    memset(rows, 0, sizeof rows);
    size_t count = read_rows(rows, texts);
    unsigned char *report = fa_answer(survey, rows, count, &owner, &length, why);
    if (report == NULL) {
        printf("refused: %s", why);
    } else {
        print_hex(report, length);
    }
    free(report);
    for (size_t i = 0; i < count; i++) {
        free(texts[i]);
        texts[i] = NULL;
    }
}

/* laws FILE CLIENTS PLACES...: reports of clients that hold so many rows in each even cell. */
static void laws(void) {
    char path[4096], id[64], why[FA_WHY_BYTES];
    size_t most = 1 << 20, count = 0, length;
    fa_row *rows = calloc(most, sizeof *rows);
    strcpy(path, value());
    FILE *file = fopen(path, "wb");
    long clients = atol(value());
    for (uint32_t place = 0; next != NULL; place++) {
        for (long left = atol(value()); left > 0; left--) {
            rows[count].label = place >= survey->leaves;
            rows[count++].score = (place % survey->leaves + 0.5) / survey->leaves;
        }
    }
    for (long i = 0; i < clients; i++) {
        fa_owner owner = {{10, 1}, 1, NULL, id, NULL, NULL, NULL, NULL};
        sprintf(id, "client %ld", i);
        unsigned char *report = fa_answer(survey, rows, count, &owner, &length, why);
        if (report == NULL) {
            printf("refused: %s", why);
            break;
        }
        fwrite(report, 1, length, file);
        free(report);
    }
    free(rows);
    fclose(file);
}

static void planted(const char *bug) {
    for (uint32_t k = 0; k < survey->level_count; k++) {
        level *at = &survey->levels[k];
        if (strcmp(bug, "biased coins") == 0) at->numerator = at->numerator / 4 * 3;
        if (strcmp(bug, "even levels") == 0) {
            survey->end32[k] = (UINT64_C(1) << 32) * (k + 1) / survey->level_count;
        }
    }
}

int main(void) {
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    while ((length = getline(&line, &room, stdin)) > 0) {
        line[length - 1] = '\0';
        next = line;
        char command[32];
        strcpy(command, value());
        if (strcmp(command, "survey") == 0) read_survey(value());
        if (strcmp(command, "score") == 0) printf("%u", grid_cell(&survey->grid, strtod(value(), NULL)));
        if (strcmp(command, "id") == 0) printf("%u", hashed_level(survey, value()));
        if (strcmp(command, "word") == 0) {
            printf("%u", level_of_word(survey, (uint32_t)strtoul(value(), NULL, 10)));
        }
        if (strcmp(command, "place") == 0) {
            fa_row row;
            char *texts[1] = {NULL}, why[FA_WHY_BYTES];
            int64_t place = -1;
            memset(&row, 0, sizeof row);
            read_rows(&row, texts);
            find_hit(survey, &row, 0, &place, why);
            printf("%" PRId64, place);
            free(texts[0]);
        }
        if (strcmp(command, "step") == 0) printf("%d", answers_step(survey, value()));
        if (strcmp(command, "group") == 0) printf("%u", groups_part(&survey->groups, value()));
        if (strcmp(command, "number") == 0) {
            double number;
            uint64_t bits;
            char *text = value();
            int is_read = number_read(text, strlen(text), &number);
            memcpy(&bits, &number, sizeof bits);
            if (is_read) printf("%016" PRIx64, bits);
        }
        if (strcmp(command, "json") == 0) {
            json file;
            char why[FA_WHY_BYTES], *text = value();
            printf("%d", json_read(&file, text, strlen(text), why));
            json_free(&file);
        }
        if (strcmp(command, "probabilities") == 0) {
            fa_fraction epsilon;
            big power;
            fa_fraction_read(value(), &epsilon);
            scaled_exp(epsilon, &power);
            for (int i = power.used - 1; i >= 0; i--) printf("%08x", power.limb[i]);
            printf(" %" PRIu64, unary_numerator(epsilon));
            while (next != NULL) {
                uint32_t values = (uint32_t)strtoul(value(), NULL, 10);
                printf(" %" PRIu64, response_numerator(epsilon, values));
            }
        }
        if (strcmp(command, "answer") == 0) answer(0);
        if (strcmp(command, "charged answer") == 0) answer(1);
        if (strcmp(command, "laws") == 0) laws();
        if (strcmp(command, "planted") == 0) planted(value());
        printf("\n");
        fflush(stdout);
    }
    fa_survey_free(survey);
    free(line);
    return 0;
}
