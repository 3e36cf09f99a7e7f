/* Simulates a slow disk (LD_PRELOAD). fsync and fdatasync take a fixed time, plus a time in proportion to the bytes that
   pwrite, which SQLite uses, wrote to the file since its last sync.

   SLOW_SYNC_MICROSECONDS  the fixed time; 4000 if unset
   SLOW_SYNC_RATE          bytes a microsecond; 200 (200 MB/s) if unset */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES 4096
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* Bytes written since the last sync, by inode. */
static atomic_long dirty[FILES];

static atomic_long *dirty_of(int fd) {
  struct stat file;
  return &dirty[fstat(fd, &file) == 0 ? file.st_ino % FILES : 0];
}

static ssize_t note(int fd, ssize_t written) {
  if (written > 0) atomic_fetch_add(dirty_of(fd), written);
  return written;
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
  return note(fd, REAL(pwrite)(fd, bytes, length, offset));
}
ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t offset) {
  return note(fd, REAL(pwrite)(fd, bytes, length, offset));
}

static long setting(const char *name, long otherwise) {
  const char *value = getenv(name);
  return value == NULL ? otherwise : atol(value);
}

static int slowly(int fd, int (*sync)(int)) {
  long bytes = atomic_exchange(dirty_of(fd), 0);
  usleep((useconds_t)(setting("SLOW_SYNC_MICROSECONDS", 4000) + bytes / setting("SLOW_SYNC_RATE", 200)));
  return sync(fd);
}

int fsync(int fd) { return slowly(fd, REAL(fsync)); }
int fdatasync(int fd) { return slowly(fd, REAL(fdatasync)); }
