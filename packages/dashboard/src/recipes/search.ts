// The filters of the gallery, kept in the URL.

export type RecipesSearch = { tag?: string }

export function readRecipesSearch({ tag }: Record<string, unknown>): RecipesSearch {
  return typeof tag === 'string' && tag !== '' ? { tag } : {}
}
