/* SPDX-License-Identifier: MIT
 *
 * An emulated GPU, to run kernels where there is none. It finds wrong results, accesses beyond the ends of memory, and
 * most missing barriers, but no times. The threads of a block are fibers: a fiber runs until it waits for others of its
 * warp or block. Some blocks run at once, each on a thread of the host. Blocks and fibers begin anywhere and go up or
 * down, by random numbers, which are new ones each time that all fibers have waited. */
#include "base/random.h"
#include "kernels/shared/queue.cuh"

#include <map>
#include <pthread.h>
#include <stdio.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) (void)0
#define ASAN_UNPOISON_MEMORY_REGION(address, size) (void)0
#endif

__thread dim3 threadIdx, blockIdx;
__thread unsigned char emulated_memory[EMULATED_SHARED] __attribute__((aligned(128)));
dim3 blockDim, gridDim;

namespace
{
constexpr unsigned threads_max = 1024, lanes = 32;
constexpr size_t stack_bytes = (1 << 16) + 5 * 64; /* no power of 2: else the stacks share one set of a cache */
constexpr unsigned naps = 256, nap_microseconds = 200;

/* A meeting of some fibers. Its two phases alternate, so one can be reused when all have left it. */
struct meeting {
    unsigned count[2];
    uint64_t values[2][lanes];
};

struct fiber {
    void *stack;   /* its pointer */
    unsigned x, y; /* threadIdx */
    bool is_done;
    int block_phase, warp_phase;
    const unsigned *met; /* how many fibers are at the meeting where this one is */
    unsigned wanted;     /* the fiber can run if *MET is at least this */
};

const unsigned met_by_all = 0;
__thread struct fiber fibers[threads_max];
__thread struct meeting block_meeting, warp_meetings[threads_max / lanes];
__thread void *scheduler; /* its stack */
__thread unsigned current;
__thread uint64_t random_state = 1;
pthread_mutex_t one_launch = PTHREAD_MUTEX_INITIALIZER;

/* All numbers below COUNT, from a random one on, up or down. */
struct order {
    unsigned count, first;
    bool is_reversed;

    explicit order(unsigned all) : count(all), first((unsigned)(random_next(&random_state) % all))
    {
        is_reversed = random_next(&random_state) % 2 != 0;
    }

    unsigned at(unsigned i) const
    {
        const unsigned number = first + (is_reversed ? count - i : i);
        return number < count ? number : number - count;
    }
};
/* The launch that runs. */
const std::function<void()> *launched;
const struct order *block_order;
unsigned thread_count, next_block;
size_t shared_bytes;

/* Threads of the host that run blocks. */
constexpr unsigned workers = 3;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t begins = PTHREAD_COND_INITIALIZER, ends = PTHREAD_COND_INITIALIZER;
unsigned launch_number, working;
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
    pop %rcx # not ret: a processor expects another address
    jmp *%rcx
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

/* Meet COUNT fibers. Returns the phase in which they met. */
static int meet(struct meeting *meeting, int *next_phase, unsigned count)
{
    const int phase = *next_phase;
    *next_phase = !phase;
    if (++meeting->count[phase] == count)
        meeting->count[!phase] = 0;
    fibers[current].met = &meeting->count[phase];
    fibers[current].wanted = count;
    if (meeting->count[phase] < count)
        wait_for_others();
    return phase;
}

void __syncthreads()
{
    meet(&block_meeting, &fibers[current].block_phase, thread_count);
}

int __syncthreads_or(int is_set)
{
    static __thread bool is_any;
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
    meeting->values[fiber->warp_phase][current % lanes] = value;
    return meeting->values[meet(meeting, &fiber->warp_phase, lanes)];
}

static void run_block(char *stacks)
{
    memset(emulated_memory, 0xff, shared_bytes); /* if it is read as a float, it is not a number */
    block_meeting = {};
    memset(warp_meetings, 0, (thread_count + lanes - 1) / lanes * sizeof *warp_meetings);
    for (unsigned t = 0; t < thread_count; t++) {
        /* The registers, run_fiber as the address to return to, and an address that keeps the stack aligned. */
        void **top = (void **)(stacks + stack_bytes * (t + 1)) - 8;
        memset(top, 0, 8 * sizeof *top);
        top[6] = (void *)run_fiber;
        fibers[t] = {top, t % blockDim.x, t / blockDim.x, false, 0, 0, &met_by_all, 0};
    }
    /* So that other blocks overtake some. */
    const unsigned nap = gridDim.x * gridDim.y * gridDim.z > 1 ? (unsigned)(random_next(&random_state) % naps) : ~0u;
    for (unsigned left = thread_count, pass = 0; left > 0; pass++) {
        const struct order order(thread_count);
        if (pass == nap)
            usleep(nap_microseconds);
        left = 0;
        for (unsigned i = 0; i < thread_count; i++) {
            current = order.at(i);
            if (fibers[current].is_done)
                continue;
            left++;
            if (*fibers[current].met < fibers[current].wanted)
                continue;
            threadIdx = dim3(fibers[current].x, fibers[current].y, 0);
            switch_stack(&scheduler, fibers[current].stack);
        }
    }
}

/* ---- Memory ---- */

/* A buffer has exactly the bytes that were asked for, which begin with noise. Before and after it lie GUARD bytes, and
 * FAR bytes that cannot be accessed. Kernels that write to the guards are found when they end; with AddressSanitizer,
 * accesses to them are found at once. */
constexpr size_t guard = 1 << 12, far = 1 << 26, alignment = 512;
constexpr uint8_t guard_byte = 0x5a;
static_assert(guard % alignment == 0, "buffers are aligned");

static std::map<uint8_t *, size_t> buffers; /* and their sizes; ONE_LAUNCH guards it */

/* The pages of a buffer with its guards, and before them FAR bytes, and after them FAR bytes or more. */
static size_t mapped_bytes(size_t size)
{
    return (size + 2 * guard + 2 * far + 4095) / 4096 * 4096;
}

/* AddressSanitizer does not look at this function, which reads the guards. */
__attribute__((no_sanitize("address"))) static bool is_guard_whole(const uint8_t *bytes)
{
    for (size_t i = 0; i < guard; i++)
        if (bytes[i] != guard_byte)
            return false;
    return true;
}

static void check_guards(const char *kernel)
{
    for (const auto &buffer : buffers)
        if (!is_guard_whole(buffer.first - guard) || !is_guard_whole(buffer.first + buffer.second)) {
            fprintf(stderr, "%s wrote %s a buffer of %zu bytes\n", kernel,
                    is_guard_whole(buffer.first - guard) ? "after" : "before", buffer.second);
            abort();
        }
}

/* Exactly SIZE bytes, and new ones each time: no old content helps. */
bool device_reserve(struct device *device, struct workspace *workspace, size_t size, struct error *error)
{
    static const uint8_t noise[] = {0xa5, 0x01, 0xff};
    const size_t all = mapped_bytes(size);
    device_release(device, workspace);
    uint8_t *const map = (uint8_t *)mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED || mprotect(map + far, all - 2 * far, PROT_READ | PROT_WRITE) != 0)
        return error_no_memory(error, "%zu bytes", size);
    uint8_t *const bytes = map + far + guard;
    memset(bytes - guard, guard_byte, guard);
    memset(bytes + size, guard_byte, guard);
    ASAN_POISON_MEMORY_REGION(bytes - guard, guard);
    ASAN_POISON_MEMORY_REGION(bytes + size, guard);
    pthread_mutex_lock(&one_launch);
    memset(bytes, noise[random_next(&random_state) % sizeof noise], size);
    buffers[bytes] = size;
    pthread_mutex_unlock(&one_launch);
    workspace->bytes = bytes;
    workspace->size = size;
    return true;
}

/* Exactly SIZE, too: what is beyond the end is found. */
bool device_reserve_more(struct device *device, struct workspace *workspace, size_t size, struct error *error)
{
    return device_reserve(device, workspace, size, error);
}

void device_release(struct device *, struct workspace *workspace)
{
    uint8_t *const bytes = workspace->bytes;
    if (bytes == NULL)
        return;
    pthread_mutex_lock(&one_launch);
    const size_t size = buffers[bytes];
    buffers.erase(bytes);
    pthread_mutex_unlock(&one_launch);
    ASAN_UNPOISON_MEMORY_REGION(bytes - guard, size + 2 * guard);
    munmap(bytes - guard - far, mapped_bytes(size));
    workspace->bytes = NULL;
    workspace->size = 0;
}

/* ---- Launches ---- */

/* Run blocks of each launch, for ever. */
static void *work(void *number)
{
    char *const stacks = (char *)aligned_alloc(64, stack_bytes * threads_max);
    random_state = (uint64_t)(uintptr_t)number;
    for (unsigned seen = 0;; seen++) {
        pthread_mutex_lock(&lock);
        while (launch_number == seen)
            pthread_cond_wait(&begins, &lock);
        pthread_mutex_unlock(&lock);
        ASAN_UNPOISON_MEMORY_REGION(emulated_memory, shared_bytes);
        ASAN_POISON_MEMORY_REGION(emulated_memory + shared_bytes, EMULATED_SHARED - shared_bytes);
        for (unsigned i; (i = atomicAdd(&next_block, 1)) < gridDim.x * gridDim.y * gridDim.z;) {
            blockIdx = dim3(block_order->at(i % gridDim.x), i / gridDim.x % gridDim.y, i / gridDim.x / gridDim.y);
            run_block(stacks);
        }
        pthread_mutex_lock(&lock);
        if (--working == 0)
            pthread_cond_signal(&ends);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static bool start_workers()
{
    for (uintptr_t i = 0; i < workers; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, (void *)(i + 1)) != 0)
            abort();
    }
    return true;
}

void emulated_launch(const char *kernel, dim3 grid, dim3 block, size_t shared, const std::function<void()> &body)
{
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x * block.y > threads_max || shared > EMULATED_SHARED) {
        fprintf(stderr, "%s cannot be launched with blocks of %u x %u threads and %zu bytes\n", kernel, block.x,
                block.y, shared);
        abort();
    }
    pthread_mutex_lock(&one_launch);
    static const bool has_workers = start_workers();
    const struct order order(grid.x);
    gridDim = grid;
    blockDim = block;
    launched = &body;
    block_order = &order;
    thread_count = block.x * block.y;
    shared_bytes = shared;
    next_block = 0;
    pthread_mutex_lock(&lock);
    working = has_workers ? workers : 0;
    launch_number++;
    pthread_cond_broadcast(&begins);
    while (working > 0)
        pthread_cond_wait(&ends, &lock);
    pthread_mutex_unlock(&lock);
    check_guards(kernel);
    pthread_mutex_unlock(&one_launch);
}

/* ---- Copies ---- */

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
