// The first process of a machine made ahead: it reads from its descriptor 0 what to become, and becomes it. No shell can do that
// exactly: the next program must get its arguments, its environment and an empty input as it would from the runtime.
//
// The message comes through a FIFO whose only writer is the engine. It is laid out as it will be used: its length, and where in it are
// the path, the arguments and the environment; then both arrays, each with a null at its end; then the texts. Places are counted from
// its beginning.
// - If the engine ends before it has sent a message, so does the program.
// - The descriptor of the FIFO is closed by execve, and by nothing else: that it has no reader any more shows that the next program
//   runs.
// - If execve fails, the program reads once more, and waits to be killed.

#include "program.h"

enum { F_DUPFD_CLOEXEC = 1030, O_RDWR = 2 };
enum { LENGTH, PATH, ARGUMENTS, ENVIRONMENT, HEAD };

static word memory[(1 << 20) / sizeof(word)];

static char **array_at(word place) {
  word *array = memory + place / sizeof(word);
  for (word *at = array; *at; at++) *at += (word)memory;
  return (char **)array;
}

__attribute__((noreturn, used)) static void begin(word *stack) {
  (void)stack;
  word length = 0;
  while (length < HEAD * sizeof(word) || length < memory[LENGTH]) {
    long read = call(READ, 0, (long)memory + (long)length, (long)(sizeof memory - length), 0, 0);
    if (read <= 0) leave(0);
    length += (word)read;
  }
  long orders = call(FCNTL, 0, F_DUPFD_CLOEXEC, 3, 0, 0);
  int nothing = (int)call(OPENAT, AT_FDCWD, (long)"/dev/null", O_RDWR, 0, 0);
  call(DUP3, nothing, 0, 0, 0, 0);
  close_fd(nothing);
  char **arguments = array_at(memory[ARGUMENTS]);
  char **environment = array_at(memory[ENVIRONMENT]);
  call(EXECVE, (long)memory + (long)memory[PATH], (long)arguments, (long)environment, 0, 0);
  call(READ, orders, (long)memory, sizeof(word), 0, 0);
  for (;;) call(PPOLL, 0, 0, 0, 0, 0);
}
