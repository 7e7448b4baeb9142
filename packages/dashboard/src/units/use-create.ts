// A create from a form: what was made is shown where it lives, on the page of the unit, or of the stack where there are several.

import type { Contract } from '@berth/sdk'
import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { eventsSoFar, putUnit } from '../api/apply-event.ts'
import { cache, keys } from '../api/cache.ts'
import { berthOf } from '../api/client.ts'
import { useTeam } from '../shell/team-context.ts'
import { stackOf } from './select.ts'
import { keepTold, secretsIn } from './told-once.ts'

/** `open`: names of outputs that contain no secret. `tab`: of the unit's page, which opens; its overview by default. */
export function useCreate<Body extends Contract.CreateFromSpec | Contract.CreateFromRecipe>({
  open,
  tab = '',
}: {
  open?: ReadonlySet<string>
  tab?: '' | '/terminal'
} = {}) {
  const team = useTeam()
  const navigate = useNavigate()
  return useMutation({
    // The answer comes at once, so that a lost connection does not lose the passwords in it.
    mutationFn: async (body: Body) =>
      await berthOf(team.id).request<Contract.RunResult>('POST', '/v1/units', {
        body: { ...body, wait: false },
      }),
    onMutate: eventsSoFar,
    onSuccess: async (made, _, asOf) => {
      for (const unit of made.units) putUnit(team.id, unit, asOf)
      void cache.invalidateQueries({ queryKey: keys.stacks(team.id) })
      const [unit, ...others] = made.units
      if (unit === undefined) return
      keepTold(others.length === 0 ? unit.id : unit.stackId, secretsIn(made, open))
      const { slug } = team
      if (others.length === 0)
        await navigate({ to: `/t/$team/units/$id${tab}`, params: { team: slug, id: unit.id } })
      else await navigate({ to: '/t/$team/stacks/$name', params: { team: slug, name: stackOf(unit) } })
    },
  })
}
