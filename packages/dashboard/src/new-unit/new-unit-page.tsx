// A new unit of an image: a form, what it costs, and the same as code beside it. Recipes have forms of their own.

import type { Contract } from '@berth/sdk'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { useTeam } from '../shell/team-context.ts'
import { buttonClass } from '../ui/button.tsx'
import { PageHead } from '../ui/page-parts.tsx'
import { useCreate } from '../units/use-create.ts'
import { Beside } from './beside.tsx'
import { askedOf, emptyFields } from './spec.ts'
import { SpecForm } from './spec-form.tsx'
import styles from './new-unit.module.css'

export function NewUnitPage() {
  const team = useTeam()
  const [fields, setFields] = useState(emptyFields)
  const { body, faults } = askedOf(fields)
  const make = useCreate<Contract.CreateFromSpec>()
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
          isBusy={make.isPending || make.isSuccess}
          onChange={setFields}
          onMake={() => make.mutate(body)}
        />
        <Beside body={body} />
      </div>
    </>
  )
}
