/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reads the clock that `tscap clock --serve` shares with programs: the present with its bounds,
 * the time between two counter values, and the times of a past stamp. For C11 and C++, with GCC or
 * Clang, on x86-64 and 64-bit ARM. There is nothing to link. With -std=c11 rather than -std=gnu11 it
 * is to be included before all others.
 *
 *     tscap_clock clock;
 *     tscap_clock_times now;
 *     if (tscap_clock_open(&clock, NULL) == 0 && tscap_clock_now(&clock, &now) == 0 && now.has_utc)
 *         printf("UTC is from %llu to %llu ns\n", (unsigned long long)now.utc.earliest_ns,
 *                (unsigned long long)now.utc.latest_ns);
 *
 * A tscap_clock is for one thread. docs/shared-clock.md has the layout of the page, and says what
 * each bound rests on.
 */
#ifndef TSCAP_CLOCK_H
#define TSCAP_CLOCK_H

/* With -std=c11 the C library hides POSIX, unless it is asked for before the first header. */
#if defined(__STRICT_ANSI__) && !defined(_POSIX_C_SOURCE) && !defined(_GNU_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the page is little-endian, and so must the machine be"
#endif

#ifndef O_CLOEXEC
#error "with -std=c11, include tscap_clock.h first or define _POSIX_C_SOURCE to 200809L"
#endif

/* Linux has them, whatever the C library names. */
#define TSCAP_CLOCK_REALTIME_COARSE 5
#define TSCAP_CLOCK_MONOTONIC_COARSE 6

#define TSCAP_CLOCK_PATH "/run/tscap_clock/clock"
#define TSCAP_CLOCK_VERSION 1
#define TSCAP_CLOCK_SIZE 8704
#define TSCAP_CLOCK_PIECES 64
#define TSCAP_CLOCK_UNKNOWN UINT64_MAX
/* A rate is so many bits of parts of a ns a count. */
#define TSCAP_CLOCK_RATE_FRACTION 57

/* What the bound to UTC rests on. */
enum {
    /* No bound to UTC is known. */
    TSCAP_CLOCK_UNSYNCHRONISED = 1,
    /* A source of UTC is followed. */
    TSCAP_CLOCK_SYNCHRONISED = 2,
    /* The source is lost: its time is continued, and the bound grows. */
    TSCAP_CLOCK_HOLDOVER = 3,
    /* Nobody has looked at the clock for a second: tscap has died or is stopped. */
    TSCAP_CLOCK_STALE = 4
};

/* Why there is no time. */
enum {
    /* The page was changed during each try to read it. */
    TSCAP_CLOCK_BUSY = 1,
    /* The writer of the page has ended. */
    TSCAP_CLOCK_CLOSED = 2,
    /* Nobody has looked at the clock for so long that the page says nothing any more. */
    TSCAP_CLOCK_VOID = 3,
    /* The clock was set or the counter jumped, and what holds since is not known yet. */
    TSCAP_CLOCK_UNRESOLVED = 4,
    /* The kernel's clock was set since the page was written. */
    TSCAP_CLOCK_SET = 5,
    /* The counter has jumped since the page was written. */
    TSCAP_CLOCK_JUMPED = 6,
    /* The stamp is older than what the page knows, or of before a jump of the counter. */
    TSCAP_CLOCK_TOO_OLD = 7,
    /* The stamp is later than the present. */
    TSCAP_CLOCK_FUTURE = 8,
    /* Nobody can tell on which side of an event the stamp is. */
    TSCAP_CLOCK_AMBIGUOUS = 9,
    /* The page has values that no clock has. */
    TSCAP_CLOCK_GARBAGE = 10,
    /* tscap_clock_open: the file can't be opened or mapped; errno says why. */
    TSCAP_CLOCK_IO = 11,
    /* tscap_clock_open: it is no page of this version. */
    TSCAP_CLOCK_NO_PAGE = 12,
    /* tscap_clock_open: the page is of another boot of the machine. */
    TSCAP_CLOCK_OTHER_BOOT = 13,
    /* tscap_clock_open: the page is of another counter. */
    TSCAP_CLOCK_OTHER_COUNTER = 14
};

/* A time that is somewhere between two, both inclusive, ns since 1970. */
typedef struct {
    uint64_t earliest_ns;
    uint64_t latest_ns;
} tscap_clock_interval;

/* A counter value as times. */
typedef struct {
    /* The counter. */
    uint64_t raw;
    /* TSCAP_CLOCK_UNSYNCHRONISED to TSCAP_CLOCK_STALE. */
    int state;
    /* Whether `host` is known: not if the page is stale. */
    int has_host;
    /* Whether `utc` is known. */
    int has_utc;
    /* CLOCK_REALTIME. */
    tscap_clock_interval host;
    /* UTC. */
    tscap_clock_interval utc;
} tscap_clock_times;

/* The time between two counter values, by CLOCK_MONOTONIC_RAW. */
typedef struct {
    int64_t ns;
    uint64_t bound_ns;
} tscap_clock_difference;

/* The clock at its latest reading; docs/shared-clock.md describes the fields. */
typedef struct {
    uint64_t raw;
    uint64_t real_ns;
    uint64_t rate;
    uint64_t host_bound_ns;
    uint64_t host_growth;
    int64_t utc_offset_ns;
    uint64_t utc_bound_ns;
    uint64_t utc_growth;
    int64_t mono_to_real_ns;
    uint64_t difference_rate;
    uint64_t difference_bound_ppb;
    uint64_t state;
    uint64_t stale_raw;
    uint64_t void_raw;
    uint64_t epoch_raw;
    uint64_t jumps;
    uint64_t steps;
    uint64_t pieces;
    uint64_t reserved[6];
} tscap_clock_latest;

/* A straight piece of the past. */
typedef struct {
    uint64_t from;
    uint64_t until;
    uint64_t real_ns;
    uint64_t rate;
    uint64_t host_bound_ns;
    int64_t utc_offset_ns;
    uint64_t utc_bound_ns;
    uint64_t reserved;
} tscap_clock_piece;

/* A copy of the state. */
typedef struct {
    tscap_clock_latest latest;
    tscap_clock_piece past[TSCAP_CLOCK_PIECES];
} tscap_clock_page;

/* The counter with the kernel's clocks. */
typedef struct {
    uint64_t raw;
    uint64_t real_ns;
    uint64_t mono_ns[2];
    uint64_t lag_ns;
} tscap_clock_witness;

/* A reader; to be opened by tscap_clock_open. */
typedef struct {
    char path[4096];
    unsigned char boot_id[16];
    const uint64_t *words;
    uint64_t generation;
    uint64_t next_open_ns;
} tscap_clock;

__extension__ typedef unsigned __int128 tscap_clock_u128;

/* What each read goes through. */
#define TSCAP_CLOCK_INLINE static inline __attribute__((always_inline))

/* ---- What follows from a page: no system is touched. ---- */

TSCAP_CLOCK_INLINE uint64_t tscap_clock_plus(uint64_t a, uint64_t b)
{
    uint64_t sum = a + b;
    return sum < a ? UINT64_MAX : sum;
}

TSCAP_CLOCK_INLINE uint64_t tscap_clock_minus(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

TSCAP_CLOCK_INLINE uint64_t tscap_clock_shifted(uint64_t ns, int64_t by)
{
    return by < 0 ? tscap_clock_minus(ns, 0 - (uint64_t)by) : tscap_clock_plus(ns, (uint64_t)by);
}

TSCAP_CLOCK_INLINE uint64_t tscap_clock_narrow(tscap_clock_u128 value)
{
    return value > UINT64_MAX ? UINT64_MAX : (uint64_t)value;
}

/* Counts as ns, to the nearest. */
TSCAP_CLOCK_INLINE uint64_t tscap_clock_span(uint64_t cycles, uint64_t rate)
{
    tscap_clock_u128 product = (tscap_clock_u128)cycles * rate + ((tscap_clock_u128)1 << (TSCAP_CLOCK_RATE_FRACTION - 1));
    return tscap_clock_narrow(product >> TSCAP_CLOCK_RATE_FRACTION);
}

/* What grows by `growth` in `ns`, rounded up. */
TSCAP_CLOCK_INLINE uint64_t tscap_clock_grown(uint64_t ns, uint64_t growth)
{
    return tscap_clock_plus(tscap_clock_narrow(((tscap_clock_u128)ns * growth) >> 32), 1);
}

static inline uint64_t tscap_clock_cycles(uint64_t ns, uint64_t rate)
{
    return rate == 0 ? UINT64_MAX : tscap_clock_narrow(((tscap_clock_u128)ns << TSCAP_CLOCK_RATE_FRACTION) / rate);
}

TSCAP_CLOCK_INLINE tscap_clock_interval tscap_clock_around(uint64_t middle, uint64_t bound)
{
    tscap_clock_interval interval;
    interval.earliest_ns = tscap_clock_minus(middle, bound);
    interval.latest_ns = tscap_clock_plus(middle, bound);
    return interval;
}

/* Whether a page can be used at a counter value; gives the state then. */
TSCAP_CLOCK_INLINE int tscap_clock_check(const tscap_clock_latest *latest, uint64_t raw, int *state)
{
    const uint64_t fastest = (uint64_t)1 << 32;
    switch (latest->state) {
    case 1: case 2: case 3: *state = (int)latest->state; break;
    case 4: return TSCAP_CLOCK_UNRESOLVED;
    case 5: return TSCAP_CLOCK_CLOSED;
    default: return TSCAP_CLOCK_GARBAGE;
    }
    if (latest->rate == 0 || latest->difference_rate == 0 || latest->host_growth > fastest ||
        latest->utc_growth > fastest)
        return TSCAP_CLOCK_GARBAGE;
    if (raw >= latest->void_raw)
        return TSCAP_CLOCK_VOID;
    if (raw >= latest->stale_raw)
        *state = TSCAP_CLOCK_STALE;
    return 0;
}

/* Whether the page can be used, and the kernel's clocks say that nobody set them since it was
 * written, and that the counter went on as they did. */
TSCAP_CLOCK_INLINE int tscap_clock_confirm(const tscap_clock_latest *latest,
                                      const tscap_clock_witness *witness)
{
    int state = 0;
    int refused = tscap_clock_check(latest, witness->raw, &state);
    int64_t least = (int64_t)(witness->real_ns - witness->mono_ns[1]);
    int64_t most = (int64_t)(witness->real_ns - witness->mono_ns[0]);
    uint64_t age, expected, bound;
    if (refused)
        return refused;
    if (least > latest->mono_to_real_ns || latest->mono_to_real_ns > most)
        return TSCAP_CLOCK_SET;
    if (witness->raw < latest->raw)
        return TSCAP_CLOCK_JUMPED;
    age = tscap_clock_span(witness->raw - latest->raw, latest->rate);
    expected = latest->real_ns + age - (uint64_t)latest->mono_to_real_ns;
    bound = tscap_clock_plus(latest->host_bound_ns, tscap_clock_grown(age, latest->host_growth));
    bound = tscap_clock_plus(bound, witness->lag_ns);
    if (expected < tscap_clock_minus(witness->mono_ns[0], bound) ||
        expected > tscap_clock_plus(witness->mono_ns[1], bound))
        return TSCAP_CLOCK_JUMPED;
    return 0;
}

/* A counter value that was read a moment ago, or a stamp since the latest reading. */
TSCAP_CLOCK_INLINE int tscap_clock_at(const tscap_clock_latest *latest, uint64_t raw,
                                 tscap_clock_times *times)
{
    int state = 0;
    int refused = tscap_clock_check(latest, raw, &state);
    uint64_t age, real, bound;
    if (refused)
        return refused;
    if (raw < latest->raw)
        return TSCAP_CLOCK_JUMPED;
    age = tscap_clock_span(raw - latest->raw, latest->rate);
    real = latest->real_ns + age;
    times->raw = raw;
    times->state = state;
    times->has_host = state != TSCAP_CLOCK_STALE;
    times->host.earliest_ns = times->host.latest_ns = 0;
    times->utc = times->host;
    if (times->has_host) {
        bound = tscap_clock_grown(age, latest->host_growth);
        times->host = tscap_clock_around(real, tscap_clock_plus(latest->host_bound_ns, bound));
    }
    times->has_utc = latest->utc_bound_ns != TSCAP_CLOCK_UNKNOWN;
    if (times->has_utc) {
        bound = tscap_clock_plus(latest->utc_bound_ns, latest->host_bound_ns);
        bound = tscap_clock_plus(bound, tscap_clock_grown(age, latest->utc_growth));
        times->utc = tscap_clock_around(tscap_clock_shifted(real, latest->utc_offset_ns), bound);
    }
    return 0;
}

static inline uint64_t tscap_clock_piece_at(const tscap_clock_piece *piece, uint64_t raw)
{
    uint64_t cycles = tscap_clock_minus(raw, piece->from);
    return tscap_clock_plus(piece->real_ns, tscap_clock_span(cycles, piece->rate));
}

/* UTC of a time that is `bound` off CLOCK_REALTIME at most. */
static inline void tscap_clock_piece_utc(const tscap_clock_piece *piece, uint64_t real,
                                         uint64_t bound, tscap_clock_times *times)
{
    times->has_utc = piece->utc_bound_ns != TSCAP_CLOCK_UNKNOWN;
    if (times->has_utc)
        times->utc = tscap_clock_around(tscap_clock_shifted(real, piece->utc_offset_ns),
                                        tscap_clock_plus(piece->utc_bound_ns, bound));
}

static inline size_t tscap_clock_pieces(const tscap_clock_page *page)
{
    uint64_t pieces = page->latest.pieces;
    return pieces < TSCAP_CLOCK_PIECES ? (size_t)pieces : TSCAP_CLOCK_PIECES;
}

/* The times of a counter stamp from the past, when the counter is at `now`. */
static inline int tscap_clock_page_of_raw(const tscap_clock_page *page, uint64_t now, uint64_t raw,
                                          tscap_clock_times *times)
{
    const tscap_clock_latest *latest = &page->latest;
    size_t pieces = tscap_clock_pieces(page), index;
    int state = 0;
    int refused = tscap_clock_check(latest, now, &state);
    if (refused)
        return refused;
    if (raw > now)
        return TSCAP_CLOCK_FUTURE;
    if (raw >= latest->raw) {
        refused = tscap_clock_at(latest, raw, times);
        if (refused)
            return refused;
        times->state = state;
        if (state == TSCAP_CLOCK_STALE)
            times->has_host = 0;
        return 0;
    }
    if (raw < latest->epoch_raw)
        return TSCAP_CLOCK_TOO_OLD;
    for (index = pieces; index-- > 0;) {
        const tscap_clock_piece *piece = &page->past[index];
        if (piece->from <= raw && raw <= piece->until) {
            uint64_t real = tscap_clock_piece_at(piece, raw);
            memset(times, 0, sizeof *times);
            times->raw = raw;
            times->state = state;
            times->has_host = 1;
            times->host = tscap_clock_around(real, piece->host_bound_ns);
            tscap_clock_piece_utc(piece, real, piece->host_bound_ns, times);
            return 0;
        }
    }
    return pieces > 0 && raw > page->past[0].from ? TSCAP_CLOCK_AMBIGUOUS : TSCAP_CLOCK_TOO_OLD;
}

/* Whether the clock may have shown a time between two pieces that do not meet. */
static inline int tscap_clock_in_gap(const tscap_clock_page *page, uint64_t real)
{
    size_t pieces = tscap_clock_pieces(page), index;
    for (index = 0; index + 1 < pieces; index++) {
        const tscap_clock_piece *earlier = &page->past[index], *later = &page->past[index + 1];
        uint64_t cycles, length, reach, end, start;
        if (earlier->until == later->from)
            continue;
        cycles = tscap_clock_minus(later->from, earlier->until);
        length = tscap_clock_span(cycles, earlier->rate > later->rate ? earlier->rate : later->rate);
        reach = tscap_clock_plus(length, length / 10);
        end = tscap_clock_piece_at(earlier, earlier->until);
        start = later->real_ns;
        if (real >= tscap_clock_minus(end, earlier->host_bound_ns) &&
            real <= tscap_clock_plus(tscap_clock_plus(end, reach), earlier->host_bound_ns))
            return 1;
        if (real >= tscap_clock_minus(tscap_clock_minus(start, reach), later->host_bound_ns) &&
            real <= tscap_clock_plus(start, later->host_bound_ns))
            return 1;
    }
    return 0;
}

/* The times of a CLOCK_REALTIME stamp from the past, when the counter is at `now`. */
static inline int tscap_clock_page_of_real(const tscap_clock_page *page, uint64_t now,
                                           uint64_t real, tscap_clock_times *times)
{
    const tscap_clock_latest *latest = &page->latest;
    size_t pieces = tscap_clock_pieces(page), index, found = pieces;
    const tscap_clock_piece *piece = NULL;
    tscap_clock_times present;
    int refused = tscap_clock_at(latest, now, &present);
    if (refused)
        return refused;
    if (!present.has_host)
        return TSCAP_CLOCK_VOID;
    if (real > present.host.latest_ns)
        return TSCAP_CLOCK_FUTURE;
    if (tscap_clock_in_gap(page, real))
        return TSCAP_CLOCK_AMBIGUOUS;
    for (index = 0; index < pieces; index++) {
        const tscap_clock_piece *one = &page->past[index];
        uint64_t end = tscap_clock_piece_at(one, one->until);
        if (real < tscap_clock_minus(one->real_ns, one->host_bound_ns) ||
            real > tscap_clock_plus(end, one->host_bound_ns))
            continue;
        if (piece == NULL)
            piece = one;
        else if (found + 1 != index || piece->until != one->from)
            return TSCAP_CLOCK_AMBIGUOUS;
        else if (piece->utc_bound_ns <= one->utc_bound_ns)
            piece = one;
        found = index;
    }
    memset(times, 0, sizeof *times);
    times->state = present.state;
    times->has_host = 1;
    times->host = tscap_clock_around(real, 0);
    if (real < latest->real_ns) {
        uint64_t since;
        if (piece == NULL)
            return pieces > 0 && real > page->past[0].real_ns ? TSCAP_CLOCK_AMBIGUOUS
                                                              : TSCAP_CLOCK_TOO_OLD;
        since = tscap_clock_minus(real, piece->real_ns);
        times->raw = tscap_clock_plus(piece->from, tscap_clock_cycles(since, piece->rate));
        tscap_clock_piece_utc(piece, real, 0, times);
        return 0;
    }
    if (piece != NULL && found + 1 < pieces)
        return TSCAP_CLOCK_AMBIGUOUS;
    {
        uint64_t age = real - latest->real_ns;
        uint64_t growth = tscap_clock_plus(latest->host_growth, latest->utc_growth);
        times->raw = tscap_clock_plus(latest->raw, tscap_clock_cycles(age, latest->rate));
        times->has_utc = latest->utc_bound_ns != TSCAP_CLOCK_UNKNOWN;
        if (times->has_utc)
            times->utc = tscap_clock_around(
                tscap_clock_shifted(real, latest->utc_offset_ns),
                tscap_clock_plus(latest->utc_bound_ns, tscap_clock_grown(age, growth)));
    }
    return 0;
}

/* The time from one counter value to another, when the counter is at `now`. */
static inline int tscap_clock_page_between(const tscap_clock_latest *latest, uint64_t now,
                                           uint64_t from, uint64_t until,
                                           tscap_clock_difference *difference)
{
    const tscap_clock_u128 billion = 1000000000;
    int state = 0;
    int refused = tscap_clock_check(latest, now, &state);
    uint64_t cycles = from < until ? until - from : from - until;
    uint64_t ns, count;
    tscap_clock_u128 relative;
    if (refused)
        return refused;
    if ((from > until ? from : until) > now)
        return TSCAP_CLOCK_FUTURE;
    if ((from < until ? from : until) < latest->epoch_raw)
        return TSCAP_CLOCK_TOO_OLD;
    ns = tscap_clock_span(cycles, latest->difference_rate);
    if (ns > INT64_MAX)
        return TSCAP_CLOCK_GARBAGE;
    count = latest->difference_rate / ((uint64_t)1 << TSCAP_CLOCK_RATE_FRACTION) +
            (latest->difference_rate % ((uint64_t)1 << TSCAP_CLOCK_RATE_FRACTION) != 0);
    relative = (tscap_clock_u128)ns * latest->difference_bound_ppb;
    relative = relative / billion + (relative % billion != 0);
    difference->ns = from <= until ? (int64_t)ns : -(int64_t)ns;
    difference->bound_ns = tscap_clock_plus(tscap_clock_narrow(relative), count);
    return 0;
}

/* ---- The system: the counter, the kernel's clocks, the page in memory. ---- */

/* The counter, in order: after all loads before it. */
TSCAP_CLOCK_INLINE uint64_t tscap_clock_counter(void)
{
#if defined(__x86_64__)
    uint32_t low, high;
    __asm__ volatile("lfence\n\trdtsc" : "=a"(low), "=d"(high) : : "memory");
    return (uint64_t)high << 32 | low;
#elif defined(__aarch64__)
    uint64_t count;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(count) : : "memory");
    return count;
#else
#error "no counter is known of this architecture"
#endif
}

/* Which counter it is, as a page names it. */
#if defined(__x86_64__)
#define TSCAP_CLOCK_COUNTER 1
#else
#define TSCAP_CLOCK_COUNTER 2
#endif

TSCAP_CLOCK_INLINE uint64_t tscap_clock_kernel(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* The counter with the kernel's clocks at the latest tick. A tick between the two reads seems to
 * be a clock that was set; tscap_clock_precise then tells. */
TSCAP_CLOCK_INLINE tscap_clock_witness tscap_clock_coarse(void)
{
    tscap_clock_witness witness;
    witness.raw = tscap_clock_counter();
    witness.real_ns = tscap_clock_kernel(TSCAP_CLOCK_REALTIME_COARSE);
    witness.mono_ns[0] = witness.mono_ns[1] = tscap_clock_kernel(TSCAP_CLOCK_MONOTONIC_COARSE);
    witness.lag_ns = 20000000;
    return witness;
}

static inline tscap_clock_witness tscap_clock_precise(void)
{
    tscap_clock_witness witness;
    witness.mono_ns[0] = tscap_clock_kernel(CLOCK_MONOTONIC);
    witness.raw = tscap_clock_counter();
    witness.real_ns = tscap_clock_kernel(CLOCK_REALTIME);
    witness.mono_ns[1] = tscap_clock_kernel(CLOCK_MONOTONIC);
    witness.lag_ns = 0;
    return witness;
}

/* Copies `count` words of the state that are not changed meanwhile, and reads the counter and the
 * kernel's clocks while they are valid. */
TSCAP_CLOCK_INLINE int tscap_clock_read(const tscap_clock *clock, uint64_t *into, size_t count,
                                   int precisely, tscap_clock_witness *witness)
{
    const size_t copy = sizeof(tscap_clock_page) / 8;
    const uint64_t *sequence = clock->words + 8;
    int attempt;
    for (attempt = 0; attempt < 1000; attempt++) {
        uint64_t before = __atomic_load_n(sequence, __ATOMIC_ACQUIRE);
        /* While the sequence is odd the first copy is being changed. */
        const uint64_t *words = clock->words + 16 + (before & 1 ? copy : 0);
        size_t at;
        for (at = 0; at < count; at++)
            into[at] = __atomic_load_n(words + at, __ATOMIC_RELAXED);
        *witness = precisely ? tscap_clock_precise() : tscap_clock_coarse();
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (__atomic_load_n(sequence, __ATOMIC_RELAXED) == before)
            return 0;
    }
    return TSCAP_CLOCK_BUSY;
}

static inline int tscap_clock_boot_id(unsigned char id[16])
{
    char text[64];
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t length, at;
    int digits = 0;
    if (file < 0)
        return TSCAP_CLOCK_IO;
    length = read(file, text, sizeof text);
    close(file);
    memset(id, 0, 16);
    for (at = 0; at < length && digits < 32; at++) {
        char digit = text[at];
        int value;
        if (digit == '-')
            continue;
        if (digit >= '0' && digit <= '9')
            value = digit - '0';
        else if (digit >= 'a' && digit <= 'f')
            value = digit - 'a' + 10;
        else
            break;
        id[digits / 2] = (unsigned char)(id[digits / 2] << 4 | value);
        digits++;
    }
    return digits == 32 ? 0 : TSCAP_CLOCK_IO;
}

/* Maps the file of a reader. */
static inline int tscap_clock_map(const tscap_clock *clock, const uint64_t **words)
{
    int file = open(clock->path, O_RDONLY | O_CLOEXEC);
    struct stat about;
    void *place;
    uint64_t header[6];
    if (file < 0)
        return TSCAP_CLOCK_IO;
    if (fstat(file, &about) != 0) {
        close(file);
        return TSCAP_CLOCK_IO;
    }
    if (about.st_size != TSCAP_CLOCK_SIZE) {
        close(file);
        return TSCAP_CLOCK_NO_PAGE;
    }
    place = mmap(NULL, TSCAP_CLOCK_SIZE, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (place == MAP_FAILED)
        return TSCAP_CLOCK_IO;
    memcpy(header, place, sizeof header);
    if (memcmp(header, "TSCAPCLK", 8) != 0 ||
        header[1] != (TSCAP_CLOCK_VERSION | (uint64_t)TSCAP_CLOCK_SIZE << 32)) {
        munmap(place, TSCAP_CLOCK_SIZE);
        return TSCAP_CLOCK_NO_PAGE;
    }
    if (memcmp(header + 2, clock->boot_id, 16) != 0) {
        munmap(place, TSCAP_CLOCK_SIZE);
        return TSCAP_CLOCK_OTHER_BOOT;
    }
    if (header[5] != TSCAP_CLOCK_COUNTER) {
        munmap(place, TSCAP_CLOCK_SIZE);
        return TSCAP_CLOCK_OTHER_COUNTER;
    }
    *words = (const uint64_t *)place;
    return 0;
}

/* Opens the page at `path`, TSCAP_CLOCK_PATH where that is NULL. Gives 0, or why not. */
static inline int tscap_clock_open(tscap_clock *clock, const char *path)
{
    const char *given = path == NULL ? TSCAP_CLOCK_PATH : path;
    int failed;
    memset(clock, 0, sizeof *clock);
    if (strlen(given) >= sizeof clock->path) {
        errno = ENAMETOOLONG;
        return TSCAP_CLOCK_IO;
    }
    memcpy(clock->path, given, strlen(given) + 1);
    failed = tscap_clock_boot_id(clock->boot_id);
    if (!failed)
        failed = tscap_clock_map(clock, &clock->words);
    if (!failed)
        clock->generation = clock->words[4];
    return failed;
}

static inline void tscap_clock_close(tscap_clock *clock)
{
    if (clock->words != NULL)
        munmap((void *)(uintptr_t)clock->words, TSCAP_CLOCK_SIZE);
    clock->words = NULL;
}

/* Opens the file again, ten times a second at most; whether it is another one. */
static inline int tscap_clock_open_again(tscap_clock *clock)
{
    uint64_t now = tscap_clock_kernel(CLOCK_MONOTONIC);
    const uint64_t *words;
    if (now < clock->next_open_ns)
        return 0;
    clock->next_open_ns = now + 100000000;
    if (tscap_clock_map(clock, &words) != 0)
        return 0;
    if (words[4] == clock->generation) {
        munmap((void *)(uintptr_t)words, TSCAP_CLOCK_SIZE);
        return 0;
    }
    tscap_clock_close(clock);
    clock->words = words;
    clock->generation = words[4];
    return 1;
}

/* A page that the kernel's clocks confirm; of another file where this one is over. */
static inline int tscap_clock_confirmed(tscap_clock *clock, tscap_clock_page *page, size_t words,
                                        uint64_t *now)
{
    int again;
    for (again = 0;; again++) {
        tscap_clock_witness witness;
        int refused = TSCAP_CLOCK_BUSY, attempt, state = 0, is_over;
        for (attempt = 0; attempt < 3; attempt++) {
            refused = tscap_clock_read(clock, &page->latest.raw, words, 1, &witness);
            if (refused)
                break;
            refused = tscap_clock_confirm(&page->latest, &witness);
            if (!refused)
                break;
        }
        *now = witness.raw;
        is_over = refused == TSCAP_CLOCK_CLOSED || refused == TSCAP_CLOCK_VOID ||
                  refused == TSCAP_CLOCK_GARBAGE || refused == TSCAP_CLOCK_JUMPED;
        if (refused != TSCAP_CLOCK_BUSY && !is_over)
            is_over = tscap_clock_check(&page->latest, witness.raw, &state) == 0 &&
                      state == TSCAP_CLOCK_STALE;
        if (again > 0 || !is_over || !tscap_clock_open_again(clock))
            return refused;
    }
}

/* The present. Gives 0, or why there is none. */
static inline int tscap_clock_now(tscap_clock *clock, tscap_clock_times *times)
{
    tscap_clock_page page;
    tscap_clock_witness witness;
    uint64_t now;
    int refused;
    if (tscap_clock_read(clock, &page.latest.raw, 18, 0, &witness) == 0 &&
        tscap_clock_at(&page.latest, witness.raw, times) == 0 &&
        times->state != TSCAP_CLOCK_STALE && tscap_clock_confirm(&page.latest, &witness) == 0)
        return 0;
    refused = tscap_clock_confirmed(clock, &page, 18, &now);
    return refused ? refused : tscap_clock_at(&page.latest, now, times);
}

/* The times of a counter value from the past. Gives 0, or why there are none. */
static inline int tscap_clock_of_raw(tscap_clock *clock, uint64_t raw, tscap_clock_times *times)
{
    tscap_clock_page page;
    uint64_t now;
    int refused = tscap_clock_confirmed(clock, &page, sizeof page / 8, &now);
    return refused ? refused : tscap_clock_page_of_raw(&page, now, raw, times);
}

/* The times of a CLOCK_REALTIME stamp from the past, ns since 1970, such as those of
 * SO_TIMESTAMPING. Gives 0, or why there are none. */
static inline int tscap_clock_of_real(tscap_clock *clock, uint64_t real_ns,
                                      tscap_clock_times *times)
{
    tscap_clock_page page;
    uint64_t now;
    int refused = tscap_clock_confirmed(clock, &page, sizeof page / 8, &now);
    return refused ? refused : tscap_clock_page_of_real(&page, now, real_ns, times);
}

/* The time from one counter value to another. Gives 0, or why there is none. */
static inline int tscap_clock_between(tscap_clock *clock, uint64_t from, uint64_t until,
                                      tscap_clock_difference *difference)
{
    tscap_clock_page page;
    uint64_t now;
    int refused = tscap_clock_confirmed(clock, &page, 18, &now);
    return refused ? refused : tscap_clock_page_between(&page.latest, now, from, until, difference);
}

#ifdef __cplusplus
}
#endif

#endif
