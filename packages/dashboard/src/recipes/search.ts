// The filters of the gallery, kept in the URL.

import type { Contract } from '@berth/sdk'

export type RecipesSearch = { tag?: string; q?: string }

export function readRecipesSearch({ tag, q }: Record<string, unknown>): RecipesSearch {
  return {
    ...(typeof tag === 'string' && tag !== '' && { tag }),
    ...((typeof q === 'string' || typeof q === 'number') && q !== '' && { q: String(q) }),
  }
}

/** Every word of `q` must be in what a card says or in the tags. */
export function searchRecipes(
  recipes: readonly Contract.RecipeList['recipes'][number][],
  { tag, q = '' }: RecipesSearch,
) {
  const words = q.toLowerCase().split(/\s+/)
  return recipes.filter(({ name, title, description, tags }) => {
    const said = [name, title, description, ...tags].join(' ').toLowerCase()
    return (tag === undefined || tags.includes(tag)) && words.every((word) => said.includes(word))
  })
}
