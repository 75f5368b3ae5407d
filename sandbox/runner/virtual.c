/*
 * The world as an interpreter in a container sees it, in the place of the C library's: a clock and entropy that are virtual, seeded and
 * counted, descriptors 0 to 2 and no other, and memory that says when it ran out. Loaded before the C library (LD_PRELOAD), so that
 * all of CPython and its modules meet it, whichever function of Python a program came by: what src/sandbox/wasm/host.ts is to the
 * embedded sandbox, and with the same answers. What takes a path is not here: the filter of system calls holds none of it.
 *
 * Also the loop that forks a child for each program, since a template process that ran Python between two programs would
 * show the second one another interpreter than the first.
 *
 * Compiled by itself, without any header, for Linux of 64 bits and glibc.
 */
typedef unsigned long size;
typedef unsigned long long u64;
struct timespec { long seconds, nanoseconds; };
struct timeval { long seconds, microseconds; };

extern int *__errno_location(void);
extern long syscall(long number, ...);
extern void *__libc_malloc(size), *__libc_calloc(size, size), *__libc_realloc(void *, size);
extern int fork(void), waitpid(int, int *, int);
extern void _exit(int);
extern long recvmsg(int, void *, int), send(int, const void *, size, int);
extern int sigaction(int, const void *, void *), sigaltstack(const void *, void *), getrlimit(int, u64 *);

#if defined(__x86_64__)
enum { READ = 0, WRITE = 1, CLOSE = 3, FSTAT = 5, LSEEK = 8, MMAP = 9, IOCTL = 16, YIELD = 24 };
enum { STAT_BYTES = 144, STAT_MODE_AT = 24 };
#elif defined(__aarch64__)
enum { READ = 63, WRITE = 64, CLOSE = 57, FSTAT = 80, LSEEK = 62, MMAP = 222, IOCTL = 29, YIELD = 124 };
enum { STAT_BYTES = 128, STAT_MODE_AT = 16 };
#else
#error "no system call numbers for this processor"
#endif
enum { EBADF = 9, EAGAIN = 11, ESPIPE = 29, ETIMEDOUT = 110 };

static int fails(int error)
{
    *__errno_location() = error;
    return -1;
}

/* ---- The clock and entropy of one program ---- */

enum { TICK = 1000, SECOND = 1000000000, PROCESS_CLOCK = 2, THREAD_CLOCK = 3 };

static u64 epoch, ticks;
static unsigned seed, state;
static u64 clock_reads, entropy_reads;

/* Whether a program's code runs: its descriptors are then the standard ones, and nothing that it does to them lasts. */
static int in_program;

void virtual_setup(u64 epoch_nanoseconds, unsigned entropy_seed)
{
    epoch = epoch_nanoseconds;
    seed = state = entropy_seed;
}

/* A program starts: everything from the beginning. */
void virtual_begin(void)
{
    clock_reads = entropy_reads = ticks = 0;
    state = seed;
    in_program = 1;
}

void virtual_end(void)
{
    in_program = 0;
}

u64 virtual_clock_reads(void)
{
    return clock_reads;
}

u64 virtual_entropy_reads(void)
{
    return entropy_reads;
}

static u64 now(void)
{
    clock_reads++;
    ticks += TICK;
    return epoch + ticks;
}

static u64 nanoseconds(const struct timespec *time)
{
    return (u64)time->seconds * SECOND + (u64)time->nanoseconds;
}

static void wait_until(u64 moment)
{
    if (moment > epoch + ticks) ticks = moment - epoch;
}

int clock_gettime(int clock, struct timespec *result)
{
    u64 time = now() - (clock == PROCESS_CLOCK || clock == THREAD_CLOCK ? epoch : 0);
    result->seconds = time / SECOND;
    result->nanoseconds = time % SECOND;
    return 0;
}

int clock_getres(int clock, struct timespec *result)
{
    if (result) {
        result->seconds = 0;
        result->nanoseconds = TICK;
    }
    return 0;
}

long time(long *result)
{
    long seconds = now() / SECOND;
    if (result) *result = seconds;
    return seconds;
}

int gettimeofday(struct timeval *result, void *zone)
{
    u64 time = now();
    if (result) {
        result->seconds = time / SECOND;
        result->microseconds = time % SECOND / 1000;
    }
    return 0;
}

long clock(void)
{
    return (now() - epoch) / 1000;
}

/* In clock ticks, of which a second has 100. */
long times(long used[4])
{
    long elapsed = now() / (SECOND / 100);
    if (used) {
        used[0] = ticks / (SECOND / 100);
        used[1] = used[2] = used[3] = 0;
    }
    return elapsed;
}

int getrusage(int who, long *usage)
{
    int at;
    u64 time = now() - epoch;
    for (at = 0; at < 18; at++) usage[at] = 0;
    usage[0] = time / SECOND;
    usage[1] = time % SECOND / 1000;
    return 0;
}

int clock_nanosleep(int clock, int flags, const struct timespec *request, struct timespec *left)
{
    if (flags & 1) wait_until(nanoseconds(request));
    else ticks += nanoseconds(request);
    return 0;
}

int nanosleep(const struct timespec *request, struct timespec *left)
{
    ticks += nanoseconds(request);
    return 0;
}

int select(int count, void *readable, void *writable, void *failed, struct timeval *wait)
{
    if (wait) ticks += ((u64)wait->seconds * 1000000 + (u64)wait->microseconds) * 1000;
    return 0;
}

/*
 * Locks of Python. Some versions work out a deadline for every lock that is asked for, also where none was given; those looks at the clock,
 * so many each time, are no program's. Nobody else runs who could release a lock: waiting for one with a limit is over at once.
 */
static unsigned reads_of_lock;

void virtual_locks_read(unsigned times)
{
    reads_of_lock = times;
}

static int take(unsigned *semaphore)
{
    clock_reads -= reads_of_lock;
    ticks -= reads_of_lock * TICK;
    if (*semaphore == 0) return 0;
    --*semaphore;
    return 1;
}

int sem_trywait(unsigned *semaphore)
{
    return take(semaphore) ? 0 : fails(EAGAIN);
}

int sem_wait(unsigned *semaphore)
{
    if (take(semaphore)) return 0;
    while (*semaphore == 0) syscall(YIELD);
    --*semaphore;
    return 0;
}

int sem_clockwait(unsigned *semaphore, int clock, const struct timespec *until)
{
    if (take(semaphore)) return 0;
    wait_until(nanoseconds(until));
    return fails(ETIMEDOUT);
}

int sem_timedwait(unsigned *semaphore, const struct timespec *until)
{
    return sem_clockwait(semaphore, 0, until);
}

long getrandom(unsigned char *buffer, size length, unsigned flags)
{
    size at;
    entropy_reads++;
    for (at = 0; at < length; at++) {
        state = state * 1664525u + 1013904223u;
        buffer[at] = state >> 24;
    }
    return length;
}

int getentropy(unsigned char *buffer, size length)
{
    getrandom(buffer, length, 0);
    return 0;
}

/* ---- Descriptors ---- */

static int is_standard(int descriptor)
{
    return descriptor >= 0 && descriptor <= 2;
}

long read(int descriptor, void *buffer, size length)
{
    if (!in_program) return syscall(READ, (long)descriptor, buffer, length);
    return descriptor == 0 ? 0 : fails(EBADF);
}

long write(int descriptor, const void *buffer, size length)
{
    if (in_program && descriptor != 1 && descriptor != 2) return fails(EBADF);
    return syscall(WRITE, (long)descriptor, buffer, length);
}

int close(int descriptor)
{
    if (!in_program) return syscall(CLOSE, (long)descriptor);
    return is_standard(descriptor) ? 0 : fails(EBADF);
}

long lseek(int descriptor, long offset, int whence)
{
    if (!in_program) return syscall(LSEEK, (long)descriptor, offset, (long)whence);
    return fails(is_standard(descriptor) ? ESPIPE : EBADF);
}

long lseek64(int descriptor, long offset, int whence)
{
    return lseek(descriptor, offset, whence);
}

int fstat(int descriptor, char *status)
{
    int at;
    if (!in_program) return syscall(FSTAT, (long)descriptor, status);
    if (!is_standard(descriptor)) return fails(EBADF);
    for (at = 0; at < STAT_BYTES; at++) status[at] = 0;
    *(unsigned *)(status + STAT_MODE_AT) = 0020000; /* A character device. */
    return 0;
}

int fstat64(int descriptor, char *status)
{
    return fstat(descriptor, status);
}

int isatty(int descriptor)
{
    char settings[256];
    if (!in_program) return syscall(IOCTL, (long)descriptor, 0x5401L, settings) == 0;
    if (is_standard(descriptor)) return 1;
    fails(EBADF);
    return 0;
}

/* ---- Memory ---- */

/* Whether a piece was refused that a program cannot go on without: one that is small. */
static int memory_ran_out;
enum { SMALL_BYTES = 4 << 20 };

int virtual_memory_ran_out(void)
{
    return memory_ran_out;
}

static void *given(void *memory, size length)
{
    if (!memory && length <= SMALL_BYTES) memory_ran_out = 1;
    return memory;
}

void *malloc(size length)
{
    return given(__libc_malloc(length), length);
}

void *calloc(size count, size length)
{
    void *memory = __libc_calloc(count, length);
    return memory ? memory : given(memory, length > SMALL_BYTES || count > SMALL_BYTES ? ~0ul : count * length);
}

void *realloc(void *memory, size length)
{
    void *grown = __libc_realloc(memory, length);
    /* A length of 0 frees. */
    return length == 0 ? grown : given(grown, length);
}

void *mmap(void *address, size length, int protection, int flags, int descriptor, long offset)
{
    long result = syscall(MMAP, address, length, (long)protection, (long)flags, (long)descriptor, offset);
    if (result == -1) given(0, length);
    return (void *)result;
}

void *mmap64(void *address, size length, int protection, int flags, int descriptor, long offset)
{
    return mmap(address, length, protection, flags, descriptor, offset);
}

/* ---- The stack ---- */

enum { SIGSEGV = 11, RLIMIT_STACK = 3, ON_STACK = 0x08000000, WITH_INFORMATION = 4, STACK_GUARD_BYTES = 2 << 20 };

static u64 stack_top, stack_bytes;
static int stack_exit_code;
static char fault_stack[1 << 16];
struct action { void *handler; unsigned long mask[16]; int flags; void *restorer; };

/* A fault where the stack would have grown to is an overflow, and said by an exit code; any other is what it is. */
static void on_fault(int number, char *information, void *context)
{
    struct action ordinary = {0};
    u64 address = *(u64 *)(information + 16);
    if (address < stack_top && address > stack_top - stack_bytes - STACK_GUARD_BYTES) _exit(stack_exit_code);
    sigaction(number, &ordinary, 0);
}

void virtual_watch_stack(int exit_code)
{
    struct action action = {0};
    struct { void *base; int flags; size length; } stack = {0};
    u64 limits[2];
    stack_exit_code = exit_code;
    stack_top = (u64)&action + (1 << 16);
    getrlimit(RLIMIT_STACK, limits);
    stack_bytes = limits[0] > 1ul << 30 ? 1ul << 30 : limits[0];
    stack.base = fault_stack;
    stack.length = sizeof fault_stack;
    sigaltstack(&stack, 0);
    action.handler = on_fault;
    action.flags = ON_STACK | WITH_INFORMATION;
    sigaction(SIGSEGV, &action, 0);
}

/* ---- The template process ---- */

enum { CONTROL = 3, DESCRIPTORS = 4, NO_SIGNAL = 0x4000 };
struct piece { void *base; size length; };
struct message { void *name; unsigned name_length; struct piece *pieces; size count; void *control; size control_length; int flags; };
struct rights { size length; int level, type; int descriptors[DESCRIPTORS]; };

static void say(char kind, int number)
{
    char text[16];
    int at = sizeof text;
    unsigned rest = number;
    do text[--at] = '0' + rest % 10; while (rest /= 10);
    text[--at] = kind;
    send(CONTROL, text + at, sizeof text - at, NO_SIGNAL);
}

/*
 * Forks a child for each order on the control socket, says its process id (`P…`) and how it ended (`X…`, as waitpid tells it). Comes
 * back only in the child: the order in `order`, its length, and the four descriptors that came with it. No Python runs meanwhile.
 */
long virtual_serve(char *order, size capacity, int *descriptors)
{
    struct piece piece;
    struct rights rights;
    struct message message;
    long length;
    int child, status, at;
    for (;;) {
        piece.base = order;
        piece.length = capacity;
        message.name = 0;
        message.name_length = 0;
        message.pieces = &piece;
        message.count = 1;
        message.control = &rights;
        message.control_length = sizeof rights;
        message.flags = 0;
        length = recvmsg(CONTROL, &message, 0);
        if (length <= 0) _exit(0);
        for (at = 0; at < DESCRIPTORS; at++) descriptors[at] = rights.descriptors[at];
        child = fork();
        if (child == 0) return length;
        for (at = 0; at < DESCRIPTORS; at++) syscall(CLOSE, (long)descriptors[at]);
        if (child < 0) _exit(1);
        say('P', child);
        while (waitpid(child, &status, 0) < 0) {}
        say('X', status);
    }
}
