// The team's name, where its new units run, and in which currency its pages show money.

import type { Contract } from '@berth/sdk'
import { useState } from 'react'
import { useHere } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { Field, inputClass, Select } from '../ui/field.tsx'
import { NOTHING_TO_SAVE } from '../ui/sentences.ts'
import { callTeam } from './calls.ts'
import styles from './team.module.css'

const currencies = [
  { value: 'eur', label: 'euro' },
  { value: 'usd', label: 'US dollar' },
] as const

export function TeamForm({ regions }: { regions: readonly Contract.Region[] }) {
  const { team } = useHere()
  const [name, setName] = useState(team.name)
  const [region, setRegion] = useState(team.region)
  const [currency, setCurrency] = useState(team.currency)
  const [isBusy, setBusy] = useState(false)
  const change: Contract.TeamChange = {
    ...(name !== team.name && { name }),
    ...(region !== team.region && { region }),
    ...(currency !== team.currency && { currency }),
  }
  const save = async () => {
    setBusy(true)
    await callTeam(team.id, { method: 'PATCH', path: '', body: change }, 'Saved')
    setBusy(false)
  }
  const why =
    team.role === 'member'
      ? 'Owners and admins change this.'
      : Object.keys(change).length === 0
        ? NOTHING_TO_SAVE
        : null
  return (
    <form
      className={styles.form}
      aria-label="General"
      onSubmit={(event) => {
        event.preventDefault()
        void save()
      }}
    >
      <Field label="Name">
        {(props) => (
          <input
            {...props}
            className={inputClass}
            maxLength={60}
            autoComplete="off"
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        )}
      </Field>
      <Field label="Region of new units">
        {(props) => (
          <Select
            id={props.id}
            value={region}
            options={regions.map(({ id, label, country }) => ({ value: id, label: `${label}, ${country}` }))}
            onChange={setRegion}
          />
        )}
      </Field>
      <Field label="Currency">
        {(props) => <Select id={props.id} value={currency} options={currencies} onChange={setCurrency} />}
      </Field>
      <div>
        <Button type="submit" kind="main" busy={isBusy} why={why}>
          Save
        </Button>
      </div>
    </form>
  )
}
