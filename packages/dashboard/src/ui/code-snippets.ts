// The same call by other means: what curl and shells need. Values are quoted, so that a snippet can be pasted unchanged.

export const shellQuote = (text: string) =>
  /^[\w./:=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`

/** A create with curl. */
export const curlCreate = (url: string, body: unknown) =>
  `curl ${url}/v1/units \\\n  -H "authorization: Bearer $BERTH_API_KEY" \\\n  -H "content-type: application/json" \\\n  -d ${shellQuote(JSON.stringify(body, null, 2))}`

/** A TypeScript program with a client, and a line that uses it. */
export const typescriptProgram = (line: string) =>
  `import { Berth } from '@berth/sdk'\n\nconst berth = new Berth()\n${line}`

/** A shell command over several lines. */
export const shellLines = (words: readonly string[]) => words.join(' \\\n  ')

/** A call of a tool, as a program sends it to `/mcp`. */
export const toolCall = (name: string, args: unknown) =>
  JSON.stringify({ method: 'tools/call', params: { name, arguments: args } }, null, 2)

/** JSON, but for its three words, is Python. */
function pythonValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(pythonValue).join(', ')}]`
  if (typeof value === 'object' && value !== null)
    return `{${Object.entries(value)
      .map(([name, each]) => `${JSON.stringify(name)}: ${pythonValue(each)}`)
      .join(', ')}}`
  if (value === null) return 'None'
  return typeof value === 'boolean' ? (value ? 'True' : 'False') : JSON.stringify(value)
}

/** A Python program with a client, and a call of it whose answer gets a name. `named`: the arguments after the first. */
export function pythonProgram(name: string, call: string, first: string, named: object): string {
  const given = Object.entries(named).map(([key, value]) => `    ${key}=${pythonValue(value)},\n`)
  return `from berth import Berth\n\nberth = Berth()\n${name} = berth.${call}(\n    ${pythonValue(first)},\n${given.join('')})`
}
