// What `npm run gen` writes: the files that are made from code, by their paths.

import { openApiDocument } from '../src/api/openapi.ts'
import { routes } from '../src/api/routes.ts'
import { getRecipe, listRecipes } from '../src/domain/recipes/list.ts'
import { type OpenApiDocument, sdkContract } from './sdk-contract.ts'

export function writtenFiles(): Record<'openapi.json' | 'packages/sdk/src/contract.ts', string> {
  const document = openApiDocument(routes)
  const recipes = listRecipes().recipes.map(({ name }) => getRecipe(name))
  const plain = JSON.parse(JSON.stringify(document)) as OpenApiDocument
  return {
    'openapi.json': `${JSON.stringify(document, null, 2)}\n`,
    'packages/sdk/src/contract.ts': sdkContract(plain, recipes),
  }
}
