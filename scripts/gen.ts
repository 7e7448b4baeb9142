// Writes the files that are made from code: openapi.json. Commit what it changes; a test fails when it
// was not run.

import { writeFile } from 'node:fs/promises'
import { openApiDocument } from '../src/api/openapi.ts'
import { routes } from '../src/api/routes.ts'

const path = new URL('../openapi.json', import.meta.url)
await writeFile(path, `${JSON.stringify(openApiDocument(routes), null, 2)}\n`)
console.log(`wrote ${path.pathname}`)
