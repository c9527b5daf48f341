/* SPDX-License-Identifier: MIT
 *
 * One image, from file to file. job_run does a single photo and each file of a batch alike. A callback reports what
 * happens; nothing here prints. */
#ifndef GPUCONV_JOB_H
#define GPUCONV_JOB_H

#include "base/error.h"
#include "base/parallel.h"
#include "base/workers.h"
#include "codec/codec.h"
#include "container/tiff.h"
#include "image/image.h"
#include "metadata/metadata.h"
#include "pipeline/pipeline.h"

#include <sha2.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct outputs;
struct job_result;
struct report_run;

/* The most outputs of one input. */
enum { OUTPUTS_MAX = 32 };

struct job {
    char *input;                 /* a path, or with `content` any name; "-" is standard input */
    const char *name;            /* the end of `input`: the path below the folder that the user named */
    char *output;                /* a path; "-" is standard output. NULL where there is a problem. */
    char *digest;                /* NULL, or the one that the image must have, in hexadecimal digits of any case */
    char *problem;               /* NULL, or the sentence that says why this input cannot be read */
    bool problem_passes;         /* a later run may not have the problem */
    uint64_t bytes;              /* bytes of the input file; 0 if it is no regular file */
    const struct format *format; /* the format to write; NULL for the input's */
    int page;                    /* the page to read; 0 for that of the settings */
    bool all_pages;              /* read all, and write a TIFF of them; only for a batch of this job */

    /* One worker does all jobs with the same input, in their order, and decodes it once. */
    struct job *next; /* the next job with this input; NULL after the last */
    size_t number;    /* how many jobs with this input come before it */

    /* For a stream of jobs, and for jobs that `run` does. */
    const struct recipe *recipe;          /* the recipe of this image; NULL for that of the batch */
    const struct job_settings *settings;  /* the settings of this job; NULL for those of the batch */
    const uint8_t *content;               /* `bytes` of them are the input; NULL if that is a file */
    const char *id;                       /* for its line of the report, a value of JSON; NULL if it has none */
    const struct report_run *run_members; /* for this line; NULL for those of the report */
    bool is_link;                         /* a member of an archive that refers to another one */
    bool in_memory;                       /* the output becomes result->output, and no file is written */
    /* Do the job instead of job_run, on the thread of worker NUMBER. RESULT is that of a job that is done. It is
     * NULL for an image to filter. */
    void (*run)(const struct job *job, struct workers *workers, int number, struct job_result *result);
    void *context; /* for `run`; the maker of the job owns it */

    /* For the checks of a list. */
    dev_t device;
    ino_t inode; /* the input's inode; 0 if there is no input file */
    dev_t output_device;
    ino_t output_inode; /* the output's inode; 0 if there is no regular file yet */
};

/* The settings of all jobs. */
struct job_settings {
    struct codec_settings codec; /* job_run sets the pool and the chroma subsampling */
    struct metadata_strip strip; /* what to drop of the metadata */
    bool keep_text;              /* keep long texts of the metadata too */
    bool keep_orientation;       /* leave the samples in their order, whatever EXIF says is up */
    bool skip_existing;          /* skip a job whose output exists */
    bool make_folders;           /* make the folder of an output where it does not exist */
    bool in_place;               /* each output replaces its input; refuse an input that would lose more than samples */
    bool keep_lossless;          /* a lossless WebP of a lossless WebP */
    bool keep_format;            /* write the format of the input's bytes, whatever the job's says */
    bool first_picture;          /* drop what a file holds besides its first picture */
    bool digests;                /* write nothing: the result is the digest of the image, after any filters */
};

enum job_outcome { JOB_DONE, JOB_SKIPPED, JOB_FAILED };

/* The result of a job. */
struct job_result {
    const struct job *job;
    const struct pipeline_run *run; /* planned from JOB_PLANNED on; NULL after JOB_WRITTEN */
    enum job_outcome outcome;
    struct error error;                    /* JOB_FAILED */
    bool unwritten;                        /* JOB_FAILED, because the output could not be written */
    const struct format *input_format;     /* this and the next two lines: 0 where the image could not be read */
    int width, height, channels;           /* the shape of the image before the filters, upright */
    int bits;                              /* bits of a sample of this image */
    int output_width, output_height;       /* the size of the image after the filters */
    int output_channels;                   /* its channels */
    int page, pages;                       /* the page that was read, and how many there are, as in codec_info */
    int shrink;                            /* the number of times that the decoder has halved both sides */
    bool region_cut;                       /* the region of a filter reaches beyond the picture */
    bool not_enlarged;                     /* a filter that changes the size leaves a smaller image as it is */
    int input_bits;                        /* bits of a sample in the input file */
    size_t input_bytes, output_bytes;      /* the sizes of the input and output files */
    uint8_t *output;                       /* the output of a job in memory; a batch frees it after JOB_ENDED */
    enum backend backend;                  /* the backend that filtered the image */
    int device;                            /* the GPU's index; -1 on the CPU */
    char variants[256];                    /* the variants' names, joined by commas; empty if nothing was convolved */
    const struct format *output_format;    /* the format of the output */
    const struct codec *decoder, *encoder; /* NULL where nothing was decoded or encoded */
    struct phases phases;                  /* the time of each phase */
    bool reduced;                          /* the image has 16 bits a sample and the output holds 8 */
    bool alpha_dropped;                    /* the image has alpha and the output holds none */
    bool cmyk_converted;                   /* the input is CMYK and the output RGB, by no profile */
    char converted_by[32];                 /* who has made sRGB by a profile of tables; empty if nobody */
    unsigned other_content;                /* what the input holds besides its first picture, as in codec_info */
    bool linked;                           /* in place, and other hard links keep the old content */
    enum curve_source curve;               /* the source of the curve of linear light, if the recipe uses it */
    unsigned unread_curves;                /* 1 << source for each unreadable source of a curve that comes before it */
    uint64_t dropped_on_read;              /* metadata of the input that are not carried, as in struct metadata */
    uint64_t dropped_on_write;             /* metadata that the output's format does not hold */

    /* The SHA-256 of the width, the height, the channels and the bits of the image, in 4 bytes each, and then of its
     * samples, row by row; all numbers are big-endian. Empty if it is not known or was not asked for. */
    char digest[SHA256_DIGEST_STRING_LENGTH];

    /* The SHA-256 of the output in place. Empty if there is no report. */
    char sha256[SHA256_DIGEST_STRING_LENGTH];
};

/* When a result is reported. Its fields are known as far as the job has come. */
enum job_event {
    JOB_INPUT_KNOWN, /* the file is inspected. Its image is decoded, or will be while it is filtered */
    JOB_PLANNED,     /* the backend and the variants are chosen */
    JOB_GPU_FAILED,  /* for the reason run->pipeline->fallback; the CPU has taken over, in this job or before */
    JOB_WRITTEN,     /* the output is written, or the job was skipped or has failed. The result is final. No signal ends
                        the work between the writing of the output and this report */
    JOB_ENDED,       /* after JOB_WRITTEN, with the same result; only a batch reports it */
    JOB_INTERRUPTED, /* a signal has ended the batch, and the job is not done; only `job` and the error are known */
};

/* What a job is doing. */
enum job_step {
    JOB_STEP_NONE, /* there is no job */
    JOB_STEP_READ, /* and decode, unless the rows stream; or wait for memory */
    JOB_STEP_STREAM,
    JOB_STEP_STREAM_DECODED, /* decoding is done */
    JOB_STEP_FILTER,         /* before the image is encoded */
    JOB_STEP_ENCODE,
    JOB_STEP_WRITE,
};

/* The progress of a job. */
struct job_progress {
    const char *word; /* its step, in messages; NULL if there is no job */
    double done;      /* the share of the job, from 0 to 1 */
    bool is_rough;    /* `done` is only a guess */
    double rows;      /* the share of the rows that have passed the filters; below 0 where that is not known */
};

/* What jobs with one input share. */
struct shared_input {
    uint8_t *bytes; /* the file; NULL if it is not read, or belongs to the job */
    size_t size;
    struct stat status;
    struct image image; /* decoded and upright; without samples if only the pipeline has it, or nothing does yet */
    int orientation, page;
    const struct codec *codec, *decoder; /* the reader that was chosen for it, and what has decoded it */
};

/* A thread's data that it keeps from job to job. The caller sets the first nine fields, but for resources.pool, and
 * leaves the others 0. The objects that the fields point to must outlive the worker. */
struct job_worker {
    const struct job_settings *settings; /* the settings of the next job */
    const struct recipe *recipe;         /* the recipe of the next job */
    struct workers *workers;             /* all workers of the batch */
    struct outputs *outputs;             /* the outputs of all workers */
    void (*report)(void *context, const struct job_result *result, enum job_event event); /* on the job's thread */
    void *context; /* the first argument of `report` */
    struct resources resources;
    int threads;  /* CPU threads for one image; 0 for one on each processor */
    bool has_gpu; /* an image may need memory for a GPU, if its recipe does not exclude it */

    struct thread_pool pool;
    struct pipeline pipeline;
    struct recipe converted; /* the recipe of `converted_from`, with the colours of the last picture */
    struct filter_chain *converted_from;
    struct colours *colours;     /* those that it has, or NULL before the first picture */
    int32_t weights[3][3];       /* and its matrix; all 0 if it has none */
    bool is_srgb;                /* it has neither */
    struct transform *transform; /* by the profile of tables of the last picture that has one, or NULL */

    double work; /* the work of the job's input, as pipeline_input.work */
    struct shared_input input;
    int page;                /* the job's page, also of a job for all; 0 for that of the settings */
    struct tiff_pages pages; /* the output so far of a job for all pages */

    bool is_grouped;       /* the last image went to the GPU in a group with those of other workers */
    size_t kept;           /* bytes reserved for the buffers of the pipeline */
    size_t reserved;       /* bytes reserved for this image */
    _Atomic(double) start; /* when the job began, in milliseconds as of clock_milliseconds */
    atomic_int step;       /* enum job_step; `report` may set it to JOB_STEP_NONE */
};

/* Open the pipeline of a worker, and its pool, which starts no thread yet. Release with job_worker_close. */
void job_worker_open(struct job_worker *worker);

/* Release the pipeline, the pool and the reserved memory. Does nothing to a worker of zeros. */
void job_worker_close(struct job_worker *worker);

/* Do one job: read and decode within the memory budget, plan, filter and encode, write. RESULT becomes the result, with
 * the error of a failure, which has a subject. Reports all events up to JOB_WRITTEN. */
void job_run(struct job_worker *worker, const struct job *job, struct job_result *result);

/* Release what jobs with one input share, after the last of them. */
void job_end_input(struct job_worker *worker);

/* How far the worker's job is. Any thread may ask, while the worker is open. */
struct job_progress job_find_progress(const struct job_worker *worker);

/* Can PATH be written? This finds before the work the errors that file_write would find after it: a terminal, a folder,
 * a path whose folder does not exist. */
bool job_check_output(const char *path, struct error *error);

#endif
