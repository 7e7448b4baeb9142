// How the units of an environment are made, and how many work at once: the same fields for a new one and for one that is there.

import { EgressFields } from '../egress/egress-fields.tsx'
import { Field, Select, TextInput, inputClass } from '../ui/field.tsx'
import { SourceField } from './hosted-source.tsx'
import type { HostedFieldProps, HostedTexts } from './hosted-text.ts'
import { sizes } from './policy-text.ts'
import styles from './agents.module.css'

export function HostedFields({
  texts,
  faultOf,
  onChange,
}: {
  texts: HostedTexts
  faultOf: (path: string) => string | undefined
  onChange: (texts: HostedTexts) => void
}) {
  const set = <Name extends keyof HostedTexts>(name: Name, value: HostedTexts[Name]) =>
    onChange({ ...texts, [name]: value })
  return (
    <div className={styles.fields}>
      <SourceField texts={texts} fault={faultOf('copyOf')} onChange={onChange} />
      {texts.copyOf === '' && (
        <>
          <Field label="Image" error={faultOf('image')}>
            {(props) => (
              <TextInput {...props} value={texts.image} onChange={(image) => set('image', image)} />
            )}
          </Field>
          <Field label="Size">
            {({ id }) => (
              <Select
                id={id}
                value={texts.size}
                options={sizes.map((size) => ({ value: size, label: size }))}
                onChange={(size) => set('size', size)}
              />
            )}
          </Field>
          <EgressFields
            label="What they may reach"
            texts={texts.egress}
            fault={faultOf('egress')}
            onChange={(egress) => set('egress', egress)}
          />
        </>
      )}
    </div>
  )
}

export function AtOnceField({ texts, fault, onChange }: HostedFieldProps) {
  return (
    <Field label="Sessions at once" note="Others wait in the vendor’s queue." error={fault}>
      {(props) => (
        <input
          {...props}
          className={inputClass}
          inputMode="numeric"
          autoComplete="off"
          value={texts.atOnce}
          onChange={(event) => onChange({ ...texts, atOnce: event.target.value })}
        />
      )}
    </Field>
  )
}
