/* Preloaded into a process, lets every sync of a file take SLOW_SYNC_US microseconds longer: a disk like most, where the one
   at hand is faster than those. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static void linger(void) {
    const char *text = getenv("SLOW_SYNC_US");
    long micros = text ? atol(text) : 0;
    struct timespec pause = {micros / 1000000, micros % 1000000 * 1000};
    nanosleep(&pause, NULL);
}

int fdatasync(int file) {
    static int (*real)(int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fdatasync");
    linger();
    return real(file);
}

int fsync(int file) {
    static int (*real)(int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fsync");
    linger();
    return real(file);
}
