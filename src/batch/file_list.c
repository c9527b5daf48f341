/* SPDX-License-Identifier: MIT
 *
 * Make jobs from names. */
#include "batch/file_list.h"

#include "base/bytes.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "batch/collisions.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The largest size of a list of files, in bytes: about ten million names. */
#define LIST_LIMIT ((size_t)1 << 30)

/* The files in folders that are no images. */
struct others {
    size_t count;
    char suffixes[8][12]; /* the first ones that differ, in small letters, with the dot */
    int suffix_count;
    bool more; /* there are other suffixes, or files without one */
};

/* How a folder is used. If the search meets it several times, the first of these values counts. */
enum folder_use {
    FOLDER_READ,
    FOLDER_LEFT_OUT, /* there is no -r */
    FOLDER_LINK,     /* a link to it is left out */
};

struct folder {
    dev_t device;
    ino_t inode;
    enum folder_use use;
    char *parent; /* NULL if it is read */
};

/* Builds a list of jobs. */
struct list_builder {
    const struct list_request *request;
    bool is_tree;
    /* Add the file at PATH. RELATIVE is the end of it, below the folder that the user named. STATUS is NULL for a file
     * or folder that cannot be read, for the reason in errno. */
    bool (*add)(struct list_builder *builder, const char *path, const char *relative, const struct stat *status);
    struct file_list *list;
    struct others others;
    struct folder *folders; /* all folders that the search has met, except the output folder */
    size_t folder_count;
    struct error *error;
};

/* ---- Names ---- */

/* The folder of output NUMBER; NULL if there is none. */
static const char *output_folder(const struct list_request *request, size_t number)
{
    return number == 0 ? request->output : request->also[number - 1].output;
}

/* The path of NAME in FOLDER; NAME itself if FOLDER is empty. */
static char *join_path(const char *folder, const char *name)
{
    char *path;
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    const bool separated = length == 0 || folder[length - 1] == '/';
    return asprintf(&path, "%.*s%s%s", (int)length, folder, separated ? "" : "/", name) < 0 ? NULL : path;
}

char *file_list_output_path(const struct list_request *request, const char *relative)
{
    const size_t stem = format_stem_length(relative);
    const bool replaced = request->format != NULL && request->format != format_find_by_path(relative);
    const char *end = replaced ? request->format->suffixes[0] : relative + stem;
    const char *added = request->suffix != NULL ? request->suffix : "";
    const char *kept = replaced && request->keeps_suffix ? relative + stem : "";
    char *name, *path;
    if (asprintf(&name, "%.*s%s%s%s%s", (int)stem, relative, added, kept, replaced ? "." : "", end) < 0)
        return NULL;
    path = join_path(request->output, name);
    free(name);
    return path;
}

/* ---- Jobs ---- */

static struct job *add_job(struct list_builder *builder)
{
    struct file_list *list = builder->list;
    struct job *larger = array_grow(list->jobs, list->count, sizeof *larger);
    if (larger == NULL)
        return NULL;
    list->jobs = larger;
    list->jobs[list->count] = (struct job){0};
    return &list->jobs[list->count++];
}

/* The end of PATH that equals RELATIVE, or all if that is empty. PATH is a copy of a path that ends in RELATIVE. */
static const char *name_in_path(const char *path, const char *relative)
{
    return relative[0] != '\0' ? path + (strlen(path) - strlen(relative)) : path;
}

/* Add an input that cannot be filtered, for a REASON that ends in DETAIL. Only its job fails. */
static bool add_problem(struct list_builder *builder, const char *path, const char *relative, const char *reason,
                        const char *detail)
{
    struct job *job = add_job(builder);
    if (job == NULL || (job->input = strdup(path)) == NULL || asprintf(&job->problem, "%s%s", reason, detail) < 0)
        return error_no_memory(builder->error, "the list of files");
    job->name = name_in_path(job->input, relative);
    return true;
}

/* Add an input that cannot be read, for the reason in errno. Only its job fails. */
static bool add_unreadable(struct list_builder *builder, const char *path, const char *relative)
{
    const bool passes = error_may_retry(error_of_errno(errno, ERROR_WORK, ERROR_READ));
    if (!add_problem(builder, path, relative, "cannot be read: ", strerror(errno)))
        return false;
    builder->list->jobs[builder->list->count - 1].problem_passes = passes;
    return true;
}

/* list_builder's `add` for a list without outputs. */
static bool add_input_only(struct list_builder *builder, const char *path, const char *relative,
                           const struct stat *status)
{
    if (status == NULL)
        return add_unreadable(builder, path, relative);
    struct job *job = add_job(builder);
    if (job == NULL || (job->input = strdup(path)) == NULL)
        return error_no_memory(builder->error, "the list of files");
    job->name = name_in_path(job->input, relative);
    job->bytes = S_ISREG(status->st_mode) ? (uint64_t)status->st_size : 0;
    job->device = status->st_dev;
    job->inode = status->st_ino;
    return true;
}

/* ---- Pages ---- */

static bool may_have_pages(const uint8_t *bytes, size_t size)
{
    const struct format *format = format_find_by_magic(bytes, size, "", NULL);
    return format != NULL && format->has_pages;
}

/* The number of pages of the file at PATH: 1 if they cannot be counted, and 0, with an error, if it cannot be read. */
static int count_pages(const char *path, struct error *error)
{
    struct codec_info info = {.pages = 0};
    uint8_t *bytes;
    size_t size;
    if (!file_read_wanted(path, budget_file_max(), may_have_pages, &bytes, &size, NULL, error))
        return 0;
    if (may_have_pages(bytes, size))
        codec_inspect(bytes, size, path, NULL, &info, NULL);
    free(bytes);
    return info.pages > 1 ? info.pages : 1;
}

/* Add to LIST a job for each of PAGES of the file of WHOLE; one that fails for REASON if PAGES is 0. */
static bool add_pages(struct list_builder *builder, const struct job *whole, int pages, const struct error *reason)
{
    const size_t stem = format_stem_length(whole->output);
    if (pages == 0) {
        if (!add_problem(builder, whole->input, whole->name, reason->message, ""))
            return false;
        builder->list->jobs[builder->list->count - 1].problem_passes = error_may_retry(reason->code);
        builder->list->jobs[builder->list->count - 1].number = whole->number;
    }
    for (int page = 1; page <= pages; page++) {
        struct job *job = add_job(builder);
        if (job == NULL)
            return false;
        *job = *whole;
        job->page = page;
        job->input = strdup(whole->input);
        job->name = job->input != NULL ? job->input + (whole->name - whole->input) : NULL;
        if (asprintf(&job->output, "%.*s-%03d%s", (int)stem, whole->output, page, whole->output + stem) < 0)
            job->output = NULL;
        if (job->input == NULL || job->output == NULL)
            return false;
    }
    return true;
}

bool file_list_split_pages(struct file_list *list, size_t outputs, struct error *error)
{
    struct list_builder builder = {.list = list, .error = error};
    struct job wholes[OUTPUTS_MAX];
    struct error reason;
    const struct job *first = &list->jobs[list->count - outputs];
    if (first->output == NULL) /* they have a problem */
        return true;
    memcpy(wholes, first, outputs * sizeof *wholes);
    list->count -= outputs;
    const int pages = count_pages(wholes[0].input, &reason);
    bool done = true;
    for (size_t i = 0; i < outputs; i++) {
        done = done && add_pages(&builder, &wholes[i], pages, &reason);
        free(wholes[i].input);
        free(wholes[i].output);
    }
    return done || error_no_memory(error, "the list of files");
}

/* ---- Jobs with outputs ---- */

/* Add the file at PATH, to be written as REQUEST says. */
static bool add_output(struct list_builder *builder, const struct list_request *request, const char *path,
                       const char *relative, const struct stat *status)
{
    if (status == NULL)
        return add_unreadable(builder, path, relative);
    struct error *error = builder->error;
    const struct format *named = format_find_by_path(path);
    if (request->format == NULL && named == NULL) {
        char suffixes[128];
        format_join_suffixes("or", true, suffixes, sizeof suffixes);
        return add_problem(builder, path, relative,
                           "has no suffix of an output format; give --format, or a name that ends in ", suffixes);
    }
    if (request->in_place && request->format != NULL && named != NULL && named != request->format)
        return error_about(error, ERROR_USAGE, path,
                           "--in-place keeps the name, but --format needs another suffix; leave one out");
    if (!add_input_only(builder, path, relative, status))
        return false;
    struct job *job = &builder->list->jobs[builder->list->count - 1];
    job->output = request->in_place ? strdup(path) : file_list_output_path(request, relative);
    job->format = request->format != NULL ? request->format : named;
    return job->output != NULL || error_no_memory(error, "the list of files");
}

/* list_builder's `add` for a list of jobs. */
static bool add_file(struct list_builder *builder, const char *path, const char *relative, const struct stat *status)
{
    struct list_request request = *builder->request;
    const int reason = errno;
    for (size_t i = 0; i <= request.also_count; i++) {
        errno = reason;
        request.output = output_folder(builder->request, i);
        if (!add_output(builder, &request, path, relative, status))
            return false;
        builder->list->jobs[builder->list->count - 1].number = i;
    }
    return !request.pages || file_list_split_pages(builder->list, request.also_count + 1, builder->error);
}

bool file_list_add(struct file_list *list, const char *path, struct error *error)
{
    struct list_builder builder = {.list = list, .error = error};
    struct stat status = {0};
    const bool is_known = file_is_standard(path) || stat(path, &status) == 0;
    return add_input_only(&builder, path, file_name(path), is_known ? &status : NULL);
}

/* ---- What is left out ---- */

static bool record_folder(struct list_builder *builder, const struct stat *status, enum folder_use use,
                          const char *parent)
{
    struct folder *larger = array_grow(builder->folders, builder->folder_count, sizeof *larger);
    char *copy = parent != NULL ? strdup(parent) : NULL;
    builder->folders = larger != NULL ? larger : builder->folders;
    if (larger == NULL || (parent != NULL && copy == NULL)) {
        free(copy);
        return error_no_memory(builder->error, "the list of folders");
    }
    larger[builder->folder_count++] =
        (struct folder){.device = status->st_dev, .inode = status->st_ino, .use = use, .parent = copy};
    return true;
}

static void free_folders(struct list_builder *builder)
{
    for (size_t i = 0; i < builder->folder_count; i++)
        free(builder->folders[i].parent);
    free(builder->folders);
}

static int compare_folders(const void *a, const void *b)
{
    const struct folder *p = a, *q = b;
    const int order = file_order(p->device, p->inode, q->device, q->inode);
    return order != 0 ? order : (int)p->use - (int)q->use;
}

/* Warn about the folders of this USE. The list is sorted. */
static void warn_folders(const struct list_builder *builder, enum folder_use use)
{
    static const struct {
        const char *one, *many, *advice, *end;
    } rows[] = {{"folder", "folders", "-r takes", ""},
                {"link to a folder", "links to folders", "give", ", too"},
                {"link to a folder", "links to folders", "compare", " separately"}};
    const int row = use == FOLDER_LEFT_OUT ? 0 : !builder->is_tree ? 1 : 2;
    const char *parent = NULL; /* the first one by name */
    char text[5000];           /* a path has at most 4096 bytes */
    size_t count = 0;
    bool has_others = false;
    for (const struct folder *f = builder->folders; f < builder->folders + builder->folder_count; f++)
        if (f->use == use && (f == builder->folders || f[-1].device != f->device || f[-1].inode != f->inode)) {
            const int order = parent != NULL ? strcmp(f->parent, parent) : 0;
            has_others = has_others || order != 0;
            parent = parent == NULL || order < 0 ? f->parent : parent;
            count++;
        }
    if (count == 0)
        return;
    const bool one = count == 1;
    snprintf(text, sizeof text, "%zu %s inside %s%s %s left out; %s %s%s", count, one ? rows[row].one : rows[row].many,
             parent, has_others ? " and other folders" : "", one ? "was" : "were", rows[row].advice,
             one ? "it" : "them", rows[row].end);
    builder->request->warn(builder->request->context, text, "");
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int compare_visible_entries(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Note that the file NAME is left out. Returns true. */
static bool count_other(struct others *others, const char *name)
{
    const char *dot = strrchr(name, '.');
    char suffix[sizeof others->suffixes[0]];
    others->count++;
    for (size_t i = 0; dot != NULL && dot[1] != '\0' && i < sizeof suffix; i++) {
        suffix[i] = dot[i] >= 'A' && dot[i] <= 'Z' ? (char)(dot[i] - 'A' + 'a') : dot[i];
        if (suffix[i] != '\0')
            continue;
        int index = 0;
        while (index < others->suffix_count && strcmp(others->suffixes[index], suffix) != 0)
            index++;
        if (index == (int)(sizeof others->suffixes / sizeof *others->suffixes))
            break;
        memcpy(others->suffixes[index], suffix, i + 1);
        others->suffix_count += index == others->suffix_count;
        return true;
    }
    others->more = true;
    return true;
}

static int compare_suffixes(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Warn about the files that were left out. */
static void warn_others(const struct list_request *request, struct others *others)
{
    char text[256];
    size_t used;
    if (others->count == 0)
        return;
    qsort(others->suffixes, (size_t)others->suffix_count, sizeof *others->suffixes, compare_suffixes);
    used = (size_t)snprintf(text, sizeof text, "%zu file%s of other kinds %s left out", others->count,
                            others->count == 1 ? "" : "s", others->count == 1 ? "was" : "were");
    for (int i = 0; i < others->suffix_count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i == 0 ? ": " : " ", others->suffixes[i]);
    if (others->more && others->suffix_count > 0)
        snprintf(text + used, sizeof text - used, " and others");
    request->warn(request->context, text, "");
    for (int i = 0; i < others->suffix_count; i++)
        if (format_describe_foreign(others->suffixes[i] + 1, text, sizeof text))
            request->warn(request->context, others->suffixes[i], text);
}

/* Warn about what the folders hold and the list does not. */
static void warn_unlisted(struct list_builder *builder)
{
    if (builder->request->warn == NULL)
        return;
    if (builder->folder_count > 0) {
        qsort(builder->folders, builder->folder_count, sizeof *builder->folders, compare_folders);
        warn_folders(builder, FOLDER_LEFT_OUT);
        warn_folders(builder, FOLDER_LINK);
    }
    if (!builder->is_tree)
        warn_others(builder->request, &builder->others);
}

/* ---- Folders ---- */

static bool is_output(const struct list_builder *builder, const struct stat *status)
{
    const struct list_request *request = builder->request;
    struct stat output;
    bool is_one = false;
    for (size_t i = 0; request->output != NULL && i <= request->also_count && !is_one; i++)
        is_one = stat(output_folder(request, i), &output) == 0 && file_is_one(status, &output);
    return is_one;
}

/* These functions call each other once for each level of nested folders; a path has at most 4096 bytes. */
/* NOLINTBEGIN(misc-no-recursion) */
static bool add_folder(struct list_builder *builder, const char *path, const char *relative);

/* With -r, add the folder PATH, which is in PARENT. Leave out links to folders, which may form a circle. */
static bool add_subfolder(struct list_builder *builder, const char *path, const char *relative, const char *parent,
                          const struct stat *status)
{
    const struct list_request *request = builder->request;
    struct stat itself;
    const bool is_link = lstat(path, &itself) != 0 || !S_ISDIR(itself.st_mode);
    const bool is_read = request->recursive && !is_link;
    if (!is_output(builder, status))
        return is_read ? record_folder(builder, status, FOLDER_READ, NULL) && add_folder(builder, path, relative)
                       : record_folder(builder, status, is_link ? FOLDER_LINK : FOLDER_LEFT_OUT, parent);
    if (is_read && builder->is_tree)
        return error_set(builder->error, ERROR_USAGE,
                         "%s is the other folder of the comparison; give two separate folders", path);
    if (is_read && request->warn != NULL)
        request->warn(request->context, path, ": is the output folder, so it is not read");
    return true;
}

/* Add the entry NAME of a folder: an image, or with -r a folder. Count the other files. */
static bool add_entry(struct list_builder *builder, const char *folder, const char *folder_relative, const char *name)
{
    const struct format *format = format_find_by_path(name);
    const bool image = format != NULL && codec_is_available(format);
    struct stat status;
    char *path = join_path(folder, name),
         *relative = folder_relative[0] != '\0' ? join_path(folder_relative, name) : strdup(name);
    bool done = path != NULL && relative != NULL;
    if (!done) {
        error_no_memory(builder->error, "the list of files");
    } else if (stat(path, &status) != 0) {
        done = !image || builder->add(builder, path, relative, NULL);
    } else if (S_ISREG(status.st_mode)) {
        done = image ? builder->add(builder, path, relative, &status) : count_other(&builder->others, name);
    } else if (S_ISDIR(status.st_mode)) {
        done = add_subfolder(builder, path, relative, folder, &status);
    }
    free(path);
    free(relative);
    return done;
}

/* Add a folder's images. RELATIVE is its path below the folder that the user named. The folder is already closed. */
static bool add_folder(struct list_builder *builder, const char *path, const char *relative)
{
    struct dirent **entries;
    const int count = scandir(path, &entries, is_visible, compare_visible_entries);
    if (count < 0)
        return errno == ENOMEM ? error_no_memory(builder->error, "the list of files")
                               : builder->add(builder, path, relative, NULL);
    bool done = true;
    for (int i = 0; i < count; i++) {
        done = done && add_entry(builder, path, relative, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return done;
}
/* NOLINTEND(misc-no-recursion) */

/* ---- Inputs ---- */

/* Add a file or a folder that the user named. */
static bool add_input(struct list_builder *builder, const char *path)
{
    const struct list_request *request = builder->request;
    struct stat status = {0};
    if (file_is_standard(path)) /* only of a list without outputs */
        return builder->add(builder, path, path, &status);
    if (stat(path, &status) != 0)
        return builder->add(builder, path, file_name(path), NULL);
    if (!S_ISDIR(status.st_mode))
        return builder->add(builder, path, file_name(path), &status);
    if (is_output(builder, &status))
        return error_set(builder->error, ERROR_USAGE,
                         "%s is also the output folder, so a second run would filter the results of the first; give "
                         "another folder for --output, or give --in-place to replace the files",
                         path);
    const size_t before = builder->list->count;
    if (!record_folder(builder, &status, FOLDER_READ, NULL) || !add_folder(builder, path, ""))
        return false;
    if (builder->list->count == before && request->warn != NULL) {
        char suffixes[128], text[256];
        format_join_suffixes("or", false, suffixes, sizeof suffixes);
        snprintf(text, sizeof text, ": contains no image (%s)", suffixes);
        request->warn(request->context, path, text);
    }
    return true;
}

/* Add a name from a list. */
static bool add_listed(void *context, const char *name, struct error *error)
{
    (void)error; /* the builder's */
    return name[0] == '\0' || add_input(context, strcmp(name, "-") == 0 ? "./-" : name);
}

bool file_list_read_names(const char *from, bool null_separated,
                          bool (*each)(void *context, const char *name, struct error *error), void *context,
                          struct error *error)
{
    const char *name = file_input_name(from);
    const int separator = null_separated ? '\0' : '\n';
    char *text;
    size_t size;
    if (!file_read_text(from, LIST_LIMIT, ERROR_WORK, &text, &size, error))
        return false;
    const char *start = text;
    bool done = null_separated || text_begin(&start, text + size, name, ERROR_USAGE, error);
    text[size] = (char)separator;
    if (done && !null_separated && memchr(text, '\0', size) != NULL)
        done = error_about(error, ERROR_USAGE, name, "has a NUL byte, like a list for -0; give -0, too");
    for (char *end, *at = text + (start - text); done && at < text + size; at = end + 1) {
        end = memchr(at, separator, (size_t)(text + size + 1 - at));
        *end = '\0';
        if (!null_separated && end > at && end[-1] == '\r') /* a list from Windows */
            end[-1] = '\0';
        done = each(context, at, error);
    }
    free(text);
    return done;
}

/* ---- Lists ---- */

static int compare_jobs(const void *a, const void *b)
{
    const struct job *p = a, *q = b;
    const int order = strcmp(p->output != NULL ? p->output : p->input, q->output != NULL ? q->output : q->input);
    return order != 0 ? order : strcmp(p->input, q->input);
}

/* By inputs and pages, so that the jobs of one lie together. */
static int compare_inputs(const void *a, const void *b)
{
    const struct job *p = a, *q = b;
    const int inputs = strcmp(p->input, q->input), names = strcmp(p->name, q->name);
    return inputs != 0          ? inputs
           : names != 0         ? names
           : p->page != q->page ? p->page - q->page
                                : (p->number > q->number) - (p->number < q->number);
}

/* Add all inputs of the request. */
static bool add_inputs(struct list_builder *builder)
{
    const struct list_request *request = builder->request;
    bool done = true;
    for (size_t i = 0; done && i < request->input_count; i++)
        done = add_input(builder, request->inputs[i]);
    done = done && (request->files_from == NULL || file_list_read_names(request->files_from, request->null_separated,
                                                                        add_listed, builder, builder->error));
    if (done)
        warn_unlisted(builder);
    free_folders(builder);
    return done;
}

bool file_list_make_inputs(const struct list_request *request, struct file_list *list, struct error *error)
{
    struct list_builder builder = {.request = request, .add = add_input_only, .list = list, .error = error};
    *list = (struct file_list){0};
    return add_inputs(&builder);
}

bool file_list_make(const struct list_request *request, struct file_list *list, struct error *error)
{
    struct list_builder builder = {.request = request, .add = add_file, .list = list, .error = error};
    *list = (struct file_list){0};
    struct stat status;
    for (size_t i = 0; !request->in_place && i <= request->also_count; i++)
        if (stat(output_folder(request, i), &status) == 0 && !S_ISDIR(status.st_mode))
            return error_about(error, ERROR_WORK, output_folder(request, i), "is not a folder; give a folder for --%s",
                               i == 0 ? "output" : "also");
    const bool done = add_inputs(&builder);
    if (done && list->count > 0)
        qsort(list->jobs, list->count, sizeof *list->jobs, request->also_count > 0 ? compare_inputs : compare_jobs);
    return done && collisions_check(list, request->in_place, error);
}

bool file_list_make_tree(const char *folder, const char *other, list_warner *warn, void *context,
                         struct file_list *list, struct error *error)
{
    const struct list_request request = {.recursive = true, .output = other, .warn = warn, .context = context};
    struct list_builder builder = {
        .request = &request, .is_tree = true, .add = add_input_only, .list = list, .error = error};
    *list = (struct file_list){0};
    const bool done = add_folder(&builder, folder, "");
    if (done)
        warn_unlisted(&builder);
    free_folders(&builder);
    if (done && list->count > 0)
        qsort(list->jobs, list->count, sizeof *list->jobs, compare_jobs);
    return done;
}

bool file_list_make_pair(const char *input, const char *output, const struct format *format, struct file_list *list,
                         struct error *error)
{
    struct list_builder builder = {.list = list, .error = error};
    struct stat status;
    *list = (struct file_list){0};
    if (!file_is_standard(output) && stat(output, &status) == 0 && S_ISDIR(status.st_mode))
        return error_about(error, ERROR_WORK, output,
                           "is a folder; give the path of a file, or -o %s/ to write to it under the same name",
                           output);
    if (!file_is_standard(input) && stat(input, &status) == 0 && S_ISDIR(status.st_mode))
        return error_about(error, ERROR_WORK, input,
                           "is a folder; give -o DIR in place of OUTPUT to filter the images in it");
    if (!job_check_output(output, error))
        return false;
    if (file_same(input, output))
        return error_set(error, ERROR_USAGE,
                         "%s is the same file as %s; give another OUTPUT, or give --in-place to replace INPUT",
                         file_output_name(output), file_input_name(input));
    /* If the input is missing, reading it reports the error. */
    if ((file_is_standard(input) ? fstat(STDIN_FILENO, &status) : stat(input, &status)) != 0)
        status = (struct stat){0};
    if (!add_input_only(&builder, input, file_name(input), &status))
        return false;
    struct job *job = &list->jobs[0];
    job->format = format;
    job->output = strdup(output);
    if (job->output == NULL)
        return error_no_memory(error, "the list of files");
    if (file_find_output(output, &status)) {
        job->output_device = status.st_dev;
        job->output_inode = status.st_ino;
    }
    return true;
}

/* ---- Parts of a list ---- */

static void free_job(struct job *job)
{
    free(job->input);
    free(job->output);
    free(job->digest);
    free(job->problem);
}

void file_list_keep_shard(struct file_list *list, const struct shard *shard)
{
    size_t count = 0;
    list->listed = list->count;
    list->listing = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct job *job = &list->jobs[i];
        list->listing += shard_mix(shard_hash(job->name) + job->bytes);
        if (shard->count <= 1 || shard_of(job->name, shard->count) == shard->index)
            list->jobs[count++] = *job;
        else
            free_job(&list->jobs[i]);
    }
    list->count = count;
    for (size_t i = 1; i < count; i++)
        if (list->jobs[i].number > 0)
            list->jobs[i - 1].next = &list->jobs[i];
}

bool file_list_check_codec(const struct file_list *list, const struct codec_settings *settings, struct error *error)
{
    size_t count;
    const struct format *table = formats(&count);
    struct codec_settings limits = *settings;
    limits.subsampling = 0; /* a JPEG's options are the error of its file, which may be unreadable first */
    limits.progressive = false;
    for (const struct format *format = table; format < table + count; format++) {
        bool needed = false;
        for (size_t i = 0; i < list->count && !needed; i++)
            needed = list->jobs[i].format == format;
        if (needed && codec_find_writer(format, &(struct image){.bits = settings->bits}, &limits, error) == NULL)
            return false;
    }
    return true;
}

void file_list_free(struct file_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free_job(&list->jobs[i]);
    free(list->jobs);
    *list = (struct file_list){0};
}
