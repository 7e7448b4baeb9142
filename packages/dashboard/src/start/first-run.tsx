// A team without units: code to copy, with a key made here, that turns live when the first unit comes.

import type { Contract } from '@berth/sdk'
import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { smallPolicy, sentence } from '../agents/policy-text.ts'
import { cache, keys } from '../api/cache.ts'
import { berthOf } from '../api/client.ts'
import { useTeam } from '../shell/team-context.ts'
import { Button, buttonClass } from '../ui/button.tsx'
import { Code } from '../ui/copy.tsx'
import { Select } from '../ui/field.tsx'
import { Card } from '../ui/page-parts.tsx'
import { State } from '../ui/state.tsx'
import { Refused } from '../unit/refused.tsx'
import styles from './first-run.module.css'

const IMAGE = 'berth.local/python:3.11'
const NO_KEY = 'YOUR_KEY'

const ways = {
  curl: (url, key) =>
    `curl ${url}/v1/units \\\n  -H "authorization: Bearer ${key}" \\\n  -H "content-type: application/json" \\\n  -d '{"spec": {"name": "first", "image": "${IMAGE}"}}'`,
  CLI: (url, key) =>
    `export BERTH_URL=${url}\nexport BERTH_API_KEY=${key}\nberth run --name first ${IMAGE} -- python3 -c "print(6 * 7)"`,
  TypeScript: (url, key) =>
    `import { Berth } from '@berth/sdk'\n\nconst berth = new Berth({ url: '${url}', apiKey: '${key}' })\nconst unit = await berth.units.create({ image: '${IMAGE}', name: 'first' })\nconsole.log((await unit.exec('python3 -c "print(6 * 7)"')).stdout)`,
  Python: (url, key) =>
    `from berth import Berth\n\nberth = Berth(url="${url}", api_key="${key}")\nunit = berth.units.create("${IMAGE}", name="first")\nprint(unit.exec(["python3", "-c", "print(6 * 7)"]).stdout)`,
  'Claude Code': (url) =>
    `claude mcp add --transport http berth ${url}/mcp\n# Say /mcp there and sign in. Then, for example:\n# "Run a Python unit on Berth and print 6 * 7 in it."`,
} as const satisfies Record<string, (url: string, key: string) => string>

type Way = keyof typeof ways

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
  const [way, setWay] = useState<Way>('curl')
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
    <div className={styles.page}>
      <Card title="Your first unit">
        <div role="status" className={styles.status}>
          <First units={units} slug={team.slug} />
        </div>
        <p className={styles.lead}>
          A unit is a container of its own for an agent. Paste this where your agent runs; it needs a key,
          which says what it may do.
        </p>
        <div className={styles.key}>
          {secret === null ? (
            <>
              <Button kind="main" busy={make.isPending} onClick={() => make.mutate()}>
                Make a key
              </Button>
              <span className={styles.lead}>{sentence(smallPolicy)}</span>
            </>
          ) : (
            <>
              <span className={styles.lead}>The key is in the code below, shown this once: keep it.</span>
              <Button onClick={() => onSecret(null)}>I have kept it</Button>
            </>
          )}
        </div>
        <Refused error={make.error} />
        <div className={styles.ways}>
          <Select
            aria-label="Language"
            value={way}
            options={(Object.keys(ways) as Way[]).map((each) => ({ value: each, label: each }))}
            onChange={setWay}
          />
        </div>
        <Code text={ways[way](location.origin, secret ?? NO_KEY)} label={`the first unit by ${way}`} />
      </Card>
      <Card title="Or without code">
        <div className={styles.key}>
          <Link to="/t/$team/units/new" params={{ team: team.slug }} className={buttonClass()}>
            New unit
          </Link>
          <Link to="/t/$team/recipes" params={{ team: team.slug }} className={buttonClass()}>
            A database or an application
          </Link>
          <Link to="/t/$team/agents" params={{ team: team.slug }} className={buttonClass()}>
            Connect a program
          </Link>
        </div>
      </Card>
    </div>
  )
}

function First({ units, slug }: { units: readonly Contract.Unit[]; slug: string }) {
  const first = units.at(-1)
  if (first === undefined) return <span>Waiting for it: this page shows it as it comes.</span>
  return (
    <>
      <State state={first.state} />
      <span>It is there:</span>
      <Link to="/t/$team/units/$id" params={{ team: slug, id: first.id }}>
        <bdi>{first.name}</bdi>
      </Link>
    </>
  )
}
