/* Preloaded into a process, lets the files below the folder that CHAOS_DISK names grow to CHAOS_DISK_BYTES together, and
   answers ENOSPC to what would take more. For machines on which no small file system may be mounted. */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static int64_t bytes_below(const char *folder) {
    int64_t bytes = 0;
    DIR *open_folder = opendir(folder);
    struct dirent *entry;
    while (open_folder && (entry = readdir(open_folder))) {
        char path[PATH_MAX];
        struct stat about;
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path || lstat(path, &about))
            continue;
        bytes += S_ISDIR(about.st_mode) ? bytes_below(path) : S_ISREG(about.st_mode) ? about.st_size : 0;
    }
    if (open_folder)
        closedir(open_folder);
    return bytes;
}

/* Whether the file may grow to this size; errno says why not. */
static int may_grow(int file, int64_t size) {
    const char *folder = getenv("CHAOS_DISK"), *most = getenv("CHAOS_DISK_BYTES");
    char link[64], path[PATH_MAX];
    struct stat about;
    if (!folder || !most || fstat(file, &about) || !S_ISREG(about.st_mode) || size <= about.st_size)
        return 1;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    size_t folder_length = strlen(folder);
    if (length < (ssize_t)folder_length || strncmp(path, folder, folder_length))
        return 1;
    if (bytes_below(folder) + size - about.st_size <= atoll(most))
        return 1;
    errno = ENOSPC;
    return 0;
}

static int64_t place(int file) {
    off_t at = lseek(file, 0, SEEK_CUR);
    struct stat about;
    int flags = fcntl(file, F_GETFL);
    if (flags >= 0 && (flags & O_APPEND) && !fstat(file, &about))
        return about.st_size;
    return at < 0 ? 0 : at;
}

#define REAL(type, name, ...)                                                                                          \
    static type (*real)(__VA_ARGS__);                                                                                  \
    if (!real)                                                                                                         \
    *(void **)&real = dlsym(RTLD_NEXT, name)

ssize_t write(int file, const void *bytes, size_t count) {
    REAL(ssize_t, "write", int, const void *, size_t);
    return may_grow(file, place(file) + (int64_t)count) ? real(file, bytes, count) : -1;
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    return may_grow(file, at + (int64_t)count) ? real(file, bytes, count, at) : -1;
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t at) { return pwrite64(file, bytes, count, at); }

int fallocate64(int file, int mode, off64_t at, off64_t length) {
    REAL(int, "fallocate64", int, int, off64_t, off64_t);
    return may_grow(file, at + length) ? real(file, mode, at, length) : -1;
}

int fallocate(int file, int mode, off_t at, off_t length) { return fallocate64(file, mode, at, length); }

int ftruncate64(int file, off64_t length) {
    REAL(int, "ftruncate64", int, off64_t);
    return may_grow(file, length) ? real(file, length) : -1;
}

int ftruncate(int file, off_t length) { return ftruncate64(file, length); }
