/* SPDX-License-Identifier: MIT
 *
 * What a wrong word on the command line probably means. All functions fill the error with a usage error. */
#ifndef GPUCONV_SUGGEST_H
#define GPUCONV_SUGGEST_H

#include "app/option_table.h"

#define USAGE "usage: gpuconv [OPTIONS] FILTER INPUT OUTPUT"

/* Report the unknown option in the first LENGTH characters of ARGUMENT, which begins with dashes. COMPARES says whether
 * the command line has --compare. Returns false. */
bool suggest_option(const char *argument, size_t length, bool compares, struct error *error);

/* Report the unknown option *LETTER of ARGUMENT, a bundle of letters. Returns false. */
bool suggest_letter(const char *argument, const char *letter, bool compares, struct error *error);

/* Report that VALUE is none of the words of the option O. Returns false. */
bool suggest_word(const struct option *o, const char *value, struct error *error);

/* ERROR says that the option O does not take VALUE. If another option takes it, add that. Returns false. */
bool suggest_other_option(const struct option *o, const char *value, struct error *error);

/* Report that O, which was typed as a letter or by its name, takes no value, but VALUE was given. Returns false. */
bool suggest_no_value(const struct option *o, bool is_letter, const char *value, struct error *error);

/* Check the COUNT operands of a run, FILTER first: a word that is no filter may be an option without its dashes, or the
 * value of one. ARGV is the whole command line. */
bool suggest_operands(int argc, char *const argv[], int count, char *const *operands, struct error *error);

#endif
