// A team without units: three ways to the first one, and the same by code, with a key made here. The page says when it comes.

import type { Contract } from '@berth/sdk'
import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { smallPolicy } from '../agents/policy-text.ts'
import { cache, keys } from '../api/cache.ts'
import { berthOf } from '../api/client.ts'
import { useTeam } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { Code } from '../ui/copy.tsx'
import { Segments } from '../ui/segments.tsx'
import { State } from '../ui/state.tsx'
import { Refused } from '../unit/refused.tsx'
import { euros } from '../../../../src/lib/money.ts'
import { firstCode, type Language, needsKey, NO_KEY } from './first-code.ts'
import { FirstHero } from './first-hero.tsx'
import { FirstTiles } from './first-tiles.tsx'
import styles from './first-run.module.css'

const languages = Object.keys(firstCode) as Language[]

/** What the key of the first steps may do. */
const chips = [
  `${smallPolicy.maxConcurrentUnits} units at once`,
  `${euros(smallPolicy.dailySpendCapCents)} a day`,
  smallPolicy.allowedSizes.join(' and '),
  'any host',
]

export function FirstRun({
  units,
  secret,
  onSecret,
}: {
  units: readonly Contract.Unit[]
  /** Of the key that was made here and is not kept yet. */
  secret: string | null
  onSecret: (secret: string | null) => void
}) {
  const team = useTeam()
  return (
    <div className={styles.page}>
      <FirstHero />
      <FirstTiles />
      <section className={styles.code} aria-labelledby="by-code">
        <h2 id="by-code">Or let your agent start it</h2>
        <ByCode secret={secret} onSecret={onSecret} />
        <p role="status" className={styles.status}>
          <First units={units} slug={team.slug} />
        </p>
      </section>
    </div>
  )
}

function ByCode({ secret, onSecret }: { secret: string | null; onSecret: (secret: string | null) => void }) {
  const team = useTeam()
  const [language, setLanguage] = useState<Language>('Claude Code')
  const make = useMutation({
    mutationFn: async () =>
      await berthOf(team.id).request<Contract.KeyCreated>('POST', '/v1/keys', {
        body: { name: 'first key', policy: smallPolicy },
      }),
    onSuccess: (made) => {
      onSecret(made.secret)
      void cache.invalidateQueries({ queryKey: keys.agents(team.id) })
    },
  })
  return (
    <>
      <Segments label="Language" value={language} options={languages} onChange={setLanguage} />
      <Code
        text={firstCode[language](location.origin, secret ?? NO_KEY)}
        label={`the first unit by ${language}`}
      />
      <div className={styles.key}>
        {!needsKey(language) ? (
          <p>No key needed: Berth asks you what the program may do.</p>
        ) : secret !== null ? (
          <>
            <p>The key is in the code above. It is shown this once.</p>
            <Button onClick={() => onSecret(null)}>I have copied it</Button>
          </>
        ) : (
          <>
            <Button busy={make.isPending} onClick={() => make.mutate()}>
              Create key
            </Button>
            <ul className={styles.chips} aria-label="What the key may do">
              {chips.map((chip) => (
                <li key={chip}>{chip}</li>
              ))}
            </ul>
            <Link to="/t/$team/agents/new" params={{ team: team.slug }}>
              Change
            </Link>
          </>
        )}
      </div>
      <Refused error={make.error} />
    </>
  )
}

function First({ units, slug }: { units: readonly Contract.Unit[]; slug: string }) {
  const first = units.at(-1)
  if (first === undefined) return <span>Waiting for your first unit. It appears here by itself.</span>
  return (
    <>
      <State state={first.state} />
      <span>Your first unit:</span>
      <Link to="/t/$team/units/$id" params={{ team: slug, id: first.id }}>
        <bdi>{first.name}</bdi>
      </Link>
    </>
  )
}
