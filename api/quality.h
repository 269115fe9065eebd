// SPDX-License-Identifier: Apache-2.0
// Quality figures as JSON. No state of the API is seen here; any thread.
#ifndef WEFT_API_QUALITY_H
#define WEFT_API_QUALITY_H

#include "api/schema.h"
#include "fabric/tables.h"
#include "lib/pool.h"

extern const struct schema schema_quality;

// Rates tables of f and appends the figures, an object of schema_quality.
void quality_rate(const struct fabric *f, const struct fabric_tables *t, struct par *par, struct buf *b);

#endif
