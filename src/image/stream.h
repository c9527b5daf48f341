/* SPDX-License-Identifier: MIT
 *
 * Moves the rows of an image from a source to a sink, on several threads. Between them rows may be transformed, for
 * example by filters. To decode a whole image is to move rows from a codec to memory, and to encode one is the way
 * back. */
#ifndef GPUCONV_STREAM_H
#define GPUCONV_STREAM_H

#include "image/rows.h"

#include <pthread.h>
#include <stdatomic.h>

struct thread_pool; /* base/parallel.h */

/* The parts of an image, and the slots for them. They follow from its shape, the source, the transform and the sink. */
struct bands {
    int rows, count;              /* rows of a band; the last may have fewer; and the number of bands */
    int strip_rows, strips;       /* rows of a strip; the last may have fewer; and the number of strips */
    int threads, reading_threads; /* threads that work at once; those of them that read at once */
    int raw_slots, read_slots, output_slots;
};

/* How far a step is with the strips or bands of the image. */
struct stream_progress {
    int count;        /* the number of strips or bands of the image */
    int begun, ended; /* the index of the first that has not begun, or not ended */
    bool *has_ended;  /* for each strip or band: has the step ended? */
    int at_once;      /* the maximal number that may be under way at once */
};

/* The rows from FIRST to the one before LAST. */
struct row_span {
    int first, last;
};

enum stream_step { STREAM_FETCH, STREAM_READ, STREAM_MAKE, STREAM_WRITE, STREAM_STEPS };

struct stream {
    /* Set by the caller. */
    struct image shape;          /* the shape of the source's image; its samples do not matter */
    struct image produced_shape; /* the shape of the sink's image */
    const struct row_source *source;
    const struct row_sink *sink;
    struct thread_pool *pool;      /* or NULL, for the calling thread only */
    int threads;                   /* the maximal number of the pool's threads to use */
    atomic_int *progress_permille; /* receives the thousandths of the rows that are written; or NULL */

    /* The transform. It makes PRODUCED, whose first row is row FIRST of the sink's image, on thread number THREAD, from
     * what stream_rows gives. If it is NULL, the rows stay as they are, and either the source or the sink has an
     * image. */
    bool (*make)(void *context, int thread, int first, struct image *produced, struct error *error);

    /* The rows of the source on which PRODUCED rows of the sink depend. This is monotonic: later rows never
     * need earlier rows. It is NULL only if `make` is. */
    struct row_span (*needs)(const void *context, struct row_span produced);
    void *context;       /* the first argument of both functions */
    size_t row_bytes;    /* bytes of memory that a thread of the transform works on, for each row of the sink */
    int64_t shared_rows; /* the work on the rows that two bands share, in rows of the sink */
    int multiple;        /* the transform prefers bands of a multiple of this, if rows are not too wide; 0 means 1 */
    bool is_whole;       /* the image cannot be cut */
    bool is_wide;        /* bands are high, as they need no planes */

    struct bands bands; /* set by stream_plan */

    /* Set by stream_run. */
    double decoding, encoding; /* milliseconds of all threads in the functions of the source and of the sink */

    /* Private. */
    const struct image *in, *out; /* have what is read, and what is made; NULL if the slots do */
    uint8_t *raw, *read, *output; /* the slots */
    bool *flags;                  /* the memory of has_ended of all steps */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct stream_progress steps[STREAM_STEPS];
    unsigned changes;      /* calls that have ended */
    enum stream_step goal; /* the threads return once this step has ended all over */
    bool has_failed;
    struct error error;
};

/* Choose the bands. */
void stream_plan(struct stream *stream);

/* Bytes of memory for the slots of the planned STREAM, and for what the sink has made of them and not written yet. */
size_t stream_need(const struct stream *stream);

/* Move all rows as planned. Decoding, transforming and encoding run beside each other. Only some strips and bands are
 * in memory, besides images of the source and the sink. The error is the first one of the functions. */
bool stream_run(struct stream *stream, struct error *error);

/* Move the rows of an image of SHAPE without a transform: from the functions of SOURCE to the image of SINK, or, if
 * there are none, from the image of SOURCE to the functions of SINK. If the rows come in their order, one thread
 * fetches and another reads. The others help the source, if it has a help. */
bool stream_move(const struct image *shape, struct row_source source, struct row_sink sink, struct thread_pool *pool,
                 struct error *error);

/* For a transform: a view of the source's rows from FIRST on, up to the one before LAST, or up to the end of a slot. */
struct image stream_rows(const struct stream *stream, int first, int last);

#endif
