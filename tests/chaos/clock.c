/* Preloaded into a process, moves its wall clock by as many microseconds as stand in the file that CHAOS_CLOCK names.
   The monotonic clocks stay as they are: that is what happens when somebody sets a machine's clock. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *moved_micros;

__attribute__((constructor)) static void map_file(void) {
    const char *name = getenv("CHAOS_CLOCK");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *mapped = mmap(NULL, sizeof *moved_micros, PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED)
        moved_micros = mapped;
    close(file);
}

static void move(int64_t *seconds, int64_t *nanos) {
    int64_t micros = moved_micros ? *moved_micros : 0;
    *seconds += micros / 1000000;
    *nanos += micros % 1000000 * 1000;
    if (*nanos >= 1000000000) {
        *seconds += 1;
        *nanos -= 1000000000;
    } else if (*nanos < 0) {
        *seconds -= 1;
        *nanos += 1000000000;
    }
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t seconds = now->tv_sec, nanos = now->tv_nsec;
        move(&seconds, &nanos);
        now->tv_sec = seconds;
        now->tv_nsec = nanos;
    }
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec precise;
    int result = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return result;
}

time_t time(time_t *into) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (into)
        *into = precise.tv_sec;
    return precise.tv_sec;
}
