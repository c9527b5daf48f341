/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of the inflating in png.h.
 * Inflating on a GPU: the data of a deflate stream in device memory become bytes there. */
#ifndef GPUCONV_PNG_INFLATE_CUH
#define GPUCONV_PNG_INFLATE_CUH

#include "kernels/shared/queue.cuh"

/* Buffers, which grow. */
struct inflation {
    struct workspace marks, survivors, sums, ranks, parts, chain, spans, slices, symbols, maps, windows;
    struct workspace state;
};

/* Make WORKSPACE at least COUNT items long, and set *ITEMS to the first. */
template <typename T>
static inline bool reserve_items(struct device *device, struct workspace *workspace, size_t count, T **items,
                                 struct error *error)
{
    const bool done = device_reserve_more(device, workspace, count * sizeof **items, error);
    *items = (T *)workspace->bytes;
    return done;
}

/* What happened to a stream. Only INFLATED is good: in all other cases the CPU has to inflate. */
enum inflate_status { INFLATED, INFLATE_UNFINISHED, INFLATE_TOO_MANY, INFLATE_BAD };

struct inflate_state {
    unsigned survivors, parts, spans, chain, slices; /* counts */
    unsigned ticket;
    uint64_t end; /* the bit after the last block */
    uint32_t status;
};

/* Queue the inflation of SIZE bytes of STREAM, aligned to 512 bytes with 64 bytes more to read, to the EXPECTED bytes
 * at OUT. inflation->state becomes what happened. */
bool inflate_queue(struct device *device, struct inflation *inflation, const uint8_t *stream, size_t size, uint8_t *out,
                   size_t expected, struct error *error);
void inflate_release(struct device *device, struct inflation *inflation);

#endif
