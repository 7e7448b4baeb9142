// Files of the machine that the program runs on, for programs that run by Node, Deno or Bun.

type Found = { isFile(): boolean; isDirectory(): boolean; mode: number }
type Files = {
  readFile: (path: string) => Promise<Uint8Array>
  readdir: (path: string) => Promise<string[]>
  realpath: (path: string) => Promise<string>
  lstat: (path: string) => Promise<Found>
}
type Paths = { resolve: (...parts: string[]) => string; sep: string }

/** In variables: bundlers for browsers must not look for them. */
const [files, paths]: string[] = ['node:fs/promises', 'node:path']

export type LocalFile = { name: string; bytes: Uint8Array; mode: number }

/**
 * A file, under the name '.', or the files of a folder by their path from it. Links in a folder are left out: they may lead
 * anywhere.
 *
 * @throws RangeError for what is not below the working directory of the program.
 */
export async function readLocal(src: string, isFolder: boolean): Promise<LocalFile[]> {
  const { readFile, readdir, realpath, lstat } = (await import(files as string)) as Files
  const { resolve, sep } = (await import(paths as string)) as Paths
  const [top, root] = await Promise.all([realpath(resolve('.')), realpath(resolve(src))])
  if (root !== top && !root.startsWith(`${top}${sep}`))
    throw new RangeError(`${src} is not below the working directory.`)
  const found: LocalFile[] = []
  const add = async (name: string): Promise<void> => {
    const path = resolve(root, name)
    const facts = await lstat(path)
    if (facts.isFile()) found.push({ name, bytes: await readFile(path), mode: facts.mode & 0o777 })
    else if (facts.isDirectory())
      for (const child of await readdir(path)) await add(name === '.' ? child : `${name}/${child}`)
  }
  if ((await lstat(root)).isDirectory() !== isFolder)
    throw new RangeError(`${src} is ${isFolder ? 'no folder' : 'no file'}.`)
  await add('.')
  return found
}
