// Finds the packages that a text tells its reader to fetch from a public registry: by pip, npm, npx and their like.

/** These take any number of packages. */
const installs =
  /\b(?:pip3?|pipx|uv(?: pip| tool)?|poetry|pdm) (?:install|add|inject)\b|\b(?:npm|pnpm|yarn|bun)(?: global)? (?:install|i|add|update|up)\b/
/** These run one, and give it the other words. */
const runs = /\b(?:npx|pnpx|bunx|uvx)\b|\b(?:pnpm|yarn|bun) (?:dlx|x)\b|\bnpm exec\b|\b(?:pipx|uv tool) run\b/
const command = new RegExp(`(?<run>${runs.source})|(?<install>${installs.source})`, 'g')

/** The same in the configuration of a program: `"command": "npx", "args": ["-y", "mcp-remote", …]`. */
const configured = /"(?:npx|pnpx|bunx|uvx)",\s*"args":\s*\[([^\]]*)\]/g

/** The next word of a command line, quoted or not. Where it fails, the command ends. */
const nextWord = /(?:[ \t]|\\\n)+(?:'([^'\n]*)'|"([^"\n]*)"|([^\s'"`#;&|()]+))/y

/** Options whose value is a word of its own, and no package. */
const withValue = new Set([
  '-r',
  '--requirement',
  '-w',
  '--workspace',
  '--prefix',
  '--python',
  '--registry',
  '--dir',
])

/** A package of ours is served by a Berth, a file of the checkout, or what the reader has put into a variable. */
const isFile = (named: string) => isFileOfOurs(named.replace(/^[\w.-]+(?:\[[\w,-]+\])? @ /, ''))
const isFileOfOurs = (word: string) =>
  /^(?:[./~$]|[A-Z_-]+\/|(?:http:\/\/127\.0\.0\.1:7070|\$?\{(?:base_)?url\})\/packages\/)/.test(word)

/** Without version and extras: `mcp-remote@1.2`, `berth[terminal]>=1`. */
const nameOf = (word: string) => /^(@[^/]+\/)?[^@[=<>~!;]*/.exec(word)?.[0] ?? ''

/** Answers the names of packages, as often as they are named. */
export function packagesIn(text: string): string[] {
  const ran = [...text.matchAll(configured)].map(([, args = '']) => args.match(/[^\s",]+/g) ?? [])
  const typed = [...text.matchAll(command)].map((found) => ({
    words: wordsFrom(text, found.index + found[0].length),
    isRun: found.groups?.['run'] !== undefined,
  }))
  return [...typed, ...ran.map((words) => ({ words, isRun: true }))].flatMap(({ words, isRun }) => {
    const names = withoutOptions(words)
    return (isRun ? names.slice(0, 1) : names).filter((word) => !isFile(word)).map(nameOf)
  })
}

/** Answers the workspaces that commands of npm name: `npm pack -w berth-cli`. */
export function workspacesIn(text: string): string[] {
  return [...text.matchAll(/\bnpm [a-z][^\n`]*? (?:-w|--workspace)[ =]([\w@/.-]+)/g)].map(
    ([, name = '']) => name,
  )
}

function wordsFrom(text: string, start: number): string[] {
  const words: string[] = []
  nextWord.lastIndex = start
  for (let found = nextWord.exec(text); found; found = nextWord.exec(text))
    words.push(found[1] ?? found[2] ?? found[3] ?? '')
  return words
}

const withoutOptions = (words: string[]) =>
  words.filter((word, i) => !word.startsWith('-') && !withValue.has(words[i - 1] ?? ''))
