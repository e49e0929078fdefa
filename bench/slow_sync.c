/* Preloaded into a process, lets every sync of a file take SLOW_SYNC_US microseconds longer: a disk like most, where the one
   at hand is faster than those. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static int slower(const char *name, int file) {
    const char *text = getenv("SLOW_SYNC_US");
    long micros = text ? atol(text) : 0;
    struct timespec pause = {micros / 1000000, micros % 1000000 * 1000};
    int (*real)(int);
    *(void **)&real = dlsym(RTLD_NEXT, name);
    nanosleep(&pause, NULL);
    return real(file);
}

int fdatasync(int file) { return slower("fdatasync", file); }
int fsync(int file) { return slower("fsync", file); }
