/* Fields of untrusted objects: all that must be there, and nothing else. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

int refuse(char why[FA_WHY_BYTES], const char *rule, ...) {
    va_list values;
    va_start(values, rule);
    vsnprintf(why, FA_WHY_BYTES, rule, values);
    va_end(values);
    return 0;
}

/* The node after a name of a list such as "kind cells". */
static const char *next_word(const char *names, size_t *length) {
    while (*names == ' ') names++;
    *length = strcspn(names, " ");
    return *length == 0 ? NULL : names;
}

static int is_word(const json *file, uint32_t node, const char *word, size_t length) {
    const json_node *text = &file->nodes[node];
    return text->kind == '"' && text->end - text->start == length &&
           memcmp(file->text + text->start, word, length) == 0;
}

static uint32_t find(const json *file, uint32_t node, const char *name, size_t length) {
    uint32_t at = node + 1;
    if (file->nodes[node].kind != '{') return 0;
    for (uint32_t i = 0; i < file->nodes[node].count; i++) {
        if (is_word(file, at, name, length)) return at + 1;
        at = file->nodes[at + 1].next;
    }
    return 0;
}

int json_exactly(const json *file, uint32_t node, const char *names, const char *where) {
    uint32_t at = node + 1;
    size_t length;
    CHECK(file->why, file->nodes[node].kind == '{', "%s: expected an object", where);
    for (uint32_t i = 0; i < file->nodes[node].count; i++) {
        const char *word = names;
        int is_known = 0;
        for (; (word = next_word(word, &length)) != NULL && !is_known; word += length) {
            is_known = is_word(file, at, word, length);
        }
        /* A field that this client does not know might change the meaning of those it knows. */
        CHECK(file->why, is_known, "%s: unknown field \"%.*s\"", where,
              (int)(file->nodes[at].end - file->nodes[at].start > 40
                        ? 40
                        : file->nodes[at].end - file->nodes[at].start),
              file->text + file->nodes[at].start);
        at = file->nodes[at + 1].next;
    }
    for (const char *word = names; (word = next_word(word, &length)) != NULL; word += length) {
        CHECK(file->why, find(file, node, word, length) != 0, "%s: field \"%.*s\" is missing",
              where, (int)length, word);
    }
    return 1;
}

uint32_t json_find(const json *file, uint32_t node, const char *name) {
    return find(file, node, name, strlen(name));
}

int json_is(const json *file, uint32_t node, const char *text) {
    return is_word(file, node, text, strlen(text));
}

int json_kind_is(const json *file, uint32_t node, const char *kind) {
    uint32_t found = json_find(file, node, "kind");
    return found != 0 && json_is(file, found, kind);
}

int json_whole(const json *file, uint32_t node, double low, double high, const char *name,
               uint64_t *value) {
    const json_node *found = &file->nodes[node];
    int fits = found->kind == '0' && found->number >= low && found->number <= high;
    if (fits) *value = (uint64_t)found->number;
    CHECK(file->why, fits && (double)*value == found->number,
          "\"%s\" must be a whole number from %.0f to %.0f", name, low, high);
    return 1;
}

int json_boolean(const json *file, uint32_t node, const char *name, int *value) {
    char kind = file->nodes[node].kind;
    CHECK(file->why, kind == 't' || kind == 'f', "\"%s\" must be true or false", name);
    *value = kind == 't';
    return 1;
}

/* At most 12 digits without a leading zero; the text behind them, or NULL. */
static const char *read_digits(const char *text, const char *end, uint64_t *value) {
    const char *at = text;
    for (*value = 0; at < end && *at >= '0' && *at <= '9'; at++) {
        *value = 10 * *value + (uint64_t)(*at - '0');
        if (at - text >= 12) return NULL;
    }
    return at == text || (*text == '0' && at - text > 1) ? NULL : at;
}

/* 1 for a fraction, -1 for one that is not in lowest terms, 0 for no fraction. */
static int read_fraction(const char *text, const char *end, fa_fraction *value) {
    const char *at = read_digits(text, end, &value->top);
    value->bottom = 1;
    if (at == NULL) return 0;
    if (at == end) return 1;
    if (*at != '/') return 0;
    at = read_digits(at + 1, end, &value->bottom);
    if (at != end || value->bottom == 0) return 0;
    return value->bottom > 1 && greatest_divisor(value->top, value->bottom) == 1 ? 1 : -1;
}

int fa_fraction_read(const char *text, fa_fraction *fraction) {
    return read_fraction(text, text + strlen(text), fraction) == 1;
}

int json_fraction(const json *file, uint32_t node, const char *name, fa_fraction *value) {
    const json_node *found = &file->nodes[node];
    int is_read = found->kind == '"'
                      ? read_fraction(file->text + found->start, file->text + found->end, value)
                      : 0;
    CHECK(file->why, is_read != 0, "\"%s\" must be a fraction such as \"1/3\"", name);
    CHECK(file->why, is_read > 0, "\"%s\" says everything in one way: in lowest terms", name);
    return 1;
}

int json_hex64(const json *file, uint32_t node) {
    const json_node *found = &file->nodes[node];
    if (found->kind != '"' || found->end - found->start != 64) return 0;
    return strspn(file->text + found->start, "0123456789abcdef") >= 64;
}

char *json_text(const json *file, uint32_t node) {
    const char *at = file->text + file->nodes[node].start;
    const char *end = file->text + file->nodes[node].end;
    char *text = malloc((size_t)(end - at) + 1), *to = text;
    if (text == NULL) return NULL;
    while (at < end) *to++ = (char)json_byte(&at);
    *to = '\0';
    /* A text that holds the end of all texts cannot be compared with what an app says. */
    if (strlen(text) == (size_t)(to - text)) return text;
    free(text);
    return NULL;
}
