/* SPDX-License-Identifier: MIT
 *
 * The functions of libarchive. It is loaded when an archive is opened, not linked: every start of gpuconv would take 2
 * ms more to load it and the libraries that it needs. */
#ifndef GPUCONV_LIBARCHIVE_H
#define GPUCONV_LIBARCHIVE_H

#include "base/error.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdbool.h>

#define LIBARCHIVE_FUNCTIONS(X)                                                                                        \
    X(archive_entry_clear)                                                                                             \
    X(archive_entry_copy_hardlink)                                                                                     \
    X(archive_entry_copy_pathname)                                                                                     \
    X(archive_entry_copy_symlink)                                                                                      \
    X(archive_entry_filetype)                                                                                          \
    X(archive_entry_free)                                                                                              \
    X(archive_entry_hardlink)                                                                                          \
    X(archive_entry_new)                                                                                               \
    X(archive_entry_pathname)                                                                                          \
    X(archive_entry_set_size)                                                                                          \
    X(archive_entry_size)                                                                                              \
    X(archive_entry_sparse_clear)                                                                                      \
    X(archive_entry_symlink)                                                                                           \
    X(archive_errno)                                                                                                   \
    X(archive_error_string)                                                                                            \
    X(archive_filter_bytes)                                                                                            \
    X(archive_read_data_skip)                                                                                          \
    X(archive_read_free)                                                                                               \
    X(archive_read_header_position)                                                                                    \
    X(archive_read_new)                                                                                                \
    X(archive_read_next_header2)                                                                                       \
    X(archive_read_open1)                                                                                              \
    X(archive_read_set_callback_data)                                                                                  \
    X(archive_read_set_options)                                                                                        \
    X(archive_read_set_read_callback)                                                                                  \
    X(archive_read_support_format_tar)                                                                                 \
    X(archive_write_data)                                                                                              \
    X(archive_write_finish_entry)                                                                                      \
    X(archive_write_free)                                                                                              \
    X(archive_write_header)                                                                                            \
    X(archive_write_new)                                                                                               \
    X(archive_write_open)                                                                                              \
    X(archive_write_set_bytes_per_block)                                                                               \
    X(archive_write_set_format_pax)                                                                                    \
    X(archive_write_set_options)

struct libarchive {
#define LIBARCHIVE_FIELD(name) __typeof__(name) *name;
    LIBARCHIVE_FUNCTIONS(LIBARCHIVE_FIELD)
#undef LIBARCHIVE_FIELD
};

/* Load libarchive, which stays loaded. */
bool libarchive_load(struct libarchive *library, struct error *error);

#endif
