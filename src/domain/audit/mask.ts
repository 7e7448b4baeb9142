// Masks what an audit row stores of a call (spec 2.12): contents by size, environment by name, commands without
// passwords. Pure. Masking too much is acceptable, masking too little is not. Callers choose the text and all calls
// share one thread: text that is not stored is not read, and every pattern takes linear time, because every
// repetition before a literal is bounded.

const MASK = '***'

/** A stored command is cut to this length. */
const KEPT = 2000
/** How much more is read, to find the end of a password that crosses the cut. */
const MARGIN = 500
/** A user name of at least this length is masked like a token. */
const TOKEN_LENGTH = 20

const secretWord = '(?:pass(?:word|wd|phrase)?|pwd|secret|token|api[_-]?key|access[_-]?key|credentials?|auth)'

/** Options whose value is the next argument. */
const secretOption = new RegExp(`^--?[\\w-]{0,60}${secretWord}[\\w-]{0,60}$`, 'i')

// An unclosed quote extends to the end: the text may have been cut inside it.
const quoted = `"[^"]*(?:"|$)|'[^']*(?:'|$)`
const quotedOrWord = `(?:${quoted}|[^\\s"';|&]+)`

/** Options of common tools that take a password as their next argument, although their names do not say so. */
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
  // Berth's own tokens, wherever they appear.
  {
    find: /berth_(live|session|signin|provider|invite|oat|ort|code|consent)_\w[\w-]*/g,
    replace: `berth_$1_${MASK}`,
  },
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
  // --password x in a shell line. The word is matched first, because an option may begin at each of many dashes.
  {
    find: new RegExp(
      `((?=${secretWord})(?<=-[\\w-]{0,60})${secretWord}[\\w-]{0,60})\\s+${quotedOrWord}`,
      'gi',
    ),
    replace: `$1 ${MASK}`,
  },
  // mysql -pSECRET
  { find: /(^|\s)-p(?:"[^"]*(?:"|$)|'[^']*(?:'|$)|\S+)/g, replace: `$1-p${MASK}` },
  // redis-cli -a x in a shell line
  {
    find: new RegExp(
      `\\b(${[...quietOptions.keys()].join('|')})\\b([^|;&\\n]{0,200}?\\s-[apPw])\\s+${quotedOrWord}`,
      'g',
    ),
    replace: `$1$2 ${MASK}`,
  },
  // -u user:password, also in quotes. In a URL the URL's own password is masked instead.
  { find: /(^|\s)(-u|--user)(\s+|=)(["']?)[^\s:'"]{20,200}:/g, replace: `$1$2$3$4${MASK}:` },
  { find: /(^|\s)(-u|--user)(\s+|=)([^\s:'"]{0,200}):(?!\/\/)\S+/g, replace: `$1$2$3$4:${MASK}` },
  {
    find: /(^|\s)(-u|--user)(\s+|=)(["'][^\s:'"]{0,200}):(?!\/\/)[^"']*/g,
    replace: `$1$2$3$4:${MASK}`,
  },
  { find: /(^|\s)(-u[^\s:'"=]{1,200}):(?!\/\/)\S+/g, replace: `$1$2:${MASK}` },
  // aws configure set aws_secret_access_key x
  {
    find: new RegExp(`\\b(config(?:ure)?\\s+set\\s+[^\\s"';|&]{1,200})\\s+${quotedOrWord}`, 'gi'),
    replace: `$1 ${MASK}`,
  },
  // htpasswd -b file user x
  {
    find: new RegExp(
      `\\b(htpasswd\\b[^|;&\\n]{0,200}?\\s-\\w{0,10}b\\w{0,10})\\s(?:${quoted}|[^"'|;&\\n])+`,
      'g',
    ),
    replace: `$1 ${MASK}`,
  },
  // SQL: password 'x', identified by 'x'
  {
    find: new RegExp(`\\b(password|identified\\s+by)\\s+(?:${quoted})`, 'gi'),
    replace: `$1 '${MASK}'`,
  },
]

/** Returns the argument vector as it may be stored. */
export function maskCommand(argv: string[]): string[] {
  const isSecret = secretArguments()
  const kept: string[] = []
  let room = KEPT
  let before = ''
  for (const argument of argv) {
    if (room <= 0) break
    const read = argument.slice(0, room + MARGIN)
    const isCut = read.length < argument.length
    const masked = isSecret(read) ? MASK : maskArgument(read, before, isCut)
    kept.push(masked === MASK || (!isCut && masked.length <= room) ? masked : beginning(masked, room))
    // Counts the text that was read, not only the masked text, because masks are short.
    room -= masked === MASK ? MASK.length : Math.max(read.length, masked.length)
    before = read
  }
  return kept
}

/**
 * Returns a function that takes one argument after another, and says whether to mask all of it because of those
 * before it.
 */
function secretArguments(): (argument: string) => boolean {
  const quiet = new Set<string>()
  let [setting, verb, before] = ['', '', '']
  let tools: 'any' | 'htpasswd' | 'htpasswd -b' = 'any'
  return (argument) => {
    const isHidden =
      quiet.has(before) ||
      (secretOption.test(before) && !argument.startsWith('--')) ||
      (/^config(?:ure)?$/.test(setting) && verb === 'set') ||
      (tools === 'htpasswd -b' && !argument.startsWith('-'))
    const tool = argument.split('/').at(-1) ?? ''
    // The tool can follow others, as after sudo.
    for (const option of quietOptions.get(tool) ?? []) quiet.add(option)
    if (tool === 'htpasswd') tools = 'htpasswd'
    else if (tools === 'htpasswd' && /^-\w{0,10}b/.test(argument)) tools = 'htpasswd -b'
    ;[setting, verb, before] = [verb, before, argument]
    return isHidden
  }
}

function maskArgument(text: string, before: string, isCut: boolean): string {
  const masked = maskText(text, { isCut })
  const colon = before === '-u' || before === '--user' ? masked.indexOf(':') : -1
  // The password of a URL is already masked.
  return colon < 0 || masked.startsWith('://', colon) ? masked : `${masked.slice(0, colon)}:${MASK}`
}

/** Does not cut between the two halves of a surrogate pair, which would not be valid text. */
function beginning(text: string, length: number): string {
  return `${text.slice(0, length).toWellFormed()}…`
}

/**
 * Masks the passwords in a text that may contain a command. If the text was cut, its end may be the beginning of a
 * password.
 */
export function maskText(text: string, { isCut = false }: { isCut?: boolean } = {}): string {
  const withoutUrls = text.replace(/[^\s'"]+/g, (word, at: number) =>
    maskUserinfo(word, isCut && at + word.length === text.length),
  )
  return patterns.reduce((masked, { find, replace }) => masked.replace(find, replace), withoutUrls)
}

/**
 * postgres://user:password@host: a password can contain an @ or a slash, so the last @ ends it. The user can be a
 * token.
 */
function maskUserinfo(word: string, isCut: boolean): string {
  const begin = word.indexOf('://') + 3
  if (begin < 3) return word
  const isHttp = /https?$/i.test(word.slice(Math.max(0, begin - 8), begin - 3))
  const end = isCut ? word.length : word.lastIndexOf('@')
  const colon = word.indexOf(':', begin)
  if (colon >= 0 && colon < end) {
    const user = colon - begin < TOKEN_LENGTH ? word.slice(begin, colon) : MASK
    return `${word.slice(0, begin)}${user}:${MASK}${word.slice(end)}`
  }
  const path = word.slice(begin).search(/[/?#]/)
  const at = path < 0 ? end : word.lastIndexOf('@', begin + path)
  const isToken = isHttp || at - begin >= TOKEN_LENGTH
  return at < begin || !isToken ? word : `${word.slice(0, begin)}${MASK}${word.slice(at)}`
}

/** Returns the names of an environment in order, without values. */
export function namesOf(env: Record<string, unknown>): string[] {
  return Object.keys(env).sort()
}

/** Returns boot files by path and size. */
export function sizesOf(
  files: Record<string, string | { base64: string }>,
): { path: string; bytes: number }[] {
  return Object.entries(files).map(([path, value]) => ({
    path,
    bytes: typeof value === 'string' ? Buffer.byteLength(value) : Buffer.byteLength(value.base64, 'base64'),
  }))
}
