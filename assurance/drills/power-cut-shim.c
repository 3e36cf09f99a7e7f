/* A disk that loses power, for one SQLite database (LD_PRELOAD). Writes reach the files as usual, so that the process can
   read them; fsync and fdatasync copy what was written since the last sync to a file of the same name with ".synced".
   After the process has died, that copy is what a disk without power would still have.

   POWER_CUT_FILE   the database; its -wal and -journal count too
   POWER_CUT_AFTER  the process dies at this operation (a write, truncation or sync of one of these files)
   POWER_CUT_AT     if "sync", it dies at the first sync from that operation on, with a whole commit that is not synced
   POWER_CUT_LIES   if set, a sync keeps nothing: a disk that lies, for drills to catch */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES 3
#define RANGES 65536
#define PATH_SIZE 4096

struct range { off_t from; size_t length; };
struct file { struct range written[RANGES]; int count; };

static const char *const SUFFIXES[FILES] = {"", "-wal", "-journal"};
static struct file files[FILES];
static long operations;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* Returns the index of the file that this file descriptor belongs to, or -1. */
static int file_of(int fd, char path[PATH_SIZE]) {
  const char *database = getenv("POWER_CUT_FILE");
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = database == NULL ? -1 : readlink(link, path, PATH_SIZE - 1);
  if (length < 0) return -1;
  path[length] = 0;
  size_t stem = strlen(database);
  if (strncmp(path, database, stem) != 0) return -1;
  for (int index = 0; index < FILES; index++)
    if (strcmp(path + stem, SUFFIXES[index]) == 0) return index;
  return -1;
}

static void count_operation(int is_sync) {
  const char *last = getenv("POWER_CUT_AFTER");
  if (last != NULL && ++operations >= atol(last) && (is_sync || getenv("POWER_CUT_AT") == NULL)) kill(getpid(), SIGKILL);
}

static void note(int index, off_t from, size_t length) {
  struct file *file = &files[index];
  if (file->count == RANGES) abort();
  file->written[file->count++] = (struct range){from, length};
}

/* Holds the lock while it writes and notes the range, so that no sync comes between the two. */
static ssize_t write_at(int fd, const void *bytes, size_t length, off_t offset, int at_position) {
  char path[PATH_SIZE];
  int index = file_of(fd, path);
  if (index >= 0) {
    pthread_mutex_lock(&lock);
    count_operation(0);
  }
  off_t from = at_position && index >= 0 ? lseek(fd, 0, SEEK_CUR) : offset;
  ssize_t written = at_position ? REAL(write)(fd, bytes, length) : REAL(pwrite)(fd, bytes, length, offset);
  if (index >= 0) {
    if (written > 0) note(index, from, (size_t)written);
    pthread_mutex_unlock(&lock);
  }
  return written;
}

ssize_t write(int fd, const void *bytes, size_t length) { return write_at(fd, bytes, length, 0, 1); }
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) { return write_at(fd, bytes, length, offset, 0); }
ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t offset) { return write_at(fd, bytes, length, offset, 0); }

static int truncate_to(int fd, off_t length) {
  char path[PATH_SIZE];
  if (file_of(fd, path) >= 0) {
    pthread_mutex_lock(&lock);
    count_operation(0);
    pthread_mutex_unlock(&lock);
  }
  return REAL(ftruncate)(fd, length);
}

int ftruncate(int fd, off_t length) { return truncate_to(fd, length); }
int ftruncate64(int fd, off_t length) { return truncate_to(fd, length); }

static int copy_range(int from, int to, struct range range) {
  static char bytes[65536];
  for (size_t done = 0; done < range.length;) {
    size_t part = range.length - done < sizeof bytes ? range.length - done : sizeof bytes;
    ssize_t read = pread(from, bytes, part, range.from + (off_t)done);
    if (read <= 0) return (int)read; /* truncated since */
    if (REAL(pwrite)(to, bytes, (size_t)read, range.from + (off_t)done) != read) return -1;
    done += (size_t)read;
  }
  return 0;
}

/* Copies the ranges written since the last sync. A sync that the cut interrupts has kept a part, as on a real disk. */
static int keep(int fd, int index, const char *path) {
  char synced[PATH_SIZE + 8];
  snprintf(synced, sizeof synced, "%s.synced", path);
  int to = open(synced, O_RDWR | O_CREAT | O_CLOEXEC, 0600), result = 0;
  struct stat now;
  if (to < 0 || fstat(fd, &now) != 0) abort();
  for (int range = 0; range < files[index].count; range++) result |= copy_range(fd, to, files[index].written[range]);
  result |= REAL(ftruncate)(to, now.st_size);
  files[index].count = 0;
  close(to);
  return result;
}

static int sync_of(int fd, int (*real)(int)) {
  char path[PATH_SIZE];
  int index = file_of(fd, path);
  if (index < 0) return real(fd);
  pthread_mutex_lock(&lock);
  count_operation(1);
  int result = getenv("POWER_CUT_LIES") == NULL ? keep(fd, index, path) : (files[index].count = 0);
  pthread_mutex_unlock(&lock);
  return result;
}

int fsync(int fd) { return sync_of(fd, REAL(fsync)); }
int fdatasync(int fd) { return sync_of(fd, REAL(fdatasync)); }
