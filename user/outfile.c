// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a path and what is written to the stream. Out: the whole file under that path, or no trace.
 * The file grows under a temporary name in the same directory, because rename() replaces the old
 * file in one step only within a file system. It knows nothing of what it writes.
 */
#include "outfile.h"

#include "cleanup.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/stat.h>

#define TEMP_NAME ".heapbpf.XXXXXX"

struct outfile {
	char *path;
	char *temp; /* NULL: written directly */
	FILE *stream;
};

/* Closes and frees, and removes the temporary file. */
static void outfile_free(struct outfile *file)
{
	if (!file)
		return;
	if (file->stream) {
		__fpurge(file->stream);
		fclose(file->stream);
	}
	if (file->temp)
		unlink(file->temp);
	free(file->temp);
	free(file->path);
	free(file);
}

DEFINE_CLEANUP(outfile, struct outfile, outfile_free)

/* The non-negative decimal number that is all of `text`, or -1. */
static long parse_number(const char *text)
{
	char *end;
	long number;

	if (*text < '0' || *text > '9')
		return -1;
	errno = 0;
	number = strtol(text, &end, 10);
	return errno || *end ? -1 : number;
}

/* The descriptor that `path` is another name of, or -1. */
static int named_fd(const char *path)
{
	static const char *const prefixes[] = {"/dev/fd/", "/proc/self/fd/"};
	long fd;

	if (!strcmp(path, "-") || !strcmp(path, "/dev/stdout"))
		return STDOUT_FILENO;
	if (!strcmp(path, "/dev/stderr"))
		return STDERR_FILENO;
	for (size_t i = 0; i < ARRAY_CNT(prefixes); i++) {
		size_t len = strlen(prefixes[i]);

		if (strncmp(path, prefixes[i], len))
			continue;
		fd = parse_number(path + len);
		return fd > INT_MAX ? -1 : (int)fd;
	}
	return -1;
}

bool outfile_is_stdout(const char *path)
{
	return named_fd(path) == STDOUT_FILENO;
}

bool outfile_is_directory(const char *path)
{
	size_t len = strlen(path);
	struct stat st;

	if (len && path[len - 1] == '/')
		return true;
	return named_fd(path) < 0 && !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* What to do about `err`. */
static const char *advice(int err)
{
	switch (err) {
	case ENOENT:
		return "make its directory first (mkdir -p)";
	case ENOTDIR:
		return "what should be a directory is a file; give another place (-o)";
	case EISDIR:
		return "give the name of a file in it (-o)";
	case EACCES:
	case EPERM:
	case EROFS:
		return "give a place where you may write (-o)";
	case ENOSPC:
	case EDQUOT:
		return "make room, or give another place (-o)";
	case ENOMEM:
		return "free memory and try again";
	case EMFILE:
	case ENFILE:
		return "raise the limit (ulimit -n)";
	case EINTR:
		return "try again";
	case ENAMETOOLONG:
		return "give a shorter name (-o)";
	case EBADF:
		return "open it for writing, or give a file (-o)";
	case EPIPE:
		return "whoever read it ended; let it read to the end, or give a file (-o)";
	default:
		return "give another place (-o)";
	}
}

int outfile_refuse(int err, const char *path)
{
	log_fail(0, "cannot write %s: %s; %s", path, strerror(err), advice(err));
	return -err;
}

/* What lies at `path`: 1 to be written directly, 0 to be replaced or nothing, -errno, logged. */
static int is_direct(const char *path)
{
	struct stat st;

	if (stat(path, &st)) /* a name too long would only fail the rename, at the end */
		return errno == ENAMETOOLONG ? outfile_refuse(errno, path) : 0;
	if (S_ISDIR(st.st_mode))
		return outfile_refuse(EISDIR, path);
	if (S_ISBLK(st.st_mode))
		return log_fail(0, "cannot write %s: it is a block device; give a file (-o)", path);
	return S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode);
}

/* A name for mkostemp() in the directory of `path`; NULL: no memory. */
static char *temp_template(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *temp;

	if (asprintf(&temp, "%.*s%s", slash ? (int)(slash - path + 1) : 0, path, TEMP_NAME) < 0)
		return NULL;
	return temp;
}

/* Gives the file to the user behind sudo. Failing that, the file is root's: no reason to lose it.
 */
static void hand_over(int fd, const char *path)
{
	const char *uid_text = getenv("SUDO_UID"), *gid_text = getenv("SUDO_GID");
	long uid = uid_text ? parse_number(uid_text) : -1;
	long gid = gid_text ? parse_number(gid_text) : -1;

	if (uid < 0 || uid > UINT32_MAX || geteuid() != 0)
		return;
	if (fchown(fd, (uid_t)uid, (gid_t)gid))
		log_warn("%s: stays root's, cannot give it to user %ld: %s", path, uid,
			 strerror(errno));
}

int outfile_make_directory(const char *path)
{
	_cleanup_close_ int fd = -1;

	if (mkdir(path, 0700) && errno != EEXIST)
		return log_fail(errno, "cannot make directory %s", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return log_fail(errno, "cannot open directory %s", path);
	hand_over(fd, path);
	return 0;
}

/* Opens the temporary file beside file->path, which is then removed by outfile_free(). */
static int open_temp(struct outfile *file)
{
	_cleanup_free_ char *temp = temp_template(file->path);
	size_t len = strlen(file->path);
	int fd;

	if (!temp)
		return outfile_refuse(ENOMEM, file->path);
	if (!len)
		return outfile_refuse(ENOENT, "a file without a name");
	if (file->path[len - 1] == '/')
		return outfile_refuse(EISDIR, file->path);
	fd = mkostemp(temp, O_CLOEXEC);
	if (fd < 0)
		return outfile_refuse(errno, file->path);
	file->temp = take_ptr(temp);
	hand_over(fd, file->path);
	return fd;
}

/* A descriptor for file->path, or -errno, logged. */
static int open_fd(struct outfile *file)
{
	int number = named_fd(file->path), direct = 1, fd;

	if (number < 0)
		direct = is_direct(file->path);
	if (direct < 0)
		return direct;
	if (!direct)
		return open_temp(file);
	if (number >= 0)
		fd = fcntl(number, F_DUPFD_CLOEXEC, 3);
	else
		fd = open(file->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? outfile_refuse(errno, file->path) : fd;
}

static bool is_writable(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

int outfile_check(const char *path)
{
	_cleanup_(cleanup_outfile) struct outfile *file = NULL;
	int direct;

	if (named_fd(path) >= 0)
		return is_writable(named_fd(path)) ? 0 : outfile_refuse(EBADF, path);
	direct = is_direct(path);
	if (direct < 0)
		return direct;
	if (direct)
		return access(path, W_OK) ? outfile_refuse(errno, path) : 0;
	return outfile_open(path, &file);
}

int outfile_open(const char *path, struct outfile **out)
{
	_cleanup_(cleanup_outfile) struct outfile *file = calloc(1, sizeof(*file));
	_cleanup_close_ int fd = -1;

	if (!file)
		return outfile_refuse(ENOMEM, path);
	file->path = strdup(path);
	if (!file->path)
		return outfile_refuse(ENOMEM, path);
	fd = open_fd(file);
	if (fd < 0)
		return fd;
	file->stream = fdopen(fd, "w");
	if (!file->stream)
		return outfile_refuse(errno, path);
	take_fd(&fd);
	*out = take_ptr(file);
	return 0;
}

FILE *outfile_stream(struct outfile *file)
{
	return file->stream;
}

/* Everything to the disk, or to whoever reads the pipe; 0 or -errno. */
static int flush(const struct outfile *file)
{
	bool failed_before = ferror(file->stream);

	errno = 0;
	if (fflush(file->stream) || failed_before)
		return errno ? -errno : -EIO;
	if (file->temp && fsync(fileno(file->stream)))
		return -errno;
	return 0;
}

/* Makes the rename last: best effort, not every file system can. */
static void sync_directory(const char *path)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *dir = strndup(path, slash ? (size_t)(slash - path + 1) : 0);
	_cleanup_close_ int fd = -1;

	if (!dir)
		return;
	fd = open(dir[0] ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		fsync(fd);
}

int outfile_commit(struct outfile *file_)
{
	_cleanup_(cleanup_outfile) struct outfile *file = file_;
	int err = flush(file);

	if (err)
		return outfile_refuse(-err, file->path);
	/* Network file systems report a full disk only here. */
	if (fclose(take_ptr(file->stream)))
		return outfile_refuse(errno, file->path);
	if (!file->temp)
		return 0;
	if (rename(file->temp, file->path))
		return outfile_refuse(errno, file->path);
	free(take_ptr(file->temp));
	sync_directory(file->path);
	return 0;
}

void outfile_abort(struct outfile *file)
{
	outfile_free(file);
}
