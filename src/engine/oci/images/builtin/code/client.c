// Hands requests to the interpreter of a unit, one after another, and its answers back. A sandbox starts it in half the time that `nc`
// takes, whose libraries it has to load; and the engine keeps it for the next request. The interpreter begins with the unit: it is
// waited for.
//
//   client [SOCKET]     from descriptor 0 requests, each a line; to descriptor 1 their answers, which end with a zero byte

#include "program.h"

enum { AF_UNIX = 1, SOCK_STREAM = 1, SOCK_CLOEXEC = 02000000 };
// 45 s.
enum { LOOKS = 900, LOOK_MS = 50 };

struct address { unsigned short family; char path[108]; };

static char buffer[65536];
static struct address address = {AF_UNIX, {0}};

static int connected(const char *path) {
  for (int at = 0; at < 107 && path[at]; at++) address.path[at] = path[at];
  int fd = (int)call(SOCKET, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, 0, 0);
  for (int look = 0; fd >= 0 && look < LOOKS; look++) {
    if (call(CONNECT, fd, (long)&address, sizeof address, 0, 0) == 0) return fd;
    struct time pause = {0, LOOK_MS * 1000000L};
    call(PPOLL, 0, 0, (long)&pause, 0, 0);
  }
  leave(1);
}

// Returns 0 at the end.
static long read_some(int fd) {
  for (;;) {
    long length = call(READ, fd, (long)buffer, sizeof buffer, 0, 0);
    if (length == -EAGAIN) {
      struct poll one = {fd, POLLIN, 0};
      call(PPOLL, (long)&one, 1, 0, 0, 0);
    } else if (length != -EINTR) return length > 0 ? length : 0;
  }
}

static void answer(const char *socket) {
  long length = read_some(0);
  if (length == 0) leave(0);
  int fd = connected(socket);
  // Nothing follows the line before its answer has ended.
  while (length > 0) {
    if (!write_all(fd, buffer, length)) leave(1);
    length = buffer[length - 1] == '\n' ? 0 : read_some(0);
  }
  do {
    length = read_some(fd);
    // An answer that is cut off is none.
    if (length == 0 || !write_all(1, buffer, length)) leave(1);
  } while (buffer[length - 1] != 0);
  close_fd(fd);
}

__attribute__((noreturn, used)) static void begin(word *stack) {
  const char *socket = stack[0] > 1 ? (const char *)stack[2] : "/run/berth-code/socket";
  for (;;) answer(socket);
}
