// The filters of the audit page, kept in the URL.

export type AuditSearch = {
  agent?: string
  action?: string
  target?: string
  since?: string
  until?: string
  failed?: boolean
  /** Also calls that change nothing. */
  all?: boolean
}

export function readAuditSearch(search: Record<string, unknown>): AuditSearch {
  const text = (name: string) => {
    const value = search[name]
    return typeof value === 'string' && value !== '' ? value : undefined
  }
  const moment = (name: string) => {
    const value = text(name)
    return value === undefined || Number.isNaN(Date.parse(value)) ? undefined : value
  }
  return cleanSearch({
    agent: text('agent'),
    action: text('action'),
    target: text('target'),
    since: moment('since'),
    until: moment('until'),
    failed: search['failed'] === true || search['failed'] === 'true' || undefined,
    all: search['all'] === true || search['all'] === 'true' || undefined,
  })
}

export function cleanSearch(
  search: { [Name in keyof AuditSearch]: AuditSearch[Name] | undefined },
): AuditSearch {
  return Object.fromEntries(Object.entries(search).filter(([, value]) => value !== undefined))
}
