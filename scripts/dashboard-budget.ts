// How large the dashboard may be, and how large a build of it is.

import { readFile, stat } from 'node:fs/promises'

const KB = 1000

/** Gzipped but for fonts, which are compressed already. */
const budget = { firstScript: 160 * KB, firstStyle: 12 * KB, laterScript: 90 * KB, fonts: 50 * KB } as const

type Chunk = { file: string; isEntry?: boolean; imports?: string[]; css?: string[]; assets?: string[] }

export type Sizes = {
  /** Bytes of what the first page needs, and of each file that comes later. */
  firstScript: number
  firstStyle: number
  fonts: number
  later: { file: string; bytes: number }[]
}

export async function readManifest(directory: string): Promise<Sizes> {
  const manifest = JSON.parse(await readFile(`${directory}/manifest.json`, 'utf8')) as Record<string, Chunk>
  const sizeOf = async (file: string) => (await stat(`${directory}/${file}`)).size
  const first = new Set<string>()
  const walk = (name: string) => {
    if (first.has(name)) return
    first.add(name)
    for (const next of manifest[name]?.imports ?? []) walk(next)
  }
  for (const [name, { isEntry }] of Object.entries(manifest)) if (isEntry) walk(name)
  const files = Object.entries(manifest).map(([name, chunk]) => ({ ...chunk, name }))
  const ofFirst = files.filter(({ name }) => first.has(name))
  const sum = async (paths: string[]) => {
    const sizes = await Promise.all([...new Set(paths)].map(sizeOf))
    return sizes.reduce((total, size) => total + size, 0)
  }
  const isScript = ({ file }: Chunk) => file.endsWith('.js')
  const later = files.filter((chunk) => isScript(chunk) && !first.has(chunk.name))
  return {
    firstScript: await sum(ofFirst.filter(isScript).map(({ file }) => `${file}.gz`)),
    firstStyle: await sum(ofFirst.flatMap(({ css = [] }) => css.map((file) => `${file}.gz`))),
    fonts: await sum(files.filter(({ file }) => file.endsWith('.woff2')).map(({ file }) => file)),
    later: await Promise.all(later.map(async ({ file }) => ({ file, bytes: await sizeOf(`${file}.gz`) }))),
  }
}

/** The sheets that a page needs which is loaded when it is opened. */
export async function stylesOf(directory: string, source: string): Promise<string[]> {
  const manifest = JSON.parse(await readFile(`${directory}/manifest.json`, 'utf8')) as Record<string, Chunk>
  const [seen, waiting] = [new Set<string>(), [source]]
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (seen.has(name)) continue
    seen.add(name)
    waiting.push(...(manifest[name]?.imports ?? []))
  }
  return [...new Set([...seen].flatMap((name) => manifest[name]?.css ?? []))]
}

/** One line for each bound that is not kept. */
export function dashboardFaults(sizes: Sizes): string[] {
  const faults: string[] = []
  const check = (what: string, bytes: number, most: number) => {
    if (bytes > most) faults.push(`${what}: ${bytes} bytes, and ${most} is the most`)
  }
  check('the script of the first page', sizes.firstScript, budget.firstScript)
  check('the style of the first page', sizes.firstStyle, budget.firstStyle)
  check('the fonts', sizes.fonts, budget.fonts)
  for (const { file, bytes } of sizes.later) check(file, bytes, budget.laterScript)
  return faults
}
