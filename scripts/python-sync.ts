// The half of the Python library without async, from the half with it: the same lines without what waits.

/** In this order. What is left with a word of async in it throws. */
const replacements: [RegExp, string][] = [
  [
    /^"""The library for programs with async\..*"""$/gm,
    '"""The library for programs that wait where they stand."""',
  ],
  [/^ {4}def __await__[^]*?\n\n/gm, ''],
  [/\bGenerator, /g, ''],
  [/\basync (?=def|for|with)/g, ''],
  [/\bawait /g, ''],
  [/\bAwaitable\[([^\]]*\])\]/g, '$1'],
  [/\bAwaitable, /g, ''],
  [/\bAsyncClient\b/g, 'Client'],
  [/\bAsync(?=[A-Z])/g, ''],
  [/\basync_(?=sleep|in_thread|chunks)/g, ''],
  [/\b__a(iter|enter|exit)__/g, '__$1__'],
  [/\ba(close|read)\b(?=[(`])/g, '$1'],
  [/\baiter_bytes\b/g, 'iter_bytes'],
]

const note = '# Written by `npm run gen` from berth/_async: do not edit.\n'

/** Throws where a word is left that waits. */
export function withoutAsync(path: string, text: string): string {
  const made = replacements.reduce((all, [pattern, by]) => all.replaceAll(pattern, by), text)
  const left = /.*\b(?:async\w*|await\w*|anyio|Async\w+)\b.*/.exec(made)
  if (left) throw new Error(`${path}: say in scripts/python-sync.ts what becomes of "${left[0].trim()}"`)
  return note + made
}
