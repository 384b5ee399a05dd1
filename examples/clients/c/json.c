/* Canonical JSON, read strictly: any other layout of the same content is refused.
 *
 * So the fingerprint is the hash of the bytes as they came, and no name can stand twice. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define MOST_DEPTH 16
#define MOST_NESTED 1024
#define MOST_TEXTS 4096
#define MOST_ITEMS (1u << 18)

typedef struct {
    json *file;
    const char *at, *end;
} reader;

static int read_value(reader *from, int depth);

static json_node *add_node(reader *from, char kind) {
    json *file = from->file;
    if (file->used == file->room) return NULL;
    json_node *node = &file->nodes[file->used++];
    memset(node, 0, sizeof *node);
    node->kind = kind;
    node->start = (uint32_t)(from->at - file->text);
    return node;
}

static void end_node(reader *from, uint32_t node) {
    json_node *ended = &from->file->nodes[node];
    ended->end = (uint32_t)(from->at - from->file->text);
    ended->next = from->file->used;
}

static int take(reader *from, char c) {
    if (from->at == from->end || *from->at != c) return 0;
    from->at++;
    return 1;
}

/* One character of valid UTF-8, neither longer than it must be nor half of a pair; or 0. */
static size_t utf8_length(const unsigned char *c, size_t left) {
    size_t length = c[0] < 0x80 ? 1 : c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;
    if (length == 0 || length > left || c[0] > 0xf4) return 0;
    for (size_t i = 1; i < length; i++) {
        if ((c[i] & 0xc0) != 0x80) return 0;
    }
    if (c[0] == 0xe0 && c[1] < 0xa0) return 0;
    if (c[0] == 0xed && c[1] > 0x9f) return 0;
    if (c[0] == 0xf0 && c[1] < 0x90) return 0;
    if (c[0] == 0xf4 && c[1] > 0x8f) return 0;
    return length;
}

/* An escape is there only where it must be: \" \\ \b \t \n \f \r and \u00xx below a blank. */
static size_t escape_length(const char *c, size_t left) {
    static const char digits[] = "0123456789abcdef";
    int code;
    if (left >= 2 && strchr("\"\\btnfr", c[1]) != NULL && c[1] != '\0') return 2;
    if (left < 6 || memcmp(c, "\\u00", 4) != 0 || (c[4] != '0' && c[4] != '1')) return 0;
    const char *low = c[5] == '\0' ? NULL : strchr(digits, c[5]);
    if (low == NULL) return 0;
    code = 16 * (c[4] - '0') + (int)(low - digits);
    return strchr("\b\t\n\f\r", code) != NULL && code != 0 ? 0 : 6;
}

static int read_text(reader *from) {
    uint32_t node = from->file->used;
    from->at++;
    if (add_node(from, '"') == NULL) return 0;
    while (from->at < from->end && *from->at != '"') {
        size_t left = (size_t)(from->end - from->at), length;
        unsigned char c = (unsigned char)*from->at;
        if (c < 0x20) return 0;
        length = c == '\\' ? escape_length(from->at, left)
                           : utf8_length((const unsigned char *)from->at, left);
        if (length == 0) return 0;
        from->at += length;
    }
    end_node(from, node);
    return take(from, '"');
}

unsigned char json_byte(const char **at) {
    static const char letters[] = "btnfr", meant[] = "\b\t\n\f\r";
    const char *c = *at, *letter;
    *at += *c != '\\' ? 1 : c[1] == 'u' ? 6 : 2;
    if (*c != '\\') return (unsigned char)*c;
    if (c[1] == 'u') {
        return (unsigned char)(16 * (c[4] - '0') + (c[5] <= '9' ? c[5] - '0' : c[5] - 'a' + 10));
    }
    letter = strchr(letters, c[1]);
    return (unsigned char)(letter == NULL ? c[1] : meant[letter - letters]);
}

/* Names rise by UTF-16 code units: characters of four bytes come before those from U+E000 on. */
static int rises(const json *file, uint32_t before, uint32_t name) {
    const char *a = file->text + file->nodes[before].start, *b = file->text + file->nodes[name].start;
    const char *a_end = file->text + file->nodes[before].end;
    const char *b_end = file->text + file->nodes[name].end;
    while (a < a_end && b < b_end) {
        unsigned char x = json_byte(&a), y = json_byte(&b);
        if (x == y) continue;
        if (x >= 0xf0 && (y == 0xee || y == 0xef)) return 1;
        if (y >= 0xf0 && (x == 0xee || x == 0xef)) return 0;
        return x < y;
    }
    return a == a_end && b < b_end;
}

static int read_inside(reader *from, char kind, int depth) {
    uint32_t node = from->file->used, before = 0;
    char closing = kind == '{' ? '}' : ']';
    if (depth == 0 || add_node(from, kind) == NULL) return 0;
    from->at++;
    if (!take(from, closing)) {
        do {
            uint32_t name = from->file->used;
            if (kind == '{') {
                if (from->at == from->end || *from->at != '"' || !read_text(from)) return 0;
                if (before != 0 && !rises(from->file, before, name)) return 0;
                before = name;
                if (!take(from, ':')) return 0;
            }
            if (!read_value(from, depth - 1)) return 0;
            from->file->nodes[node].count++;
        } while (take(from, ','));
        if (!take(from, closing)) return 0;
    }
    end_node(from, node);
    return 1;
}

static int read_word(reader *from, const char *word) {
    uint32_t node = from->file->used;
    size_t length = strlen(word);
    if ((size_t)(from->end - from->at) < length || memcmp(from->at, word, length) != 0) return 0;
    if (add_node(from, word[0]) == NULL) return 0;
    from->at += length;
    end_node(from, node);
    return 1;
}

static int read_number(reader *from) {
    uint32_t node = from->file->used;
    const char *start = from->at;
    json_node *made = add_node(from, '0');
    if (made == NULL) return 0;
    while (from->at < from->end && *from->at != '\0' && strchr("0123456789+-.e", *from->at)) {
        from->at++;
    }
    end_node(from, node);
    return number_read(start, (size_t)(from->at - start), &made->number);
}

static int read_value(reader *from, int depth) {
    if (from->at == from->end) return 0;
    switch (*from->at) {
        case '{':
        case '[':
            return read_inside(from, *from->at, depth);
        case '"':
            return read_text(from);
        case 't':
            return read_word(from, "true");
        case 'f':
            return read_word(from, "false");
        case 'n':
            return read_word(from, "null");
        default:
            return read_number(from);
    }
}

int json_read(json *file, const char *text, size_t count, char why[FA_WHY_BYTES]) {
    size_t nested = 0, quotes = 0, commas = 0, colons = 0;
    reader from = {file, text, text + count};
    memset(file, 0, sizeof *file);
    file->text = text;
    file->why = why;
    CHECK(why, count <= MOST_SURVEY_BYTES, "a survey has at most %u bytes", MOST_SURVEY_BYTES);
    for (size_t i = 0; i < count; i++) {
        nested += text[i] == '[' || text[i] == '{';
        quotes += text[i] == '"';
        commas += text[i] == ',';
        colons += text[i] == ':';
    }
    CHECK(why, nested <= MOST_NESTED && quotes / 2 <= MOST_TEXTS && commas <= MOST_ITEMS &&
              colons <= MOST_TEXTS,
          "a survey has at most %d lists and objects, %d texts and %u items", MOST_NESTED,
          MOST_TEXTS, MOST_ITEMS);
    /* Every value follows one of these, or stands alone; every name is before a colon. */
    file->room = (uint32_t)(nested + commas + 2 * colons + 1);
    file->nodes = calloc(file->room, sizeof *file->nodes);
    CHECK(why, file->nodes != NULL, "there is not enough memory for this survey");
    /* One newline may end the file. */
    if (count > 0 && text[count - 1] == '\n') from.end--;
    CHECK(why, read_value(&from, MOST_DEPTH) && from.at == from.end,
          "not canonical JSON, or cut short: a survey says everything in one way");
    return 1;
}

void json_free(json *file) {
    free(file->nodes);
    file->nodes = NULL;
}
