/*
 * A disk that fails on request.
 *
 * Loaded before the C library (LD_PRELOAD), this file wraps the calls of an unmodified program that
 * change what is on disk: write, pwrite, writev, pwritev, fsync, fdatasync, ftruncate, rename, link,
 * unlink, mkdir. Every such call on something in the watched directory is a *boundary* and gets a
 * number, 1, 2, 3 and so on. At a chosen number, or while a switch file exists, a fault is injected.
 * The file of a call is found by the name of its descriptor (/proc/self/fd), so opens need not be
 * tracked.
 *
 * Environment variables control it:
 *
 *   FAULT_DIR     the watched directory, as an absolute path without links in it
 *   FAULT_LOG     the log of all boundaries: number, kind of call, name, what was done
 *   FAULT_AT      the number of the boundary at which the fault is injected
 *   FAULT_DO      the fault:
 *                   before  the process is killed before the call
 *                   after   the process is killed after it
 *                   torn    half of the bytes are written, then the process is killed; a call that
 *                           writes none is killed before
 *                   cut     the power fails before the call: everything that was not synced is lost
 *                   mess    the same, but only a random part of what was not synced is lost
 *                   eio     the call fails with EIO, and nothing is done
 *                   enospc  the call fails with ENOSPC, and nothing is done
 *                   short   half of the bytes are written, as on a disk that fills up during a
 *                           write, and later calls fail as with enospc
 *   FAULT_FOR     for the errors: how many calls fail, beginning with that one; 0 means all
 *   FAULT_ONLY    for the errors: only calls of this class, "sync" or "write"
 *   FAULT_NAME    for the errors: only calls on names that end like this
 *   FAULT_SWITCH  a file; while it exists, and whatever the number, the calls fail
 *
 * A kill is SIGKILL to this process: nothing of the program runs after it, and the system keeps what
 * it has written, as with any other kill. A power failure also loses what was never synced. For this,
 * the old content of every range is saved when it is overwritten, until its file is synced, and `cut`
 * restores it. A new name is removed as well if its directory was not synced.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum deed { NONE, BEFORE, AFTER, TORN, CUT, MESS, EIO_, ENOSPC_, SHORT };
enum class { WRITE, SYNC, NAME };

/* The settings from the environment, read once. */
static struct {
	char dir[PATH_MAX];
	size_t dir_len;
	int log;
	unsigned long at, span;
	enum deed deed;
	int only; /* -1 for every class */
	const char *name, *toggle;
} told;

/* The wrapped calls. */
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*real_writev)(int, const struct iovec *, int);
static ssize_t (*real_pwritev)(int, const struct iovec *, int, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_ftruncate)(int, off_t);
static int (*real_rename)(const char *, const char *);
static int (*real_link)(const char *, const char *);
static int (*real_linkat)(int, const char *, int, const char *, int);
static int (*real_unlink)(const char *);
static int (*real_mkdir)(const char *, mode_t);
static int (*real_open)(const char *, int, ...);
static int (*real_openat)(int, const char *, int, ...);

/* One boundary at a time: a lock keeps the numbers in the order of the calls, and nothing is
 * written while the power fails. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static unsigned long count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- what a power failure loses ---- */

/* An overwritten range, or a new name, that is not synced. Newest first. */
struct loss {
	struct loss *older;
	char path[PATH_MAX];
	int is_name;
	off_t size;   /* how long the file was */
	off_t offset; /* where the old bytes belong */
	size_t written; /* number of new bytes */
	size_t length;  /* number of old bytes; the rest is new */
	unsigned char bytes[];
};
static struct loss *losses;

static void keep(struct loss *loss, const char *path)
{
	snprintf(loss->path, sizeof loss->path, "%s", path);
	loss->older = losses;
	losses = loss;
}

/* Saves what is about to be overwritten or truncated. */
static void keep_old(int fd, const char *path, off_t offset, size_t length)
{
	if (told.deed != CUT && told.deed != MESS)
		return;
	struct stat st;
	if (fstat(fd, &st) != 0)
		return;
	struct loss *loss = calloc(1, sizeof *loss + length);
	if (!loss)
		abort();
	loss->size = st.st_size;
	loss->offset = offset;
	loss->written = length;
	/* The descriptor may be for writing only; the name is for reading, too. */
	int again = real_open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = again < 0 ? 0 : pread(again, loss->bytes, length, offset);
	loss->length = got > 0 ? (size_t)got : 0;
	if (again >= 0)
		close(again);
	keep(loss, path);
}

static void keep_name(const char *path)
{
	if (told.deed != CUT && told.deed != MESS)
		return;
	struct loss *loss = calloc(1, sizeof *loss);
	if (!loss)
		abort();
	loss->is_name = 1;
	keep(loss, path);
}

/* Whether a name is directly in a directory. */
static int is_in(const char *path, const char *dir)
{
	size_t length = strlen(dir);
	return strncmp(path, dir, length) == 0 && path[length] == '/' && !strchr(path + length + 1, '/');
}

/* A sync makes a file's bytes, or a directory's names, safe. */
static void forget(const char *path)
{
	for (struct loss **at = &losses; *at;) {
		struct loss *loss = *at;
		int safe = loss->is_name ? is_in(loss->path, path) : strcmp(loss->path, path) == 0;
		if (!safe) {
			at = &loss->older;
			continue;
		}
		*at = loss->older;
		free(loss);
	}
}

/* Restores the old content; for `mess`, a random part of it. */
static void lose(int by_chance)
{
	unsigned long dice = told.at * 0x9e3779b97f4a7c15ul;
	for (struct loss *loss = losses; loss; loss = loss->older) {
		dice = dice * 6364136223846793005ul + 1442695040888963407ul;
		if (by_chance && (dice >> 33) % 2)
			continue;
		if (loss->is_name) {
			real_unlink(loss->path);
			continue;
		}
		int fd = real_open(loss->path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		/* New bytes become zeros, as in a file where nothing was written. */
		real_pwrite(fd, loss->bytes, loss->written, loss->offset);
		/* With `mess`, later bytes may remain, so the file keeps its length. */
		if (!by_chance)
			real_ftruncate(fd, loss->size);
		close(fd);
	}
}

/* ---- faults ---- */

static void read_environment(void)
{
	const char *text;
	*(void **)&real_write = dlsym(RTLD_NEXT, "write");
	*(void **)&real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
	*(void **)&real_writev = dlsym(RTLD_NEXT, "writev");
	*(void **)&real_pwritev = dlsym(RTLD_NEXT, "pwritev64");
	*(void **)&real_fsync = dlsym(RTLD_NEXT, "fsync");
	*(void **)&real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
	*(void **)&real_ftruncate = dlsym(RTLD_NEXT, "ftruncate64");
	*(void **)&real_rename = dlsym(RTLD_NEXT, "rename");
	*(void **)&real_link = dlsym(RTLD_NEXT, "link");
	*(void **)&real_linkat = dlsym(RTLD_NEXT, "linkat");
	*(void **)&real_unlink = dlsym(RTLD_NEXT, "unlink");
	*(void **)&real_mkdir = dlsym(RTLD_NEXT, "mkdir");
	*(void **)&real_open = dlsym(RTLD_NEXT, "open64");
	*(void **)&real_openat = dlsym(RTLD_NEXT, "openat64");

	text = getenv("FAULT_DIR");
	snprintf(told.dir, sizeof told.dir, "%s", text ? text : "");
	told.dir_len = strlen(told.dir);
	text = getenv("FAULT_LOG");
	told.log = text ? real_open(text, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
	text = getenv("FAULT_AT");
	told.at = text ? strtoul(text, NULL, 10) : 0;
	text = getenv("FAULT_FOR");
	told.span = text ? strtoul(text, NULL, 10) : 1;
	text = getenv("FAULT_ONLY");
	told.only = !text ? -1 : strcmp(text, "sync") == 0 ? SYNC : WRITE;
	told.name = getenv("FAULT_NAME");
	told.toggle = getenv("FAULT_SWITCH");
	static const char *const words[] = { "",    "before", "after",  "torn", "cut",
					     "mess", "eio",    "enospc", "short" };
	text = getenv("FAULT_DO");
	for (size_t i = 1; text && i < sizeof words / sizeof *words; i++)
		if (strcmp(text, words[i]) == 0)
			told.deed = (enum deed)i;
}

static int is_watched(const char *path)
{
	return told.dir_len && strncmp(path, told.dir, told.dir_len) == 0 &&
	       (path[told.dir_len] == '/' || path[told.dir_len] == 0);
}

/* The name of a descriptor, if it is in the watched directory. */
static int watched(int fd, char *path)
{
	char link[64];
	pthread_once(&once, read_environment);
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, path, PATH_MAX - 1);
	if (length < 0)
		return 0;
	path[length] = 0;
	return is_watched(path);
}

static void die(void)
{
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}

/* The program must not see the power failure: a child kills this process, waits until all its threads
 * have ended, and only then removes what was not synced. Otherwise a thread could read from a file that
 * is already truncated, or touch a mapped part that is no longer there. A reader of this process's
 * stderr also waits for the child, which holds it open. After a fork in a threaded process the child
 * may only make plain system calls. */
static void power_fails(int by_chance)
{
	pid_t us = getpid();
	int gone = (int)syscall(SYS_pidfd_open, us, 0);
	if (gone < 0)
		abort();
	pid_t child = fork();
	if (child < 0)
		abort();
	if (child > 0)
		for (;;)
			pause();
	kill(us, SIGKILL);
	struct pollfd end = { .fd = gone, .events = POLLIN };
	while (poll(&end, 1, -1) < 1)
		;
	lose(by_chance);
	_exit(0);
}

static int is_meant(enum class class, const char *path)
{
	size_t have = strlen(path), want = told.name ? strlen(told.name) : 0;
	if (told.only >= 0 && (int)class != told.only)
		return 0;
	return have >= want && strcmp(path + have - want, told.name ? told.name : "") == 0;
}

static int is_error(void)
{
	return told.deed == EIO_ || told.deed == ENOSPC_ || told.deed == SHORT;
}

/* Before a boundary: counts it, logs it, and returns what to do, with the lock held. */
static enum deed arrive(enum class class, const char *kind, const char *path)
{
	enum deed deed = NONE;
	pthread_mutex_lock(&turn);
	count++;
	if (is_error()) {
		int now = told.toggle ? access(told.toggle, F_OK) == 0
				      : told.at && count >= told.at &&
						(!told.span || count < told.at + told.span);
		if (now && is_meant(class, path))
			deed = told.deed;
	} else if (told.at && count == told.at) {
		deed = told.deed;
	}
	if (told.log >= 0) {
		char line[PATH_MAX + 64];
		int length = snprintf(line, sizeof line, "%lu %s %s %s\n", count, kind,
				      path[told.dir_len] ? path + told.dir_len + 1 : ".",
				      deed == NONE ? "-" : "fault");
		real_write(told.log, line, (size_t)length);
	}
	if (deed == BEFORE)
		die();
	if (deed == CUT || deed == MESS)
		power_fails(deed == MESS);
	return deed;
}

/* After a boundary. */
static void leave(enum deed deed)
{
	int kept = errno;
	if (deed == AFTER || deed == TORN)
		die();
	pthread_mutex_unlock(&turn);
	errno = kept;
}

static int refuse(enum deed deed)
{
	pthread_mutex_unlock(&turn);
	errno = deed == EIO_ ? EIO : ENOSPC;
	return -1;
}

/* ---- the calls ---- */

/* All write calls end here; without an offset the descriptor's own is used. */
static ssize_t put(int fd, const void *bytes, size_t length, const off_t *offset, const char *path,
		   const char *kind)
{
	enum deed deed = arrive(WRITE, kind, path);
	if (deed == EIO_ || deed == ENOSPC_)
		return refuse(deed);
	size_t part = length;
	if (deed == TORN || deed == SHORT)
		part = length / 2;
	if (deed == SHORT) {
		told.deed = ENOSPC_;
		if (part == 0)
			return refuse(ENOSPC_);
	}
	keep_old(fd, path, offset ? *offset : lseek(fd, 0, SEEK_CUR), part);
	ssize_t done = offset ? real_pwrite(fd, bytes, part, *offset) : real_write(fd, bytes, part);
	leave(deed);
	return done;
}

ssize_t write(int fd, const void *bytes, size_t length)
{
	char path[PATH_MAX];
	if (!watched(fd, path))
		return real_write(fd, bytes, length);
	return put(fd, bytes, length, NULL, path, "write");
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t offset)
{
	char path[PATH_MAX];
	if (!watched(fd, path))
		return real_pwrite(fd, bytes, length, offset);
	return put(fd, bytes, length, &offset, path, "write");
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset)
{
	return pwrite64(fd, bytes, length, offset);
}

/* A short write is allowed, so only the first non-empty buffer is written. */
ssize_t writev(int fd, const struct iovec *pieces, int many)
{
	char path[PATH_MAX];
	if (!watched(fd, path))
		return real_writev(fd, pieces, many);
	while (many > 1 && pieces->iov_len == 0)
		pieces++, many--;
	return many > 0 ? put(fd, pieces->iov_base, pieces->iov_len, NULL, path, "write") : 0;
}

ssize_t pwritev64(int fd, const struct iovec *pieces, int many, off_t offset)
{
	char path[PATH_MAX];
	if (!watched(fd, path))
		return real_pwritev(fd, pieces, many, offset);
	while (many > 1 && pieces->iov_len == 0)
		pieces++, many--;
	return many > 0 ? put(fd, pieces->iov_base, pieces->iov_len, &offset, path, "write") : 0;
}

ssize_t pwritev(int fd, const struct iovec *pieces, int many, off_t offset)
{
	return pwritev64(fd, pieces, many, offset);
}

static int sync_with(int (*real)(int), int fd)
{
	char path[PATH_MAX];
	int ours = watched(fd, path);
	if (!ours) {
		/* The parent directory holds the name of the watched one. */
		pthread_mutex_lock(&turn);
		int done = real(fd);
		if (done == 0 && told.dir_len)
			forget(path);
		pthread_mutex_unlock(&turn);
		return done;
	}
	enum deed deed = arrive(SYNC, "sync", path);
	if (deed >= EIO_)
		return refuse(deed);
	int done = deed == TORN ? 0 : real(fd);
	if (done == 0)
		forget(path);
	leave(deed);
	return done;
}

int fsync(int fd)
{
	pthread_once(&once, read_environment);
	return sync_with(real_fsync, fd);
}

int fdatasync(int fd)
{
	pthread_once(&once, read_environment);
	return sync_with(real_fdatasync, fd);
}

int ftruncate64(int fd, off_t size)
{
	char path[PATH_MAX];
	if (!watched(fd, path))
		return real_ftruncate(fd, size);
	enum deed deed = arrive(WRITE, "truncate", path);
	if (deed >= EIO_)
		return refuse(deed);
	struct stat st;
	off_t gone = fstat(fd, &st) == 0 && st.st_size > size ? st.st_size - size : 0;
	keep_old(fd, path, size, (size_t)gone);
	int done = deed == TORN ? 0 : real_ftruncate(fd, size);
	leave(deed);
	return done;
}

int ftruncate(int fd, off_t size)
{
	return ftruncate64(fd, size);
}

/* Calls on names. The program under test passes absolute paths. */
#define NAMED(kind, path, call, made)                                \
	do {                                                         \
		pthread_once(&once, read_environment);               \
		if (!is_watched(path))                               \
			return call;                                 \
		enum deed deed = arrive(NAME, kind, path);           \
		if (deed >= EIO_)                                    \
			return refuse(deed);                         \
		int done = deed == TORN ? 0 : call;                  \
		if (done == 0 && deed != TORN && (made))             \
			keep_name(path);                             \
		leave(deed);                                         \
		return done;                                         \
	} while (0)

int rename(const char *from, const char *to)
{
	NAMED("rename", to, real_rename(from, to), 0);
}

int link(const char *from, const char *to)
{
	NAMED("link", to, real_link(from, to), 1);
}

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
	NAMED("link", to, real_linkat(from_dir, from, to_dir, to, flags), 1);
}

int unlink(const char *path)
{
	NAMED("unlink", path, real_unlink(path), 0);
}

int mkdir(const char *path, mode_t mode)
{
	NAMED("mkdir", path, real_mkdir(path, mode), 1);
}

/* Opening is not a boundary: a kill before the first write leaves an empty new file as well. But a
 * power failure can lose a new name. */
static int open_at(int dir, const char *path, int flags, mode_t mode)
{
	struct stat st;
	pthread_once(&once, read_environment);
	int made = (flags & O_CREAT) && is_watched(path) && stat(path, &st) != 0;
	int fd = real_openat(dir, path, flags, mode);
	if (fd >= 0 && made) {
		pthread_mutex_lock(&turn);
		keep_name(path);
		pthread_mutex_unlock(&turn);
	}
	return fd;
}

#define MODE(mode, flags)                                \
	mode_t mode = 0;                                 \
	if ((flags) & (O_CREAT | O_TMPFILE)) {           \
		va_list rest;                            \
		va_start(rest, flags);                   \
		mode = (mode_t)va_arg(rest, unsigned);   \
		va_end(rest);                            \
	}

int open64(const char *path, int flags, ...)
{
	MODE(mode, flags)
	return open_at(AT_FDCWD, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
	MODE(mode, flags)
	return open_at(AT_FDCWD, path, flags, mode);
}

int openat64(int dir, const char *path, int flags, ...)
{
	MODE(mode, flags)
	return open_at(dir, path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
	MODE(mode, flags)
	return open_at(dir, path, flags, mode);
}
