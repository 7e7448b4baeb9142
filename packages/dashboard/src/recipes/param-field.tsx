// The field of one parameter, by its type.

import type { Contract } from '@berth/sdk'
import { Field, LinesInput, Select, TextInput } from '../ui/field.tsx'
import { PairsEditor } from './pairs-editor.tsx'
import { type FieldValue, labelOf, newPair, recordKind } from './params.ts'
import { SecretField } from './secret-field.tsx'

export function ParamField({
  parameter,
  value,
  error,
  onChange,
}: {
  parameter: Contract.RecipeParameter
  value: FieldValue
  error: string | undefined
  onChange: (value: FieldValue) => void
}) {
  const { name, type, options, required, description, format } = parameter
  const label = required ? `${labelOf(name)} (required)` : labelOf(name)
  const note = noteOf(description, type === 'record' ? null : format)
  if (typeof value !== 'string' && type === 'secret')
    return (
      <SecretField
        label={label}
        note={description ?? ''}
        isOptional={parameter.defaultValue === 'null'}
        pair={value[0] ?? newPair}
        error={error}
        onChange={(pair) => onChange([pair])}
      />
    )
  if (typeof value !== 'string')
    return (
      <PairsEditor
        label={label}
        note={description ?? undefined}
        kind={recordKind(parameter) === 'files' ? 'files' : 'env'}
        pairs={value}
        error={error}
        onChange={onChange}
      />
    )
  return (
    <Field label={label} note={note} error={error}>
      {(props) =>
        type === 'enum' && options !== null ? (
          <Select
            id={props.id}
            value={value}
            options={options.map((option) => ({ value: option, label: option }))}
            onChange={onChange}
          />
        ) : type === 'record' ? (
          <LinesInput {...props} rows={4} value={value} onChange={onChange} />
        ) : (
          <TextInput
            {...props}
            inputMode={type === 'integer' ? 'numeric' : undefined}
            value={value}
            onChange={onChange}
          />
        )
      }
    </Field>
  )
}

/** As one sentence: "The size of its volume in GB: a whole number from 1 to 500." */
function noteOf(description: string | null, format: string | null): string | undefined {
  if (description === null || format === null) return description ?? format ?? undefined
  return `${description.replace(/\.$/, '')}: ${format}.`
}
