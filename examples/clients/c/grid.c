/* The grid: leaf cells (lo, hi] over [0, 1], the first of which also holds 0.
 *
 * An edge is one division of whole numbers below 2^53: the same double in every language. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* A rule's edges, before some of them are taken away: more cannot come down to MOST_LEAVES. */
#define MOST_MADE (MOST_LEAVES + MOST_EDGES)

typedef struct {
    double *edges;
    size_t count;
} edge_list;

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* In rising order; an edge that is made twice is the same double, and stands once. */
static void sort_once(edge_list *list) {
    size_t kept = 0;
    qsort(list->edges, list->count, sizeof *list->edges, by_size);
    for (size_t i = 0; i < list->count; i++) {
        if (kept == 0 || list->edges[kept - 1] != list->edges[i]) {
            list->edges[kept++] = list->edges[i];
        }
    }
    list->count = kept;
}

static void put(edge_list *list, double top, double bottom) {
    list->edges[list->count++] = top / bottom;
}

static void even(edge_list *list, double cells) {
    for (double i = 0; i <= cells; i++) put(list, i, cells);
}

static void cubic(edge_list *list, double n) {
    for (double i = 0; i <= n; i++) put(list, i * i * (3 * n - 2 * i), n * n * n);
}

/* (c + j) / (c 2^k) for k from `first` to 40 and j up to c, and 1 less these. */
static void octave_edges(edge_list *list, double parts, int first) {
    for (int k = first; k <= 40; k++) {
        double bottom = parts * (double)(UINT64_C(1) << k);
        for (double top = parts; top <= 2 * parts; top++) {
            put(list, top, bottom);
            put(list, bottom - top, bottom);
        }
    }
}

/* i / n, octaves in 64 parts where these are fewer, then 2^-k up to k = 52; mirrored at 1. */
static void fine(edge_list *list, double cells) {
    int first = 2;
    while (64.0 * (double)(UINT64_C(1) << first) <= cells) first++;
    even(list, cells);
    octave_edges(list, 64, first);
    for (int k = 41; k <= 52; k++) {
        double bottom = (double)(UINT64_C(1) << k);
        put(list, 1, bottom);
        put(list, bottom - 1, bottom);
    }
    sort_once(list);
}

static void octaves(edge_list *list, double cells) {
    put(list, 0, 1);
    put(list, 1, 1);
    octave_edges(list, (cells - 2) / 78, 2);
    sort_once(list);
}

/* A list of numbers, each above the one before it; the caller frees it. */
static int read_rising(edge_list *list, const json *file, uint32_t node, const char *name) {
    const json_node *found = &file->nodes[node];
    uint32_t at = node + 1;
    int is_list = found->kind == '[' && found->count <= MOST_EDGES;
    list->count = 0;
    list->edges = is_list ? malloc((found->count + 1) * sizeof *list->edges) : NULL;
    for (uint32_t i = 0; is_list && i < found->count; i++) {
        is_list = file->nodes[at].kind == '0' && list->edges != NULL;
        if (is_list) list->edges[list->count++] = file->nodes[at].number;
        at = file->nodes[at].next;
    }
    CHECK(file->why, is_list && list->edges != NULL,
          "\"%s\" must be a list of at most %d numbers", name, MOST_EDGES);
    for (size_t i = 1; i < list->count; i++) {
        CHECK(file->why, list->edges[i - 1] < list->edges[i],
              "\"%s\" must be in rising order, each once", name);
    }
    return 1;
}

/* Edges that the rule makes, without some of them, and with others. */
static int change(edge_list *made, const json *file, const edge_list *without,
                  const edge_list *with) {
    size_t next = 0, kept = 0, rule_count = made->count;
    for (size_t i = 0; i < without->count; i++) {
        double number = without->edges[i];
        CHECK(file->why,
              number > 0 && number < (double)(rule_count - 1) &&
                  (double)(uint64_t)number == number,
              "\"without\" must name inner edges by their number");
    }
    CHECK(file->why, without->count + with->count > 0,
          "a survey says everything in one way: a grid changes what it must");
    for (size_t i = 0; i < with->count; i++) {
        double edge = with->edges[i];
        CHECK(file->why, edge > 0 && edge < 1, "grid edges must run from 0 to 1");
        CHECK(file->why,
              bsearch(&edge, made->edges, rule_count, sizeof edge, by_size) == NULL,
              "a survey says everything in one way: an edge is added that is there");
    }
    for (size_t i = 0; i < rule_count; i++) {
        if (next < without->count && without->edges[next] == (double)i) {
            next++;
        } else {
            made->edges[kept++] = made->edges[i];
        }
    }
    made->count = kept;
    for (size_t i = 0; i < with->count; i++) made->edges[made->count++] = with->edges[i];
    sort_once(made);
    return 1;
}

typedef struct {
    const char *kind;
    double most;
    void (*make)(edge_list *list, double cells);
    size_t beside; /* edges beside one for each cell, at most */
} rule;

static const rule RULES[] = {{"uniform", 1048576, even, 1},
                             {"cubic", 65536, cubic, 1},
                             {"fine", 524288, fine, 2 * 39 * 65 + 2 * 12 + 1},
                             {"octaves", 78 * 4096 + 2, octaves, 2 * 39 * 2 + 2}};

static int by_rule(edge_list *made, const json *file, uint32_t node) {
    const rule *chosen = NULL;
    edge_list without = {NULL, 0}, with = {NULL, 0};
    uint64_t cells = 0;
    int is_changed = json_find(file, node, "without") != 0 || json_find(file, node, "with") != 0;
    int is_read;
    for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++) {
        if (json_kind_is(file, node, RULES[i].kind)) chosen = &RULES[i];
    }
    CHECK(file->why, chosen != NULL, "a grid is one of uniform, cubic, fine, octaves, edges");
    if (!json_exactly(file, node, is_changed ? "kind cells without with" : "kind cells", "grid"))
        return 0;
    if (!json_whole(file, json_find(file, node, "cells"), 1, chosen->most, "cells", &cells)) return 0;
    CHECK(file->why, chosen->make != octaves || (cells >= 80 && (cells - 2) % 78 == 0),
          "the cells of an octaves grid are 78 times its parts per octave, and 2");
    CHECK(file->why, cells <= MOST_MADE, "this client answers surveys of at most %d cells",
          MOST_LEAVES);
    if (is_changed) {
        is_read = read_rising(&without, file, json_find(file, node, "without"), "without") &&
                  read_rising(&with, file, json_find(file, node, "with"), "with");
    } else {
        is_read = 1;
    }
    made->count = 0;
    made->edges = is_read ? malloc((cells + chosen->beside + with.count) * sizeof *made->edges)
                          : NULL;
    if (is_read && made->edges == NULL) {
        is_read = refuse(file->why, "there is not enough memory for this survey");
    }
    if (is_read) chosen->make(made, (double)cells);
    if (is_read && is_changed) is_read = change(made, file, &without, &with);
    free(without.edges);
    free(with.edges);
    return is_read;
}

int grid_read(grid *made, const json *file, uint32_t node) {
    edge_list list = {NULL, 0};
    int is_listed = json_kind_is(file, node, "edges"), is_read;
    if (is_listed) {
        is_read = json_exactly(file, node, "kind edges", "grid") &&
                  read_rising(&list, file, json_find(file, node, "edges"), "edges");
    } else {
        is_read = by_rule(&list, file, node);
    }
    made->edges = list.edges; /* freed with the survey, however this ends */
    if (!is_read) return 0;
    CHECK(file->why,
          list.count >= 2 && list.edges[0] == 0 && list.edges[list.count - 1] == 1,
          "grid edges must run from 0 to 1");
    CHECK(file->why, list.count - 1 <= MOST_LEAVES,
          "this client answers surveys of at most %d cells", MOST_LEAVES);
    made->cells = (uint32_t)(list.count - 1);
    return 1;
}

uint32_t grid_cell(const grid *made, double score) {
    uint32_t low = 0, high = made->cells;
    /* The last edge below the score; 0 itself has none and belongs to the first cell. */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (made->edges[middle] < score) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}
