/* A disk that is full or slow, for tests: PostgreSQL is started with this library preloaded.
 *
 * The file that RIALTO_TEST_DISK names has two numbers: 1 if the disk is full, and the milliseconds
 * that each sync takes. On a full disk a write that makes a file longer fails with ENOSPC; one that
 * overwrites bytes of the file succeeds, as on a real disk. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

struct disk {
    int is_full;
    int sync_ms;
};

static struct disk read_disk(void) {
    struct disk disk = {0, 0};
    const char *path = getenv("RIALTO_TEST_DISK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        char text[32] = {0};
        if (read(file, text, sizeof text - 1) > 0)
            sscanf(text, "%d %d", &disk.is_full, &disk.sync_ms);
        close(file);
    }
    return disk;
}

/* Whether the file is in memory, which PostgreSQL shares between its processes. */
static int is_shared_memory(int file) {
    char link[64], path[256] = {0};
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    return readlink(link, path, sizeof path - 1) > 0 && strncmp(path, "/dev/shm/", 9) == 0;
}

/* Whether a write up to this end has no room. */
static int has_no_room(int file, off_t end) {
    struct stat state;
    if (fstat(file, &state) != 0 || !S_ISREG(state.st_mode) || end <= state.st_size)
        return 0;
    return read_disk().is_full && !is_shared_memory(file);
}

ssize_t write(int file, const void *bytes, size_t count) {
    off_t at = lseek(file, 0, fcntl(file, F_GETFL) & O_APPEND ? SEEK_END : SEEK_CUR);
    if (at >= 0 && has_no_room(file, at + (off_t)count)) {
        errno = ENOSPC;
        return -1;
    }
    return NEXT(write)(file, bytes, count);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t at) {
    if (has_no_room(file, at + (off_t)count)) {
        errno = ENOSPC;
        return -1;
    }
    return NEXT(pwrite)(file, bytes, count, at);
}

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t at) {
    off_t end = at;
    for (int part = 0; part < count; part++)
        end += (off_t)parts[part].iov_len;
    if (has_no_room(file, end)) {
        errno = ENOSPC;
        return -1;
    }
    return NEXT(pwritev)(file, parts, count, at);
}

int posix_fallocate(int file, off_t at, off_t count) {
    return has_no_room(file, at + count) ? ENOSPC : NEXT(posix_fallocate)(file, at, count);
}

ssize_t pwrite64(int, const void *, size_t, off_t) __attribute__((alias("pwrite")));
ssize_t pwritev64(int, const struct iovec *, int, off_t) __attribute__((alias("pwritev")));
int posix_fallocate64(int, off_t, off_t) __attribute__((alias("posix_fallocate")));

static void delay_sync(void) {
    int delay = read_disk().sync_ms;
    struct timespec rest = {delay / 1000, delay % 1000 * 1000000L};
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {
    }
}

int fsync(int file) {
    delay_sync();
    return NEXT(fsync)(file);
}

int fdatasync(int file) {
    delay_sync();
    return NEXT(fdatasync)(file);
}
