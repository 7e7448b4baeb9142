// What `npm run gen` writes: the files that are made from code, by their paths.

import { globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cliReference } from './cli-reference.ts'
import { openApiDocument } from '../src/api/openapi.ts'
import { routes } from '../src/api/routes.ts'
import { getRecipe, listRecipes } from '../src/domain/recipes/list.ts'
import { sdkReference } from './sdk-reference.ts'
import { withoutAsync } from './python-sync.ts'
import { pythonTypes } from './python-types.ts'
import { type OpenApiDocument, sdkContract } from './sdk-contract.ts'

export type WrittenFile =
  | 'openapi.json'
  | 'packages/sdk/src/contract.ts'
  | 'docs/cli-reference.md'
  | 'docs/sdk-reference.md'
  | 'packages/python/src/berth/types.py'
  | WithoutAsync
type WithoutAsync = `packages/python/src/berth/_sync/${string}.py`

const project = fileURLToPath(new URL('..', import.meta.url))

export function writtenFiles(): Record<WrittenFile, string> {
  const document = openApiDocument(routes)
  const recipes = listRecipes().recipes.map(({ name }) => getRecipe(name))
  const plain = JSON.parse(JSON.stringify(document)) as OpenApiDocument
  return {
    'openapi.json': `${JSON.stringify(document, null, 2)}\n`,
    'packages/sdk/src/contract.ts': sdkContract(plain, recipes),
    'docs/cli-reference.md': cliReference(),
    'docs/sdk-reference.md': sdkReference(),
    'packages/python/src/berth/types.py': pythonTypes(plain, recipes),
    ...pythonWithoutAsync(),
  }
}

function pythonWithoutAsync(): Record<WithoutAsync, string> {
  const paths = globSync('packages/python/src/berth/_async/*.py', { cwd: project })
  return Object.fromEntries(
    paths.map((path) => [
      `packages/python/src/berth/_sync/${basename(path)}`,
      withoutAsync(path, readFileSync(`${project}/${path}`, 'utf8')),
    ]),
  ) as Record<WithoutAsync, string>
}
