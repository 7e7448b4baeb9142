// What `npm run gen` writes: the files that are made from code, by their paths.

import { cliReference } from './cli-reference.ts'
import { openApiDocument } from '../src/api/openapi.ts'
import { routes } from '../src/api/routes.ts'
import { getRecipe, listRecipes } from '../src/domain/recipes/list.ts'
import { sdkReference } from './sdk-reference.ts'
import { type OpenApiDocument, sdkContract } from './sdk-contract.ts'

export type WrittenFile =
  | 'openapi.json'
  | 'packages/sdk/src/contract.ts'
  | 'docs/cli-reference.md'
  | 'docs/sdk-reference.md'

export function writtenFiles(): Record<WrittenFile, string> {
  const document = openApiDocument(routes)
  const recipes = listRecipes().recipes.map(({ name }) => getRecipe(name))
  const plain = JSON.parse(JSON.stringify(document)) as OpenApiDocument
  return {
    'openapi.json': `${JSON.stringify(document, null, 2)}\n`,
    'packages/sdk/src/contract.ts': sdkContract(plain, recipes),
    'docs/cli-reference.md': cliReference(),
    'docs/sdk-reference.md': sdkReference(),
  }
}
