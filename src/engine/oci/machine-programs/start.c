// Starts a command in a directory of its machine, where a shell would take longer than the command itself. It runs in the machine:
// a runtime could be led out of it by a path that a unit controls.
//
//   start in DIRECTORY COMMAND [ARGUMENT...]              becomes the command
//   start pid DIRECTORY COMMAND [ARGUMENT...]             the same, after a line with its pid among its output, once it is there
//   start told VARIABLE DIRECTORY COMMAND [ARGUMENT...]   runs the command, and tells on descriptor 3, which the command has not, in
//                                                         lines: `pid` with its own, at once, and `exit` with the command's code
//
// An empty directory: that in which it is. VARIABLE takes the place of the one of that name in the command's environment; it may be
// empty. A command that cannot be run ends as in a shell: 127 or 126, with the reason among its errors.
//
// Signals for the group reach this program too, and do nothing: only SIGKILL ends it.

#include "program.h"
#include "execute.h"

enum { OUTPUT = 1, TOLD = 3 };

static void tell(int fd, const char *what, long number) {
  char line[32], digits[20];
  long length = 0, left = 0;
  while (what[length]) {
    line[length] = what[length];
    length++;
  }
  do digits[left++] = (char)('0' + number % 10);
  while (number /= 10);
  while (left > 0) line[length++] = digits[--left];
  line[length++] = '\n';
  write_all(fd, line, length);
}

// Returns 0 if it cannot be the directory.
static int enter(const char *directory) {
  if (!directory[0] || call(CHDIR, (long)directory, 0, 0, 0, 0) == 0) return 1;
  complain(directory);
  complain(": cannot be the working directory\n");
  return 0;
}

__attribute__((noreturn)) static void run(char *variable, char **arguments, char **environment) {
  word all = ~0UL, before = 0;
  call(SIGPROCMASK, SIG_BLOCK, (long)&all, (long)&before, sizeof all, 0);
  long child = call(CLONE, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);
  if (child == 0) {
    if (variable[0]) set(environment, variable);
    close_fd(TOLD);
    call(SIGPROCMASK, SIG_SETMASK, (long)&before, 0, sizeof before, 0);
    become(arguments, environment);
  }
  if (child < 0) {
    complain(arguments[0]);
    complain(": cannot be executed: the unit may have too many processes\n");
    tell(TOLD, "exit ", NOT_EXECUTABLE);
    leave(NOT_EXECUTABLE);
  }
  int status = 0;
  long ended;
  do ended = call(WAIT4, child, (long)&status, 0, 0, 0);
  while (ended == -EINTR);
  if (ended != child) leave(NOT_EXECUTABLE);
  tell(TOLD, "exit ", exit_code(status));
  leave(exit_code(status));
}

__attribute__((noreturn, used)) static void begin(word *stack) {
  long count = (long)stack[0];
  char **arguments = (char **)(stack + 1);
  char **environment = arguments + count + 1;
  char use = count > 1 ? arguments[1][0] : 0;
  int is_told = use == 't';
  long first = is_told ? 3 : 2;
  if (count <= first + 1) leave(NOT_EXECUTABLE);
  long pid = call(GETPID, 0, 0, 0, 0, 0);
  if (is_told) tell(TOLD, "pid ", pid);
  if (!enter(arguments[first])) {
    if (is_told) tell(TOLD, "exit ", NOT_EXECUTABLE);
    leave(NOT_EXECUTABLE);
  }
  if (use == 'p') tell(OUTPUT, "", pid);
  if (is_told) run(arguments[2], arguments + first + 1, environment);
  become(arguments + first + 1, environment);
}
