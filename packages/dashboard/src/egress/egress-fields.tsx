// The fields of rules of egress: the same for a policy and for a unit.

import { Field, inputClass } from '../ui/field.tsx'
import { type Egress, type EgressTexts, modes, modeTexts, scopes, scopeTexts } from './egress-text.ts'

export function EgressFields({
  label,
  texts,
  fault,
  onChange,
}: {
  label: string
  texts: EgressTexts
  fault: string | undefined
  onChange: (texts: EgressTexts) => void
}) {
  return (
    <>
      <Field label={label} error={texts.mode === 'listed' ? undefined : fault}>
        {(props) => (
          <select
            {...props}
            className={inputClass}
            value={texts.mode}
            onChange={(event) => onChange({ ...texts, mode: event.target.value as Egress['mode'] })}
          >
            {modes.map((mode) => (
              <option key={mode} value={mode}>
                {modeTexts[mode]}
              </option>
            ))}
          </select>
        )}
      </Field>
      {texts.mode === 'listed' && (
        <Field
          label="Hosts"
          note="One a line: api.github.com, *.pythonhosted.org, github.com:22, 203.0.113.0/24:5432, preset:npm."
          error={fault}
        >
          {(props) => (
            <textarea
              {...props}
              className={inputClass}
              rows={4}
              spellCheck={false}
              value={texts.allow}
              onChange={(event) => onChange({ ...texts, allow: event.target.value })}
            />
          )}
        </Field>
      )}
      <Field label="Units of the team">
        {(props) => (
          <select
            {...props}
            className={inputClass}
            value={texts.siblings}
            onChange={(event) => onChange({ ...texts, siblings: event.target.value as Egress['siblings'] })}
          >
            {scopes.map((scope) => (
              <option key={scope} value={scope}>
                {scopeTexts[scope]}
              </option>
            ))}
          </select>
        )}
      </Field>
    </>
  )
}
