// The account of the person: their name, teams, how these pages look, and signing out.

import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { berth } from '../api/client.ts'
import { cache } from '../api/cache.ts'
import { explain } from '../api/explain.ts'
import { meQuery } from '../api/queries.ts'
import { useHere } from '../shell/team-context.ts'
import { readTheme, setTheme, type Theme, themes } from '../shell/theme.ts'
import { Button } from '../ui/button.tsx'
import { Field, inputClass } from '../ui/field.tsx'
import { Card, PageHead } from '../ui/page-parts.tsx'
import { tell, tellError } from '../ui/toast.tsx'
import { NOTHING_TO_SAVE } from '../ui/sentences.ts'
import { Teams } from './teams.tsx'
import styles from './account.module.css'

export function AccountPage() {
  const { me, team } = useHere()
  return (
    <>
      <PageHead title="Your account" note={me.user.email} />
      <div className={styles.page}>
        <Card title="You">
          <NameForm />
        </Card>
        <Card title="Your teams">
          <Teams />
        </Card>
        <Card title="Appearance">
          <Looks />
        </Card>
        <Card title="This browser">
          <form method="post" action="/sign-out" className={styles.buttons}>
            <Button type="submit">Sign out</Button>
            <Link to="/t/$team/agents" params={{ team: team.slug }}>
              Keys and connected programs
            </Link>
          </form>
        </Card>
      </div>
    </>
  )
}

function NameForm() {
  const { me } = useHere()
  const [name, setName] = useState(me.user.name)
  const [isBusy, setBusy] = useState(false)
  const save = async () => {
    setBusy(true)
    try {
      await berth.request('PATCH', '/v1/me', { body: { name } })
      await cache.invalidateQueries({ queryKey: meQuery.queryKey })
      tell('Saved')
    } catch (error) {
      tellError(explain(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <form
      className={styles.form}
      aria-label="You"
      onSubmit={(event) => {
        event.preventDefault()
        void save()
      }}
    >
      <Field label="Name" note="What your team sees.">
        {(props) => (
          <input
            {...props}
            className={inputClass}
            maxLength={80}
            autoComplete="name"
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        )}
      </Field>
      <div>
        <Button type="submit" kind="main" busy={isBusy} why={name === me.user.name ? NOTHING_TO_SAVE : null}>
          Save
        </Button>
      </div>
    </form>
  )
}

const words = { system: 'System', light: 'Light', dark: 'Dark' } as const satisfies Record<Theme, string>

function Looks() {
  const [theme, choose] = useState(readTheme)
  return (
    <fieldset className={styles.choices}>
      <legend className="visually-hidden">Theme</legend>
      {themes.map((each) => (
        <label key={each} className={styles.choice}>
          <input
            type="radio"
            name="theme"
            checked={theme === each}
            onChange={() => {
              setTheme(each)
              choose(each)
            }}
          />
          {words[each]}
        </label>
      ))}
    </fieldset>
  )
}
