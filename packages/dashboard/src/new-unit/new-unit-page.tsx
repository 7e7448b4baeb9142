// A new unit of an image: a form, what it costs, and the same as code beside it. Recipes have forms of their own.

import type { Contract } from '@berth/sdk'
import { useMutation } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { putUnit } from '../api/apply-event.ts'
import { cache, keys } from '../api/cache.ts'
import { berthOf } from '../api/client.ts'
import { Made } from '../recipes/made.tsx'
import { useTeam } from '../shell/team-context.ts'
import { buttonClass } from '../ui/button.tsx'
import { PageHead } from '../ui/page-parts.tsx'
import { Beside } from './beside.tsx'
import { askedOf, emptyFields } from './spec.ts'
import { SpecForm } from './spec-form.tsx'
import styles from './new-unit.module.css'

export function NewUnitPage() {
  const team = useTeam()
  const navigate = useNavigate()
  const [fields, setFields] = useState(emptyFields)
  const { body, faults } = askedOf(fields)
  const make = useMutation({
    // The answer comes at once, so that a lost connection does not lose the secrets in it.
    mutationFn: async () =>
      await berthOf(team.id).request<Contract.RunResult>('POST', '/v1/units', {
        body: { ...body, wait: false },
      }),
    onSuccess: ({ units, outputs }) => {
      for (const unit of units) putUnit(team.id, unit)
      void cache.invalidateQueries({ queryKey: keys.stacks(team.id) })
      const [first] = units
      if (first && Object.keys(outputs).length === 0)
        void navigate({ to: '/t/$team/units/$id', params: { team: team.slug, id: first.id } })
    },
  })
  if (make.data && Object.keys(make.data.outputs).length > 0)
    return <Made title={make.data.units[0]?.name ?? 'New unit'} made={make.data} />
  return (
    <>
      <PageHead title="New unit">
        <Link to="/t/$team/recipes" params={{ team: team.slug }} className={buttonClass()}>
          From a recipe
        </Link>
      </PageHead>
      <div className={styles.halves}>
        <SpecForm
          fields={fields}
          faults={faults}
          error={make.error}
          isBusy={make.isPending}
          onChange={setFields}
          onMake={() => make.mutate()}
        />
        <Beside body={body} />
      </div>
    </>
  )
}
