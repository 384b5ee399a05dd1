/* Groups of rows: those that a survey names, rows that say nothing, and all others. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define MOST_GROUPS 100
#define MOST_LETTERS 200
#define NAMED "groups are named once each, by 1 to %d letters without blanks around them"

/* The bytes of a blank that begins here, or 0: what Python's strip takes away. */
static size_t blank_length(const unsigned char *c) {
    if ((c[0] >= 0x09 && c[0] <= 0x0d) || (c[0] >= 0x1c && c[0] <= 0x20)) return 1;
    if (c[0] == 0xc2 && (c[1] == 0x85 || c[1] == 0xa0)) return 2;
    if (c[0] == 0xe1 && c[1] == 0x9a && c[2] == 0x80) return 3;
    if (c[0] == 0xe2 && c[1] == 0x80) {
        return (c[2] >= 0x80 && c[2] <= 0x8a) || c[2] == 0xa8 || c[2] == 0xa9 || c[2] == 0xaf ? 3 : 0;
    }
    if (c[0] == 0xe2 && c[1] == 0x81 && c[2] == 0x9f) return 3;
    return c[0] == 0xe3 && c[1] == 0x80 && c[2] == 0x80 ? 3 : 0;
}

/* The letters of a text without blanks around it: where they begin, and how many bytes. */
static const char *stripped(const char *text, size_t *bytes, size_t *letters) {
    size_t blank;
    const char *at, *end;
    while ((blank = blank_length((const unsigned char *)text)) > 0) text += blank;
    *bytes = *letters = 0;
    size_t seen = 0;
    for (at = text; *at != '\0'; at = end) {
        blank = blank_length((const unsigned char *)at);
        for (end = at + (blank > 0 ? blank : 1); ((unsigned char)*end & 0xc0) == 0x80;) end++;
        seen++;
        /* A name has so many letters; what a longer text says behind them is not looked at. */
        if (seen > MOST_LETTERS) break;
        if (blank == 0) {
            *bytes = (size_t)(end - text);
            *letters = seen;
        }
    }
    return text;
}

static int is_name(const char *text) {
    size_t bytes, letters;
    return stripped(text, &bytes, &letters) == text && bytes == strlen(text) && letters > 0 &&
           strcmp(text, "(missing)") != 0 && strcmp(text, "(unknown)") != 0;
}

static size_t count_letters(const char *text) {
    size_t letters = 0;
    for (; *text != '\0'; text++) letters += ((unsigned char)*text & 0xc0) != 0x80;
    return letters;
}

int groups_read(groups *made, const json *file, uint32_t node) {
    uint32_t column, list, at;
    char *name;
    int fits;
    if (!json_exactly(file, node, "column names", "groups")) return 0;
    column = json_find(file, node, "column");
    list = json_find(file, node, "names");
    name = file->nodes[column].kind == '"' ? json_text(file, column) : NULL;
    fits = name != NULL && name[0] != '\0' && count_letters(name) <= MOST_LETTERS;
    free(name);
    CHECK(file->why, fits, "a column of groups has a name of 1 to %d letters", MOST_LETTERS);
    CHECK(file->why, file->nodes[list].kind == '[' && file->nodes[list].count >= 1,
          NAMED, MOST_LETTERS);
    CHECK(file->why, file->nodes[list].count <= MOST_GROUPS,
          "a column of groups has at most %d values", MOST_GROUPS);
    made->names = calloc(file->nodes[list].count, sizeof *made->names);
    CHECK(file->why, made->names != NULL, "there is not enough memory for this survey");
    at = list + 1;
    for (uint32_t i = 0; i < file->nodes[list].count; i++) {
        CHECK(file->why, file->nodes[at].kind == '"', NAMED, MOST_LETTERS);
        name = made->names[made->count++] = json_text(file, at);
        CHECK(file->why, name != NULL && is_name(name), NAMED, MOST_LETTERS);
        for (uint32_t j = 0; j < i; j++) {
            CHECK(file->why, strcmp(made->names[j], name) != 0, NAMED, MOST_LETTERS);
        }
        at = file->nodes[at].next;
    }
    return 1;
}

uint32_t groups_part(const groups *made, const char *name) {
    size_t bytes = 0, letters;
    const char *text = name == NULL ? "" : stripped(name, &bytes, &letters);
    if (bytes == 0) return made->count;
    for (uint32_t i = 0; i < made->count; i++) {
        if (strlen(made->names[i]) == bytes && memcmp(made->names[i], text, bytes) == 0) return i;
    }
    return made->count + 1;
}
