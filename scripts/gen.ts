// Writes the files that are made from code. Commit what it changes; tests fail when it was not run.

import { writeFile } from 'node:fs/promises'
import { writtenFiles } from './written-files.ts'

for (const [name, text] of Object.entries(writtenFiles())) {
  const path = new URL(`../${name}`, import.meta.url)
  await writeFile(path, text)
  console.log(`wrote ${path.pathname}`)
}
