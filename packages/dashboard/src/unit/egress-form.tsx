// What the unit may reach: set while it runs, in force with the answer.

import type { Contract } from '@berth/sdk'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { putEgress } from '../api/apply-event.ts'
import { berthOf } from '../api/client.ts'
import { explain } from '../api/explain.ts'
import { EgressFields } from '../egress/egress-fields.tsx'
import { entryFault, type Egress, egressOf, egressText, egressTextsOf } from '../egress/egress-text.ts'
import { useHere } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { tell } from '../ui/toast.tsx'
import { NOTHING_TO_SAVE } from '../ui/sentences.ts'
import { Refused } from './refused.tsx'
import styles from './unit.module.css'

export function EgressForm({ unit }: { unit: Contract.Unit }) {
  const { team } = useHere()
  const [texts, setTexts] = useState(egressTextsOf(unit.egress))
  const {
    mutate,
    error,
    isPending,
    variables: sent,
  } = useMutation({
    mutationFn: async (body: Egress) =>
      await berthOf(team.id).request<Contract.EgressSet>(
        'PUT',
        `/v1/units/${encodeURIComponent(unit.id)}/egress`,
        { body },
      ),
    onSuccess: (answer) => {
      const { previous: _, appliedAt: __, ...egress } = answer
      putEgress(team.id, unit.id, egress)
      tell(`${unit.name} reaches ${egressText(egress)}`)
    },
  })
  // Of the call that was refused: the lines may have been edited since.
  const faultOf = (list: 'allow' | 'deny') =>
    error && sent ? entryFault(explain(error).fields, list, sent) : undefined
  const before = JSON.stringify(egressOf(egressTextsOf(unit.egress)))
  const why = JSON.stringify(egressOf(texts)) === before ? NOTHING_TO_SAVE : null
  return (
    <form
      className={styles.fields}
      aria-label="Reaches"
      onSubmit={(event) => {
        event.preventDefault()
        if (why === null && !isPending) mutate(egressOf(texts))
      }}
    >
      <EgressFields
        label="Reaches"
        texts={texts}
        fault={faultOf('allow')}
        denyFault={faultOf('deny')}
        onChange={setTexts}
      />
      {faultOf('allow') === undefined && faultOf('deny') === undefined && <Refused error={error} />}
      <div>
        <Button type="submit" why={why} busy={isPending}>
          Set rules
        </Button>
      </div>
    </form>
  )
}
