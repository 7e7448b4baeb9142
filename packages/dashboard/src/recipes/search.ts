// What is chosen in the gallery, as the address has it.

export type RecipesSearch = { tag?: string }

export function readRecipesSearch({ tag }: Record<string, unknown>): RecipesSearch {
  return typeof tag === 'string' && tag !== '' ? { tag } : {}
}
