// SPDX-License-Identifier: Apache-2.0
// Since when congestion trees are of their kind: a tree whose kind changes is another fault, which begins
// then, while the tree stays the same (struct congest_tree.id, since). For alarms. Loop thread.
#ifndef WEFT_TELEMETRY_TREE_AGE_H
#define WEFT_TELEMETRY_TREE_AGE_H

#include "telemetry/congest.h"

struct tree_ages { // {0}: none
    struct tree_age {
        uint64_t tree;
        int64_t since; // loop time
        unsigned sweeps;
        enum congest_kind kind;
    } * age;
    uint32_t num;
};
// After each sweep, with all trees of it. One in its grace shows what it was, and grows no older by it.
void tree_ages_note(struct tree_ages *a, const struct congest_tree *const *tree, uint32_t n, int64_t now);
// Whether the tree is of its kind for so many sweeps and so long.
bool tree_ages_are(const struct tree_ages *a, const struct congest_tree *tree, unsigned sweeps, int64_t ns,
                   int64_t now);
void tree_ages_done(struct tree_ages *a);

#endif
