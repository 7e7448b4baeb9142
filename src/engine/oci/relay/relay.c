// A static program of three kilobytes, without a C library, that stands between commands and the reader of their output.
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

typedef unsigned long word;

#if defined(__x86_64__)
enum {
  READ = 0, WRITE = 1, CLOSE = 3, SIGPROCMASK = 14, IOCTL = 16, CLONE = 56, EXECVE = 59, WAIT4 = 61, SETSID = 112,
  EXIT_GROUP = 231, PPOLL = 271, SIGNALFD4 = 289, DUP3 = 292, PIPE2 = 293
};
static inline long call(long n, long a, long b, long c, long d, long e) {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                   : "rcx", "r11", "memory");
  return result;
}
__asm__(".globl _start\n_start:\n  mov %rsp, %rdi\n  and $-16, %rsp\n  call begin\n");
#elif defined(__aarch64__)
enum {
  DUP3 = 24, IOCTL = 29, CLOSE = 57, PIPE2 = 59, READ = 63, WRITE = 64, PPOLL = 73, SIGNALFD4 = 74, EXIT_GROUP = 94,
  SIGPROCMASK = 135, SETSID = 157, CLONE = 220, EXECVE = 221, WAIT4 = 260
};
static inline long call(long n, long a, long b, long c, long d, long e) {
  register long x8 __asm__("x8") = n;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
  return x0;
}
__asm__(".globl _start\n_start:\n  mov x0, sp\n  bl begin\n");
#endif

enum { ENOENT = 2, EINTR = 4, EAGAIN = 11, EACCES = 13, ENOTDIR = 20 };
enum { O_CLOEXEC = 02000000, SIGCHLD = 17, SIG_BLOCK = 0, SIG_SETMASK = 2, WNOHANG = 1, FIONREAD = 0x541b };
enum { CLONE_VM = 0x100, CLONE_VFORK = 0x4000 };
enum { POLLIN = 1, POLLOUT = 4, POLLHUP = 0x10 };
enum { CUT = 3, NOT_EXECUTABLE = 126, NOT_FOUND = 127, BY_SIGNAL = 128 };
enum { OUT, ERR, ENDS };

struct poll { int fd; short events; short answer; };

static char buffer[65536];
static char path[4096];
static char megabyte[1 << 20];
static struct poll sources[3] = {{-1, POLLIN, 0}, {-1, POLLIN, 0}, {-1, POLLIN, 0}};
static int targets[2] = {-1, -1};

static void close_fd(int fd) { call(CLOSE, fd, 0, 0, 0, 0); }

__attribute__((noreturn)) static void leave(int code) {
  call(EXIT_GROUP, code, 0, 0, 0, 0);
  __builtin_unreachable();
}

// Returns 0 once it has no reader any more. Waits where a descriptor of the host is one that does not.
static int write_all(int fd, const char *data, long length) {
  while (length > 0) {
    long written = call(WRITE, fd, (long)data, length, 0, 0);
    if (written == -EAGAIN) {
      struct poll one = {fd, POLLOUT, 0};
      call(PPOLL, (long)&one, 1, 0, 0, 0);
    } else if (written > 0) {
      data += written;
      length -= written;
    } else if (written != -EINTR) return 0;
  }
  return 1;
}

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

static long length_of(const char *text) {
  long length = 0;
  while (text[length]) length++;
  return length;
}

static const char *path_in(char **environment) {
  for (; *environment; environment++) {
    const char *entry = *environment;
    if (entry[0] == 'P' && entry[1] == 'A' && entry[2] == 'T' && entry[3] == 'H' && entry[4] == '=') return entry + 5;
  }
  return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
}

// As execvpe(3), but that a file without a format is none for a shell. Returns why it failed.
static long execute(char **arguments, char **environment) {
  const char *name = arguments[0];
  for (const char *at = name; *at; at++)
    if (*at == '/') return call(EXECVE, (long)name, (long)arguments, (long)environment, 0, 0);
  long found = -ENOENT;
  long name_length = length_of(name);
  for (const char *directory = path_in(environment); name_length > 0;) {
    long length = 0;
    while (directory[length] && directory[length] != ':') length++;
    if (length + name_length + 2 <= (long)sizeof path) {
      char *end = path;
      for (long i = 0; i < length; i++) *end++ = directory[i];
      if (length > 0) *end++ = '/';
      for (long i = 0; i <= name_length; i++) *end++ = name[i];
      long error = call(EXECVE, (long)path, (long)arguments, (long)environment, 0, 0);
      if (error != -ENOENT && error != -ENOTDIR) found = error;
      if (error != -ENOENT && error != -ENOTDIR && error != -EACCES) break;
    }
    if (!directory[length]) break;
    directory += length + 1;
  }
  return found;
}

static void say(const char *text) {
  long length = length_of(text);
  write_all(2, text, length < 200 ? length : 200);
}

__attribute__((noreturn)) static void become(char **arguments, char **environment) {
  long error = execute(arguments, environment);
  int is_missing = error == -ENOENT || error == -ENOTDIR;
  say(arguments[0]);
  say(is_missing ? ": command not found\n" : ": cannot be executed\n");
  leave(is_missing ? NOT_FOUND : NOT_EXECUTABLE);
}

static void set(char **environment, char *variable) {
  for (; *environment; environment++) {
    long at = 0;
    while (variable[at] != '=' && variable[at] && (*environment)[at] == variable[at]) at++;
    if (variable[at] == '=' && (*environment)[at] == '=') *environment = variable;
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
  int signal = status & 0x7f;
  leave(signal ? BY_SIGNAL + signal : (status >> 8) & 0xff);
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
