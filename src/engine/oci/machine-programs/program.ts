// The programs of this directory that build.sh makes, one for each processor.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** The program for this processor. */
export async function builtProgram(name: string): Promise<Buffer> {
  return await readFile(join(import.meta.dirname, `${name}-${process.arch}`))
}
