/* SPDX-License-Identifier: MIT
 *
 * Reading and writing members. libarchive asks for blocks of the input; they stay in a buffer until their member has
 * been read, so that it can be copied as it is. */
#include "archive/tar.h"

#include "archive/libarchive.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BLOCK = 512,    /* all parts of an archive are multiples of it */
    RECORD = 10240, /* and the whole archive is one of this */
    READ_BYTES = 1 << 18,
    HEADERS_MAX = 1 << 24, /* bytes of the headers of one member */
};

/* What becomes of the input's bytes. */
enum input_bytes { USE_KEEP, USE_COPY, USE_DROP };

struct tar {
    struct libarchive library;

    /* The input. */
    struct archive *reader;
    struct archive_entry *entry; /* the headers of the last member */
    const char *name;
    int descriptor;
    bool is_device;
    enum input_bytes use;
    bool is_pending;   /* the content of the last member has not been read */
    uint8_t *block;    /* what libarchive has been given last */
    uint8_t *buffered; /* bytes of the input; the first BUFFERED_FIRST are not needed any more */
    size_t buffered_first, buffered_size, buffered_capacity;
    size_t buffered_max;   /* an archive that needs more is damaged, or lies */
    uint64_t buffered_end; /* the position in the input after them */
    uint64_t header;       /* the position of the last member */
    uint64_t content;      /* and of its content */
    struct error problem;  /* in reading, or while the input is copied */

    /* The output. */
    struct archive *writer;
    struct archive_entry *changed; /* the headers of the member that is written */
    const struct file_output *output;
    locale_t utf8;
    uint64_t written;
    bool is_closed;
    struct error write_problem;
};

/* Has libarchive done what it was asked for, if with a warning? ARCHIVE_RETRY, which it returns for a damaged header,
 * lies between the two. */
static bool succeeded(int status)
{
    return status == ARCHIVE_OK || status == ARCHIVE_WARN;
}

/* ---- The input ---- */

/* Refuse compressed archives. */
static bool check_not_compressed(const struct tar *tar, const uint8_t *bytes, size_t size, struct error *error)
{
    static const struct {
        const char *magic, *name, *command;
    } rows[] = {{"\x1f\x8b", "gzip", "gzip"},
                {"\x28\xb5\x2f\xfd", "zstd", "zstd"},
                {"\xfd"
                 "7zXZ",
                 "xz", "xz"},
                {"BZh", "bzip2", "bzip2"},
                {"\x04\x22\x4d\x18", "LZ4", "lz4"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (size >= strlen(rows[i].magic) && memcmp(bytes, rows[i].magic, strlen(rows[i].magic)) == 0)
            return error_about(error, ERROR_WORK, file_input_name(tar->name),
                               "is compressed by %s; decompress it in a pipe: %s -dc < FILE | gpuconv --tar FILTER - "
                               "OUTPUT",
                               rows[i].name, rows[i].command);
    return true;
}

/* Forget the zeros before a header: the end of an archive to which another one was appended, or a tape's end. */
static void forget_zeros(struct tar *tar)
{
    for (const uint8_t *block; tar->buffered_size - tar->buffered_first >= BLOCK; tar->buffered_first += BLOCK) {
        block = tar->buffered + tar->buffered_first;
        if (block[0] != 0 || memcmp(block, block + 1, BLOCK - 1) != 0)
            break;
    }
}

/* Let the buffer have CAPACITY bytes. */
static bool reserve_buffer(struct tar *tar, size_t capacity)
{
    uint8_t *larger = realloc(tar->buffered, capacity);
    if (larger == NULL)
        return false;
    tar->buffered = larger;
    tar->buffered_capacity = capacity;
    return true;
}

/* Buffer SIZE more bytes of the input. */
static bool keep(struct tar *tar, const uint8_t *bytes, size_t size)
{
    forget_zeros(tar);
    if (tar->buffered_first > 0) {
        tar->buffered_size -= tar->buffered_first;
        memmove(tar->buffered, tar->buffered + tar->buffered_first, tar->buffered_size);
        tar->buffered_first = 0;
    }
    if (tar->buffered_size > tar->buffered_max)
        return error_about(&tar->problem, ERROR_WORK, file_input_name(tar->name),
                           "is damaged from byte %llu on: a member is longer than its header says; make it again",
                           (unsigned long long)(tar->buffered_end - tar->buffered_size));
    if (tar->buffered_size + size > tar->buffered_capacity && !reserve_buffer(tar, 2 * tar->buffered_size + size))
        return error_no_memory(&tar->problem, "a member of the archive");
    memcpy(tar->buffered + tar->buffered_size, bytes, size);
    tar->buffered_size += size;
    tar->buffered_end += size;
    return true;
}

/* Copy or drop the buffered bytes up to POSITION, as `use` says. */
static bool use_buffered(struct tar *tar, uint64_t position)
{
    const uint8_t *first = tar->buffered + tar->buffered_first;
    const size_t size = (size_t)(position - (tar->buffered_end - (tar->buffered_size - tar->buffered_first)));
    if (tar->use == USE_COPY && !file_output_write(tar->output, first, size, &tar->problem))
        return false;
    tar->written += tar->use == USE_COPY ? size : 0;
    tar->buffered_first += size;
    return true;
}

/* archive_read_callback: give libarchive the next bytes. It has consumed all others before it asks for more, while it
 * skips content. */
static la_ssize_t read_block(struct archive *archive, void *context, const void **bytes)
{
    struct tar *tar = context;
    size_t size = 0;
    (void)archive;
    if (tar->use != USE_KEEP && !use_buffered(tar, tar->buffered_end))
        return -1;
    while (size < BLOCK) { /* a pipe may give less */
        const ssize_t got = read(tar->descriptor, tar->block + size, READ_BYTES - size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            error_about(&tar->problem, error_of_errno(errno, ERROR_WORK, ERROR_READ), file_input_name(tar->name),
                        "cannot be read: %s", strerror(errno));
        if (got <= 0)
            break;
        size += (size_t)got;
    }
    *bytes = tar->block;
    if (size == 0 && tar->problem.code == ERROR_NONE)
        return 0;
    if (tar->is_device && tar->content == 0 && tar->buffered_end > FILE_DEVICE_MAX)
        error_about(&tar->problem, ERROR_WORK, file_input_name(tar->name),
                    "is a device, which may have no end, and does not begin with an archive; give a tar archive");
    if (tar->problem.code != ERROR_NONE ||
        (tar->buffered_end == 0 && !check_not_compressed(tar, tar->block, size, &tar->problem)) ||
        !keep(tar, tar->block, size))
        return -1;
    return (la_ssize_t)size;
}

/* Say why the input cannot be read on. */
static bool report_archive_error(const struct tar *tar, struct error *error)
{
    const char *why = tar->library.archive_error_string(tar->reader);
    if (tar->problem.code != ERROR_NONE) {
        if (error != NULL)
            *error = tar->problem;
        return false;
    }
    if (errno == ENOMEM || tar->library.archive_errno(tar->reader) == ENOMEM)
        return error_no_memory(error, "a member of the archive");
    if (tar->buffered_end == 0)
        return error_about(error, ERROR_WORK, file_input_name(tar->name), "is empty (0 bytes); give a tar archive");
    why = why != NULL ? why : "it may be damaged";
    if (tar->content == 0)
        return error_about(error, ERROR_WORK, file_input_name(tar->name),
                           "is not a tar archive (%s); give a tar archive", why);
    return error_about(error, ERROR_WORK, file_input_name(tar->name),
                       "is cut or damaged after byte %llu (%s); make it again", (unsigned long long)tar->content, why);
}

/* ---- Reading ---- */

/* Read over the content of the last member, whose bytes are used as USE says. */
static bool skip_content(struct tar *tar, enum input_bytes use, struct error *error)
{
    tar->is_pending = false;
    tar->use = use;
    const bool done =
        succeeded(tar->library.archive_read_data_skip(tar->reader)) &&
        (use == USE_KEEP || use_buffered(tar, (uint64_t)tar->library.archive_filter_bytes(tar->reader, 0)));
    tar->use = USE_KEEP;
    return done || report_archive_error(tar, error);
}

/* The archive ends here. If the two blocks of zeros are missing, perhaps members are, too. */
static bool check_end_blocks(const struct tar *tar, struct error *error)
{
    return tar->buffered_end >= (uint64_t)tar->library.archive_read_header_position(tar->reader) + 2 * BLOCK ||
           error_about(error, ERROR_WORK, file_input_name(tar->name),
                       "has no end mark after byte %llu, so it may be cut; make it again",
                       (unsigned long long)tar->buffered_end);
}

bool tar_next(struct tar *tar, struct tar_member *member, bool *end, struct error *error)
{
    const struct libarchive *library = &tar->library;
    *member = (struct tar_member){0};
    *end = false;
    if (tar->is_pending && !skip_content(tar, USE_DROP, error))
        return false;
    const uint64_t unread = tar->buffered_end - (uint64_t)library->archive_filter_bytes(tar->reader, 0);
    tar->buffered_first = unread < tar->buffered_size ? tar->buffered_size - (size_t)unread : 0;
    tar->buffered_max = HEADERS_MAX;
    errno = 0; /* libarchive may take a lack of memory for the end */
    const int status = library->archive_read_next_header2(tar->reader, tar->entry);
    *end = status == ARCHIVE_EOF;
    if (*end && errno == ENOMEM)
        return report_archive_error(tar, error);
    if (*end)
        return check_end_blocks(tar, error);
    if (!succeeded(status))
        return report_archive_error(tar, error);
    const char *hard_link = library->archive_entry_hardlink(tar->entry);
    if (hard_link == NULL && status == ARCHIVE_WARN && library->archive_entry_filetype(tar->entry) == 0)
        return error_about(error, ERROR_WORK, file_input_name(tar->name),
                           "has more special headers before one member than libarchive reads, after byte %llu; make it "
                           "again",
                           (unsigned long long)tar->content);
    tar->is_pending = true;
    tar->content = (uint64_t)library->archive_filter_bytes(tar->reader, 0);
    forget_zeros(tar);
    tar->header = tar->buffered_end - (tar->buffered_size - tar->buffered_first);

    struct archive_entry *entry = tar->entry;
    member->name = library->archive_entry_pathname(entry);
    member->name = member->name != NULL ? member->name : "";
    member->link = hard_link != NULL ? hard_link : library->archive_entry_symlink(entry);
    member->is_hard_link = hard_link != NULL;
    member->is_file = library->archive_entry_filetype(entry) == AE_IFREG && hard_link == NULL;
    member->size = (uint64_t)library->archive_entry_size(entry);
    return true;
}

bool tar_hold(struct tar *tar, struct tar_member *member, struct error *error)
{
    tar->buffered_max = (size_t)(tar->content - tar->header + member->size) + RECORD + READ_BYTES;
    if (tar->buffered_max > tar->buffered_capacity && !reserve_buffer(tar, tar->buffered_max))
        return error_no_memory(error, "a member of the archive");
    const bool done = skip_content(tar, USE_KEEP, error);
    tar->library.archive_entry_clear(tar->entry); /* small blocks again, which this thread should free */
    if (!done)
        return false;
    const uint64_t end = (uint64_t)tar->library.archive_filter_bytes(tar->reader, 0), content = end - tar->content;
    member->length = (size_t)(end - tar->header);
    member->bytes = malloc(member->length > TAR_BLOCK_MIN ? member->length : TAR_BLOCK_MIN);
    if (member->bytes == NULL)
        return error_no_memory(error, "a member of the archive");
    const size_t header = tar->buffered_size - (size_t)(tar->buffered_end - tar->header);
    memcpy(member->bytes, tar->buffered + header, member->length);
    if (content >= member->size && content - member->size < BLOCK)
        member->content = member->bytes + (member->length - (size_t)content);
    return true;
}

bool tar_copy(struct tar *tar, struct error *error)
{
    return skip_content(tar, USE_COPY, error);
}

/* A reader of tar archives, not yet open. NULL if there is not enough memory. */
static struct archive *new_reader(const struct libarchive *library, archive_read_callback *callback, void *context)
{
    struct archive *reader = library->archive_read_new();
    if (reader != NULL && succeeded(library->archive_read_support_format_tar(reader)) &&
        succeeded(library->archive_read_set_read_callback(reader, callback)) &&
        succeeded(library->archive_read_set_callback_data(reader, context)))
        return reader;
    if (reader != NULL)
        library->archive_read_free(reader);
    return NULL;
}

/* ---- Writing ---- */

/* archive_write_callback: write what libarchive gives. It does not hear of a failure, after which it would leak. */
static la_ssize_t write_archive_block(struct archive *archive, void *context, const void *bytes, size_t size)
{
    struct tar *tar = context;
    (void)archive;
    if (!tar->is_closed && tar->write_problem.code == ERROR_NONE && /* else it is libarchive's own end mark */
        file_output_write(tar->output, bytes, size, &tar->write_problem))
        tar->written += size;
    return (la_ssize_t)size;
}

bool tar_write_same(struct tar *tar, const struct tar_member *member, struct error *error)
{
    tar->written += member->length;
    return file_output_write(tar->output, member->bytes, member->length, error);
}

/* The bytes of the headers before a member's own that hold for all members after them, such as git's comment. */
static size_t global_headers(const struct tar_member *member)
{
    enum { SIZE = 124, SIZE_BYTES = 12, TYPE = 156 };
    const size_t end = (size_t)(member->content - member->bytes);
    size_t at = 0;
    while (end - at > BLOCK && member->bytes[at + TYPE] == 'g') {
        char digits[SIZE_BYTES + 1] = "";
        memcpy(digits, member->bytes + at + SIZE, SIZE_BYTES);
        const size_t size = strtoul(digits, NULL, 8);
        if (size >= end - at - BLOCK)
            break;
        at += BLOCK + (size + BLOCK - 1) / BLOCK * BLOCK;
        if (at > end)
            return 0;
    }
    return at;
}

/* archive_read_callback: give libarchive the bytes of the member that tar_hold has read, once. */
static la_ssize_t read_headers(struct archive *archive, void *context, const void **bytes)
{
    struct tar_member *unread = context;
    const size_t length = unread->length;
    (void)archive;
    *bytes = unread->bytes;
    unread->length = 0;
    return (la_ssize_t)length;
}

/* Write ENTRY, changed to have NAME, LINK and other content. */
static bool write_entry(struct tar *tar, struct archive_entry *entry, const char *name, const char *link,
                        const uint8_t *content, size_t size)
{
    const struct libarchive *library = &tar->library;
    library->archive_entry_copy_pathname(entry, name);
    if (link != NULL && library->archive_entry_hardlink(entry) != NULL)
        library->archive_entry_copy_hardlink(entry, link);
    else if (link != NULL)
        library->archive_entry_copy_symlink(entry, link);
    library->archive_entry_set_size(entry, (la_int64_t)size);
    library->archive_entry_sparse_clear(entry);
    /* Names are UTF-8 where they can be. In the locale C, libarchive would mark others than ASCII as binary, of which
     * GNU tar warns. */
    const locale_t before = uselocale(tar->utf8);
    const int status = library->archive_write_header(tar->writer, entry);
    uselocale(before);
    return succeeded(status) && (size == 0 || library->archive_write_data(tar->writer, content, size) >= 0) &&
           succeeded(library->archive_write_finish_entry(tar->writer));
}

bool tar_write(struct tar *tar, const struct tar_member *member, const char *name, const char *link,
               const uint8_t *content, size_t size, struct error *error)
{
    const struct libarchive *library = &tar->library;
    const size_t globals = member->content != NULL ? global_headers(member) : 0;
    tar->written += globals;
    if (!file_output_write(tar->output, member->bytes, globals, error))
        return false;
    /* Read the headers once more: what libarchive has made of them would be many small blocks. */
    struct tar_member unread = *member;
    struct archive *reader = new_reader(library, read_headers, &unread);
    if (reader == NULL)
        return error_no_memory(error, "a member of the archive");
    errno = 0; /* libarchive may go on without memory, and leave out content */
    const bool done = succeeded(library->archive_read_open1(reader)) &&
                      succeeded(library->archive_read_next_header2(reader, tar->changed)) &&
                      write_entry(tar, tar->changed, name, link, content, size) && errno != ENOMEM;
    const bool lacks_memory = errno == ENOMEM || library->archive_errno(tar->writer) == ENOMEM;
    library->archive_read_free(reader);
    if (done && tar->write_problem.code == ERROR_NONE)
        return true;
    if (tar->write_problem.code == ERROR_NONE && lacks_memory)
        return error_no_memory(error, "a member of the archive");
    if (tar->write_problem.code == ERROR_NONE)
        return error_about(error, ERROR_WORK, name, "cannot be written to the archive: %s",
                           library->archive_error_string(tar->writer));
    *error = tar->write_problem;
    return false;
}

bool tar_write_end(struct tar *tar, struct error *error)
{
    static const uint8_t zeros[RECORD + 2 * BLOCK];
    const size_t partial = (size_t)((tar->written + 2 * BLOCK) % RECORD);
    return file_output_write(tar->output, zeros, 2 * BLOCK + (partial > 0 ? RECORD - partial : 0), error);
}

/* ---- The whole ---- */

static bool open_archives(struct tar *tar, struct error *error)
{
    const struct libarchive *library = &tar->library;
    tar->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    tar->block = malloc(READ_BYTES);
    tar->entry = library->archive_entry_new();
    tar->changed = library->archive_entry_new();
    tar->reader = new_reader(library, read_block, tar);
    tar->writer = library->archive_write_new();
    if (tar->block == NULL || tar->entry == NULL || tar->changed == NULL || tar->reader == NULL ||
        tar->writer == NULL ||
        !succeeded(library->archive_read_set_options(tar->reader, "read_concatenated_archives")) ||
        !succeeded(library->archive_write_set_format_pax(tar->writer)) ||
        !succeeded(library->archive_write_set_options(tar->writer, "xattrheader=SCHILY")) ||
        !succeeded(library->archive_write_set_bytes_per_block(tar->writer, 0)) ||
        !succeeded(library->archive_write_open(tar->writer, tar, NULL, write_archive_block, NULL)))
        return error_no_memory(error, "an archive");
    return succeeded(library->archive_read_open1(tar->reader)) || report_archive_error(tar, error);
}

bool tar_open(struct tar **opened, const char *input, const struct file_output *output, struct error *error)
{
    struct tar *tar = *opened = calloc(1, sizeof *tar);
    if (tar == NULL)
        return error_no_memory(error, "an archive");
    tar->name = input;
    tar->buffered_max = HEADERS_MAX;
    tar->output = output;
    tar->descriptor = file_is_standard(input) ? STDIN_FILENO : open(input, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (tar->descriptor < 0)
        return error_about(error, error_of_errno(errno, ERROR_WORK, ERROR_READ), input, "cannot be read: %s",
                           strerror(errno));
    struct stat status;
    tar->is_device = fstat(tar->descriptor, &status) == 0 && S_ISCHR(status.st_mode);
    return libarchive_load(&tar->library, error) && open_archives(tar, error);
}

void tar_close(struct tar *tar)
{
    if (tar == NULL)
        return;
    tar->is_closed = true;
    if (tar->reader != NULL)
        tar->library.archive_read_free(tar->reader);
    if (tar->writer != NULL)
        tar->library.archive_write_free(tar->writer);
    if (tar->entry != NULL)
        tar->library.archive_entry_free(tar->entry);
    if (tar->changed != NULL)
        tar->library.archive_entry_free(tar->changed);
    if (tar->utf8 != (locale_t)0)
        freelocale(tar->utf8);
    if (tar->descriptor > STDERR_FILENO)
        close(tar->descriptor);
    free(tar->block);
    free(tar->buffered);
    free(tar);
}
