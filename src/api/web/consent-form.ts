// The form in which a person chooses what a program may do: writes every field of a policy, and reads them back.

import type { Issue } from '../../contract/errors.ts'
import { type Policy, sizes } from '../../contract/policy.ts'
import type { Question } from '../../domain/oauth/consent.ts'
import type { PlanBounds } from '../../domain/units/admission/plan-bounds.ts'
import { openEgress } from '../../lib/egress/rules.ts'
import { escapeHtml } from './html.ts'

/** The text in the form's fields. */
export type Fields = {
  name: string
  maxConcurrentUnits: string
  /** In euros. */
  dailySpendCap: string
  allowedSizes: string[]
  /** One per line. */
  allowedRegistries: string
  maxSleep: string
  /** UTC, without a zone; empty for never. */
  expiresAt: string
  egressMode: string
  /** One per line. */
  egressAllow: string
  /** One per line. */
  egressDeny: string
  egressSiblings: string
  /** One per line. */
  allowedSecrets: string
  allowNested: boolean
  /** One per line: `creations 300`. */
  rates: string
}

export function fieldsOf({ name, policy }: Pick<Question, 'name' | 'policy'>): Fields {
  return {
    name,
    maxConcurrentUnits: String(policy.maxConcurrentUnits),
    dailySpendCap: inEuros(policy.dailySpendCapCents),
    allowedSizes: policy.allowedSizes,
    allowedRegistries: policy.allowedRegistries.join('\n'),
    maxSleep: policy.maxSleep,
    expiresAt: policy.expiresAt?.slice(0, 19) ?? '',
    egressMode: policy.egress.mode,
    egressAllow: policy.egress.allow.join('\n'),
    egressDeny: (policy.egress.deny ?? []).join('\n'),
    egressSiblings: policy.egress.siblings,
    allowedSecrets: policy.allowedSecrets.join('\n'),
    allowNested: policy.allowNested,
    rates: Object.entries(policy.rates)
      .map(([name, calls]) => `${name} ${calls}`)
      .join('\n'),
  }
}

export function postedFields(form: URLSearchParams): Fields {
  const of = (name: string) => (form.get(name) ?? '').trim()
  return {
    name: of('name'),
    maxConcurrentUnits: of('maxConcurrentUnits'),
    dailySpendCap: of('dailySpendCap'),
    allowedSizes: form.getAll('allowedSizes'),
    allowedRegistries: of('allowedRegistries'),
    maxSleep: of('maxSleep'),
    expiresAt: of('expiresAt'),
    egressMode: of('egressMode') || openEgress.mode,
    egressAllow: of('egressAllow'),
    egressDeny: of('egressDeny'),
    egressSiblings: of('egressSiblings') || openEgress.siblings,
    allowedSecrets: of('allowedSecrets'),
    allowNested: form.has('allowNested'),
    rates: of('rates'),
  }
}

/**
 * Returns the policy for the operation, which checks it and records what it refuses. Text that is not a number or a
 * time stays as it is, with an issue that says so in the words of the form. So does a number beyond the plan of the
 * team, which the operation would take. Without a team, `bounds` is null.
 */
export function policyOf(
  fields: Fields,
  bounds: PlanBounds | null,
): { policy: { [Field in keyof Policy]: unknown }; issues: Issue[] } {
  const issues: Issue[] = []
  const wrong = (path: keyof Policy, message: string, text: string) => {
    issues.push({ path: `policy.${path}`, message })
    return text
  }
  const { expiresAt } = fields
  const denied = fields.egressMode === 'none' ? [] : linesOf(fields.egressDeny)
  const isTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2})?$/.test(expiresAt)
  const policy = {
    maxConcurrentUnits: unitsIn(fields.maxConcurrentUnits),
    dailySpendCapCents: centsIn(fields.dailySpendCap),
    allowedSizes: fields.allowedSizes,
    allowedRegistries: linesOf(fields.allowedRegistries),
    maxSleep: fields.maxSleep,
    expiresAt: expiresIn(),
    egress: {
      mode: fields.egressMode,
      // Text of a mode that was chosen before stays in the field, and says nothing.
      allow: fields.egressMode === 'listed' ? linesOf(fields.egressAllow) : [],
      ...(denied.length > 0 && { deny: denied }),
      siblings: fields.egressSiblings,
    },
    allowedSecrets: linesOf(fields.allowedSecrets),
    allowNested: fields.allowNested,
    rates: ratesIn(),
  }
  return { policy, issues }

  function ratesIn(): Record<string, number> | string {
    const lines = fields.rates.split('\n').filter((line) => line.trim() !== '')
    const read = lines.map((line) => /^\s*([a-z]+) +(\d{1,7})\s*$/.exec(line))
    if (read.includes(null)) return wrong('rates', 'must have lines such as "creations 300"', fields.rates)
    return Object.fromEntries(read.map((parts) => [parts?.[1] ?? '', Number(parts?.[2])]))
  }

  function unitsIn(text: string): number | string {
    if (!/^\d+$/.test(text)) return wrong('maxConcurrentUnits', 'must be a whole number', text)
    if (bounds === null || Number(text) <= bounds.units) return Number(text)
    const why = `no more units fit the ${bounds.diskGb} GB of disk of the plan`
    return wrong('maxConcurrentUnits', `must be at most ${bounds.units}: ${why}`, text)
  }

  function centsIn(text: string): number | string {
    const [, euros, cents = ''] = /^(\d+)(?:[.,](\d{1,2}))?$/.exec(text) ?? []
    if (euros === undefined)
      return wrong('dailySpendCapCents', 'must be an amount in euros such as 10 or 2.50', text)
    const cap = Number(euros) * 100 + Number(cents.padEnd(2, '0'))
    if (bounds === null || cap <= bounds.centsADay) return cap
    const why = `no units that fit the ${bounds.diskGb} GB of disk of the plan cost more in a day`
    return wrong('dailySpendCapCents', `must be at most ${inEuros(bounds.centsADay)}: ${why}`, text)
  }

  function expiresIn(): string | null {
    if (expiresAt === '') return null
    return isTime
      ? `${expiresAt.padEnd(19, ':00')}Z`
      : wrong('expiresAt', 'must be a date and a time, or empty', expiresAt)
  }
}

/** As the field takes it: without a comma between thousands. */
function inEuros(cents: number): string {
  return (cents / 100).toFixed(2)
}

function linesOf(text: string): string[] {
  return text.split(/\s+/).filter((line) => line !== '')
}

const labels: Record<keyof Policy | 'name', string> = {
  name: 'Name of the agent',
  maxConcurrentUnits: 'Units at once',
  dailySpendCapCents: 'Euros a day',
  allowedSizes: 'Sizes',
  allowedRegistries: 'Registries of images',
  maxSleep: 'Longest time a unit may idle before it sleeps',
  expiresAt: 'Until',
  egress: 'What its units may reach',
  allowedSecrets: "The team's secrets that its units may use",
  allowNested: 'Containers in its units',
  rates: 'Calls a minute',
}

/** Writes the fields, each with its faults. */
export function consentFields(fields: Fields, bounds: PlanBounds, issues: Issue[]): string {
  const row = (field: keyof typeof labels, hint: string, input: string) => {
    const path = field === 'name' ? field : `policy.${field}`
    const issue = issues.find((each) => each.path === path || each.path.startsWith(`${path}.`))
    const wrong = issue ? `<span class="wrong" role="alert">${escapeHtml(issue.message)}</span>` : ''
    const text = `${labels[field]}${hint === '' ? '' : ` <small>${hint}</small>`}`
    const label =
      field === 'allowedSizes'
        ? `<span class="label">${text}</span>`
        : `<label for="${field}">${text}</label>`
    return `<p>${label}${input}${wrong}</p>`
  }
  const text = (field: keyof typeof labels, name: keyof Fields, rest = '') =>
    `<input type="text" id="${field}" name="${name}" value="${escapeHtml(String(fields[name]))}" ${rest}>`
  const boxes = sizes.map(
    (size) =>
      `<label><input type="checkbox" name="allowedSizes" value="${size}"${fields.allowedSizes.includes(size) ? ' checked' : ''}> ${size}</label>`,
  )
  return [
    row('name', '', text('name', 'name', 'maxlength="80" required autocomplete="off"')),
    row(
      'maxConcurrentUnits',
      `at most ${bounds.units}`,
      text('maxConcurrentUnits', 'maxConcurrentUnits', 'inputmode="numeric"'),
    ),
    row(
      'dailySpendCapCents',
      `at most ${inEuros(bounds.centsADay)}`,
      text('dailySpendCapCents', 'dailySpendCap', 'inputmode="decimal"'),
    ),
    row(
      'allowedSizes',
      '',
      `<span class="choices" role="group" aria-label="${labels.allowedSizes}">${boxes.join(' ')}</span>`,
    ),
    row(
      'allowedRegistries',
      'one a line',
      `<textarea id="allowedRegistries" name="allowedRegistries" rows="3" spellcheck="false">${escapeHtml(fields.allowedRegistries)}</textarea>`,
    ),
    row('maxSleep', '30m, 2h, 1d, or never for no limit', text('maxSleep', 'maxSleep', 'autocomplete="off"')),
    row(
      'expiresAt',
      'UTC; empty: until it is revoked',
      `<input type="datetime-local" step="1" id="expiresAt" name="expiresAt" value="${escapeHtml(fields.expiresAt)}">`,
    ),
    row(
      'egress',
      'public hosts; names to list, one a line, such as api.github.com, *.pythonhosted.org or preset:npm; addresses that are refused, such as 203.0.113.0/24; and units of the team',
      [
        select('egress', 'egressMode', fields.egressMode, [
          ['open', 'every public host'],
          ['listed', 'only the hosts listed here'],
          ['none', 'no public host'],
        ]),
        `<textarea name="egressAllow" rows="3" spellcheck="false" aria-label="Hosts to list">${escapeHtml(fields.egressAllow)}</textarea>`,
        `<textarea name="egressDeny" rows="2" spellcheck="false" aria-label="Addresses to refuse">${escapeHtml(fields.egressDeny)}</textarea>`,
        select('egressSiblings', 'egressSiblings', fields.egressSiblings, [
          ['team', 'every unit of the team'],
          ['stack', 'the units of its own stack'],
          ['none', 'no other unit'],
        ]),
      ].join('\n'),
    ),
    row(
      'allowedSecrets',
      'names, one a line; the units never see the values',
      `<textarea id="allowedSecrets" name="allowedSecrets" rows="2" spellcheck="false">${escapeHtml(fields.allowedSecrets)}</textarea>`,
    ),
    row(
      'allowNested',
      'with docker, podman or buildah',
      `<input type="checkbox" id="allowNested" name="allowNested"${fields.allowNested ? ' checked' : ''}>`,
    ),
    row(
      'rates',
      "requests, creations or execs and a number, one a line; empty for the service's",
      `<textarea id="rates" name="rates" rows="2" spellcheck="false">${escapeHtml(fields.rates)}</textarea>`,
    ),
  ].join('\n')
}

function select(id: string, name: string, chosen: string, options: [string, string][]): string {
  const items = options.map(
    ([value, text]) => `<option value="${value}"${value === chosen ? ' selected' : ''}>${text}</option>`,
  )
  const label = name === 'egressSiblings' ? ' aria-label="Units of the team"' : ''
  return `<select id="${id}" name="${name}"${label}>${items.join('')}</select>`
}
