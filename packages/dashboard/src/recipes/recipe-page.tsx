// One recipe: a form of its parameters, the same as code beside it, and then its outputs, which are shown once.

import { type Contract, isBerthError } from '@berth/sdk'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { berthOf } from '../api/client.ts'
import { cache, keys } from '../api/cache.ts'
import { explain } from '../api/explain.ts'
import { recipeQuery } from '../api/team-queries.ts'
import { NotHere } from '../shell/not-here.tsx'
import { useTeam } from '../shell/team-context.ts'
import { Failure, Skeleton } from '../ui/page-parts.tsx'
import { Made } from './made.tsx'
import { RecipeForm } from './recipe-form.tsx'

export function RecipePage() {
  const team = useTeam()
  const { name = '' } = useParams({ strict: false })
  const { data: recipe, error, refetch } = useQuery(recipeQuery(team.id, name))
  const run = useMutation({
    // The answer comes at once, so that a lost connection does not lose the passwords in it.
    mutationFn: async (body: Contract.CreateFromRecipe) =>
      await berthOf(team.id).request<Contract.RunResult>('POST', '/v1/units', {
        body: { ...body, wait: false },
      }),
    onSuccess: () => void cache.invalidateQueries({ queryKey: keys.stacks(team.id) }),
  })
  if (isBerthError(error, 'not_found')) return <NotHere />
  if (error !== null) return <Failure {...explain(error)} onRetry={() => void refetch()} />
  if (recipe === undefined) return <Skeleton />
  if (run.data) return <Made title={recipe.title} made={run.data} />
  return (
    <RecipeForm
      key={recipe.name}
      recipe={recipe}
      refused={run.error && explain(run.error)}
      isBusy={run.isPending}
      onRun={(body) => run.mutate(body)}
    />
  )
}
