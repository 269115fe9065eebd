// SPDX-License-Identifier: Apache-2.0
// placeholder
#include "api/api_priv.h"
static const struct field job_fields[] = {{0}};
const struct schema schema_job = {.name = "job", "A long computation", 1, job_fields};
const struct schema schema_computation_body = {.name = "computation", "", 1, job_fields, true};
void get_job(struct request *r)
{
    answer_problem(r, 404, "no job %s", r->arg);
}
void post_route_computation(struct request *r)
{
    answer_problem(r, 503, "not yet");
}
void jobs_done(struct api *a)
{
}
