// The fields of a policy: the same for a new key and for one that is there.

import { EgressFields } from '../egress/egress-fields.tsx'
import { Field, inputClass, LinesInput } from '../ui/field.tsx'
import { type Faults, policyLabels, type PolicyTexts, type Size, sizes } from './policy-text.ts'
import styles from './agents.module.css'

export function PolicyForm({
  texts,
  faults,
  onChange,
}: {
  texts: PolicyTexts
  faults: Faults
  onChange: (texts: PolicyTexts) => void
}) {
  const set = <Name extends keyof PolicyTexts>(name: Name, value: PolicyTexts[Name]) =>
    onChange({ ...texts, [name]: value })
  const toggle = (size: Size, isOn: boolean) =>
    set(
      'allowedSizes',
      sizes.filter((each) => (each === size ? isOn : texts.allowedSizes.includes(each))),
    )
  return (
    <div className={styles.fields}>
      <Field label={policyLabels.maxConcurrentUnits} error={faults.maxConcurrentUnits}>
        {(props) => (
          <input
            {...props}
            className={inputClass}
            inputMode="numeric"
            autoComplete="off"
            value={texts.maxConcurrentUnits}
            onChange={(event) => set('maxConcurrentUnits', event.target.value)}
          />
        )}
      </Field>
      <Field label={policyLabels.dailySpendCapCents} error={faults.dailySpendCapCents}>
        {(props) => (
          <input
            {...props}
            className={inputClass}
            inputMode="decimal"
            autoComplete="off"
            value={texts.dailySpendCapCents}
            onChange={(event) => set('dailySpendCapCents', event.target.value)}
          />
        )}
      </Field>
      <fieldset className={styles.choices}>
        <legend>{policyLabels.allowedSizes}</legend>
        {sizes.map((size) => (
          <label key={size} className={styles.choice}>
            <input
              type="checkbox"
              checked={texts.allowedSizes.includes(size)}
              onChange={(event) => toggle(size, event.target.checked)}
            />
            {size}
          </label>
        ))}
        {faults.allowedSizes !== undefined && <p className={styles.wrong}>{faults.allowedSizes}</p>}
      </fieldset>
      <Field label={policyLabels.maxSleep} note="30m, 2h, 1d; never sets no limit." error={faults.maxSleep}>
        {(props) => (
          <input
            {...props}
            className={inputClass}
            autoComplete="off"
            value={texts.maxSleep}
            onChange={(event) => set('maxSleep', event.target.value)}
          />
        )}
      </Field>
      <Field
        label={policyLabels.allowedRegistries}
        note="One per line. Images that come with Berth are always allowed."
        error={faults.allowedRegistries}
      >
        {(props) => (
          <LinesInput
            {...props}
            rows={3}
            value={texts.allowedRegistries}
            onChange={(value) => set('allowedRegistries', value)}
          />
        )}
      </Field>
      <Field
        label={policyLabels.expiresAt}
        note="Without an end it is valid until it is revoked."
        error={faults.expiresAt}
      >
        {(props) => (
          <input
            {...props}
            className={inputClass}
            type="datetime-local"
            step={1}
            value={texts.expiresAt}
            onChange={(event) => set('expiresAt', event.target.value)}
          />
        )}
      </Field>
      <EgressFields
        label={policyLabels.egress}
        texts={texts.egress}
        fault={faults.egress}
        onChange={(egress) => set('egress', egress)}
      />
      <Field
        label={policyLabels.allowedSecrets}
        note="Names, one per line. Units never see the values. * for all, and to set and delete them."
        error={faults.allowedSecrets}
      >
        {(props) => (
          <LinesInput
            {...props}
            rows={2}
            value={texts.allowedSecrets}
            onChange={(value) => set('allowedSecrets', value)}
          />
        )}
      </Field>
      <Field
        label={policyLabels.rates}
        note="One a line: creations 300, execs 1200, requests 3000. Empty: those of the service."
        error={faults.rates}
      >
        {(props) => (
          <LinesInput {...props} rows={2} value={texts.rates} onChange={(value) => set('rates', value)} />
        )}
      </Field>
      <fieldset className={styles.choices}>
        <legend>{policyLabels.allowNested}</legend>
        <label className={styles.choice}>
          <input
            type="checkbox"
            checked={texts.allowNested}
            onChange={(event) => set('allowNested', event.target.checked)}
          />
          docker, podman or buildah may run in units that ask for it
        </label>
      </fieldset>
    </div>
  )
}
