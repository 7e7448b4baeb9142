// What the unit may reach: set while it runs, in force with the answer.

import type { Contract } from '@berth/sdk'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { putUnit } from '../api/apply-event.ts'
import { berthOf } from '../api/client.ts'
import { EgressFields } from '../egress/egress-fields.tsx'
import { egressOf, egressText, egressTextsOf } from '../egress/egress-text.ts'
import { useHere } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { tell } from '../ui/toast.tsx'
import { Refused } from './refused.tsx'
import styles from './unit.module.css'

export function EgressForm({ unit }: { unit: Contract.Unit }) {
  const { team } = useHere()
  const [texts, setTexts] = useState(egressTextsOf(unit.egress))
  const { mutate, error, isPending } = useMutation({
    mutationFn: async () =>
      await berthOf(team.id).request<Contract.EgressSet>(
        'PUT',
        `/v1/units/${encodeURIComponent(unit.id)}/egress`,
        { body: egressOf(texts) },
      ),
    onSuccess: ({ mode, allow, siblings, version }) => {
      putUnit(team.id, { ...unit, egress: { mode, allow, siblings, version } })
      tell(`${unit.name} reaches ${egressText({ mode, allow, siblings })}`)
    },
  })
  const before = JSON.stringify(egressOf(egressTextsOf(unit.egress)))
  const why = JSON.stringify(egressOf(texts)) === before ? 'Nothing is changed.' : null
  return (
    <form
      className={styles.fields}
      aria-label="Reaches"
      onSubmit={(event) => {
        event.preventDefault()
        if (why === null && !isPending) mutate()
      }}
    >
      <EgressFields label="Reaches" texts={texts} fault={undefined} onChange={setTexts} />
      <Refused error={error} />
      <div>
        <Button type="submit" why={why} busy={isPending}>
          Set rules
        </Button>
      </div>
    </form>
  )
}
