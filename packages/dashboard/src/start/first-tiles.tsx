// The three ways to a first unit, one button each. The page of the unit follows what is done for it.

import type { Contract } from '@berth/sdk'
import { Button } from '../ui/button.tsx'
import { Refused } from '../unit/refused.tsx'
import { useCreate } from '../units/use-create.ts'
import { TileList } from './first-hero.tsx'

const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Hello from Berth</title>
<body style="font: 18px/1.6 system-ui, sans-serif; max-width: 36em; margin: 18vh auto; padding: 0 1em">
<h1>Hello from Berth</h1>
<p>This page is served by a unit. It sleeps when nobody visits, and wakes with the next visit.</p>
<p>Change it in the unit's Files, at /var/www/html/index.html.</p>
`

export const firstImage = 'berth.local/python:3.11'

export function FirstTiles() {
  const shell = useCreate<Contract.CreateFromSpec>({ tab: '/terminal' })
  const site = useCreate<Contract.CreateFromRecipe>()
  const database = useCreate<Contract.CreateFromRecipe>()
  const all = [shell, site, database]
  const isBusy = all.some((each) => each.isPending || each.isSuccess)
  const starts = {
    shell: {
      make: shell,
      start: () => shell.mutate({ spec: { name: 'shell', image: firstImage } }),
    },
    site: {
      make: site,
      start: () =>
        site.mutate({
          recipe: 'static',
          name: 'site',
          params: { files: { 'index.html': page } },
          expose: 'public',
        }),
    },
    database: {
      make: database,
      start: () => database.mutate({ recipe: 'postgres' }),
    },
  }
  return (
    <>
      <TileList>
        {({ id, title, button }) => (
          <Button kind="main" busy={isBusy} aria-label={`${button}: ${title}`} onClick={starts[id].start}>
            {starts[id].make.isPending ? 'Creating…' : button}
          </Button>
        )}
      </TileList>
      {all.map(({ error }, at) => (
        <Refused key={at} error={error} />
      ))}
    </>
  )
}
