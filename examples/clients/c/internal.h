/* What the parts of the client say to each other; apps include fedassay.h alone. */
#ifndef FEDASSAY_INTERNAL_H
#define FEDASSAY_INTERNAL_H

#include "fedassay.h"

#define MOST_SURVEY_BYTES (4u << 20)
#define MOST_LEVELS 255
#define MOST_LEAVES 8192 /* of a locally private survey: several times what a planner chooses */
#define MOST_EDGES 65537 /* that a file lists */
#define REPORT_ID_BYTES 16

/* --- big.c: whole numbers of any size that a survey leads to ------------------------------ */

/* 255 shares of clients with denominators of 40 bits have a common one of 10,200 bits. */
#define BIG_LIMBS 400

typedef struct {
    int used;
    uint32_t limb[BIG_LIMBS]; /* the least significant first; the last one used is not 0 */
} big;

void big_set(big *a, uint64_t value);
void big_copy(big *a, const big *b);
void big_add(big *a, const big *b);
void big_multiply(big *a, uint64_t by);
uint64_t big_divide(big *a, uint64_t by); /* by below 2^63; returns what is left */
void big_shift(big *a, int bits);         /* to the left */
int big_bits(const big *a);
int big_compare(const big *a, const big *b);
/* The first so many bits of top / bottom behind the point, where that is below 1. */
uint64_t big_ratio(const big *top, const big *bottom, int bits, int *is_exact);

int fraction_compare(fa_fraction a, fa_fraction b); /* -1, 0 or 1 */
uint64_t greatest_divisor(uint64_t a, uint64_t b);
/* floor(a 2^64) and whether that is all, for a below 1. */
uint64_t fraction_bits(fa_fraction a, int *is_exact);

/* --- number.c, json.c: canonical JSON, RFC 8785 ------------------------------------------- */

/* Whether a text is a number as ECMAScript writes it: one text for each double. */
int number_read(const char *text, size_t count, double *value);

typedef struct {
    char kind; /* one of { [ " 0 t f n */
    uint32_t start, end; /* of the text between its quotes, or of the whole value */
    uint32_t next;       /* the node behind this one and all that is in it */
    uint32_t count;      /* items of a list, names of an object */
    double number;
} json_node;

typedef struct {
    const char *text;
    json_node *nodes;
    uint32_t used, room;
    char *why;
} json;

/* Read a text that must be canonical; nothing is allocated before its size and shape are known. */
int json_read(json *file, const char *text, size_t count, char why[FA_WHY_BYTES]);
void json_free(json *file);
int json_exactly(const json *file, uint32_t node, const char *names, const char *where);
uint32_t json_find(const json *file, uint32_t node, const char *name); /* 0 where it is not */
int json_is(const json *file, uint32_t node, const char *text);
int json_kind_is(const json *file, uint32_t node, const char *kind); /* its field "kind" */
int json_whole(const json *file, uint32_t node, double low, double high, const char *name,
               uint64_t *value);
int json_boolean(const json *file, uint32_t node, const char *name, int *value);
int json_fraction(const json *file, uint32_t node, const char *name, fa_fraction *value);
int json_hex64(const json *file, uint32_t node);
/* The next byte of a text, its escape undone; moves on behind it. */
unsigned char json_byte(const char **at);
/* The text with its escapes undone, to be freed; NULL where memory is short or it has a zero. */
char *json_text(const json *file, uint32_t node);

/* Write a reason, and return 0. */
int refuse(char why[FA_WHY_BYTES], const char *rule, ...);
#define CHECK(why, holds, ...)                          \
    do {                                                \
        if (!(holds)) return refuse(why, __VA_ARGS__);  \
    } while (0)

/* --- the parts of a survey ---------------------------------------------------------------- */

typedef struct {
    uint32_t cells;
    double *edges; /* cells + 1 of them, from 0 to 1 */
} grid;

int grid_read(grid *made, const json *file, uint32_t node);
uint32_t grid_cell(const grid *made, double score);

typedef enum { TREE, INTERLEAVED, CUTS } level_kind;

typedef struct {
    level_kind kind;
    uint32_t cells;
    uint32_t block;      /* of a tree: leaves in a cell */
    uint32_t shift, step; /* of interleaved levels */
    uint32_t *starts[2];  /* of cuts: the first leaf of each cell, by label */
    uint32_t count[2];
    /* The mechanism of the level. */
    int is_unary;
    uint32_t values;    /* of randomised response */
    uint64_t numerator; /* of q over 2^24, or of p over 2^64 */
    uint32_t row_bytes;
} level;

int levels_read(fa_survey *survey, const json *file, uint32_t node);
uint32_t level_cell(const level *at, uint32_t leaf, int label);
int mechanism_read(fa_survey *survey, level *at, const json *file, uint32_t node,
                   fa_fraction *epsilon);
int epsilon_read(const json *file, uint32_t node, fa_fraction *epsilon); /* its field */
void scaled_exp(fa_fraction epsilon, big *made);
uint64_t unary_numerator(fa_fraction epsilon);
uint64_t response_numerator(fa_fraction epsilon, uint32_t values);

typedef struct {
    char **names;
    uint32_t count;
} groups;

int groups_read(groups *made, const json *file, uint32_t node);
uint32_t groups_part(const groups *made, const char *name);

typedef struct {
    int is_there, is_first;
    unsigned char first[FA_FINGERPRINT_BYTES]; /* of the first survey */
    uint64_t end;                              /* marks below it answer the first survey */
} step;

struct fa_survey {
    unsigned char fingerprint[FA_FINGERPRINT_BYTES];
    int is_pair;
    grid grid, second;
    groups groups; /* none where count is 0 */
    uint32_t leaves, level_count;
    level levels[MOST_LEVELS];
    int every_level, by_hash;
    uint64_t end32[MOST_LEVELS]; /* floor(c 2^32), c being the shares up to a level */
    uint64_t end64[MOST_LEVELS]; /* ceil(c 2^64); the last level has no end */
    int unit_is_client, allow_empty;
    uint64_t honest;
    char model_digest[65]; /* empty for none */
    fa_fraction epsilon;
    step step;
};

int step_read(fa_survey *survey, const json *file, uint32_t node);
int policy_read(fa_survey *survey, const json *file, uint32_t node);
int answers_step(const fa_survey *survey, const char *name);
uint32_t hashed_level(const fa_survey *survey, const char *client_id);
uint32_t level_of_word(const fa_survey *survey, uint32_t word);

/* Where the i-th row counts: label * leaves + leaf; 0 with a reason for what is no row. */
int find_hit(const fa_survey *survey, const fa_row *row, size_t i, int64_t *hit, char *why);

/* --- dice.c, mechanism.c, wire.c ----------------------------------------------------------- */

typedef struct {
    fa_random random;
    void *context;
    int failed; /* then whatever was drawn is thrown away */
    size_t left;
    unsigned char pool[256];
} dice;

void dice_begin(dice *drawn, fa_random random, void *context);
uint64_t dice_word(dice *drawn, int bytes);       /* uniform below 2^(8 bytes) */
uint64_t dice_below(dice *drawn, uint64_t limit); /* uniform, by rejection */
void draw_row(const level *at, int64_t place, dice *drawn, unsigned char *row);

#define HEADER_BYTES 60
#define CRC_BYTES 4
#define MOST_BLOCK_BYTES (1u << 22)
/* A message around rows that stand behind its header already; returns its length. */
size_t message_seal(unsigned char *message, const fa_survey *survey, uint32_t at_level,
                    uint32_t rows, dice *drawn);

typedef struct {
    uint32_t state[8];
    uint64_t bytes;
    unsigned char block[64];
} sha256;

void sha256_begin(sha256 *hash);
void sha256_add(sha256 *hash, const void *bytes, size_t count);
void sha256_end(sha256 *hash, unsigned char digest[32]);
/* The first 8 bytes, big-endian, of the hash of a fingerprint, a word and a name. */
uint64_t hash_mark(const unsigned char *fingerprint, const char *word, const char *name);

#endif
