// Becomes a command: finds it by PATH, and complains as a shell does. Behind program.h.

static char path[4096];

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
  long name_length = length_of(name);
  for (const char *at = name; *at; at++)
    if (*at == '/') return call(EXECVE, (long)name, (long)arguments, (long)environment, 0, 0);
  long found = -ENOENT;
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

__attribute__((noreturn)) static void become(char **arguments, char **environment) {
  long error = execute(arguments, environment);
  int is_missing = error == -ENOENT || error == -ENOTDIR;
  complain(arguments[0]);
  complain(is_missing ? ": command not found\n" : ": cannot be executed\n");
  leave(is_missing ? NOT_FOUND : NOT_EXECUTABLE);
}

// `variable` takes the place of the one of that name.
static void set(char **environment, char *variable) {
  for (; *environment; environment++) {
    long at = 0;
    while (variable[at] != '=' && variable[at] && (*environment)[at] == variable[at]) at++;
    if (variable[at] == '=' && (*environment)[at] == '=') *environment = variable;
  }
}
