/* A survey, read from bytes that a stranger may have written. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static const char FIELDS[] =
    "format privacy grid hierarchy level_policy mechanisms unit minimum_reports colluders "
    "allow_empty model_digest";
#define MOST_CLIENTS 2147483648.0

/* Only surveys whose every report protects itself: the others need more than a device has. */
static int check_kind(const json *file) {
    uint32_t format = json_find(file, 0, "format"), privacy = json_find(file, 0, "privacy");
    CHECK(file->why, format == 0 || !json_is(file, format, "fedassay.survey/3"),
          "exact sums with a smallest cell are answered with the fedassay package, not here");
    CHECK(file->why, format != 0 && json_is(file, format, "fedassay.survey/2"),
          "expected format \"fedassay.survey/2\"");
    if (privacy != 0 && (json_is(file, privacy, "secure") || json_is(file, privacy, "site") ||
                         json_is(file, privacy, "distributed"))) {
        return refuse(file->why,
                      "this client answers local surveys; %.*s privacy is answered with the "
                      "fedassay package",
                      (int)(file->nodes[privacy].end - file->nodes[privacy].start),
                      file->text + file->nodes[privacy].start);
    }
    CHECK(file->why,
          privacy == 0 || json_is(file, privacy, "local") || json_is(file, privacy, "shuffled"),
          "\"privacy\" is one of secure, distributed, site, shuffled, local");
    return 1;
}

/* What shuffled reports promise together. Only who can compute that relies on it: this client
 * holds what a report spends by itself to its owner's limit, and need not trust a shuffler. */
static int check_promise(const json *file) {
    uint32_t node = json_find(file, 0, "shuffled");
    fa_fraction epsilon, delta;
    if (!json_is(file, json_find(file, 0, "privacy"), "shuffled")) {
        CHECK(file->why, node == 0, "the promise of shuffled reports goes with shuffled privacy");
        return 1;
    }
    CHECK(file->why, node != 0, "shuffled reports promise an epsilon and a delta together");
    if (!json_exactly(file, node, "epsilon delta", "shuffled") ||
        !epsilon_read(file, node, &epsilon) ||
        !json_fraction(file, json_find(file, node, "delta"), "delta", &delta))
        return 0;
    CHECK(file->why, delta.top > 0 && delta.top < delta.bottom, "delta must lie between 0 and 1");
    CHECK(file->why, json_find(file, 0, "step") == 0, "shuffled reports are asked for once");
    return 1;
}

static int read_unit(fa_survey *survey, const json *file, uint32_t node) {
    uint64_t most;
    CHECK(file->why, !json_kind_is(file, node, "patient"),
          "unit patient is answered with the fedassay package, not here");
    if (!json_exactly(file, node, "kind max_examples", "unit")) return 0;
    survey->unit_is_client = json_kind_is(file, node, "client");
    CHECK(file->why, survey->unit_is_client || json_kind_is(file, node, "example"),
          "\"kind\" is one of example, client");
    if (!json_whole(file, json_find(file, node, "max_examples"), 1, 1048576, "max_examples", &most))
        return 0;
    CHECK(file->why, survey->unit_is_client || most == 1, "max_examples goes with the client unit");
    return 1;
}

static int read_crowd(fa_survey *survey, const json *file) {
    uint64_t minimum, colluders;
    uint32_t digest = json_find(file, 0, "model_digest");
    if (!json_whole(file, json_find(file, 0, "minimum_reports"), 1, MOST_CLIENTS,
                    "minimum_reports", &minimum) ||
        !json_whole(file, json_find(file, 0, "colluders"), 0, (double)minimum - 1, "colluders",
                    &colluders) ||
        !json_boolean(file, json_find(file, 0, "allow_empty"), "allow_empty", &survey->allow_empty))
        return 0;
    survey->honest = minimum - colluders;
    if (file->nodes[digest].kind == 'n') return 1;
    CHECK(file->why, json_hex64(file, digest), "a model digest is 64 lower-case hexadecimal digits");
    memcpy(survey->model_digest, file->text + file->nodes[digest].start, 64);
    return 1;
}

static int is_model_name(const json *file, uint32_t node) {
    const json_node *name = &file->nodes[node];
    const char *text = file->text + name->start;
    if (name->kind != '"' || name->end == name->start || name->end - name->start > 40) return 0;
    for (uint32_t i = 0; i < name->end - name->start; i++) {
        int is_letter = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z');
        if (!is_letter && (text[i] < '0' || text[i] > '9') && strchr("_.-", text[i]) == NULL)
            return 0;
    }
    return 1;
}

/* The grids of two models: a row in cell i of the first and j of the second is in leaf i m + j. */
static int read_pair(fa_survey *survey, const json *file, uint32_t node) {
    uint32_t names = json_find(file, node, "names"), second;
    if (!json_exactly(file, node, "kind names first second", "grid")) return 0;
    CHECK(file->why, file->nodes[names].kind == '[' && file->nodes[names].count == 2,
          "two models are compared on the same rows");
    second = file->nodes[names + 1].next;
    CHECK(file->why, is_model_name(file, names + 1) && is_model_name(file, second),
          "a model's name has 1 to 40 letters, digits, dots, dashes or underscores");
    size_t length = file->nodes[second].end - file->nodes[second].start;
    CHECK(file->why,
          file->nodes[names + 1].end - file->nodes[names + 1].start != length ||
              memcmp(file->text + file->nodes[names + 1].start,
                     file->text + file->nodes[second].start, length) != 0,
          "two models have two names");
    survey->is_pair = 1;
    return grid_read(&survey->grid, file, json_find(file, node, "first")) &&
           grid_read(&survey->second, file, json_find(file, node, "second"));
}

static int read_leaves(fa_survey *survey, const json *file) {
    uint32_t node = json_find(file, 0, "grid"), named = json_find(file, 0, "groups");
    uint64_t leaves;
    if (!(json_kind_is(file, node, "pair") ? read_pair(survey, file, node)
                                           : grid_read(&survey->grid, file, node)))
        return 0;
    if (named != 0 && !groups_read(&survey->groups, file, named)) return 0;
    leaves = survey->grid.cells;
    if (survey->is_pair) leaves *= survey->second.cells;
    if (named != 0) leaves *= survey->groups.count + 2;
    CHECK(file->why, leaves <= MOST_LEAVES, "this client answers surveys of at most %d cells",
          MOST_LEAVES);
    survey->leaves = (uint32_t)leaves;
    return 1;
}

static int read_mechanisms(fa_survey *survey, const json *file, uint32_t list) {
    uint32_t at = list + 1;
    CHECK(file->why,
          file->nodes[list].kind == '[' && file->nodes[list].count == survey->level_count,
          "\"mechanisms\" must list one mechanism per level");
    survey->epsilon.bottom = 1;
    for (uint32_t k = 0; k < survey->level_count; k++) {
        fa_fraction epsilon;
        if (!mechanism_read(survey, &survey->levels[k], file, at, &epsilon)) return 0;
        /* A unit reports on one level, and pays the most that one of them costs. */
        if (fraction_compare(epsilon, survey->epsilon) > 0) survey->epsilon = epsilon;
        at = file->nodes[at].next;
    }
    return 1;
}

/* Levels go with who reports on them, chosen ones with the second of two surveys or groups. */
static int check_levels(const fa_survey *survey, const json *file) {
    level_kind kind = survey->levels[0].kind;
    int is_second = survey->step.is_there && !survey->step.is_first;
    CHECK(file->why, kind != INTERLEAVED || !survey->every_level,
          "interleaved levels are for clients that report on one level each");
    CHECK(file->why, survey->level_count == 1 || !survey->every_level,
          "under local privacy a client reports on one level");
    CHECK(file->why, (kind == CUTS) == is_second || survey->groups.count > 0,
          "levels are chosen for the second of two surveys, and only for that");
    CHECK(file->why,
          !survey->is_pair || (kind == TREE && survey->every_level && !survey->step.is_there &&
                               survey->groups.count == 0),
          "two models are asked for by joint cells, in one survey without groups");
    return 1;
}

static int read_survey(fa_survey *survey, const json *file) {
    uint32_t placed = json_find(file, 0, "step"), named = json_find(file, 0, "groups");
    char names[sizeof FIELDS + sizeof " step groups shuffled"];
    CHECK(file->why, file->nodes[0].kind == '{', "expected format \"fedassay.survey/2\"");
    strcpy(names, FIELDS);
    if (placed != 0) strcat(names, " step");
    if (named != 0) strcat(names, " groups");
    if (json_find(file, 0, "shuffled") != 0) strcat(names, " shuffled");
    return check_kind(file) && json_exactly(file, 0, names, "survey") && check_promise(file) &&
           read_leaves(survey, file) &&
           levels_read(survey, file, json_find(file, 0, "hierarchy")) &&
           read_crowd(survey, file) && read_unit(survey, file, json_find(file, 0, "unit")) &&
           read_mechanisms(survey, file, json_find(file, 0, "mechanisms")) &&
           policy_read(survey, file, json_find(file, 0, "level_policy")) &&
           (placed == 0 || step_read(survey, file, placed)) && check_levels(survey, file);
}

fa_survey *fa_survey_read(const unsigned char *bytes, size_t count, char why[FA_WHY_BYTES]) {
    json file;
    sha256 hash;
    fa_survey *survey = calloc(1, sizeof *survey);
    why[0] = '\0';
    if (survey == NULL) {
        refuse(why, "there is not enough memory for this survey");
        return NULL;
    }
    int is_read = json_read(&file, (const char *)bytes, count, why) && read_survey(survey, &file);
    json_free(&file);
    if (!is_read) {
        fa_survey_free(survey);
        return NULL;
    }
    /* What was accepted is canonical, so the hash of the bytes is that of the content. */
    sha256_begin(&hash);
    sha256_add(&hash, bytes, count - (bytes[count - 1] == '\n'));
    sha256_end(&hash, survey->fingerprint);
    return survey;
}

void fa_survey_free(fa_survey *survey) {
    if (survey == NULL) return;
    for (uint32_t k = 0; k < MOST_LEVELS; k++) {
        free(survey->levels[k].starts[0]);
        free(survey->levels[k].starts[1]);
    }
    for (uint32_t i = 0; i < survey->groups.count; i++) free(survey->groups.names[i]);
    free(survey->groups.names);
    free(survey->grid.edges);
    free(survey->second.edges);
    free(survey);
}

const unsigned char *fa_survey_fingerprint(const fa_survey *survey) { return survey->fingerprint; }

/* Under local privacy both of two surveys announce the whole, and a unit answers one. */
fa_fraction fa_survey_epsilon(const fa_survey *survey) { return survey->epsilon; }

int fa_survey_is_pair(const fa_survey *survey) { return survey->is_pair; }

int fa_survey_has_groups(const fa_survey *survey) { return survey->groups.count > 0; }

int fa_survey_allows_empty(const fa_survey *survey) { return survey->allow_empty; }
