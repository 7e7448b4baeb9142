// One recipe: a form of its parameters, and the same as code beside it.

import { type Contract, isBerthError } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { explain } from '../api/explain.ts'
import { recipeQuery } from '../api/team-queries.ts'
import { NotHere } from '../shell/not-here.tsx'
import { useTeam } from '../shell/team-context.ts'
import { Failure, PageHead, Skeleton } from '../ui/page-parts.tsx'
import { useCreate } from '../units/use-create.ts'
import { RecipeForm } from './recipe-form.tsx'

export function RecipePage() {
  const team = useTeam()
  const { name = '' } = useParams({ strict: false })
  const { data: recipe, error, refetch } = useQuery(recipeQuery(team.id, name))
  const open = recipe?.outputs.filter(({ secret }) => !secret).map((output) => output.name)
  // What waits for commands is used by its terminal.
  const isShell = recipe?.tags.includes('shell') ?? false
  const run = useCreate<Contract.CreateFromRecipe>({ open: new Set(open), tab: isShell ? '/terminal' : '' })
  if (isBerthError(error, 'not_found')) return <NotHere />
  if (recipe === undefined)
    return (
      <>
        <PageHead title="Recipe" />
        {error === null ? <Skeleton /> : <Failure {...explain(error)} onRetry={() => void refetch()} />}
      </>
    )
  return (
    <RecipeForm
      key={recipe.name}
      recipe={recipe}
      refused={run.error && explain(run.error)}
      isBusy={run.isPending || run.isSuccess}
      onRun={(body) => run.mutate(body)}
    />
  )
}
