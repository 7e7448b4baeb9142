// Invites a person by mail. The link is in the mail alone, so no member can pass it on. Without a mail server the operator has
// the mail, as a file. A team whose plan has room for one person says how its plan is changed.

import type { Contract } from '@berth/sdk'
import { useState } from 'react'
import { useHere } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { Code } from '../ui/copy.tsx'
import { Field, inputClass, Select } from '../ui/field.tsx'
import { callTeam } from './calls.ts'
import styles from './team.module.css'

export function NeedsPlan() {
  const { team } = useHere()
  return (
    <>
      <p className={styles.lead}>
        The hobby plan is for one person. The operator of this Berth gives the team a plan with room for
        others:
      </p>
      <Code text={`npm run team -- set ${team.slug} --plan team`} label="the operator’s command" />
    </>
  )
}

export function Invite() {
  const { team } = useHere()
  const [email, setEmail] = useState('')
  const [role, setRole] = useState<'member' | 'admin'>('member')
  const [isBusy, setBusy] = useState(false)
  const invite = async () => {
    setBusy(true)
    const call = { method: 'POST', path: '/invites', body: { email: email.trim(), role } } as const
    const made = await callTeam<Contract.InviteCreated>(
      team.id,
      call,
      `${email.trim()} is invited. The link is in their mail`,
    )
    setBusy(false)
    if (made) setEmail('')
  }
  return (
    <form
      className={styles.invite}
      aria-label="Invite someone"
      onSubmit={(event) => {
        event.preventDefault()
        void invite()
      }}
    >
      <Field label="Email address">
        {(props) => (
          <input
            {...props}
            className={inputClass}
            type="email"
            required
            maxLength={254}
            autoComplete="off"
            value={email}
            onChange={(event) => setEmail(event.target.value)}
          />
        )}
      </Field>
      <Field label="As">
        {(props) => (
          <Select
            id={props.id}
            value={role}
            options={[
              { value: 'member', label: 'member' },
              { value: 'admin', label: 'admin' },
            ]}
            onChange={setRole}
          />
        )}
      </Field>
      <Button
        type="submit"
        kind="main"
        busy={isBusy}
        why={email.trim() === '' ? 'Enter an address first.' : null}
      >
        Send the invitation
      </Button>
    </form>
  )
}
