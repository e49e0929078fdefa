/* Preloaded into a process, lets calls fail that concern files below the folder which CHAOS_DISK names: as the file says that
   CHAOS_FAULT names, which both sides have mapped. See failing_disk.py. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { NONE, SYNC_FAILS, WRITE_FAILS, FULL, READ_ONLY, NO_DESCRIPTORS, SYNC_WAITS, RENAME_WAITS, NO_NEW_ROOM };
enum { OPEN = 1, WRITE = 2, GROW = 4, SYNC = 8, NAME = 16, RENAME = 32 };

static struct {
    volatile int64_t kind;
    /* So many calls that it would concern are let through before. */
    volatile int64_t spared;
    /* So many met with it. */
    volatile int64_t met;
} *fault;
static const char *folder;

__attribute__((constructor)) static void map_file(void) {
    const char *name = getenv("CHAOS_FAULT");
    folder = getenv("CHAOS_DISK");
    int file = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *mapped = mmap(NULL, sizeof *fault, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED)
        fault = mapped;
    close(file);
}

static int is_ours(const char *path) { return folder && !strncmp(path, folder, strlen(folder)); }

static int is_of_ours(int file) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    return is_ours(path);
}

static const struct {
    int calls, error;
} MEETS[] = {
    [SYNC_FAILS] = {SYNC, EIO},
    [WRITE_FAILS] = {WRITE, EIO},
    [FULL] = {WRITE | GROW, ENOSPC},
    [READ_ONLY] = {OPEN | WRITE | GROW | NAME, EROFS},
    [NO_DESCRIPTORS] = {OPEN, EMFILE},
    [SYNC_WAITS] = {SYNC, 0},
    [RENAME_WAITS] = {RENAME, 0},
    [NO_NEW_ROOM] = {GROW, ENOSPC},
};

/* Whether such a call fails; errno says how. */
static int fails(int call) {
    int64_t kind = fault ? fault->kind : NONE;
    if (kind == NONE || !(MEETS[kind].calls & call) || __atomic_fetch_sub(&fault->spared, 1, __ATOMIC_SEQ_CST) > 0)
        return 0;
    __atomic_fetch_add(&fault->met, 1, __ATOMIC_SEQ_CST);
    while (!MEETS[kind].error && fault->kind == kind)
        usleep(1000);
    errno = MEETS[kind].error;
    return errno != 0;
}

#define REAL(type, name, ...)                                                                                          \
    static type (*real)(__VA_ARGS__);                                                                                  \
    if (!real)                                                                                                         \
    *(void **)&real = dlsym(RTLD_NEXT, name)

int open64(const char *path, int flags, ...) {
    REAL(int, "open64", const char *, int, ...);
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    if (is_ours(path) && (flags & (O_WRONLY | O_RDWR | O_CREAT)) && fails(OPEN))
        return -1;
    return real(path, flags, mode);
}

ssize_t write(int file, const void *bytes, size_t count) {
    REAL(ssize_t, "write", int, const void *, size_t);
    return is_of_ours(file) && fails(WRITE) ? -1 : real(file, bytes, count);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    return is_of_ours(file) && fails(WRITE) ? -1 : real(file, bytes, count, at);
}

int fallocate(int file, int mode, off_t at, off_t length) {
    REAL(int, "fallocate", int, int, off_t, off_t);
    return is_of_ours(file) && fails(GROW) ? -1 : real(file, mode, at, length);
}

int fallocate64(int file, int mode, off64_t at, off64_t length) { return fallocate(file, mode, at, length); }

int fdatasync(int file) {
    REAL(int, "fdatasync", int);
    return is_of_ours(file) && fails(SYNC) ? -1 : real(file);
}

int fsync(int file) {
    REAL(int, "fsync", int);
    return is_of_ours(file) && fails(SYNC) ? -1 : real(file);
}

int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    return is_ours(path) && fails(NAME) ? -1 : real(path);
}

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    return is_ours(from) && fails(NAME | RENAME) ? -1 : real(from, to);
}
