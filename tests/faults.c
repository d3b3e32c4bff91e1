// Fails, or ends the process, at the nth call that changes a file below FAULTS_AT.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static struct { long count, at, kill; } *control;
static const char *below;

__attribute__((constructor)) static void begin(void) {
  below = getenv("FAULTS_AT");
  int file = open(getenv("FAULTS_CONTROL"), O_RDWR);
  control = mmap(0, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
}

// whether the disk is full from this call on; a process that is to die dies here
static int refused(const char *path) {
  char whole[2 * PATH_MAX + 2], here[PATH_MAX + 1];
  snprintf(whole, sizeof whole, "%s/%s", path[0] == '/' || !getcwd(here, PATH_MAX) ? "" : here, path);
  if (strncmp(whole + (path[0] == '/'), below, strlen(below)) != 0) return 0;
  long now = __atomic_add_fetch(&control->count, 1, __ATOMIC_SEQ_CST);
  if (!control->at || now < control->at) return 0;
  if (control->kill) kill(getpid(), SIGKILL);
  errno = ENOSPC;
  return 1;
}

static int refused_at(int number) {
  char link[64], path[PATH_MAX + 1];
  snprintf(link, sizeof link, "/proc/self/fd/%d", number);
  ssize_t length = readlink(link, path, PATH_MAX);
  path[length < 0 ? 0 : length] = 0;
  return refused(path);
}

#define TRUE_ONE(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int number, const void *data, size_t size) {
  // half of the bytes reach the disk before the process ends
  if (control->kill && control->at && control->count + 1 == control->at) TRUE_ONE(write)(number, data, size / 2);
  return refused_at(number) ? -1 : TRUE_ONE(write)(number, data, size);
}
ssize_t pwrite(int number, const void *data, size_t size, off_t at) {
  return refused_at(number) ? -1 : TRUE_ONE(pwrite)(number, data, size, at);
}
ssize_t pwrite64(int number, const void *data, size_t size, off64_t at) {
  return refused_at(number) ? -1 : TRUE_ONE(pwrite64)(number, data, size, at);
}
ssize_t writev(int number, const struct iovec *data, int count) {
  return refused_at(number) ? -1 : TRUE_ONE(writev)(number, data, count);
}
int mkdir(const char *path, mode_t mode) { return refused(path) ? -1 : TRUE_ONE(mkdir)(path, mode); }
int rename(const char *from, const char *to) { return refused(to) ? -1 : TRUE_ONE(rename)(from, to); }
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
  return refused(to) ? -1 : TRUE_ONE(renameat2)(a, from, b, to, flags);
}
