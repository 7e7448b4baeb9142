// A policy while a person edits it. Another person may change the same one meanwhile: what only they changed comes into
// the fields, and what both changed waits for a choice. Nothing of theirs or mine is lost in silence.

import { useEffect, useState } from 'react'
import {
  differences,
  fieldText,
  type Policy,
  type PolicyField,
  policyLabels,
  policyOf,
  type PolicyTexts,
  textsOf,
} from './policy-text.ts'

type Edit = {
  /** What the service said last, as far as it is in the fields. */
  base: Policy
  texts: PolicyTexts
  /** What came in from others. */
  told: string[]
}

export type Conflict = { field: PolicyField; label: string; mine: string; theirs: string }

export function usePolicyEdit(served: Policy) {
  const [edit, setEdit] = useState<Edit>({ base: served, texts: textsOf(served), told: [] })
  useEffect(() => setEdit((before) => merged(before, served)), [served])
  const { policy, faults } = policyOf(edit.texts, edit.base)
  const changed = differences(edit.base, policy)
  const conflicts = differences(edit.base, served).filter(
    (field) => changed.includes(field) && differences(policy, served).includes(field),
  )
  return {
    ...edit,
    policy,
    faults,
    changed,
    conflicts: conflicts.map(
      (field): Conflict => ({
        field,
        label: policyLabels[field],
        mine: fieldText(policy, field),
        theirs: fieldText(served, field),
      }),
    ),
    setTexts: (texts: PolicyTexts) => setEdit((before) => ({ ...before, texts })),
    /** Ends a conflict: either way, what they set is what my change is from now on measured against. */
    choose: (field: PolicyField, whose: 'mine' | 'theirs') =>
      setEdit((before) => ({
        ...before,
        base: { ...before.base, [field]: served[field] },
        texts: whose === 'mine' ? before.texts : { ...before.texts, [field]: textsOf(served)[field] },
      })),
    reset: (to: Policy) => setEdit({ base: to, texts: textsOf(to), told: [] }),
  }
}

function merged(before: Edit, served: Policy): Edit {
  const mine = differences(before.base, policyOf(before.texts, before.base).policy)
  const faulty = Object.keys(policyOf(before.texts, before.base).faults)
  const theirs = differences(before.base, served).filter(
    (field) => !mine.includes(field) && !faulty.includes(field),
  )
  if (theirs.length === 0) return before
  const texts = textsOf(served)
  return {
    base: { ...before.base, ...Object.fromEntries(theirs.map((field) => [field, served[field]])) },
    texts: { ...before.texts, ...Object.fromEntries(theirs.map((field) => [field, texts[field]])) },
    told: [
      ...before.told,
      ...theirs.map(
        (field) =>
          `${policyLabels[field]}: ${fieldText(before.base, field)} became ${fieldText(served, field)}`,
      ),
    ],
  }
}
