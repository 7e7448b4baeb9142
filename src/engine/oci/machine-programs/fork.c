// For each byte that it reads from the socket that is its fourth descriptor, it has one more process beside it, which executes what
// its own arguments say. No shell can do that: the new process is a child not of this program but of its parent (CLONE_PARENT), as if
// the runtime had started it, so that the engine sees it end.
//
//   fork COMMAND [ARGUMENT...]
//
// Beside the byte come five descriptors: of the list of the tasks in the group that the process is to be in, and what its first four
// descriptors are to be. It writes itself into the list, which saves the kernel the wait that another process's move costs, leads a
// session, and answers with a byte, before it executes anything. If there is no process, the program answers.
//
// Nothing of the unit can look into the program, or read its descriptors: it is not "dumpable", and its unit has no power over such
// processes but to end them. What it executes is dumpable as ever. It ends with its engine.

#include "program.h"

enum { PR_SET_DUMPABLE = 4, CLONE_PARENT = 0x8000 };
enum { ASKED = 3, GIVEN = 4, DESCRIPTORS = 1 + GIVEN };

struct piece { void *at; word length; };
struct control { word length; int level, type, descriptors[DESCRIPTORS]; } __attribute__((aligned(8)));
struct message {
  void *name;
  unsigned name_length;
  struct piece *pieces;
  word piece_count;
  void *control;
  word control_length;
  int flags;
};

static char request;
static struct control control;

__attribute__((noreturn)) static void execute_in_group(int *descriptors, char **arguments, char **environment) {
  call(WRITE, descriptors[0], (long)&request, 1, 0, 0);
  call(SETSID, 0, 0, 0, 0, 0);
  call(WRITE, ASKED, (long)&request, 1, 0, 0);
  for (int fd = 0; fd < GIVEN; fd++) call(DUP3, descriptors[1 + fd], fd, 0, 0, 0);
  for (int at = 0; at < DESCRIPTORS; at++) close_fd(descriptors[at]);
  call(EXECVE, (long)arguments[0], (long)arguments, (long)environment, 0, 0);
  leave(1);
}

__attribute__((noreturn, used)) static void begin(word *stack) {
  long count = (long)stack[0];
  char **arguments = (char **)(stack + 1);
  char **environment = arguments + count + 1;
  struct piece piece = {&request, 1};
  call(PRCTL, PR_SET_DUMPABLE, 0, 0, 0, 0);
  for (;;) {
    struct message message = {0, 0, &piece, 1, &control, sizeof control, 0};
    if (call(RECVMSG, ASKED, (long)&message, 0, 0, 0) != 1 || message.control_length != sizeof control) leave(1);
    long child = call(CLONE, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) execute_in_group(control.descriptors, arguments + 1, environment);
    if (child < 0) call(WRITE, ASKED, (long)&request, 1, 0, 0);
    for (int at = 0; at < DESCRIPTORS; at++) close_fd(control.descriptors[at]);
  }
}
