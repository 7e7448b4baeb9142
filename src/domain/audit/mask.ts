// What an audit row keeps of a call (spec 2.12): contents by size, environment by name, commands without
// the passwords in them. Pure. Masking too much is fine, too little is not. Callers choose
// the text, so it must be read in linear time: every repetition before a literal is bounded.

const MASK = '***'

/** Beyond this a recorded command is cut, after masking. */
const COMMAND_LENGTH = 2000

const secretWord = '(?:pass(?:word|wd|phrase)?|pwd|secret|token|api[_-]?key|access[_-]?key|credentials?|auth)'

/** Options whose value is the next argument. */
const secretOption = new RegExp(`^--?[\\w-]{0,60}${secretWord}[\\w-]{0,60}$`, 'i')

const quotedOrWord = `(?:"[^"]*"|'[^']*'|[^\\s"';|&]+)`

/** Options of common tools that take a password as their next argument, without saying so in their name. */
const quietOptions = new Map<string, readonly string[]>([
  ['redis-cli', ['-a']],
  ['sshpass', ['-p']],
  ['curl', ['-u', '--user']],
  ['wget', ['--user']],
  ['http', ['-a', '--auth']],
  ['https', ['-a', '--auth']],
  ['mongosh', ['-p']],
  ['mongo', ['-p']],
  ['mongodump', ['-p']],
  ['mongorestore', ['-p']],
  ['cqlsh', ['-p']],
  ['sqlcmd', ['-P']],
  ['ldapsearch', ['-w']],
  ['ldapmodify', ['-w']],
  ['docker', ['-p']],
])

const patterns: { find: RegExp; replace: string }[] = [
  // Our own tokens, wherever they stand.
  { find: /berth_(live|session|signin|provider|invite)_\w[\w-]*/g, replace: `berth_$1_${MASK}` },
  // Authorization: x y, Cookie: a=b; c=d
  {
    find: /\b(authorization|cookie)(["']?\s{0,3}[:=]\s{0,3}["']?)[^\r\n"']+/gi,
    replace: `$1$2${MASK}`,
  },
  // Bearer x
  { find: /\b(bearer|basic|token)\s+[\w.~+/=-]+/gi, replace: `$1 ${MASK}` },
  // PGPASSWORD=x, --password=x, api_key: x, "token":"x"
  {
    find: new RegExp(`(${secretWord}[\\w-]{0,60}["']?[=:])\\s?${quotedOrWord}`, 'gi'),
    replace: `$1${MASK}`,
  },
  // --password x within a shell line
  {
    find: new RegExp(`(--?[\\w-]{0,60}${secretWord}[\\w-]{0,60})\\s+${quotedOrWord}`, 'gi'),
    replace: `$1 ${MASK}`,
  },
  // mysql -pSECRET
  { find: /(^|\s)-p(?:"[^"]*"|'[^']*'|\S+)/g, replace: `$1-p${MASK}` },
  // redis-cli -a x within a shell line
  {
    find: new RegExp(
      `\\b(${[...quietOptions.keys()].join('|')})\\b([^|;&\\n]{0,200}?\\s-[apPw])\\s+${quotedOrWord}`,
      'g',
    ),
    replace: `$1$2 ${MASK}`,
  },
  // curl -u user:password
  { find: /(^|\s)(-u|--user)(\s+|=)([^\s:'"]{0,200}):\S+/g, replace: `$1$2$3$4:${MASK}` },
  // SQL: password 'x', identified by 'x'
  { find: /\b(password|identified\s+by)\s+(?:"[^"]*"|'[^']*')/gi, replace: `$1 '${MASK}'` },
]

/** An argument vector as it may be kept. */
export function maskCommand(argv: string[]): string[] {
  const quiet = new Set<string>()
  let room = COMMAND_LENGTH
  const kept: string[] = []
  for (const [index, argument] of argv.entries()) {
    const before = index === 0 ? '' : (argv[index - 1] ?? '')
    const hidden = quiet.has(before) || (secretOption.test(before) && !argument.startsWith('--'))
    const masked = hidden ? MASK : maskText(argument)
    // The tool can come after others, as after sudo.
    for (const option of quietOptions.get(argument.split('/').at(-1) ?? '') ?? []) quiet.add(option)
    kept.push(masked.length > room ? `${masked.slice(0, room)}…` : masked)
    room -= masked.length
    if (room <= 0) break
  }
  return kept
}

/** A text that may hold a command, with the passwords in it masked. */
export function maskText(text: string): string {
  const withoutUrls = text.replace(/[^\s'"]+/g, maskUserinfo)
  return patterns.reduce((masked, { find, replace }) => masked.replace(find, replace), withoutUrls)
}

/** postgres://user:password@host; a password may itself hold an @ or a slash, so the last @ ends it. */
function maskUserinfo(word: string): string {
  const start = word.indexOf('://')
  const end = word.lastIndexOf('@')
  const colon = start < 0 ? -1 : word.indexOf(':', start + 3)
  return colon < 0 || colon > end ? word : `${word.slice(0, colon)}:${MASK}${word.slice(end)}`
}

/** Names of an environment, in order; values, secret or plain, are left out. */
export function namesOf(env: Record<string, unknown>): string[] {
  return Object.keys(env).sort()
}

/** Boot files by path and size. */
export function sizesOf(
  files: Record<string, string | { base64: string }>,
): { path: string; bytes: number }[] {
  return Object.entries(files).map(([path, value]) => ({
    path,
    bytes: typeof value === 'string' ? Buffer.byteLength(value) : Buffer.byteLength(value.base64, 'base64'),
  }))
}
