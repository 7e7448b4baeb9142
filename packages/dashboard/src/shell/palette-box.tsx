// The command palette: units by name, what the keys of this page do, and every page.

import { Dialog as Base } from '@base-ui/react/dialog'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type KeyboardEvent, type ReactNode, useId, useRef, useState } from 'react'
import { unitsQuery } from '../api/queries.ts'
import { popupRoot } from '../ui/popup-root.ts'
import { StateShape } from '../ui/state.tsx'
import { useKeyGroups } from './keys.ts'
import { nav } from './nav.ts'
import { closePalette } from './palette-state.ts'
import { useTeam } from './team-context.ts'
import styles from './palette.module.css'

type Choice = { id: string; label: string; note: string; mark?: ReactNode; run: () => void }

const SHOWN = 12
const SEARCHED = 'Search units, pages and actions'

export function PaletteBox() {
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const id = useId()
  const choices = useChoices(text)
  const chosen = choices[Math.min(at, choices.length - 1)]
  const isDone = useRef(false)
  const run = (choice: Choice | undefined) => {
    if (!choice) return
    isDone.current = true
    closePalette()
    choice.run()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined)
      setAt((Math.min(at, choices.length - 1) + step + choices.length) % Math.max(1, choices.length))
    else if (event.key === 'Enter') run(chosen)
    else return
    event.preventDefault()
  }
  return (
    <Base.Root open onOpenChange={(open) => !open && closePalette()}>
      <Base.Portal container={popupRoot()}>
        <Base.Backdrop className={styles.veil ?? ''} />
        <Base.Popup
          className={styles.box ?? ''}
          aria-label="Search and commands"
          // What was chosen may open a dialog, which has the focus then.
          finalFocus={() => !isDone.current}
        >
          <input
            className={styles.input}
            role="combobox"
            aria-label={SEARCHED}
            aria-expanded="true"
            aria-controls={id}
            aria-activedescendant={chosen ? `${id}-${chosen.id}` : undefined}
            placeholder={SEARCHED}
            autoComplete="off"
            spellCheck={false}
            value={text}
            onChange={(event) => {
              setText(event.target.value)
              setAt(0)
            }}
            onKeyDown={onKeyDown}
          />
          <div id={id} role="listbox" aria-label="Results" className={styles.list}>
            {choices.map((choice) => (
              <div
                key={choice.id}
                id={`${id}-${choice.id}`}
                role="option"
                aria-selected={choice === chosen}
                className={styles.choice}
                onClick={() => run(choice)}
              >
                {choice.mark}
                <span className={styles.label}>{choice.label}</span>
                <span className={styles.note}>{choice.note}</span>
              </div>
            ))}
          </div>
          {choices.length === 0 && <p className={styles.none}>No results.</p>}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  )
}

function useChoices(text: string): Choice[] {
  const team = useTeam()
  const navigate = useNavigate()
  const { data } = useQuery(unitsQuery(team.id))
  const groups = useKeyGroups()
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const matches = (label: string) => words.every((word) => label.toLowerCase().includes(word))
  const actions = groups
    // Pages are below, and a list is walked by its keys alone.
    .filter(({ title }) => title !== 'Go to' && title !== 'List')
    .flatMap(({ title, bindings }) =>
      bindings.map(
        ({ keys, label, run }): Choice => ({
          id: `do-${title}-${label}`.replaceAll(' ', '-'),
          label,
          note: keys === null ? title : `${title} · ${keys}`,
          run,
        }),
      ),
    )
  const pages = nav.map(
    ({ label, to, key }): Choice => ({
      id: `go-${key}`,
      label,
      note: `Page · g ${key}`,
      run: () => void navigate({ to, params: { team: team.slug } }),
    }),
  )
  const units: Choice[] = []
  if (words.length > 0)
    for (const unit of data?.units ?? []) {
      if (units.length === SHOWN) break
      if (matches(unit.name) || unit.id === text.trim())
        units.push({
          id: unit.id,
          label: unit.name,
          note: `Unit · ${unit.state}`,
          mark: <StateShape state={unit.state} />,
          run: () => void navigate({ to: '/t/$team/units/$id', params: { team: team.slug, id: unit.id } }),
        })
    }
  return [...units, ...[...actions, ...pages].filter(({ label }) => matches(label))].slice(0, SHOWN)
}
