// The fields of a new unit: the few that most people need, and the rest under Advanced. A refusal of the service appears at its field; a limit links to the page that changes it.

import { type ReactNode, useState } from 'react'
import { explain, faultAt } from '../api/explain.ts'
import { PairsEditor } from '../recipes/pairs-editor.tsx'
import { useHere } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { Field, inputClass, Select } from '../ui/field.tsx'
import { Refused } from '../unit/refused.tsx'
import { ImageTiles } from './image-tiles.tsx'
import { type Asked, type Fields, type Size, sizes } from './spec.ts'
import styles from './new-unit.module.css'

type TextField = { [Name in keyof Fields]: Fields[Name] extends string ? Name : never }[keyof Fields]

/** Where the service says that a field is wrong. */
const paths: Partial<Record<keyof Fields, string>> = {
  name: 'spec.name',
  image: 'spec.image',
  stack: 'stack',
  ports: 'spec.ports',
  sleep: 'spec.sleep',
  size: 'spec.size',
  command: 'spec.cmd',
  volumeGb: 'spec.volume',
  nested: 'spec.nested',
  env: 'spec.env',
  expose: 'expose',
}

/** Under Advanced. */
const advanced = ['size', 'command', 'sleep', 'env', 'volumeGb', 'volumeAt', 'nested', 'stack'] as const

const sizeLabels = {
  nano: 'nano: 256 MB',
  small: 'small: 512 MB',
  medium: 'medium: 2 GB',
  large: 'large: 4 GB',
} as const satisfies Record<Size, string>

export function SpecForm({
  fields,
  faults,
  error,
  isBusy,
  onChange,
  onMake,
}: {
  fields: Fields
  faults: Asked['faults']
  error: unknown
  isBusy: boolean
  onChange: (fields: Fields) => void
  onMake: () => void
}) {
  const { me } = useHere()
  const [isTried, setTried] = useState(false)
  const [isOpen, setOpen] = useState(false)
  const refused = error === null ? [] : explain(error).fields
  const faultOf = (name: keyof Fields) => {
    const path = paths[name]
    const said = path === undefined ? undefined : faultAt(refused, path)
    return (isTried ? faults[name] : undefined) ?? said
  }
  const isFaultInside = advanced.some((name) => faultOf(name) !== undefined)
  const set = (change: Partial<Fields>) => onChange({ ...fields, ...change })
  const text = (name: TextField, label: string, note?: ReactNode, placeholder?: string) => (
    <Field label={label} note={note} error={faultOf(name)}>
      {(props) => (
        <input
          {...props}
          className={inputClass}
          placeholder={placeholder}
          autoComplete="off"
          spellCheck={false}
          value={fields[name]}
          onChange={(event) => set({ [name]: event.target.value })}
        />
      )}
    </Field>
  )
  return (
    <form
      className={styles.form}
      aria-label="New unit"
      onSubmit={(event) => {
        event.preventDefault()
        setTried(true)
        if (Object.keys(faults).length === 0 && !isBusy) onMake()
      }}
    >
      {refused.length === 0 && <Refused error={error} />}
      <ImageTiles image={fields.image} onChoose={(image) => set({ image })} />
      {text('image', 'Image', 'Any image of a registry, such as docker.io/library/nginx:1.')}
      {text('name', 'Name', 'Optional. The name of the image by default.')}
      {text('ports', 'Ports', 'What the program listens on, such as 80, 8080.')}
      <Field label="Publish it" note="The first port, at a URL." error={faultOf('expose')}>
        {(props) => (
          <Select
            id={props.id}
            value={fields.expose}
            options={[
              { value: 'no', label: 'not now' },
              { value: 'private', label: 'by private link' },
              { value: 'public', label: 'for everybody' },
            ]}
            onChange={(expose) => set({ expose })}
          />
        )}
      </Field>
      <details
        className={styles.advanced}
        open={isOpen || isFaultInside}
        onToggle={(event) => setOpen(event.currentTarget.open)}
      >
        <summary>Advanced</summary>
        <div className={styles.more}>
          <Field label="Size" error={faultOf('size')}>
            {(props) => (
              <Select
                id={props.id}
                value={fields.size}
                options={sizes.map((each) => ({ value: each, label: sizeLabels[each] }))}
                onChange={(size) => set({ size })}
              />
            )}
          </Field>
          {text('command', 'Command', 'Runs in a shell. The command of the image by default.')}
          {text(
            'sleep',
            'Sleeps after',
            me.maxSleep === 'never'
              ? 'Idle time, such as 30m, 2h or never.'
              : `Idle time, at most ${me.maxSleep}.`,
            '30m',
          )}
          <PairsEditor
            label="Environment"
            note="A secret without a value is generated and shown once. A team secret never enters the unit: Berth puts it into requests to its hosts."
            kind="env"
            pairs={fields.env}
            error={faultOf('env')}
            onChange={(env) => set({ env })}
          />
          {text('volumeGb', 'Volume in GB', 'Optional. A volume is kept when the unit restarts.')}
          {fields.volumeGb.trim() !== '' && text('volumeAt', 'Volume at')}
          <Field
            label="Containers inside"
            note="For docker, compose and buildah. Needs the isolation class gvisor."
            error={faultOf('nested')}
          >
            {(props) => (
              <Select
                id={props.id}
                value={fields.nested ? 'yes' : 'no'}
                options={[
                  { value: 'no', label: 'none' },
                  { value: 'yes', label: 'allowed' },
                ]}
                onChange={(nested) => set({ nested: nested === 'yes' })}
              />
            )}
          </Field>
          {text('stack', 'Stack', 'Optional. Units of one stack reach each other by name.')}
        </div>
      </details>
      <div className={styles.submit}>
        <Button type="submit" kind="main" busy={isBusy}>
          Create
        </Button>
      </div>
    </form>
  )
}
