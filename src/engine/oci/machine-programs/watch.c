// Tells what changes in a directory of a machine. It runs in the machine.
//
//   watch PATH           the entries of the directory
//   watch -r PATH        and all that is below it
//
// It writes records: a letter for what happened, `d` for a directory or `f`, the path from the directory, and a NUL.
//
//   b  it watches from now on          c  made, or moved to here       r  removed
//   n  moved away from here            w  written                      m  its mode, owner or times changed
//   o  some changes were lost: `f` too many at once, `d` a directory that cannot be watched as well
//
// Nothing is lost silently. A directory is watched before it is read, and what is found in a new one is told as made, perhaps
// twice. After a loss all of it is read again for new directories. It ends when the directory itself is removed or moved away.
//
// A reader that is slow may leave so much in the kernel's queue and no more: that of gVisor has no bound of its own.

#include "program.h"

enum { DT_UNKNOWN = 0, DT_DIR = 4 };
enum {
  MODIFY = 0x2, ATTRIB = 0x4, MOVED_FROM = 0x40, MOVED_TO = 0x80, CREATE = 0x100, DELETE = 0x200, DELETE_SELF = 0x400,
  MOVE_SELF = 0x800, Q_OVERFLOW = 0x4000, IGNORED = 0x8000, ONLYDIR = 0x01000000, DONT_FOLLOW = 0x02000000,
  ISDIR = 0x40000000
};
enum { ENTRIES = MODIFY | ATTRIB | MOVED_FROM | MOVED_TO | CREATE | DELETE | ONLYDIR };
enum { TOP = ENTRIES | DELETE_SELF | MOVE_SELF };

// Directories ever watched, the bytes of their names, and how far down they go.
enum { WATCHES = 1 << 17, NAMES = 1 << 23, DEEPEST = 200, PATH = 4096 };
// Bytes that may wait in the kernel for a slow reader, and those that a pipe with room takes without a wait.
enum { WAITING = 1 << 19, AT_ONCE = 4096 };
enum { UNKNOWN, WATCHED, AWAY };
enum { FIRST, NEW, AGAIN };

struct event { int wd; unsigned mask, cookie, length; char name[]; };
struct entry { word inode; long offset; unsigned short length; unsigned char type; char name[]; };

static int notify, root, recursive, is_lost, is_behind;
static const char *top;
static int parents[WATCHES], names[WATCHES];
static char states[WATCHES], arena[NAMES], path[PATH], output[1 << 16], dropped[1 << 16];
static char events[1 << 16] __attribute__((aligned(8)));
static long arena_used, output_used;

static int same(const char *one, const char *other) {
  for (; *one && *one == *other; one++) other++;
  return *one == *other;
}

static int waiting(void) {
  int bytes = 0;
  call(IOCTL, notify, FIONREAD, (long)&bytes, 0, 0);
  return bytes;
}

static void wait_for_room(void) {
  for (;;) {
    struct poll one = {1, POLLOUT, 0};
    struct time second = {1, 0};
    if (call(PPOLL, (long)&one, 1, (long)&second, 0, 0) != 0) return;
    if (waiting() <= WAITING) continue;
    is_behind = 1;
    while (waiting() > 0 && call(READ, notify, (long)dropped, sizeof dropped, 0, 0) > 0);
  }
}

static void flush(void) {
  for (long at = 0; at < output_used;) {
    wait_for_room();
    long rest = output_used - at;
    long written = call(WRITE, 1, (long)output + at, rest < AT_ONCE ? rest : AT_ONCE, 0, 0);
    if (written > 0) at += written;
    else if (written != -EINTR && written != -EAGAIN) leave(0);
  }
  output_used = 0;
}

// Writes the path of `name` in a watched directory, from the top or from the root of the machine. Returns its length, or -1
// if it is too long, or if the directory is not below the top any more.
static long path_to(int wd, const char *name, int whole, char *to) {
  int chain[DEEPEST];
  int depth = 0;
  for (; wd != root; wd = parents[wd]) {
    if (depth == DEEPEST || wd < 0 || states[wd] != WATCHED) return -1;
    chain[depth++] = wd;
  }
  long length = 0;
  const char *part = whole ? top : 0;
  for (;;) {
    if (part) {
      long more = length_of(part);
      if (length + more + 2 > PATH) return -1;
      if (length > 0 && to[length - 1] != '/') to[length++] = '/';
      for (long i = 0; i < more; i++) to[length++] = part[i];
    }
    if (depth > 0) part = arena + names[chain[--depth]];
    else if (name) {
      part = name;
      name = 0;
    } else break;
  }
  to[length] = 0;
  return length;
}

static void say(char what, int is_directory, int wd, const char *name) {
  char told[PATH];
  long length = name && *name ? path_to(wd, name, 0, told) : 0;
  if (length < 0) {
    is_lost = 1;
    return;
  }
  if (output_used + length + 3 > (long)sizeof output) flush();
  output[output_used++] = what;
  output[output_used++] = is_directory ? 'd' : 'f';
  for (long i = 0; i < length; i++) output[output_used++] = told[i];
  output[output_used++] = 0;
}

__attribute__((noreturn)) static void end(char what) {
  say(what, 1, root, "");
  flush();
  leave(0);
}

// Returns the watch of a directory, or -1 if there is none. `is_new`: it was not watched before.
static int watch(int parent, const char *name, int *is_new) {
  if (path_to(parent, name, 1, path) < 0) {
    is_lost = 1;
    return -1;
  }
  long wd = call(INOTIFY_ADD_WATCH, notify, (long)path, ENTRIES | DONT_FOLLOW, 0, 0);
  if (wd == -ENOENT || wd == -ENOTDIR || wd == -ELOOP) return -1;
  long length = length_of(name) + 1;
  if (wd < 0 || wd >= WATCHES || arena_used + length > NAMES) {
    if (wd >= 0) call(INOTIFY_RM_WATCH, notify, wd, 0, 0, 0);
    is_lost = 1;
    return -1;
  }
  *is_new = states[wd] == UNKNOWN;
  states[wd] = WATCHED;
  parents[wd] = parent;
  names[wd] = (int)arena_used;
  for (long i = 0; i < length; i++) arena[arena_used++] = name[i];
  return (int)wd;
}

// What the kernel itself shows there changes without end.
static int is_of_kernel(int wd, const char *name) {
  return wd == root && same(top, "/") && (same(name, "proc") || same(name, "sys") || same(name, "dev"));
}

// FIRST tells nothing, NEW all that is there, and AGAIN only directories that were not watched before, with what is in them.
static void walk(int wd, int how, int depth) {
  char entries[2048] __attribute__((aligned(8)));
  if (depth == DEEPEST || path_to(wd, 0, 1, path) < 0) {
    is_lost = 1;
    return;
  }
  long fd = call(OPENAT, AT_FDCWD, (long)path, O_DIRECTORY | O_CLOEXEC | (wd == root ? 0 : O_NOFOLLOW), 0, 0);
  if (fd < 0) {
    if (fd != -ENOENT && fd != -ENOTDIR && fd != -ELOOP) is_lost = 1;
    return;
  }
  for (long read; (read = call(GETDENTS64, fd, (long)entries, sizeof entries, 0, 0)) > 0;) {
    for (long at = 0; at < read;) {
      struct entry *entry = (struct entry *)(entries + at);
      at += entry->length;
      if (same(entry->name, ".") || same(entry->name, "..") || is_of_kernel(wd, entry->name)) continue;
      int is_new = 0;
      int is_maybe = entry->type == DT_DIR || entry->type == DT_UNKNOWN;
      int child = recursive && is_maybe ? watch(wd, entry->name, &is_new) : -1;
      if (how == NEW || (how == AGAIN && is_new)) say('c', entry->type == DT_DIR || child >= 0, wd, entry->name);
      if (child >= 0 && is_new) walk(child, how == FIRST ? FIRST : NEW, depth + 1);
      else if (child >= 0 && how == AGAIN) walk(child, AGAIN, depth + 1);
    }
  }
  call(CLOSE, fd, 0, 0, 0, 0);
}

// Both that was moved to here and that is new: what is in it may have come before it was watched.
static void enter(int wd, const char *name) {
  if (!recursive || is_of_kernel(wd, name)) return;
  int is_new = 0;
  int child = watch(wd, name, &is_new);
  if (child >= 0 && is_new) walk(child, NEW, 1);
}

static int child_of(int wd, const char *name) {
  for (int each = 0; each < WATCHES; each++)
    if (states[each] == WATCHED && each != root && parents[each] == wd && same(arena + names[each], name)) return each;
  return -1;
}

// A directory that was moved away, until it is known whether it was moved to another place below the top.
static int moving = -1;
static unsigned moving_as;

static void settle(void) {
  if (moving >= 0 && states[moving] == WATCHED) states[moving] = AWAY;
  moving = -1;
}

static void hear(struct event *event) {
  int wd = event->wd, is_directory = (event->mask & ISDIR) != 0;
  const char *name = event->length ? event->name : "";
  if (event->mask & Q_OVERFLOW) {
    is_behind = 1;
    return;
  }
  if (wd < 0 || wd >= WATCHES || states[wd] == UNKNOWN) return;
  if (event->mask & IGNORED) {
    if (wd == root) {
      flush();
      leave(0);
    }
    states[wd] = UNKNOWN;
    return;
  }
  if (wd == root && event->mask & (DELETE_SELF | MOVE_SELF)) end(event->mask & DELETE_SELF ? 'r' : 'n');
  // A change of the directory itself is told by the one above it.
  if (!*name) return;
  char unused[PATH];
  if (path_to(wd, name, 0, unused) < 0) return;
  if (event->mask & CREATE) {
    say('c', is_directory, wd, name);
    if (is_directory) enter(wd, name);
  }
  if (event->mask & MOVED_FROM) {
    say('n', is_directory, wd, name);
    settle();
    if (is_directory && recursive) {
      moving = child_of(wd, name);
      moving_as = event->cookie;
    }
  }
  if (event->mask & MOVED_TO) {
    say('c', is_directory, wd, name);
    if (moving >= 0 && event->cookie == moving_as) moving = -1;
    if (is_directory) enter(wd, name);
  }
  if (event->mask & DELETE) say('r', is_directory, wd, name);
  if (event->mask & MODIFY) say('w', is_directory, wd, name);
  if (event->mask & ATTRIB) say('m', is_directory, wd, name);
}

static void tell_lost(void) {
  while (is_behind) {
    is_behind = 0;
    say('o', 0, root, "");
    // Also that the directory itself is gone may be among what was lost.
    if (call(INOTIFY_ADD_WATCH, notify, (long)top, TOP, 0, 0) != root) end('r');
    if (recursive) walk(root, AGAIN, 0);
  }
  if (!is_lost) return;
  is_lost = 0;
  say('o', 1, root, "");
}

__attribute__((noreturn, used)) static void begin(word *stack) {
  long count = (long)stack[0];
  char **arguments = (char **)(stack + 1);
  recursive = count > 2 && same(arguments[1], "-r");
  if (count < 2) leave(1);
  top = arguments[recursive ? 2 : 1];
  notify = (int)call(INOTIFY_INIT1, O_CLOEXEC, 0, 0, 0, 0);
  root = notify < 0 ? notify
                    : (int)call(INOTIFY_ADD_WATCH, notify, (long)top, TOP, 0, 0);
  if (root < 0 || root >= WATCHES) leave(1);
  states[root] = WATCHED;
  parents[root] = -1;
  if (recursive) walk(root, FIRST, 0);
  say('b', 1, root, "");
  tell_lost();
  flush();
  for (;;) {
    long read = call(READ, notify, (long)events, sizeof events, 0, 0);
    if (read == -EINTR) continue;
    if (read <= 0) leave(1);
    for (long at = 0; at < read;) {
      struct event *event = (struct event *)(events + at);
      at += (long)sizeof *event + event->length;
      hear(event);
    }
    settle();
    tell_lost();
    flush();
  }
}
