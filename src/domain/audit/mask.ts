// What an audit row keeps of a call (spec 2.12): contents by size, environment by name, commands without
// the passwords in them. Pure. Masking too much is fine, too little is not. Callers choose
// the text, and one thread serves everybody: what is not kept is not read, and each pattern takes linear time, as
// every repetition before a literal is bounded.

const MASK = '***'

/** A recorded command is cut here. */
const KEPT = 2000
/** So much more is read, to see the end of a password that lies across the cut. */
const MARGIN = 500
/** What stands where a user's name does and is as long is taken for a token. */
const TOKEN_LENGTH = 20

const secretWord = '(?:pass(?:word|wd|phrase)?|pwd|secret|token|api[_-]?key|access[_-]?key|credentials?|auth)'

/** Options whose value is the next argument. */
const secretOption = new RegExp(`^--?[\\w-]{0,60}${secretWord}[\\w-]{0,60}$`, 'i')

// A quote that is not closed lasts to the end: the text may have been cut within it.
const quoted = `"[^"]*(?:"|$)|'[^']*(?:'|$)`
const quotedOrWord = `(?:${quoted}|[^\\s"';|&]+)`

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
  // --password x within a shell line. The word is looked for first: an option may begin at each of many dashes.
  {
    find: new RegExp(
      `((?=${secretWord})(?<=-[\\w-]{0,60})${secretWord}[\\w-]{0,60})\\s+${quotedOrWord}`,
      'gi',
    ),
    replace: `$1 ${MASK}`,
  },
  // mysql -pSECRET
  { find: /(^|\s)-p(?:"[^"]*(?:"|$)|'[^']*(?:'|$)|\S+)/g, replace: `$1-p${MASK}` },
  // redis-cli -a x within a shell line
  {
    find: new RegExp(
      `\\b(${[...quietOptions.keys()].join('|')})\\b([^|;&\\n]{0,200}?\\s-[apPw])\\s+${quotedOrWord}`,
      'g',
    ),
    replace: `$1$2 ${MASK}`,
  },
  // -u user:password, also within quotes. Of a URL there, its own password is what counts.
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

/** An argument vector as it may be kept. */
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
    // What was read counts as well as what is left of it: masks are short.
    room -= masked === MASK ? MASK.length : Math.max(read.length, masked.length)
    before = read
  }
  return kept
}

/** Tells of one argument after another whether all of it is to be hidden, by those before it. */
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
    // The tool can come after others, as after sudo.
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
  // Of a URL, its own password is masked already.
  return colon < 0 || masked.startsWith('://', colon) ? masked : `${masked.slice(0, colon)}:${MASK}`
}

/** Cut in the middle of a character that is written as two halves, it would be no text. */
function beginning(text: string, length: number): string {
  return `${text.slice(0, length).toWellFormed()}…`
}

/** A text that may hold a command, with the passwords in it masked. Of one that was cut, the end may be a password's beginning. */
export function maskText(text: string, { isCut = false }: { isCut?: boolean } = {}): string {
  const withoutUrls = text.replace(/[^\s'"]+/g, (word, at: number) =>
    maskUserinfo(word, isCut && at + word.length === text.length),
  )
  return patterns.reduce((masked, { find, replace }) => masked.replace(find, replace), withoutUrls)
}

/**
 * postgres://user:password@host; a password may itself hold an @ or a slash, so the last @ ends it. A user can be a
 * token, too.
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
