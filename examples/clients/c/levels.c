/* Levels: ways to group the leaf cells into coarser cells. */
#include <stdlib.h>

#include "internal.h"

#define MOST_TREE_LEVELS 20
#define MOST_CHOSEN_LEVELS 32
#define MOST_CHOSEN_LEAVES 2048
#define MOST_CHOSEN_CELLS 8192

/* A cell of level k holds as many leaves as the fan-outs below k multiply to. */
static int read_tree(fa_survey *survey, const json *file, uint32_t node) {
    uint32_t list = json_find(file, node, "fanouts"), at = list + 1;
    uint64_t fanout[MOST_TREE_LEVELS], product = 1, smallest = survey->leaves == 1 ? 1 : 2;
    uint32_t count = file->nodes[list].count;
    CHECK(file->why, file->nodes[list].kind == '[' && count >= 1 && count <= MOST_TREE_LEVELS,
          "a hierarchy has between 1 and %d levels", MOST_TREE_LEVELS);
    for (uint32_t k = 0; k < count; k++) {
        double number = file->nodes[at].number;
        int is_whole = file->nodes[at].kind == '0' && number >= (double)smallest &&
                       number <= 16777216 && (double)(uint64_t)number == number;
        CHECK(file->why, is_whole, "every fan-out must be at least %d", (int)smallest);
        fanout[k] = (uint64_t)number;
        product *= fanout[k];
        CHECK(file->why, product <= 16777216, "the fan-outs' product must reach the leaves");
        at = file->nodes[at].next;
    }
    CHECK(file->why, product >= survey->leaves, "the fan-outs' product must reach the leaves");
    for (uint32_t k = 0; k < count; k++) {
        product /= fanout[k];
        survey->levels[k].kind = TREE;
        survey->levels[k].block = (uint32_t)product;
        survey->levels[k].cells = (uint32_t)((survey->leaves + product - 1) / product);
    }
    survey->level_count = count;
    return 1;
}

/* Level k is cut before the leaves k + 1, k + 1 + step, k + 1 + 2 step, ... */
static int read_interleaved(fa_survey *survey, const json *file, uint32_t node) {
    uint64_t width;
    CHECK(file->why, survey->leaves >= 2 && survey->leaves <= 256,
          "interleaved levels have between 2 and 256 leaves");
    if (!json_whole(file, json_find(file, node, "step"), 1, survey->leaves - 1, "step", &width))
        return 0;
    for (uint32_t k = 0; k < width; k++) {
        level *at = &survey->levels[k];
        at->kind = INTERLEAVED;
        at->shift = k;
        at->step = (uint32_t)width;
        at->cells = level_cell(at, survey->leaves - 1, 0) + 1;
    }
    survey->level_count = (uint32_t)width;
    return 1;
}

/* The first leaves of the cells of one label. */
static int read_starts(fa_survey *survey, level *at, int label, const json *file, uint32_t node) {
    uint32_t item = node + 1, count = file->nodes[node].count;
    at->starts[label] = calloc(count + 1, sizeof *at->starts[label]);
    CHECK(file->why, at->starts[label] != NULL, "there is not enough memory for this survey");
    at->count[label] = count;
    for (uint32_t i = 0; i < count; i++) {
        double number = file->nodes[item].number;
        CHECK(file->why, number >= 0 && number < survey->leaves,
              "the first leaf of a cell must be from 0 to the last leaf");
        at->starts[label][i] = (uint32_t)number;
        item = file->nodes[item].next;
    }
    CHECK(file->why, count > 0 && at->starts[label][0] == 0,
          "cells must start at leaf 0 and at rising leaves after it");
    for (uint32_t i = 1; i < count; i++) {
        CHECK(file->why, at->starts[label][i - 1] < at->starts[label][i],
              "cells must start at leaf 0 and at rising leaves after it");
    }
    return 1;
}

static int is_list_of_whole(const json *file, uint32_t node, uint32_t most) {
    uint32_t item = node + 1;
    if (file->nodes[node].kind != '[' || file->nodes[node].count > most) return 0;
    for (uint32_t i = 0; i < file->nodes[node].count; i++) {
        double number = file->nodes[item].number;
        if (file->nodes[item].kind != '0' || number < -1e15 || number > 1e15) return 0;
        if ((double)(int64_t)number != number) return 0;
        item = file->nodes[item].next;
    }
    return 1;
}

/* Cells of their own for each label. */
static int read_chosen(fa_survey *survey, const json *file, uint32_t node) {
    uint32_t list = json_find(file, node, "levels"), item = list + 1, cells = 0;
    uint32_t count = file->nodes[list].count;
    CHECK(file->why, json_find(file, node, "weights") == 0,
          "weighted sums need noise that clients share. Drop the weights");
    CHECK(file->why, file->nodes[list].kind == '[' && count <= MOST_CHOSEN_LEVELS,
          "chosen levels are lists of at most %d entries", MOST_CHOSEN_LEVELS);
    CHECK(file->why, survey->leaves <= MOST_CHOSEN_LEAVES,
          "the leaves of chosen levels must be at most %d", MOST_CHOSEN_LEAVES);
    CHECK(file->why, count >= 1, "chosen levels are from 1 to %d", MOST_CHOSEN_LEVELS);
    for (uint32_t k = 0; k < count; k++) {
        level *at = &survey->levels[k];
        uint32_t both = item + 1;
        CHECK(file->why, file->nodes[item].kind == '[' && file->nodes[item].count == 2,
              "chosen levels are two lists of whole numbers each");
        survey->level_count = k + 1; /* what is read so far is freed with the survey */
        at->kind = CUTS;
        for (int label = 0; label < 2; label++) {
            CHECK(file->why, is_list_of_whole(file, both, survey->leaves),
                  "chosen levels are two lists of whole numbers each");
            if (!read_starts(survey, at, label, file, both)) return 0;
            both = file->nodes[both].next;
        }
        at->cells = at->count[0] > at->count[1] ? at->count[0] : at->count[1];
        cells += at->cells;
        item = file->nodes[item].next;
    }
    CHECK(file->why, cells <= MOST_CHOSEN_CELLS, "chosen levels have at most %d cells together",
          MOST_CHOSEN_CELLS);
    return 1;
}

int levels_read(fa_survey *survey, const json *file, uint32_t node) {
    if (json_kind_is(file, node, "tree")) {
        return json_exactly(file, node, "kind fanouts", "hierarchy") &&
               read_tree(survey, file, node);
    }
    if (json_kind_is(file, node, "interleaved")) {
        return json_exactly(file, node, "kind step", "hierarchy") &&
               read_interleaved(survey, file, node);
    }
    if (json_kind_is(file, node, "cuts")) {
        int is_weighted = json_find(file, node, "weights") != 0;
        const char *names = is_weighted ? "kind levels weights" : "kind levels";
        return json_exactly(file, node, names, "hierarchy") && read_chosen(survey, file, node);
    }
    return refuse(file->why, "levels are a tree, interleaved or cuts");
}

uint32_t level_cell(const level *at, uint32_t leaf, int label) {
    uint32_t cell = 0;
    switch (at->kind) {
        case TREE:
            return leaf / at->block;
        case INTERLEAVED:
            return leaf <= at->shift ? 0 : (leaf - at->shift - 1) / at->step + 1;
        case CUTS:
            break;
    }
    while (cell + 1 < at->count[label] && at->starts[label][cell + 1] <= leaf) cell++;
    return cell;
}
