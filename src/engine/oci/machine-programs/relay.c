// Stands between commands and the reader of their output.
//
//   relay run MARKER COMMAND [ARGUMENT...]    in a sandbox of gVisor: runs a command, whose output goes through pipes of
//                                             the sandbox to this program's own descriptors 1 and 2, and ends as it does
//   relay lead MARKER COMMAND [ARGUMENT...]   the same, where the command leads a session of its own
//   relay drain [NAME]                        on the host: reads descriptors 0 and 1 to their ends, and keeps nothing
//   relay probe                               writes a megabyte at once; ends with 0 if all of it was taken, else with 3
//
// Why `run`: a write(2) of more than a host's pipe has room for returns short in gVisor, and a program that does not
// write the rest loses it. A pipe of the sandbox takes all of it, and this program writes the rest.
//
// When the command ends, what it printed is passed on first. If processes that it left behind may print more, another
// process carries that on: to the host as long as there is a reader, and to nowhere after that, so that they can go on.
//
// MARKER takes the place of the variable of that name in the command's environment. Berth finds the processes of a
// command by it, and this one is none of them.

#include "program.h"
#include "execute.h"

enum { CUT = 3 };
enum { OUT, ERR, ENDS };

static char buffer[65536];
static char megabyte[1 << 20];
static struct poll sources[3] = {{-1, POLLIN, 0}, {-1, POLLIN, 0}, {-1, POLLIN, 0}};
static int targets[2] = {-1, -1};

// Carries on at most a buffer of what one of the two has. At its end, that is passed on.
static long carry_some(int which, long most) {
  if (most > (long)sizeof buffer) most = sizeof buffer;
  long length = call(READ, sources[which].fd, (long)buffer, most, 0, 0);
  if (length == -EINTR || length == -EAGAIN) return 0;
  int goes_on = length > 0;
  if (targets[which] >= 0 && !(goes_on && write_all(targets[which], buffer, length))) {
    close_fd(targets[which]);
    targets[which] = -1;
  }
  if (goes_on) return length;
  close_fd(sources[which].fd);
  sources[which].fd = -1;
  return most;
}

// Until both have ended, or something else is to be read.
static void carry(void) {
  while (sources[OUT].fd >= 0 || sources[ERR].fd >= 0 || sources[ENDS].fd >= 0) {
    if (call(PPOLL, (long)sources, 3, 0, 0, 0) < 0) continue;
    for (int which = OUT; which <= ERR; which++)
      if (sources[which].fd >= 0 && sources[which].answer) carry_some(which, sizeof buffer);
    if (sources[ENDS].fd >= 0 && sources[ENDS].answer) return;
  }
}

// What is in a pipe when the command has ended is all that it wrote. Where nobody else can write, that is to its end.
static void carry_rest(int which) {
  int length = 0;
  call(IOCTL, sources[which].fd, FIONREAD, (long)&length, 0, 0);
  for (long rest = length; rest > 0 && sources[which].fd >= 0;) rest -= carry_some(which, rest);
  for (long at_once[2] = {0, 0}; sources[which].fd >= 0;) {
    if (call(PPOLL, (long)&sources[which], 1, (long)at_once, 0, 0) <= 0 || !(sources[which].answer & POLLHUP)) return;
    carry_some(which, sizeof buffer);
  }
}

__attribute__((noreturn)) static void run(char **arguments, char **environment, int leads) {
  int out[2], err[2];
  word all = ~0UL, before = 0, child_signal = 1UL << (SIGCHLD - 1);
  int has_pipes = call(PIPE2, (long)out, O_CLOEXEC, 0, 0, 0) == 0 && call(PIPE2, (long)err, O_CLOEXEC, 0, 0, 0) == 0;
  // It ends with what it carries, or by SIGKILL: a broken pipe is an error to it.
  call(SIGPROCMASK, SIG_BLOCK, (long)&all, (long)&before, sizeof all, 0);
  sources[ENDS].fd = call(SIGNALFD4, -1, (long)&child_signal, sizeof child_signal, O_CLOEXEC, 0);
  long child = has_pipes && sources[ENDS].fd >= 0 ? call(CLONE, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) : -1;
  if (child <= 0) {
    // The child; or there can be none, and the command is run as it would be without this.
    if (child == 0) {
      if (leads) call(SETSID, 0, 0, 0, 0, 0);
      call(DUP3, out[1], 1, 0, 0, 0);
      call(DUP3, err[1], 2, 0, 0, 0);
    }
    call(SIGPROCMASK, SIG_SETMASK, (long)&before, 0, sizeof before, 0);
    become(arguments, environment);
  }
  // Neither the command's input nor what comes behind its errors is this one's to hold.
  close_fd(0);
  for (int fd = 3; fd < out[0]; fd++) close_fd(fd);
  close_fd(out[1]);
  close_fd(err[1]);
  sources[OUT].fd = out[0];
  sources[ERR].fd = err[0];
  targets[OUT] = 1;
  targets[ERR] = 2;
  int status = 0;
  for (long ended = 0; ended != child;) {
    carry();
    call(READ, sources[ENDS].fd, (long)path, sizeof path, 0, 0);
    ended = call(WAIT4, child, (long)&status, WNOHANG, 0, 0);
    if (ended < 0 && ended != -EINTR) break;
  }
  close_fd(sources[ENDS].fd);
  sources[ENDS].fd = -1;
  carry_rest(OUT);
  carry_rest(ERR);
  if ((sources[OUT].fd >= 0 || sources[ERR].fd >= 0) && call(CLONE, SIGCHLD, 0, 0, 0, 0) == 0) {
    call(SETSID, 0, 0, 0, 0, 0);
    carry();
    leave(0);
  }
  leave(exit_code(status));
}

__attribute__((noreturn, used)) static void begin(word *stack) {
  long count = (long)stack[0];
  char **arguments = (char **)(stack + 1);
  char **environment = arguments + count + 1;
  char use = count > 1 ? arguments[1][0] : 0;
  if (use == 'd') {
    sources[OUT].fd = 0;
    sources[ERR].fd = 1;
    carry();
    leave(0);
  }
  if (use == 'p') leave(call(WRITE, 1, (long)megabyte, sizeof megabyte, 0, 0) == sizeof megabyte ? 0 : CUT);
  if (count < 4) leave(NOT_EXECUTABLE);
  set(environment, arguments[2]);
  run(arguments + 3, environment, use == 'l');
}
