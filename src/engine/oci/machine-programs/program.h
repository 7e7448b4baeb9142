// What the programs in this directory have in common. They are static and have no C library, so that each is a few kilobytes, runs
// in any image, and begins in a sandbox as quickly as can be. build.sh makes them.

typedef unsigned long word;

#if defined(__x86_64__)
enum {
  READ = 0, WRITE = 1, CLOSE = 3, SIGPROCMASK = 14, IOCTL = 16, GETPID = 39, SOCKET = 41, CONNECT = 42, RECVMSG = 47, CLONE = 56,
  EXECVE = 59, WAIT4 = 61, FCNTL = 72, CHDIR = 80, SETSID = 112, PRCTL = 157, SETHOSTNAME = 170, GETDENTS64 = 217, EXIT_GROUP = 231,
  INOTIFY_ADD_WATCH = 254, INOTIFY_RM_WATCH = 255, OPENAT = 257, PPOLL = 271, SIGNALFD4 = 289, DUP3 = 292, PIPE2 = 293, INOTIFY_INIT1 = 294
};
enum { O_DIRECTORY = 0200000, O_NOFOLLOW = 0400000 };
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
  DUP3 = 24, FCNTL = 25, INOTIFY_INIT1 = 26, INOTIFY_ADD_WATCH = 27, INOTIFY_RM_WATCH = 28, IOCTL = 29, CHDIR = 49, OPENAT = 56,
  CLOSE = 57, PIPE2 = 59, GETDENTS64 = 61, READ = 63, WRITE = 64, PPOLL = 73, SIGNALFD4 = 74, EXIT_GROUP = 94, SIGPROCMASK = 135,
  SETSID = 157, SETHOSTNAME = 161, PRCTL = 167, GETPID = 172, SOCKET = 198, CONNECT = 203, RECVMSG = 212, CLONE = 220,
  EXECVE = 221, WAIT4 = 260
};
enum { O_DIRECTORY = 040000, O_NOFOLLOW = 0100000 };
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

enum { ENOENT = 2, EINTR = 4, EAGAIN = 11, EACCES = 13, ENOTDIR = 20, ELOOP = 40 };
enum { O_CLOEXEC = 02000000, AT_FDCWD = -100, FIONREAD = 0x541b };
enum { SIGCHLD = 17, SIG_BLOCK = 0, SIG_SETMASK = 2, WNOHANG = 1, CLONE_VM = 0x100, CLONE_VFORK = 0x4000 };
enum { POLLIN = 1, POLLOUT = 4, POLLHUP = 0x10 };
enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127, BY_SIGNAL = 128 };

struct poll { int fd; short events; short answer; };
struct time { long seconds, nanoseconds; };

static inline void close_fd(int fd) { call(CLOSE, fd, 0, 0, 0, 0); }

__attribute__((noreturn)) static inline void leave(int code) {
  call(EXIT_GROUP, code, 0, 0, 0, 0);
  __builtin_unreachable();
}

static inline long length_of(const char *text) {
  long length = 0;
  while (text[length]) length++;
  return length;
}

// Returns 0 once it has no reader any more. Waits where a descriptor of the host is one that does not.
static inline int write_all(int fd, const char *data, long length) {
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

// To the errors of a command, which are read by people.
static inline void complain(const char *text) {
  long length = length_of(text);
  write_all(2, text, length < 200 ? length : 200);
}

// As a shell counts it.
static inline int exit_code(int status) {
  int signal = status & 0x7f;
  return signal ? BY_SIGNAL + signal : (status >> 8) & 0xff;
}
