/* SPDX-License-Identifier: MIT
 *
 * In builds without libarchive. */
#include "batch/members.h"

bool members_open(struct members **members, const struct members_request *request, struct job_source *source,
                  struct error *error)
{
    (void)request;
    (void)source;
    *members = NULL;
    return error_set(error, ERROR_WORK,
                     "this gpuconv was built without libarchive, which --tar needs; install libarchive-dev, and build "
                     "it again");
}

bool members_are_broken(struct members *members)
{
    (void)members;
    return false;
}

bool members_close(struct members *members, bool keep, struct error *error)
{
    (void)members;
    (void)keep;
    (void)error;
    return true;
}

void members_abandon(struct members *members)
{
    (void)members;
}
