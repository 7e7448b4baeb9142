// Copies a whole stack: all of its units at one instant.

import type { Contract } from '@berth/sdk'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { berthOf } from '../api/client.ts'
import { cache, keys } from '../api/cache.ts'
import { explain } from '../api/explain.ts'
import { useTeam } from '../shell/team-context.ts'
import { Button, buttonClass } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Field, inputClass } from '../ui/field.tsx'
import { tellError } from '../ui/toast.tsx'
import styles from './stacks.module.css'

export function ForkStack({
  stack,
  isOpen,
  onClose,
}: {
  stack: Contract.Stack
  isOpen: boolean
  onClose: () => void
}) {
  const team = useTeam()
  const [into, setInto] = useState('')
  const [isBusy, setBusy] = useState(false)
  const [forked, setForked] = useState<Contract.ForkResult | null>(null)
  const fork = async () => {
    setBusy(true)
    try {
      const body = into.trim() === '' ? {} : { into: into.trim() }
      const path = `/v1/stacks/${encodeURIComponent(stack.id)}/fork`
      setForked(
        await berthOf(team.id).request<Contract.ForkResult>('POST', path, { body, timeoutMs: 300_000 }),
      )
      void cache.invalidateQueries({ queryKey: keys.stacks(team.id) })
    } catch (error) {
      tellError(explain(error))
    } finally {
      setBusy(false)
    }
  }
  const close = () => {
    setForked(null)
    setInto('')
    onClose()
  }
  return (
    <Dialog title={`Fork ${stack.name}`} isOpen={isOpen} onClose={close}>
      {forked === null ? (
        <form
          className={styles.form}
          aria-label={`Fork ${stack.name}`}
          onSubmit={(event) => {
            event.preventDefault()
            void fork()
          }}
        >
          <Field label="Name of the copy" note="Optional. Berth picks a free one by default.">
            {(props) => (
              <input
                {...props}
                className={inputClass}
                maxLength={32}
                autoComplete="off"
                value={into}
                onChange={(event) => setInto(event.target.value)}
              />
            )}
          </Field>
          <div className={styles.buttons}>
            <Button onClick={close}>Cancel</Button>
            <Button type="submit" kind="main" busy={isBusy}>
              Fork
            </Button>
          </div>
        </form>
      ) : (
        <div className={styles.form}>
          <ul>
            {Object.entries(forked.copied).map(([name, what]) => (
              <li key={name}>
                <bdi>{name}</bdi>: {copiedWords[what]}
              </li>
            ))}
            {forked.skipped.map((line) => (
              <li key={line}>not copied: {line}</li>
            ))}
          </ul>
          <p>{forked.costLine}</p>
          <div className={styles.buttons}>
            <Link
              to="/t/$team/stacks/$name"
              params={{ team: team.slug, name: forked.stack }}
              className={buttonClass('main')}
              onClick={close}
            >
              Open {forked.stack}
            </Link>
          </div>
        </div>
      )}
    </Dialog>
  )
}

const copiedWords = {
  memory: 'with its memory and disk',
  disk: 'with its disk',
  config: 'only how it is set up',
} as const
