// How long the unit may idle before it sleeps, by itself or with its whole stack.

import type { Contract } from '@berth/sdk'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { eventsSoFar, putUnit } from '../api/apply-event.ts'
import { berthOf } from '../api/client.ts'
import { useHere } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { Field, TextInput } from '../ui/field.tsx'
import { tell } from '../ui/toast.tsx'
import { NOTHING_TO_SAVE } from '../ui/sentences.ts'
import { Refused } from './refused.tsx'
import styles from './unit.module.css'

const window = /^(?:never|[1-9][0-9]{0,4}[mhd])$/

export function SleepForm({ unit }: { unit: Contract.Unit }) {
  const { team, me } = useHere()
  const [text, setText] = useState(unit.sleep)
  const [isOfStack, setOfStack] = useState(false)
  const { mutate, error, isPending } = useMutation({
    mutationFn: async () =>
      await berthOf(team.id).request<Contract.SleepResult>(
        'POST',
        `/v1/units/${encodeURIComponent(unit.id)}/sleep`,
        { body: { sleep: text.trim(), stack: isOfStack } },
      ),
    onMutate: eventsSoFar,
    onSuccess: ({ units }, _, asOf) => {
      for (const each of units) putUnit(team.id, each, asOf)
      tell(units.length === 1 ? `${unit.name} sleeps after ${text.trim()}` : `Set for ${units.length} units`)
    },
  })
  const isRight = window.test(text.trim())
  const why = !isRight
    ? 'Enter a valid time.'
    : text.trim() === unit.sleep && !isOfStack
      ? NOTHING_TO_SAVE
      : null
  return (
    <form
      className={styles.fields}
      aria-label="Sleep"
      onSubmit={(event) => {
        event.preventDefault()
        if (why === null && !isPending) mutate()
      }}
    >
      <Field
        label="Sleeps after"
        note={
          me.maxSleep === 'never'
            ? 'For example 30m, 2h, 1d, or never.'
            : `Such as 30m or 2h; ${me.maxSleep} is the longest here.`
        }
        error={isRight ? undefined : 'A number with m, h or d, or never.'}
      >
        {(props) => <TextInput {...props} value={text} onChange={setText} />}
      </Field>
      <label className={styles.choice}>
        <input type="checkbox" checked={isOfStack} onChange={(event) => setOfStack(event.target.checked)} />
        The same for its whole stack, which then sleeps and wakes together
      </label>
      <Refused error={error} />
      <div>
        <Button type="submit" why={why} busy={isPending}>
          Save
        </Button>
      </div>
    </form>
  )
}
