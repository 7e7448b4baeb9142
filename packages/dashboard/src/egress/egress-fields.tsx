// The fields of rules of egress: the same for a policy and for a unit.

import { Field, inputClass, LinesInput } from '../ui/field.tsx'
import { type Egress, type EgressTexts, modes, modeTexts, scopes, scopeTexts } from './egress-text.ts'

export function EgressFields({
  label,
  texts,
  fault,
  denyFault,
  onChange,
}: {
  label: string
  texts: EgressTexts
  fault: string | undefined
  denyFault?: string | undefined
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
          note="One per line: api.github.com, *.pythonhosted.org, github.com:22, 203.0.113.0/24, 203.0.113.7:5432, preset:npm."
          error={fault}
        >
          {(props) => (
            <LinesInput
              {...props}
              rows={4}
              value={texts.allow}
              onChange={(value) => onChange({ ...texts, allow: value })}
            />
          )}
        </Field>
      )}
      {texts.mode !== 'none' && (
        <Field
          label="Except these addresses"
          note="One a line, such as 203.0.113.0/24; refused whatever allows them."
          error={denyFault}
        >
          {(props) => (
            <LinesInput
              {...props}
              rows={2}
              value={texts.deny}
              onChange={(value) => onChange({ ...texts, deny: value })}
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
