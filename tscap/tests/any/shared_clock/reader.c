/* Asks a page that is given as a file, at a counter value, what standard input says a line each:
 * `at RAW`, `raw RAW`, `real NS`, `between RAW RAW`, `confirm RAW REAL MONO MONO LAG`. `read PATH` opens
 * a shared clock, and `cost PATH` tells what a read of it takes beside clock_gettime. */
#include "tscap_clock.h"

#include <inttypes.h>
#include <stdlib.h>

static void said(int refused, const tscap_clock_times *times)
{
    if (refused) {
        printf("refused %d\n", refused);
        return;
    }
    printf("%" PRIu64 " %d", times->raw, times->state);
    if (times->has_host)
        printf(" host %" PRIu64 " %" PRIu64, times->host.earliest_ns, times->host.latest_ns);
    if (times->has_utc)
        printf(" utc %" PRIu64 " %" PRIu64, times->utc.earliest_ns, times->utc.latest_ns);
    printf("\n");
}

static int look(const char *path)
{
    tscap_clock clock;
    tscap_clock_times times;
    tscap_clock_difference difference;
    uint64_t raw, before, after;
    int refused = tscap_clock_open(&clock, path);
    if (refused) {
        printf("refused %d\n", refused);
        return 0;
    }
    before = tscap_clock_kernel(CLOCK_REALTIME);
    refused = tscap_clock_now(&clock, &times);
    after = tscap_clock_kernel(CLOCK_REALTIME);
    said(refused, &times);
    raw = times.raw;
    printf("%d\n", times.has_host && times.host.earliest_ns <= after && times.host.latest_ns >= before);
    said(tscap_clock_of_raw(&clock, raw, &times), &times);
    said(tscap_clock_of_real(&clock, before, &times), &times);
    refused = tscap_clock_between(&clock, raw - 1000, raw, &difference);
    printf("%d %d\n", refused, difference.ns > 0);
    tscap_clock_close(&clock);
    return 0;
}

/* CPU time of this process, ns. */
static double cpu_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* In ten rounds, in each of which both take turns. */
static int cost(const char *path)
{
    const int calls = 1000000;
    tscap_clock clock;
    tscap_clock_times times;
    int round, call, refused = 0;
    if (tscap_clock_open(&clock, path) != 0)
        return 1;
    for (round = 0; round < 10; round++) {
        double start = cpu_ns(), middle, end;
        uint64_t sum = 0;
        for (call = 0; call < calls; call++)
            refused += tscap_clock_now(&clock, &times) != 0;
        middle = cpu_ns();
        for (call = 0; call < calls; call++)
            sum += tscap_clock_kernel(CLOCK_REALTIME);
        end = cpu_ns();
        printf("%.1f ns, clock_gettime %.1f ns, ratio %.2f%s\n", (middle - start) / calls,
               (end - middle) / calls, (middle - start) / (end - middle), sum == 0 ? "!" : "");
    }
    printf("%d refused\n", refused);
    tscap_clock_close(&clock);
    return 0;
}

int main(int count, char **words)
{
    static tscap_clock_page page;
    char line[256];
    uint64_t now;
    FILE *file;
    if (count == 3 && strcmp(words[1], "read") == 0)
        return look(words[2]);
    if (count == 3 && strcmp(words[1], "cost") == 0)
        return cost(words[2]);
    if (count != 3)
        return 2;
    file = fopen(words[1], "rb");
    if (file == NULL || fread(&page, 1, sizeof page, file) != sizeof page)
        return 1;
    fclose(file);
    now = strtoull(words[2], NULL, 10);
    while (fgets(line, sizeof line, stdin) != NULL) {
        tscap_clock_times times;
        tscap_clock_difference difference;
        tscap_clock_witness witness;
        uint64_t a, b;
        int refused;
        memset(&times, 0, sizeof times);
        if (sscanf(line, "at %" SCNu64, &a) == 1) {
            said(tscap_clock_at(&page.latest, a, &times), &times);
        } else if (sscanf(line, "raw %" SCNu64, &a) == 1) {
            said(tscap_clock_page_of_raw(&page, now, a, &times), &times);
        } else if (sscanf(line, "real %" SCNu64, &a) == 1) {
            said(tscap_clock_page_of_real(&page, now, a, &times), &times);
        } else if (sscanf(line, "between %" SCNu64 " %" SCNu64, &a, &b) == 2) {
            refused = tscap_clock_page_between(&page.latest, now, a, b, &difference);
            if (refused)
                printf("refused %d\n", refused);
            else
                printf("%" PRId64 " %" PRIu64 "\n", difference.ns, difference.bound_ns);
        } else if (sscanf(line, "confirm %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
                          &witness.raw, &witness.real_ns, &witness.mono_ns[0], &witness.mono_ns[1],
                          &witness.lag_ns) == 5) {
            refused = tscap_clock_confirm(&page.latest, &witness);
            if (refused)
                printf("refused %d\n", refused);
            else
                printf("confirmed\n");
        } else {
            return 3;
        }
    }
    return 0;
}
