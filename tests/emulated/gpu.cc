/* SPDX-License-Identifier: MIT
 *
 * An emulated GPU, to run kernels where there is none. It finds wrong results and accesses beyond the ends of memory,
 * but no races and no times. The threads of a block are fibers: a fiber runs until it waits for others of its warp or
 * block. Blocks run one after the other, in turn from both ends, as do the fibers. Memory begins with noise. */
#include "kernels/shared/conv.cuh"

#include <cuda_runtime.h>
#include <pthread.h>

dim3 threadIdx, blockIdx, gridDim;

namespace
{
constexpr unsigned threads_max = 1024, lanes = 32;
constexpr size_t stack_bytes = 1 << 16;

/* A meeting of some fibers, twice in turn. */
struct meeting {
    unsigned count[2];
    uint64_t values[2][lanes];
};

struct fiber {
    void *stack; /* its pointer */
    bool is_done;
    int block_turn, warp_turn;
};

struct fiber fibers[threads_max];
struct meeting block_meeting, warp_meetings[threads_max / lanes];
const std::function<void()> *launched;
void *scheduler; /* its stack */
unsigned thread_count, current;
pthread_mutex_t one_launch = PTHREAD_MUTEX_INITIALIZER;
} // namespace

/* Save the registers that a call keeps (System V ABI, x86-64) and the stack's pointer to FROM, and go on at TO. */
extern "C" void switch_stack(void **from, void *to);
asm(R"(
    .globl switch_stack
    .hidden switch_stack
switch_stack:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    ret
)");

static void wait_for_others()
{
    switch_stack(&fibers[current].stack, scheduler);
}

static void run_fiber()
{
    (*launched)();
    fibers[current].is_done = true;
    wait_for_others();
}

/* Meet COUNT fibers. Returns the turn. */
static int meet(struct meeting *meeting, int *next_turn, unsigned count)
{
    const int turn = *next_turn;
    *next_turn = !turn;
    if (++meeting->count[turn] == count)
        meeting->count[!turn] = 0;
    while (meeting->count[turn] < count)
        wait_for_others();
    return turn;
}

void __syncthreads()
{
    meet(&block_meeting, &fibers[current].block_turn, thread_count);
}

int __syncthreads_or(int is_set)
{
    static bool is_any;
    __syncthreads(); /* all have read it */
    is_any = false;
    __syncthreads();
    is_any |= is_set != 0;
    __syncthreads();
    return is_any;
}

const uint64_t *emulated_exchange(uint64_t value)
{
    struct meeting *meeting = &warp_meetings[current / lanes];
    struct fiber *fiber = &fibers[current];
    meeting->values[fiber->warp_turn][current % lanes] = value;
    return meeting->values[meet(meeting, &fiber->warp_turn, lanes)];
}

static void run_block(char *stacks, bool is_reversed)
{
    block_meeting = {};
    for (struct meeting &meeting : warp_meetings)
        meeting = {};
    for (unsigned t = 0; t < thread_count; t++) {
        /* The registers, run_fiber as the address to return to, and an address that keeps the stack aligned. */
        void **top = (void **)(stacks + stack_bytes * (t + 1)) - 8;
        memset(top, 0, 8 * sizeof *top);
        top[6] = (void *)run_fiber;
        fibers[t] = {top, false, 0, 0};
    }
    for (unsigned left = thread_count; left > 0;) {
        left = 0;
        for (unsigned i = 0; i < thread_count; i++) {
            current = is_reversed ? thread_count - 1 - i : i;
            if (fibers[current].is_done)
                continue;
            left++;
            threadIdx = dim3(current, 0, 0);
            switch_stack(&scheduler, fibers[current].stack);
        }
    }
}

void emulated_launch(dim3 grid, unsigned threads, cudaStream_t, const std::function<void()> &body)
{
    static unsigned launches;
    pthread_mutex_lock(&one_launch);
    const bool is_reversed = __builtin_parity(launches++) != 0; /* without a period: each kernel runs in both orders */
    static char *const stacks = (char *)aligned_alloc(64, stack_bytes * threads_max);
    gridDim = grid;
    launched = &body;
    thread_count = threads;
    for (unsigned y = 0; y < grid.y; y++)
        for (unsigned x = 0; x < grid.x; x++) {
            blockIdx = dim3(is_reversed ? grid.x - 1 - x : x, y, 0);
            run_block(stacks, is_reversed);
        }
    pthread_mutex_unlock(&one_launch);
}

/* ---- The device ---- */

struct device {
    void *table;
};

bool upload_table(struct device *device, const void *words, size_t bytes, struct error *error)
{
    free(device->table);
    device->table = malloc(bytes);
    if (device->table == NULL)
        return error_no_memory(error, "a table of the emulated GPU");
    memcpy(device->table, words, bytes);
    return true;
}

const void *device_table(const struct device *device)
{
    return device->table;
}

bool device_count(int *count, struct error *)
{
    *count = 1;
    return true;
}

bool device_open(int, struct device **device, struct error *error)
{
    *device = (struct device *)calloc(1, sizeof **device);
    return *device != NULL || error_no_memory(error, "the emulated GPU");
}

void device_close(struct device *device)
{
    free(device->table);
    free(device);
}

bool device_allocate(struct device *, size_t size, void **buffer, struct error *error)
{
    if (posix_memalign(buffer, 512, size) != 0)
        return error_no_memory(error, "%zu bytes", size);
    memset(*buffer, 0xa5, size);
    return true;
}

void device_release(struct device *, void *buffer)
{
    free(buffer);
}

bool device_copy(struct device *, void *to, const void *from, size_t size, struct error *)
{
    memcpy(to, from, size);
    return true;
}

bool device_upload(struct device *device, void *to, const void *from, size_t size, struct error *error)
{
    return device_copy(device, to, from, size, error);
}

bool device_download(struct device *device, void *to, const void *from, size_t size, struct error *error)
{
    return device_copy(device, to, from, size, error);
}

bool device_fill(struct device *, void *buffer, uint8_t value, size_t size, struct error *)
{
    memset(buffer, value, size);
    return true;
}

bool device_wait(struct device *, struct error *)
{
    return true;
}

bool device_mark(struct device *, int, struct error *)
{
    return true;
}

bool device_elapsed(struct device *, int, int, float *milliseconds, struct error *)
{
    *milliseconds = 1;
    return true;
}

/* Exactly SIZE bytes, and new ones each time, so that a sanitizer sees what is beyond them or old. */
bool device_buffer_reserve(struct device *device, struct device_buffer *buffer, size_t size, struct error *error)
{
    device_buffer_release(device, buffer);
    void *bytes;
    if (!device_allocate(device, size, &bytes, error))
        return false;
    buffer->bytes = (uint8_t *)bytes;
    buffer->size = size;
    return true;
}

void device_buffer_release(struct device *, struct device_buffer *buffer)
{
    free(buffer->bytes);
    buffer->bytes = NULL;
    buffer->size = 0;
}
