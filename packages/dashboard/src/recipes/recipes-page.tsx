// The gallery of recipes.

import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { explain } from '../api/explain.ts'
import { recipesQuery } from '../api/team-queries.ts'
import { useTeam } from '../shell/team-context.ts'
import { inputClass } from '../ui/field.tsx'
import { Empty, Failure, PageHead, Skeleton } from '../ui/page-parts.tsx'
import { Mark } from '../ui/mark.tsx'
import { type RecipesSearch, readRecipesSearch, searchRecipes } from './search.ts'
import styles from './recipes.module.css'

export function RecipesPage() {
  const team = useTeam()
  const search = readRecipesSearch(useSearch({ strict: false }))
  const go = useNavigate()
  const { data, error, refetch } = useQuery(recipesQuery(team.id))
  const all = data?.recipes ?? []
  const tags = [...new Set(all.flatMap((recipe) => recipe.tags))].toSorted()
  const shown = searchRecipes(all, search)
  const change = (next: RecipesSearch) =>
    void go({
      to: '/t/$team/recipes',
      params: { team: team.slug },
      search: readRecipesSearch(next),
      replace: true,
    })
  return (
    <>
      <PageHead title="Recipes" note="Databases, runtimes and coding agents, ready to run." />
      {error !== null ? (
        <Failure {...explain(error)} onRetry={() => void refetch()} />
      ) : data === undefined ? (
        <Skeleton rows={6} />
      ) : (
        <>
          <div className={styles.search}>
            <input
              type="search"
              className={inputClass}
              aria-label="Search recipes"
              placeholder="Search recipes"
              value={search.q ?? ''}
              onChange={({ target }) => change({ ...search, q: target.value })}
            />
          </div>
          <div className={styles.tags} role="group" aria-label="Tags">
            {tags.map((each) => (
              <button
                key={each}
                type="button"
                className={styles.tag}
                aria-pressed={each === search.tag}
                onClick={() => change({ ...search, tag: each === search.tag ? '' : each })}
              >
                {each}
              </button>
            ))}
          </div>
          {shown.length === 0 ? (
            <Empty title="No recipe matches" />
          ) : (
            <ul className={styles.cards}>
              {shown.map((recipe) => (
                <li key={recipe.name} className={styles.card}>
                  <Mark name={recipe.name} />
                  <h2>
                    <Link
                      to="/t/$team/recipes/$name"
                      params={{ team: team.slug, name: recipe.name }}
                      className={styles.cardLink}
                    >
                      {recipe.title}
                    </Link>
                  </h2>
                  <p className={styles.note}>{recipe.description}</p>
                </li>
              ))}
            </ul>
          )}
        </>
      )}
    </>
  )
}
