// The teams of a person, and a form for another one.

import type { Contract } from '@berth/sdk'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { berth } from '../api/client.ts'
import { cache } from '../api/cache.ts'
import { explain } from '../api/explain.ts'
import { meQuery } from '../api/queries.ts'
import { useHere } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { DataTable } from '../ui/data-table.tsx'
import { Field, inputClass } from '../ui/field.tsx'
import { tell, tellError } from '../ui/toast.tsx'
import styles from './account.module.css'

export function Teams() {
  const { me } = useHere()
  const [name, setName] = useState('')
  const [isBusy, setBusy] = useState(false)
  const make = async () => {
    setBusy(true)
    try {
      await berth.request<Contract.TeamAnswer>('POST', '/v1/teams', { body: { name: name.trim() } })
      await cache.invalidateQueries({ queryKey: meQuery.queryKey })
      tell(`The team ${name.trim()} is there`)
      setName('')
    } catch (error) {
      tellError(explain(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <>
      <DataTable
        label="Your teams"
        rows={me.teams}
        keyOf={({ id }) => id}
        columns={[
          {
            head: 'Team',
            cell: (team) => (
              <Link to="/t/$team/units" params={{ team: team.slug }}>
                <bdi>{team.name}</bdi>
              </Link>
            ),
          },
          { head: 'You are', cell: ({ role }) => role },
          { head: 'Plan', cell: ({ plan }) => plan },
        ]}
      />
      <form
        className={styles.newTeam}
        aria-label="Create a team"
        onSubmit={(event) => {
          event.preventDefault()
          void make()
        }}
      >
        <Field label="New team">
          {(props) => (
            <input
              {...props}
              className={inputClass}
              maxLength={60}
              autoComplete="off"
              placeholder="Name"
              value={name}
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
        <div>
          <Button type="submit" busy={isBusy} why={name.trim().length < 2 ? 'Enter a name first.' : null}>
            Create team
          </Button>
        </div>
      </form>
    </>
  )
}
