/* SPDX-License-Identifier: MIT */
#include "base/error.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#undef error_about /* error.h makes macros of these for static analysers */
#undef error_no_memory
#undef error_not_loaded

/* The texts are formatted aside, because an argument may be a part of *ERROR. Only the texts are copied: the struct is
 * large, and errors that carry a reason for --verbose are set in every run. */
bool error_about(struct error *error, enum error_code code, const char *subject, const char *format, ...)
{
    va_list arguments;
    if (error == NULL)
        return false;
    char new_subject[sizeof error->subject], message[sizeof error->message];
    va_start(arguments, format);
    if (vsnprintf(message, sizeof message, format, arguments) < 0)
        message[0] = '\0';
    va_end(arguments);
    snprintf(new_subject, sizeof new_subject, "%s", subject);
    error->code = code;
    error->no_new_files = false;
    memcpy(error->subject, new_subject, strlen(new_subject) + 1);
    memcpy(error->message, message, strlen(message) + 1);
    return false;
}

bool error_no_memory(struct error *error, const char *what, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, what);
    if (vsnprintf(text, sizeof text, what, arguments) < 0)
        text[0] = '\0';
    va_end(arguments);
    return error_set(error, ERROR_MEMORY, "there is not enough memory for %s; close other programs", text);
}

bool error_not_loaded(struct error *error, const char *need, const char *library, const char *advice)
{
    if (errno == ENOMEM)
        return error_no_memory(error, "%s", library);
    error_set(error, ERROR_WORK, "%s %s, which cannot be loaded: %s; %s", need, library, dlerror(), advice);
    if (dlopen(NULL, RTLD_NOW) == NULL)
        error_set(error, ERROR_WORK, "%s %s, which a static program cannot load; use the program of the wheel, and %s",
                  need, library, advice);
    return false;
}

bool error_may_retry(enum error_code code)
{
    return code == ERROR_READ || code == ERROR_WRITE || code == ERROR_MEMORY || code == ERROR_GPU ||
           code == ERROR_INTERRUPTED;
}

int error_status(enum error_code code)
{
    return code == ERROR_NONE ? 0 : code == ERROR_USAGE ? 2 : error_may_retry(code) ? STATUS_RETRY : STATUS_FAILED;
}

int error_join_status(int a, int b)
{
    return a > b ? a : b;
}

enum error_code error_of_errno(int reason, enum error_code lasting, enum error_code passing)
{
    static const int reasons[] = {ENOENT, EACCES, EPERM, EROFS,  ENOTDIR,    EISDIR, ELOOP,     ENAMETOOLONG, EINVAL,
                                  EEXIST, EXDEV,  ENXIO, ENODEV, EOPNOTSUPP, EFBIG,  EOVERFLOW, EBADF};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i] == reason)
            return lasting;
    return passing;
}

void error_add_subject(struct error *error, const char *subject)
{
    if (error != NULL && error->subject[0] == '\0')
        snprintf(error->subject, sizeof error->subject, "%s", subject);
}

void error_text(const struct error *error, char *text, size_t size)
{
    snprintf(text, size, "%s%s%s", error->subject, error->subject[0] == '\0' ? "" : ": ", error->message);
}
